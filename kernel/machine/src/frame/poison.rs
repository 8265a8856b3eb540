//! Poison for free frames, in the fortress profile: what writes to a frame that it gave back is caught when the frame
//! is next taken.
//!
//! The mark that a frame is poisoned is its note, which is unused while the frame is free; frames that were never used
//! have none. Frames that wait as cleared are not poisoned: they must hold zeros when they are given back and when they
//! are taken. In other profiles these functions are empty.

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

    pub(super) fn verify_cleared(number: FrameNumber) {
        let words = direct(number.addr()).cast::<u64>();
        for index in 0..PAGE_SIZE / 8 {
            // SAFETY: the caller's reference is the only one to the frame.
            let found = unsafe { words.add(index).read_volatile() };
            assert!(found == 0, "frame {:#x}: {found:#x} at {:#x} of a cleared page table", number.0, index * 8);
        }
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

/// Panics when a frame that its owner, the only one, says is of zeros is not.
#[inline(always)]
pub(super) fn verify_cleared(number: FrameNumber) {
    #[cfg(feature = "fortress")]
    fortress::verify_cleared(number);
    #[cfg(not(feature = "fortress"))]
    let _ = number;
}
