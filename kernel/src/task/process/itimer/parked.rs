//! Timers on the processor time of a process that stood still when they were due by the clock on the wall.
//!
//! A timer of processor time is armed for the moment at which its clock reads enough if the process runs until then. If
//! it did not, the timer waits here, at no cost, until a tick finds that the process has run for long enough: any user
//! may time any process, with as many timers as he may have.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::OccupiedEntry;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use machine::sync::SpinLock;
use machine::time::Nanos;

use super::IntervalTimer;

/// The slot of a timer that waits: the reading of the process's clock from which on it may be due, and its address.
pub type ParkedSlot = (Nanos, usize);

/// The timers that wait for a process.
pub struct ParkedTimers {
    /// Each with the setting in which it waits, as [`IntervalTimer`] counts them.
    waiting: SpinLock<BTreeMap<ParkedSlot, (Arc<IntervalTimer>, u64)>>,
    /// The smallest reading at which one may be due, `u64::MAX` for none.
    first: AtomicU64,
}

impl Default for ParkedTimers {
    fn default() -> Self {
        Self { waiting: SpinLock::default(), first: AtomicU64::new(u64::MAX) }
    }
}

impl ParkedTimers {
    /// Keeps `timer` until the process's clock reads `at`.
    pub(super) fn park(&self, at: Nanos, timer: &Arc<IntervalTimer>, setting: u64) -> ParkedSlot {
        let slot = (at, Arc::as_ptr(timer).addr());
        let mut waiting = self.waiting.lock();
        let before = waiting.insert(slot, (timer.clone(), setting));
        self.first.store(waiting.first_key_value().map_or(u64::MAX, |((at, _), _)| *at), Relaxed);
        drop(waiting);
        drop(before);
        slot
    }

    /// Drops the timer in `slot`, if it still is there.
    pub(super) fn unpark(&self, slot: ParkedSlot) {
        let mut waiting = self.waiting.lock();
        let gone = waiting.remove(&slot);
        self.first.store(waiting.first_key_value().map_or(u64::MAX, |((at, _), _)| *at), Relaxed);
        drop(waiting);
        drop(gone);
    }

    /// The smallest reading of the process's clock at which a timer may be due, `u64::MAX` for none.
    #[inline]
    pub fn first(&self) -> Nanos {
        self.first.load(Relaxed)
    }

    /// The process's clock reads `used`: those that may be due look at their own clocks, at most [`MOST_AT_ONCE`] of
    /// them. What is parked again meanwhile waits for the next tick, whatever the clock reads by then.
    pub fn run(&self, used: Nanos) {
        let mut due = [const { None }; MOST_AT_ONCE];
        let mut waiting = self.waiting.lock();
        for slot in &mut due {
            *slot = waiting.first_entry().filter(|entry| entry.key().0 <= used).map(OccupiedEntry::remove);
            if slot.is_none() {
                break;
            }
        }
        self.first.store(waiting.first_key_value().map_or(u64::MAX, |((at, _), _)| *at), Relaxed);
        drop(waiting);
        for (timer, setting) in due.into_iter().flatten() {
            timer.expire(setting);
        }
    }
}

/// Timers one tick looks at; strangers may have as many as they like on a process.
const MOST_AT_ONCE: usize = 20;
