//! Selection, filter, sorting and search over any view: what is selected keeps its meaning whatever is shown around it.
//!
//! The selection is a row of the *view*, not of the screen. A filter, a sort or new rows change which rows are shown
//! and where; the selected row stays selected as long as it is shown, and otherwise its nearest neighbour is.

mod look;

use std::sync::Arc;

use kwab::report::filter::{Filter, FilterError};

use crate::view::{Key, Look, RowFields, View};

/// Lists up to this length are filtered and searched at once; longer ones in the background.
pub const AT_ONCE: usize = 4_000;

/// What is shown of a list.
#[derive(Debug, Clone, Default)]
pub struct ListState {
    /// The selected row of the view.
    pub selected: usize,
    /// The first position that is drawn.
    pub top: usize,
    /// Columns that are scrolled off at the left.
    pub left: usize,
    /// Lines of the detail that are scrolled off.
    pub detail: usize,
    /// The filter that is in force, as typed.
    pub filter: String,
    /// The last filter, which next and previous look for.
    pub last_filter: String,
    /// The rows that are shown, in their order; absent: all.
    pub shown: Option<Arc<Vec<u32>>>,
    /// Whether the rows are being looked for in the background.
    pub pending: bool,
    /// What is sorted by, and whether the largest come first.
    pub sort: Option<(usize, bool)>,
    /// How the list is looked at.
    pub look: Look,
    /// Whether a person or a link selected the row, rather than its being the first.
    pub placed: bool,
}

impl ListState {
    /// What the list is asked: its filter and its order.
    #[must_use]
    pub fn question(&self) -> Question {
        Question { filter: self.filter.clone(), sort: self.sort }
    }

    /// How many rows are shown of a view with `len`.
    #[must_use]
    pub fn count(&self, len: usize) -> usize {
        self.shown.as_ref().map_or(len, |shown| shown.len())
    }

    /// The view's row at a position.
    #[must_use]
    pub fn row_at(&self, position: usize) -> usize {
        match &self.shown {
            Some(shown) => shown.get(position).map_or(0, |row| *row as usize),
            None => position,
        }
    }

    /// The position of the selected row: its own, or that of its nearest shown neighbour.
    #[must_use]
    pub fn position(&self, len: usize) -> usize {
        match &self.shown {
            None => self.selected.min(len.saturating_sub(1)),
            Some(shown) if self.sort.is_none() => {
                let wanted = u32::try_from(self.selected).unwrap_or(u32::MAX);
                shown.partition_point(|row| *row < wanted).min(shown.len().saturating_sub(1))
            }
            Some(shown) => shown.iter().position(|row| *row as usize == self.selected).unwrap_or(0),
        }
    }

    /// The selected row, when there is one.
    #[must_use]
    pub fn current(&self, len: usize) -> Option<usize> {
        if self.count(len) == 0 { None } else { Some(self.row_at(self.position(len))) }
    }

    /// Selects the row at a position.
    pub fn go(&mut self, position: usize, len: usize) {
        let row = self.row_at(position.min(self.count(len).saturating_sub(1)));
        if row != self.selected {
            self.detail = 0;
        }
        (self.selected, self.placed) = (row, true);
    }

    /// Moves by rows; stops at the ends.
    pub fn step(&mut self, by: isize, len: usize) {
        let position = self.position(len).saturating_add_signed(by);
        self.go(position, len);
    }

    /// Selects a row of the view; a filter that hides it is taken away.
    pub fn select(&mut self, row: usize, len: usize) {
        let row = row.min(len.saturating_sub(1));
        let hidden = self.shown.as_ref().is_some_and(|shown| !shown.contains(&u32::try_from(row).unwrap_or(u32::MAX)));
        if hidden {
            self.show_all();
        }
        if row != self.selected {
            self.detail = 0;
        }
        self.selected = row;
    }

    /// Takes the filter away; next and previous still look for it.
    pub fn show_all(&mut self) {
        if !self.filter.is_empty() {
            self.last_filter = std::mem::take(&mut self.filter);
        }
        self.shown = None;
        self.sort = None;
        self.pending = false;
    }

