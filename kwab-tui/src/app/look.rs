//! How a list is looked at: sideways, closer, from farther away.

use super::App;
use crate::view::Slot;

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
            Some(Slot::Timeline) => self.pan(by),
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

    fn pan(&mut self, by: isize) {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return };
        let Some(((first, last), _)) = view.extent(row) else { return };
        let list = self.list_mut();
        let Some((from, to)) = list.look.window else { return };
        let step = (to.saturating_sub(from) / 8).max(1);
        let window = if by < 0 {
            let step = step.min(from.saturating_sub(first));
            (from - step, to.saturating_sub(step))
        } else {
            let step = step.min(last.saturating_sub(to));
            (from.saturating_add(step), to.saturating_add(step))
        };
        list.look.window = Some(window);
    }

    /// Looks closer around the selected row, or from farther away.
    pub(super) fn zoom(&mut self, times: u64, of: u64) {
        let (Some(view), Some(row)) = (self.view(), self.selected()) else { return };
        if let Some(focus) = view.focus(row) {
            let look = &mut self.list_mut().look;
            look.window = if times < of { Some(focus) } else { look.window.and_then(|window| view.around(window)) };
            return;
        }
        let Some(((first, last), here)) = view.extent(row) else { return };
        let list = self.list_mut();
        let (from, to) = list.look.window.unwrap_or((first, last));
        let wide = to.saturating_sub(from).max(1);
        let wide = u64::try_from(u128::from(wide) * u128::from(times) / u128::from(of)).unwrap_or(u64::MAX).max(1);
        if wide >= last.saturating_sub(first) {
            list.look.window = None;
            return;
        }
        let from = here.saturating_sub(wide / 2).max(first).min(last.saturating_sub(wide));
        list.look.window = Some((from, from + wide));
    }
}
