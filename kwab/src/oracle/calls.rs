//! What the comparison knows of system calls and signals beside their arguments.

use linux_abi::syscalls::Traits;
use linux_abi::syscalls::pointee::{Pointee, Way};

use super::trace::Called;

impl Called {
    /// Whether the call has a property; calls that Linux does not have, have none.
    pub(super) fn has(&self, property: Traits) -> bool {
        self.known.is_some_and(|known| known.traits.has(property))
    }

    /// Whether the call only reads what an argument points at.
    pub(super) fn reads(&self, at: usize) -> bool {
        let mut words = [None; 6];
        words.iter_mut().zip(&self.args).for_each(|(word, arg)| *word = arg.word);
        Pointee::of(&self.name, at, &words).is_some_and(|pointee| pointee.way == Way::In)
    }
}

/// Signals that end a thread at an instruction or a call of its own (signal(7)), the same one in every run.
pub(super) const OWN_SIGNALS: &[&str] =
    &["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGPIPE", "SIGSEGV", "SIGSYS", "SIGTRAP", "SIGXCPU", "SIGXFSZ"];
