//! Long texts in the making: what one takes counts for the process that makes it, and a lack of memory is an error.

use alloc::vec::Vec;
use core::fmt;

use linux_abi::Errno;

use crate::mm::frames;
use crate::task::kept::Keeping;

/// A text that is being made. A user chooses how long that of many mappings or arguments is, and how many processes
/// make one at once: where there is no room for more, there is an error, and what it takes counts for its process.
pub(super) struct Lines {
    text: Vec<u8>,
    kept: Keeping,
}

impl Lines {
    /// An empty one.
    pub(super) fn new() -> Self {
        Self { text: Vec::new(), kept: Keeping::new(0) }
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Adds `more`. ENOMEM while memory is low, too: many programs may do this at once.
    pub(super) fn push(&mut self, more: &[u8]) -> Result<(), Errno> {
        self.reserve(more.len())?;
        self.text.extend_from_slice(more);
        Ok(())
    }

    /// Adds `count` zeros, to be written.
    pub(super) fn room(&mut self, count: usize) -> Result<&mut [u8], Errno> {
        self.reserve(count)?;
        let before = self.text.len();
        self.text.resize(before + count, 0);
        Ok(&mut self.text[before..])
    }

    /// What was made.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.text
    }

    fn reserve(&mut self, more: usize) -> Result<(), Errno> {
        let before = self.text.capacity();
        if before - self.text.len() >= more {
            return Ok(());
        }
        frames::spare()?;
        self.text.try_reserve(more).map_err(|_| Errno::ENOMEM)?;
        self.kept.change(self.text.capacity());
        Ok(())
    }
}

impl fmt::Write for Lines {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push(more.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// What it means that a text takes no more.
pub(super) fn full(_: fmt::Error) -> Errno {
    Errno::ENOMEM
}
