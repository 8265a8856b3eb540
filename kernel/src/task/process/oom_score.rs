//! `oom_score_adj`: how much more or less than its size a process counts when the OOM killer chooses (proc(5)).

use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use linux_abi::Errno;

/// The adjustment, in thousandths of memory from [`OomScore::NEVER`] to `-NEVER`.
#[derive(Default)]
pub struct OomScore {
    adjustment: AtomicI32,
    /// The least adjustment that an unprivileged writer may set: what a privileged one set last.
    floor: AtomicI32,
}

impl OomScore {
    /// The adjustment of a process that the OOM killer never chooses.
    pub const NEVER: i32 = -1000;

    /// A child's: the parent's.
    pub(super) fn inherited(&self) -> Self {
        let copy = |value: &AtomicI32| AtomicI32::new(value.load(Relaxed));
        Self { adjustment: copy(&self.adjustment), floor: copy(&self.floor) }
    }

    /// The adjustment, -1000 to 1000.
    pub fn adjustment(&self) -> i32 {
        self.adjustment.load(Relaxed)
    }

    /// Sets the adjustment: `EINVAL` out of range, `EACCES` below the floor without privilege.
    pub fn set(&self, adjustment: i32, privileged: bool) -> Result<(), Errno> {
        if !(Self::NEVER..=-Self::NEVER).contains(&adjustment) {
            return Err(Errno::EINVAL);
        }
        if privileged {
            self.floor.store(adjustment, Relaxed);
        } else if adjustment < self.floor.load(Relaxed) {
            return Err(Errno::EACCES);
        }
        self.adjustment.store(adjustment, Relaxed);
        Ok(())
    }
}
