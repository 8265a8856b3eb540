//! Poison for free frames, in the fortress profile: what writes to a frame that it gave back is caught when the frame
//! is next taken.
//!
//! The mark that a frame is poisoned is its note, which is unused while the frame is free; frames that were never used
//! have none. In other profiles both functions are empty.

use core::sync::atomic::AtomicU64;

use crate::addr::FrameNumber;

#[cfg(feature = "fortress")]
mod fortress {
    use core::sync::atomic::{AtomicU64, Ordering};

    use super::FrameNumber;
    use crate::addr::PAGE_SIZE;
    use crate::x86_64::layout::direct;

    /// A note that no page table's owner leaves: "poisoned" backwards.
    const MARK: u64 = u64::from_le_bytes(*b"denosiop");
    /// An address that faults, should it ever be used as a pointer.
    const POISON: u64 = 0xdead_4bad_dead_4bad;

    pub(super) fn fill(number: FrameNumber, note: &AtomicU64) {
        let words = direct(number.addr()).cast::<u64>();
        for index in 0..PAGE_SIZE / 8 {
            // SAFETY: the last reference is gone and the frame is not free yet: its memory is ours alone.
            unsafe { words.add(index).write_volatile(POISON) };
        }
        note.store(MARK, Ordering::Relaxed);
    }

    pub(super) fn verify(number: FrameNumber, note: &AtomicU64) {
        if note.swap(0, Ordering::Relaxed) != MARK {
            return;
        }
        let words = direct(number.addr()).cast::<u64>();
        for index in 0..PAGE_SIZE / 8 {
            // SAFETY: claimed, so its memory is the caller's.
            let found = unsafe { words.add(index).read_volatile() };
            assert!(
                found == POISON,
                "frame {:#x}: {found:#x} written at {:#x} after it was freed",
                number.0,
                index * 8
            );
        }
    }
}

/// Overwrites a frame whose last reference is gone, before it can be taken. `note` finds the frame's note.
#[inline(always)]
pub(super) fn fill(number: FrameNumber, note: impl FnOnce() -> &'static AtomicU64) {
    #[cfg(feature = "fortress")]
    fortress::fill(number, note());
    #[cfg(not(feature = "fortress"))]
    let _ = (number, note);
}

/// Panics when a frame that was just taken was written to while it was free. `note` finds the frame's note.
#[inline(always)]
pub(super) fn verify(number: FrameNumber, note: impl FnOnce() -> &'static AtomicU64) {
    #[cfg(feature = "fortress")]
    fortress::verify(number, note());
    #[cfg(not(feature = "fortress"))]
    let _ = (number, note);
}
