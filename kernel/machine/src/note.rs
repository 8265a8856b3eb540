//! Events inside this crate that a flight recorder keeps, reported through [`crate::Kernel::note`].

use crate::processor::{CpuId, CpuMask};

/// Something that happened. Told in any context, also with locks held and interrupts off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// This processor interrupts another.
    InterruptSent {
        /// The processor that is interrupted.
        to: CpuId,
    },
    /// Another processor interrupted this one.
    InterruptReceived,
    /// This processor asks others to forget translations, and waits until they have.
    FlushAsked {
        /// The processors that must flush, one bit per number.
        of: CpuMask,
        /// Kernel translations too.
        kernel: bool,
    },
    /// This processor forgot translations because it was asked.
    FlushServed {
        /// Kernel translations too.
        kernel: bool,
    },
    /// This processor begins to wait for a spin lock.
    LockContended {
        /// The lock's address.
        lock: u64,
        /// Who holds it.
        holder: CpuId,
    },
    /// This processor took a lock that it had waited for.
    LockTaken {
        /// The lock's address.
        lock: u64,
    },
}
