//! How a list is looked at: sideways, closer, from farther away.

use super::App;
use crate::view::{Look, Slot};

impl App {
    /// Pans the timeline, moves by bytes in hex, scrolls columns elsewhere.
    pub(super) fn sideways(&mut self, by: isize) {
        let Some(view) = self.view() else { return };
        let len = view.len();
        match self.slot() {
            Some(Slot::Hex) if len > 0 => {
                let list = self.list_mut();
                let byte = isize::from(list.look.byte) + by;
                let at_end =
                    (byte < 0 && list.position(len) == 0) || (byte > 15 && list.position(len) + 1 >= list.count(len));
                if !at_end {
                    list.step(byte.div_euclid(16), len);
                    list.look.byte = byte.rem_euclid(16) as u8;
                }
            }
            Some(Slot::Timeline) => {
                let Some(row) = self.selected() else { return };
                if let Some((whole, _)) = view.extent(row) {
                    self.list_mut().look.pan(whole, by);
                }
            }
            Some(Slot::Spans) => {
                let row = self.selected().and_then(|row| view.neighbour(row, by > 0));
                row.into_iter().for_each(|row| self.list_mut().select(row, len));
            }
            _ => {
                let list = self.list_mut();
                list.left = list.left.saturating_add_signed(by * 8);
            }
        }
    }

    /// Looks closer around the selected row, or from farther away: `times`/`of` of what was seen.
    pub(super) fn zoom(&mut self, times: u64, of: u64) {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return };
        let look = &mut self.list_mut().look;
        if let Some(focus) = view.focus(row) {
            look.window = if times < of { Some(focus) } else { look.window.and_then(|window| view.around(window)) };
        } else if let Some((whole, here)) = view.extent(row) {
            look.zoom(whole, here, times, of);
        }
    }
}

impl Look {
    /// Moves the window by eighths of its width, within the `whole` extent of the view.
    fn pan(&mut self, (first, last): (u64, u64), by: isize) {
        let Some((from, to)) = self.window else { return };
        let step = (to.saturating_sub(from) / 8).max(1);
        let window = if by < 0 {
            let step = step.min(from.saturating_sub(first));
            (from - step, to.saturating_sub(step))
        } else {
            let step = step.min(last.saturating_sub(to));
            (from.saturating_add(step), to.saturating_add(step))
        };
        self.window = Some(window);
    }

    /// Scales the window around `here`; one as wide as the `whole` extent is none.
    fn zoom(&mut self, (first, last): (u64, u64), here: u64, times: u64, of: u64) {
        let (from, to) = self.window.unwrap_or((first, last));
        let wide = to.saturating_sub(from).max(1);
        let wide = u64::try_from(u128::from(wide) * u128::from(times) / u128::from(of)).unwrap_or(u64::MAX).max(1);
        if wide >= last.saturating_sub(first) {
            self.window = None;
            return;
        }
        let from = here.saturating_sub(wide / 2).max(first).min(last.saturating_sub(wide));
        self.window = Some((from, from + wide));
    }
}
