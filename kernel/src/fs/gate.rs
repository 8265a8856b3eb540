//! A lock that may be held while user memory is copied: its holder can take page faults, which a spin lock forbids.
//!
//! It guards an order of events (who moves the position, who writes), not data. Its holder is mostly gone soon, so a waiter
//! offers the processor to others at first; then it sleeps between two looks, so that a holder of any priority gets on.

use core::sync::atomic::{AtomicBool, Ordering};

use machine::time::{Nanos, now};

use crate::sched::{self, Sleep};
use crate::sync::wait::sleep_until;

/// Looks before a waiter sleeps.
const PATIENCE: u32 = 100;
/// How long it sleeps.
const PAUSE: Nanos = 100_000;

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
        if self.0.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Inside(&self.0)
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        while self.0.swap(true, Ordering::Acquire) {
            looks += 1;
            if looks < PATIENCE {
                sched::yield_now();
                sched::breathe();
            } else {
                // Not for a signal: the holder needs no help to get on.
                let _ = sleep_until(now() + PAUSE, Sleep::Uninterruptible);
            }
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
