//! Questions to lists: filter, order and search, answered at once or by a job.
//!
//! Every question has a number that its job carries, so that the answer to an old question is dropped.

use std::sync::Arc;

use super::outcome::Outcome;
use crate::list::{AT_ONCE, ListState, answer, search};
use crate::load::{Job, ListId};
use crate::theme::Tone;
use crate::view::View;

/// The number of the last question.
#[derive(Debug, Default)]
pub(super) struct Questions {
    last: u64,
}

impl Questions {
    /// The number of the last question.
    pub(super) const fn last(&self) -> u64 {
        self.last
    }

    /// Ends the question that a job still works on: its answer will be dropped.
    pub(super) const fn cancel(&mut self) {
        self.last += 1;
    }

    /// Asks which rows a list shows under its filter and order: a short list shows them at once, a long one is pending
    /// until the returned job has answered.
    ///
    /// # Errors
    /// What the filter has that cannot be understood; the rows stay as they were.
    pub(super) fn ask(&mut self, id: ListId, view: Arc<dyn View>, list: &mut ListState) -> Result<Option<Job>, String> {
        let question = list.question();
        self.last += 1;
        if view.len() > AT_ONCE && !question.is_trivial() {
            list.pending = true;
            return Ok(Some(Job::Answer { list: id, number: self.last, view, question }));
        }
        let rows = answer(view.as_ref(), &question, &mut |_| true).map_err(|error| error.to_string());
        take(rows, view.len(), list).map(|()| None)
    }

    /// Looks for the next row, or the one before, that the filter of a list holds for; without a filter the last one
    /// counts. Among filtered rows it is the neighbour.
    pub(super) fn seek(
        &mut self,
        id: ListId,
        view: Option<Arc<dyn View>>,
        list: &mut ListState,
        forward: bool,
    ) -> Outcome {
        if list.shown.is_some() && list.sort.is_none() {
            if let Some(view) = view {
                list.step(if forward { 1 } else { -1 }, view.len());
            }
            return Outcome::default();
        }
        let mut filter = if list.filter.is_empty() { list.last_filter.clone() } else { list.filter.clone() };
        if filter.is_empty() && view.as_ref().is_some_and(|view| view.pair().is_some()) {
            filter = "same:no".to_string();
        }
        if filter.is_empty() {
            return Outcome::say(Tone::Dim, "no filter yet; / sets one");
        }
        let Some(view) = view else { return Outcome::default() };
        let Some(from) = list.current(view.len()) else { return Outcome::default() };
        if view.len() > AT_ONCE {
            self.last += 1;
            return Outcome::jobs([Job::Seek { list: id, number: self.last, view, filter, from, forward }]);
        }
        match search(view.as_ref(), &filter, from, forward, &mut |_| true) {
            Ok(Some(row)) => {
                list.select(row, view.len());
                Outcome::default()
            }
            Ok(None) => Outcome::say(Tone::Care, "no row matches"),
            Err(error) => Outcome::say(Tone::Care, error.to_string()),
        }
    }
}

/// Shows the rows that answer a question about a list of `len` rows.
///
/// # Errors
/// The answer's own; the list is no longer pending, and its rows stay.
pub(super) fn take(rows: Result<Option<Vec<u32>>, String>, len: usize, list: &mut ListState) -> Result<(), String> {
    list.pending = false;
    list.show(rows?);
    list.clip(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::{Mark, Marks};
    use crate::view::Target;

    fn view() -> Arc<dyn View> {
        let mark = |(line, row): (u64, &str)| Mark { target: Target::Line(line), row: row.into(), note: String::new() };
        let marks = [(1, "open"), (2, "write"), (3, "close"), (4, "write")].map(mark);
        Arc::new(crate::view::marks::marks(&Marks { marks: marks.into() }))
    }

    #[test]
    fn a_short_list_is_filtered_at_once_and_keeps_its_rows_under_a_wrong_filter() {
        let (mut questions, mut list) = (Questions::default(), ListState::default());
        list.filter = "write".to_string();
        assert!(matches!(questions.ask(ListId::Catalogue, view(), &mut list), Ok(None)));
        assert_eq!(list.shown.as_deref(), Some(&vec![1, 3]));
        list.filter = "nofield:1".to_string();
        assert!(questions.ask(ListId::Catalogue, view(), &mut list).is_err());
        assert_eq!((list.count(4), list.pending), (2, false));
    }

    #[test]
    fn every_question_has_its_own_number_and_a_cancelled_one_is_not_the_last() {
        let (mut questions, mut list) = (Questions::default(), ListState::default());
        assert!(questions.ask(ListId::Catalogue, view(), &mut list).is_ok());
        let asked = questions.last();
        questions.cancel();
        assert_ne!(questions.last(), asked);
    }

    #[test]
    fn a_search_goes_on_from_the_selected_row_and_round_the_end() {
        let (mut questions, mut list) = (Questions::default(), ListState::default());
        let mut seek = |list: &mut ListState, forward| {
            let said = questions.seek(ListId::Catalogue, Some(view()), list, forward).said;
            (list.selected, said.map(|(_, text)| text))
        };
        assert!(seek(&mut list, true).1.is_some(), "nothing to look for is said");
        list.last_filter = "write".to_string();
        assert_eq!(seek(&mut list, true), (1, None));
        assert_eq!(seek(&mut list, true), (3, None));
        assert_eq!(seek(&mut list, true), (1, None));
        assert_eq!(seek(&mut list, false), (3, None));
    }
}
