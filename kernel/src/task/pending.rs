//! A queue of pending signals with a copy of its set that is read without the lock.
//!
//! A process and each of its threads have one ([`ProcessSignals`](super::process::ProcessSignals),
//! [`ThreadSignals`](super::signal::ThreadSignals)). Every entry is charged to the real user it was sent to
//! (`RLIMIT_SIGPENDING`) until it is taken or discarded.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::signal::{Limit, Pending, SigInfo, SigSet};
use machine::sync::SpinLock;

use super::account::Charge;

/// Pending signals. `set` follows `queue`: both change in one critical section, and only in this module.
pub struct PendingSignals {
    queue: SpinLock<Pending<Charge>>,
    set: AtomicU64,
}

impl PendingSignals {
    /// Offset of the set.
    pub const SET: usize = offset_of!(Self, set);

    /// An empty queue.
    pub const fn new() -> Self {
        Self { queue: SpinLock::new(Pending::new()), set: AtomicU64::new(0) }
    }

    /// The pending signals, as of now. Takes no lock.
    #[inline]
    pub fn set(&self) -> SigSet {
        SigSet(self.set.load(Ordering::Acquire))
    }

    /// Changes the queue and publishes its set. The sender's store and the receiver's look at its sleep state are
    /// ordered by the store's full barrier.
    fn change<R>(&self, edit: impl FnOnce(&mut Pending<Charge>) -> R) -> R {
        let mut queue = self.queue.lock();
        let result = edit(&mut queue);
        self.set.store(queue.set().0, Ordering::SeqCst);
        result
    }

    /// Queues a signal that `admit` charges for; `false` if it was refused.
    pub fn push(&self, info: SigInfo, admit: impl FnOnce(Limit) -> Option<Charge>) -> bool {
        self.change(|queue| queue.push(info, admit))
    }

    /// Takes the next signal among `wanted`. Takes no lock if none of them is pending.
    #[inline]
    pub fn take(&self, wanted: SigSet) -> Option<SigInfo> {
        if self.set().0 & wanted.0 == 0 {
            return None;
        }
        let mut queue = self.queue.lock();
        let info = queue.take(wanted);
        // Nothing is woken by a signal that goes, so this store needs no full barrier.
        self.set.store(queue.set().0, Ordering::Release);
        info
    }

    /// Discards the signals of `set`; whether any was pending.
    #[inline]
    pub fn discard(&self, set: SigSet) -> bool {
        let any = self.set().0 & set.0 != 0;
        if any {
            self.change(|queue| queue.discard(set));
        }
        any
    }

    /// Discards the signals that POSIX timers sent.
    pub fn discard_timers(&self) {
        self.change(Pending::discard_timers);
    }

    /// Discards all signals.
    pub fn clear(&self) {
        if !self.set().is_empty() {
            // Returned out of the critical section: freeing the entries takes the heap's lock.
            drop(self.change(core::mem::take));
        }
    }
}

impl Default for PendingSignals {
    fn default() -> Self {
        Self::new()
    }
}
