//! The numbers that jobs carry, so that the answer to an old question is not taken for that to the present one.

/// Generations of crashes and numbers of questions that were given out.
#[derive(Debug)]
pub(super) struct Issued {
    crash: u64,
    last: u64,
    question: u64,
}

impl Default for Issued {
    fn default() -> Self {
        Self { crash: 1, last: 1, question: 0 }
    }
}

impl Issued {
    /// The generation of the crash that is open.
    #[must_use]
    pub(super) const fn crash(&self) -> u64 {
        self.crash
    }

    /// The number of the last question.
    #[must_use]
    pub(super) const fn question(&self) -> u64 {
        self.question
    }

    /// A generation that no job carries yet.
    pub(super) const fn next_generation(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Another crash is open: answers to jobs of the one before are old from now on.
    pub(super) const fn next_crash(&mut self) -> u64 {
        self.crash = self.next_generation();
        self.crash
    }

    /// Another question is asked: the answer to the one before is old from now on.
    pub(super) const fn next_question(&mut self) -> u64 {
        self.question += 1;
        self.question
    }
}