    /// Scrolls so that the selected row is among `height` rows.
    pub fn scroll(&mut self, len: usize, height: usize) {
        let position = self.position(len);
        let count = self.count(len);
        let height = height.max(1);
        self.top = self.top.min(position).min(count.saturating_sub(height.min(count)));
        if position >= self.top + height {
            self.top = position + 1 - height;
        }
    }

    /// Forgets rows that a list of `len` does not have: it has been replaced by a shorter one.
    pub fn clip(&mut self, len: usize) {
        let beyond = |row: &u32| *row as usize >= len;
        if let Some(shown) = self.shown.as_mut().filter(|shown| shown.iter().any(beyond)) {
            Arc::make_mut(shown).retain(|row| !beyond(row));
        }
        self.selected = self.selected.min(len.saturating_sub(1));
    }

    /// Shows what `rows` says; the selection moves only when its row is not among them.
    pub fn show(&mut self, rows: Option<Vec<u32>>) {
        self.pending = false;
        self.shown = rows.map(Arc::new);
        let Some(shown) = self.shown.as_deref().filter(|shown| !shown.is_empty()) else { return };
        let wanted = u32::try_from(self.selected).unwrap_or(u32::MAX);
        let instead = if self.sort.is_some() {
            // In another order no row is next to it.
            if shown.contains(&wanted) { None } else { shown.first() }
        } else {
            let at = shown.partition_point(|row| *row < wanted).min(shown.len() - 1);
            shown.get(at).filter(|row| **row != wanted)
        };
        if let Some(row) = instead {
            self.selected = *row as usize;
            self.detail = 0;
        }
    }
}

/// What is asked of a list: a filter and an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The filter as typed.
    pub filter: String,
    /// Column and direction.
    pub sort: Option<(usize, bool)>,
}

impl Question {
    /// Whether every row answers it, in the view's own order.
    #[must_use]
    pub const fn is_trivial(&self) -> bool {
        self.filter.is_empty() && self.sort.is_none()
    }
}

/// The rows that answer a question; `None` when all of them do, in their own order.
///
/// `go_on` is told how many rows have been looked at, and ends the work by saying no.
///
/// # Errors
/// What the filter has that cannot be understood.
pub fn answer(
    view: &dyn View,
    question: &Question,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<Vec<u32>>, FilterError> {
    let filter = Filter::parse(&question.filter, &view.all_fields())?;
    if filter.is_empty() && question.sort.is_none() {
        return Ok(None);
    }
    let mut rows: Vec<u32> = Vec::new();
    for index in 0..view.len() {
        if index % 1024 == 0 && !go_on(index) {
            break;
        }
        if filter.is_empty() || filter.holds(&RowFields { view, index }) {
            rows.extend(u32::try_from(index));
        }
    }
    if let Some((column, largest_first)) = question.sort {
        let mut keyed: Vec<(Key, u32)> =
            rows.iter().map(|row| (view.key(*row as usize, column).unwrap_or(Key::Nothing), *row)).collect();
        keyed.sort_by(|a, b| if largest_first { b.0.cmp(&a.0) } else { a.0.cmp(&b.0) }.then(a.1.cmp(&b.1)));
        rows = keyed.into_iter().map(|(_, row)| row).collect();
    }
    Ok(Some(rows))
}

/// The next row after `from` (or before it) that a filter holds for, going round at the end.
///
/// # Errors
/// What the filter has that cannot be understood.
pub fn search(
    view: &dyn View,
    filter: &str,
    from: usize,
    forward: bool,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<usize>, FilterError> {
    let filter = Filter::parse(filter, &view.all_fields())?;
    let len = view.len();
    for step in 1..=len {
        if step % 1024 == 0 && !go_on(step) {
            return Ok(None);
        }
        let index = if forward { (from + step) % len } else { (from + len - step) % len };
        if filter.holds(&RowFields { view, index }) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}
