//! A lock that may be held while user memory is copied: its holder can take page faults, which a spin lock forbids.
//!
//! It guards an order of events (who moves the position, who writes), not data. Its holder never sleeps for long, so a
//! waiter offers the processor to others instead of queueing.

use core::sync::atomic::{AtomicBool, Ordering};

/// Lets one in at a time.
#[derive(Debug, Default)]
pub struct Gate(AtomicBool);

/// Inside; leaves when dropped.
pub struct Inside<'g>(&'g AtomicBool);

impl Gate {
    /// Nobody inside.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Goes in, once nobody else is.
    #[inline]
    pub fn enter(&self) -> Inside<'_> {
        while self.0.swap(true, Ordering::Acquire) {
            crate::sched::yield_now();
        }
        Inside(&self.0)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
