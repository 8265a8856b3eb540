//! POSIX timers (timer_create(2)): a process's numbered interval timers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kernel_logic::signal::SigSet;
use linux_abi::Errno;
use machine::sync::SpinLock;

use super::itimer::IntervalTimer;
use crate::mm::frames;
use crate::task::account::Charge;

/// A process's timers.
pub struct PosixTimers(SpinLock<Table>);

#[derive(Default)]
struct Table {
    /// Each keeps the queue entry of its signal, counted for the user who made it.
    timers: BTreeMap<u32, (Arc<IntervalTimer>, Charge)>,
    /// The id to try next: none comes back soon, so that a signal of a deleted timer is not taken for one of a new
    /// timer.
    next: u32,
}

impl Default for PosixTimers {
    fn default() -> Self {
        Self(SpinLock::new(Table::default()))
    }
}

/// Ids are `int`s that are not negative.
const MAX_ID: u32 = i32::MAX as u32;

impl PosixTimers {
    /// Adds the timer `make` builds for its id; `entry` is what its signal counts as.
    pub fn add(&self, entry: Charge, make: impl FnOnce(u32) -> Arc<IntervalTimer>) -> Result<u32, Errno> {
        if frames::is_low() {
            return Err(Errno::EAGAIN);
        }
        let mut table = self.0.lock();
        let from = table.next;
        let mut ids = (from..=MAX_ID).chain(0..from);
        let id = ids.find(|id| !table.timers.contains_key(id)).ok_or(Errno::EAGAIN)?;
        table.next = if id == MAX_ID { 0 } else { id + 1 };
        table.timers.insert(id, (make(id), entry));
        Ok(id)
    }

    /// The timer with this id.
    pub fn get(&self, id: u32) -> Result<Arc<IntervalTimer>, Errno> {
        self.0.lock().timers.get(&id).map(|(timer, _)| timer.clone()).ok_or(Errno::EINVAL)
    }

    /// Takes a timer out and disarms it.
    pub fn remove(&self, id: u32) -> Result<(), Errno> {
        let (timer, entry) = self.0.lock().timers.remove(&id).ok_or(Errno::EINVAL)?;
        drop(entry);
        timer.set(0, 0);
        Ok(())
    }

    /// The wall clock was set `by` nanoseconds forward (negative: back).
    pub fn wall_moved(&self, by: i64) {
        let table = self.0.lock();
        let moved: Vec<Arc<IntervalTimer>> =
            table.timers.values().map(|(timer, _)| timer).filter(|timer| timer.clock().is_wall()).cloned().collect();
        drop(table);
        for timer in moved {
            timer.wall_moved(by);
        }
    }

    /// A signal that timer `id` sent in this setting was taken; how often it would have gone off meanwhile.
    pub fn taken(&self, id: u32, setting: u64) -> u32 {
        self.get(id).map_or(0, |timer| timer.taken(setting))
    }

    /// Pending signals of `set` were thrown away: timers that wait for one of them to be taken go on.
    pub fn discarded(&self, set: SigSet) {
        let table = self.0.lock();
        let waiting: Vec<Arc<IntervalTimer>> = table
            .timers
            .values()
            .map(|(timer, _)| timer)
            .filter(|timer| timer.signal().is_some_and(|signal| set.has(signal)))
            .cloned()
            .collect();
        drop(table);
        for timer in waiting {
            timer.discarded();
        }
    }

    /// Disarms and forgets all of them (exec, exit).
    pub fn clear(&self) {
        let timers = core::mem::take(&mut self.0.lock().timers);
        for (timer, _) in timers.values() {
            timer.set(0, 0);
        }
    }
}
