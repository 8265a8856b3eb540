//! The list that is shown, and what moves in it.

use std::sync::Arc;

use crate::list::ListState;
use crate::view::{Slot, View};

/// The shown list: its view, once that is loaded, and how it is looked at.
pub(super) struct ShownList<'w> {
    view: Option<Arc<dyn View>>,
    slot: Option<Slot>,
    list: &'w mut ListState,
}

impl<'w> ShownList<'w> {
    /// A list of a crash, or with no `slot` the list of dumps.
    pub(super) fn new(view: Option<Arc<dyn View>>, slot: Option<Slot>, list: &'w mut ListState) -> Self {
        Self { view, slot, list }
    }

    /// Moves the selection by rows, up to the first and the last.
    pub(super) fn step(self, by: isize) {
        if let Some(view) = self.view {
            self.list.step(by, view.len());
        }
    }

    /// Moves by bytes in hex, pans the timeline, goes to the neighbouring span, scrolls columns elsewhere.
    pub(super) fn sideways(self, by: isize) {
        if let Some(view) = self.view {
            self.list.sideways(view.as_ref(), self.slot, by);
        }
    }

    /// Scales the seen part around the selected row to `times`/`of` of its width.
    pub(super) fn zoom(self, times: u64, of: u64) {
        if let Some(view) = self.view {
            self.list.zoom(view.as_ref(), times, of);
        }
    }

    /// Scrolls the detail of the selected row by lines.
    pub(super) fn scroll_detail(self, by: isize) {
        self.list.scroll_detail(self.view.as_deref(), by);
    }

    /// Shows all rows, the selected one still selected; `false` if all are shown already.
    pub(super) fn unfilter(self) -> bool {
        let list = self.list;
        if list.shown.is_none() && !list.pending {
            return false;
        }
        let row = self.view.and_then(|view| list.current(view.len()));
        list.show_all();
        list.selected = row.unwrap_or(list.selected);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::{Mark, Marks};
    use crate::view::Target;

    fn view(rows: u64) -> Option<Arc<dyn View>> {
        let mark = |line| Mark { target: Target::Line(line), row: String::new(), note: String::new() };
        Some(Arc::new(crate::view::marks::marks(&Marks { marks: (1..=rows).map(mark).collect() })))
    }

    #[test]
    fn steps_end_at_the_first_and_the_last_row_and_nothing_moves_before_the_list_is_loaded() {
        let mut list = ListState::default();
        ShownList::new(view(3), None, &mut list).step(isize::MAX / 2);
        assert_eq!(list.selected, 2);
        ShownList::new(view(3), None, &mut list).step(-1);
        assert_eq!(list.selected, 1);
        ShownList::new(None, Some(Slot::Log), &mut list).step(1);
        assert_eq!(list.selected, 1);
    }

    #[test]
    fn columns_scroll_sideways_in_a_list_without_a_meaning_of_its_own_for_it() {
        let mut list = ListState::default();
        ShownList::new(view(3), Some(Slot::Log), &mut list).sideways(1);
        assert_eq!(list.left, 8);
        ShownList::new(view(3), Some(Slot::Log), &mut list).sideways(-1);
        assert_eq!(list.left, 0);
    }

    #[test]
    fn without_its_filter_a_list_shows_all_rows_and_keeps_the_selected_one() {
        let mut list = ListState { shown: Some(Arc::new(vec![1, 2])), selected: 0, ..ListState::default() };
        assert!(ShownList::new(view(3), None, &mut list).unfilter());
        assert_eq!((list.selected, list.count(3)), (1, 3), "the row that was seen as selected");
        assert!(!ShownList::new(view(3), None, &mut list).unfilter());
    }
}
