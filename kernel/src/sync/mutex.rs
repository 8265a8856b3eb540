//! A mutex whose waiters sleep, and whose holder may take page faults, which a spin lock forbids.
//!
//! It guards an order of events (who moves the position, who writes), not data: what it protects sits behind spin locks that are
//! held for moments. It is one byte, which says whether anybody may be waiting, so that a lock and an unlock without contention
//! are one exchange each. Waiters of all mutexes are parked in a few lists, found by the mutex's address; an unlock wakes the
//! one that has waited longest. A newcomer may take the mutex before the one that was woken, which then parks again.

use alloc::collections::VecDeque;
use core::sync::atomic::{AtomicU8, Ordering};

use machine::sync::SpinLock;
use machine::time::now;

use crate::sched::{self, Schedulable as _, Sleep};
use crate::upper::{ThreadRef, current};

/// The values of the byte.
const FREE: u8 = 0;
const LOCKED: u8 = 1;
/// Locked, and threads may be waiting.
const CONTENDED: u8 = 2;

/// A sleeping mutex.
#[derive(Debug, Default)]
pub struct Mutex(AtomicU8);

/// The mutex is held until this is dropped.
#[must_use = "the mutex is unlocked where this is dropped"]
pub struct MutexGuard<'m>(&'m Mutex);

/// Threads that wait, each with the address of its mutex, in the order they came.
type Parked = VecDeque<(usize, ThreadRef)>;

/// Lists of waiters.
const LISTS: usize = 16;
static PARKED: [SpinLock<Parked>; LISTS] = [const { SpinLock::new(VecDeque::new()) }; LISTS];

impl Mutex {
    /// Free.
    pub const fn new() -> Self {
        Self(AtomicU8::new(FREE))
    }

    /// Locks it; sleeps while another thread holds it, whatever signals come. No spin lock may be held.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_> {
        if self.0.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.wait();
        }
        MutexGuard(self)
    }

    /// Its address, and the list its waiters are in.
    fn parking(&self) -> (usize, &'static SpinLock<Parked>) {
        let address = core::ptr::from_ref(self).addr();
        (address, &PARKED[(address >> 4 ^ address >> 12) % LISTS])
    }

    #[cold]
    fn wait(&self) {
        let (address, list) = self.parking();
        let me = current();
        loop {
            sched::prepare_to_sleep(Sleep::Uninterruptible);
            list.lock().push_back((address, me.to_arc()));
            // The mark comes after the entry: an unlock that sees the mark finds the entry. A thread that takes the mutex this way
            // does not know whether others wait, so the mark stays.
            let taken = self.0.swap(CONTENDED, Ordering::SeqCst) == FREE;
            if taken {
                sched::cancel_sleep();
            } else {
                sched::sleep(None);
            }
            let mut parked = list.lock();
            let mine = parked.iter().position(|(_, thread)| core::ptr::eq(&**thread, &*me));
            let gone = mine.and_then(|at| parked.remove(at));
            drop(parked);
            drop(gone);
            if taken {
                return;
            }
            sched::breathe();
        }
    }

    /// Wakes the thread that has waited longest. The others come nearer: a program decides how many they are, and hung is only
    /// who waits for a mutex that stays with one holder.
    #[cold]
    fn wake_one(&self) {
        let (address, list) = self.parking();
        let mut parked = list.lock();
        let first = parked.iter().position(|(mutex, _)| *mutex == address);
        let now = now();
        for (_, thread) in parked.iter().filter(|(mutex, _)| *mutex == address) {
            thread.sched().note_progress(now);
        }
        let gone = first.and_then(|at| parked.remove(at));
        drop(parked);
        if let Some((_, thread)) = gone {
            // One that is awake already looks at the mutex by itself.
            sched::wake(&thread);
        }
    }
}

impl Drop for MutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.0.swap(FREE, Ordering::SeqCst) == CONTENDED {
            self.0.wake_one();
        }
    }
}
