//! The status line and the progress of jobs.

use std::collections::BTreeMap;

use crate::theme::Tone;

/// The last sentence for the user, and how far each kind of work is.
#[derive(Debug, Default)]
pub struct Status {
    said: Option<(Tone, String)>,
    progress: BTreeMap<&'static str, (usize, usize)>,
}

impl Status {
    /// Replaces the sentence.
    pub(super) fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.said = Some((tone, text.into()));
    }

    /// Removes the sentence: the footer shows the keys again.
    pub(super) fn clear(&mut self) {
        self.said = None;
    }

    /// Records that `done` of `total` units of a kind of work are finished; finished work is no longer listed.
    pub(super) fn advance(&mut self, what: &'static str, done: usize, total: usize) {
        if done >= total {
            self.progress.remove(what);
        } else {
            self.progress.insert(what, (done, total));
        }
    }

    /// Forgets all work: another crash has been opened.
    pub(super) fn abandon(&mut self) {
        self.progress.clear();
    }

    /// Whether a kind of work goes on.
    pub(super) fn is_doing(&self, what: &str) -> bool {
        self.progress.contains_key(what)
    }

    /// The sentence, until the next key.
    #[must_use]
    pub const fn said(&self) -> Option<&(Tone, String)> {
        self.said.as_ref()
    }

    /// The first kind of unfinished work, and how much of it is done in percent.
    #[must_use]
    pub fn progress(&self) -> Option<(&'static str, usize)> {
        let (what, (done, total)) = self.progress.iter().next()?;
        Some((what, done * 100 / (*total).max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_work_is_no_longer_listed() {
        let mut status = Status::default();
        status.advance("events", 1, 4);
        assert_eq!(status.progress(), Some(("events", 25)));
        status.advance("events", 4, 4);
        assert_eq!(status.progress(), None);
    }

    #[test]
    fn another_crash_ends_the_progress_and_keeps_the_sentence() {
        let mut status = Status::default();
        status.say(Tone::Good, "copied");
        status.advance("events", 0, 0);
        status.advance("hex", 1, 2);
        status.abandon();
        assert_eq!((status.progress(), status.said().map(|(_, text)| text.as_str())), (None, Some("copied")));
        status.clear();
        assert_eq!(status.said(), None);
    }
}
