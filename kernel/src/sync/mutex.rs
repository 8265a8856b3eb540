//! A mutex whose waiters sleep, and whose holder may sleep and take page faults, which a spin lock forbids.
//!
//! It holds the data it guards. `Mutex<()>` guards an order of events (moves of a position, writes) whose data other
//! threads read without it. Besides the data it is one byte ([`Claim`]), so that a lock and an unlock without
//! contention are one exchange each. Waiters of all mutexes are parked in a few lists, found by the mutex's address; an
//! unlock wakes the one that has waited longest. A newcomer may take the mutex before the one that was woken, which
//! then parks again.

use alloc::collections::VecDeque;

use machine::claim::{Claim, Claimed, Parking};
use machine::sync::SpinLock;
use machine::time::now;

use super::WaitReason;
use crate::sched::{self, Schedulable as _, Sleep};
use crate::upper::{ThreadRef, current};

/// A sleeping mutex.
#[derive(Debug, Default)]
pub struct Mutex<T>(Claim<T, Parked>);

/// Access to the data of a [`Mutex`]: it is held until this is dropped.
pub type MutexGuard<'m, T> = Claimed<'m, T, Parked>;

/// The lists of threads that wait for mutexes, each with the address of its mutex, in the order they came.
#[derive(Debug, Default)]
pub struct Parked;

type Waiting = VecDeque<(usize, ThreadRef)>;

/// Lists of waiters.
const LISTS: usize = 16;
static LISTED: [SpinLock<Waiting>; LISTS] = [const { SpinLock::new(VecDeque::new()) }; LISTS];

/// The list for the mutex at `address`.
fn list_of(address: usize) -> &'static SpinLock<Waiting> {
    &LISTED[(address >> 4 ^ address >> 12) % LISTS]
}

impl<T> Mutex<T> {
    /// A free mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(Claim::new(value))
    }

    /// Locks it; sleeps while another thread holds it, whatever signals come. No spin lock may be held.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.try_take() {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let address = self.0.address();
        let list = list_of(address);
        let me = current();
        loop {
            sched::prepare_to_sleep(Sleep::Uninterruptible);
            list.lock().push_back((address, me.to_arc()));
            // The mark comes after the entry: an unlock that sees the mark finds the entry.
            let taken = self.0.take_contended();
            if taken.is_some() {
                sched::cancel_sleep();
            } else {
                sched::sleep_for(WaitReason::Mutex.number(), address as u64, None);
            }
            let mut waiting = list.lock();
            let mine = waiting.iter().position(|(_, thread)| core::ptr::eq(&**thread, &*me));
            let gone = mine.and_then(|at| waiting.remove(at));
            drop(waiting);
            drop(gone);
            if let Some(guard) = taken {
                return guard;
            }
            sched::breathe();
        }
    }
}

impl Parking for Parked {
    /// Wakes the thread that has waited longest. The others count as having made progress: a program decides how many
    /// they are, and only a thread that waits for a mutex which stays with one holder hangs.
    #[cold]
    fn released(address: usize) {
        let mut waiting = list_of(address).lock();
        let first = waiting.iter().position(|(mutex, _)| *mutex == address);
        let now = now();
        for (_, thread) in waiting.iter().filter(|(mutex, _)| *mutex == address) {
            thread.sched().note_progress(now);
        }
        let gone = first.and_then(|at| waiting.remove(at));
        drop(waiting);
        if let Some((_, thread)) = gone {
            // One that is awake already looks at the mutex by itself.
            sched::wake(&thread);
        }
    }
}
