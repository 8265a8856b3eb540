//! Says how far long jobs are.

use std::ops::ControlFlow;

use super::{Generations, Message};

/// Tells how far a long job is, and whether its result is still wanted.
pub(super) struct Watch<'w> {
    /// For which crash.
    pub(super) generation: u64,
    /// What is being done.
    pub(super) what: &'static str,
    /// What is looked at now.
    pub(super) current: &'w Generations,
    /// Who is told.
    pub(super) send: &'w mut dyn FnMut(Message),
}

impl Watch<'_> {
    /// Tells how much of how much is done; says whether to go on.
    pub(super) fn told(&mut self, done: usize, total: usize) -> ControlFlow<()> {
        if !self.current.is_crash(self.generation) {
            return ControlFlow::Break(());
        }
        // A hundred messages say it as well as a hundred thousand.
        if done.is_multiple_of((total / 100).max(1)) && done < total {
            (self.send)(Message::Progress { generation: self.generation, what: self.what, done, total });
        }
        ControlFlow::Continue(())
    }

    /// Tells that it is done, or given up.
    pub(super) fn finished(&mut self) {
        (self.send)(Message::Progress { generation: self.generation, what: self.what, done: 1, total: 1 });
    }
}
