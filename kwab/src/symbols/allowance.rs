//! Bounds what reading an image may cost by the bytes it has.
//!
//! Tables of ELF and DWARF point at each other freely: a thousand units may name one line program, a thousand
//! functions one list of ranges, a thousand symbols the ends of one long name, and a section of zeros unpacks a
//! thousandfold. What is read is charged to an [`Allowance`] in bytes of memory or, where nothing is kept, in steps.
//! Honest images take a small part of it; what is beyond it is left out.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is allowed at least, in bytes or steps.
const BASE: u64 = 4 << 20;

/// What may still be spent. Workers share it.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Allowance {
    /// For `bytes` of input that may cost `growth` each.
    pub(super) const fn new(bytes: u64, growth: u64) -> Self {
        Self::exactly(BASE.saturating_add(bytes.saturating_mul(growth)))
    }

    /// For this many bytes or steps.
    pub(super) const fn exactly(cost: u64) -> Self {
        Self(AtomicU64::new(cost))
    }

    /// Takes `cost` out of it; whether there was as much. Once it has refused it refuses everything.
    pub(super) fn take(&self, cost: u64) -> bool {
        let rest = |left: u64| Some(left.saturating_sub(cost));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).unwrap_or(0);
        before > cost
    }

    /// Whether it is used up.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_once_is_refused_for_good() {
        let allowance = Allowance::exactly(10);
        assert!(allowance.take(4) && allowance.take(5));
        assert!(!allowance.take(2) && allowance.is_spent());
        assert!(!allowance.take(0));
    }
}
