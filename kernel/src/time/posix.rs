//! POSIX timers (timer_create(2)): a process's numbered interval timers.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kernel_logic::signal::SigSet;
use linux_abi::Errno;
use machine::sync::SpinLock;

use super::Clock;
use super::itimer::IntervalTimer;
use crate::mm::frames;

/// A process's timers.
#[derive(Default)]
pub struct PosixTimers(SpinLockMap);

struct SpinLockMap(SpinLock<BTreeMap<u32, Arc<IntervalTimer>>>);

impl Default for SpinLockMap {
    fn default() -> Self {
        Self(SpinLock::new(BTreeMap::new()))
    }
}

/// Most timers per process: `RLIMIT_SIGPENDING` bounds them on Linux.
const MAX_TIMERS: usize = 4096;

impl PosixTimers {
    /// Adds the timer `make` builds for its id.
    pub fn add(&self, make: impl FnOnce(u32) -> Arc<IntervalTimer>) -> Result<u32, Errno> {
        let mut timers = self.0.0.lock();
        if timers.len() >= MAX_TIMERS || frames::is_low() {
            return Err(Errno::EAGAIN);
        }
        let id = (0..).find(|id| !timers.contains_key(id)).ok_or(Errno::EAGAIN)?;
        timers.insert(id, make(id));
        Ok(id)
    }

    /// The timer with this id.
    pub fn get(&self, id: u32) -> Result<Arc<IntervalTimer>, Errno> {
        self.0.0.lock().get(&id).cloned().ok_or(Errno::EINVAL)
    }

    /// Takes a timer out and disarms it.
    pub fn remove(&self, id: u32) -> Result<(), Errno> {
        let timer = self.0.0.lock().remove(&id).ok_or(Errno::EINVAL)?;
        timer.set(0, 0);
        Ok(())
    }

    /// The wall clock was set `by` nanoseconds forward (negative: back).
    pub fn wall_moved(&self, by: i64) {
        let timers = self.0.0.lock();
        let moved: Vec<Arc<IntervalTimer>> =
            timers.values().filter(|timer| timer.clock() == Clock::Real).cloned().collect();
        drop(timers);
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
        let timers = self.0.0.lock();
        let waiting: Vec<Arc<IntervalTimer>> =
            timers.values().filter(|timer| timer.signal().is_some_and(|signal| set.has(signal))).cloned().collect();
        drop(timers);
        for timer in waiting {
            timer.discarded();
        }
    }

    /// Disarms and forgets all of them (exec, exit).
    pub fn clear(&self) {
        let timers = core::mem::take(&mut *self.0.0.lock());
        for timer in timers.values() {
            timer.set(0, 0);
        }
    }
}
