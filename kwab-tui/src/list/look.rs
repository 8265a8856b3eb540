//! How a list is looked at: its order, the part of it that is seen, and the words of a hex row.

use super::ListState;
use crate::view::{Look, Slot, View};

impl ListState {
    /// Sorts by the next column that has a key, and by none after the last; returns the column.
    pub fn sort_by_next(&mut self, view: &dyn View) -> Option<usize> {
        let columns = view.columns();
        let first = self.sort.map_or(0, |(column, _)| column + 1);
        let sortable = |column: &usize| !view.is_empty() && view.key(0, *column).is_some();
        let next = (first..columns.len()).find(|column| sortable(column) && !columns[*column].name.is_empty());
        self.sort = next.map(|column| (column, false));
        next
    }

    /// Reverses the order; `false` if the list is not sorted.
    pub const fn reverse(&mut self) -> bool {
        let Some((column, largest_first)) = self.sort else { return false };
        self.sort = Some((column, !largest_first));
        true
    }

    /// Moves by bytes in hex, pans the timeline, goes to the neighbouring span, scrolls columns elsewhere.
    pub fn sideways(&mut self, view: &dyn View, slot: Option<Slot>, by: isize) {
        let len = view.len();
        match slot {
            Some(Slot::Hex) if len > 0 => {
                let byte = isize::from(self.look.byte) + by;
                let at_end =
                    (byte < 0 && self.position(len) == 0) || (byte > 15 && self.position(len) + 1 >= self.count(len));
                if !at_end {
                    self.step(byte.div_euclid(16), len);
                    self.look.byte = byte.rem_euclid(16) as u8;
                }
            }
            Some(Slot::Timeline) => {
                if let Some((whole, _)) = self.current(len).and_then(|row| view.extent(row)) {
                    self.look.pan(whole, by);
                }
            }
            Some(Slot::Spans) => {
                if let Some(row) = self.current(len).and_then(|row| view.neighbour(row, by > 0)) {
                    self.select(row, len);
                }
            }
            _ => self.left = self.left.saturating_add_signed(by * 8),
        }
    }

    /// Scales the seen part around the selected row to `times`/`of` of its width.
    pub fn zoom(&mut self, view: &dyn View, times: u64, of: u64) {
        let Some(row) = self.current(view.len()) else { return };
        let look = &mut self.look;
        if let Some(focus) = view.focus(row) {
            look.window = if times < of { Some(focus) } else { look.window.and_then(|window| view.around(window)) };
        } else if let Some((whole, here)) = view.extent(row) {
            look.zoom(whole, here, times, of);
        }
    }

    /// Scrolls the detail of the selected row by lines, up to its last one.
    pub fn scroll_detail(&mut self, view: Option<&dyn View>, by: isize) {
        let selected = view.and_then(|view| Some((view, self.current(view.len())?)));
        let most = selected.map_or(0, |(view, row)| view.detail(row, &self.look).len().saturating_sub(1));
        self.detail = self.detail.saturating_add_signed(by).min(most);
    }
}

impl Look {
    /// The next size of a word: 1, 2, 4, 8 bytes, and 1 again.
    pub const fn next_word(&mut self) {
        self.word = if self.word >= 8 { 1 } else { self.word * 2 };
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_grow_to_eight_bytes_and_begin_again() {
        let mut look = Look::default();
        let words: Vec<u8> = (0..5).map(|_| (look.word, look.next_word()).0).collect();
        assert_eq!(words, [1, 2, 4, 8, 1]);
    }

    #[test]
    fn a_window_stays_inside_its_extent() {
        let mut look = Look::default();
        look.zoom((0, 1000), 990, 1, 2);
        assert_eq!(look.window, Some((500, 1000)), "around the row, as far as there is something to see");
        look.pan((0, 1000), 1);
        assert_eq!(look.window, Some((500, 1000)));
        look.pan((0, 1000), -1);
        assert_eq!(look.window, Some((438, 938)));
        look.zoom((0, 1000), 500, 2, 1);
        assert_eq!(look.window, None, "all of it is seen again");
    }

    #[test]
    fn an_unsorted_list_is_not_reversed() {
        let mut list = ListState::default();
        assert!(!list.reverse());
        list.sort = Some((2, false));
        assert!(list.reverse());
        assert_eq!(list.sort, Some((2, true)));
    }
}
