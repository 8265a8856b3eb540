//! A mutex whose waiters sleep, and whose holder may sleep and take page faults, which a spin lock forbids.
//!
//! It holds the data it guards. `Mutex<()>` guards an order of events (moves of a position, writes) whose data other
//! threads read without it. Besides the data it is one word ([`Claim`]), so that a lock and an unlock without
//! contention are one exchange each. Waiters of all mutexes are parked in a few lists, found by the mutex's address; an
//! unlock wakes the one that has waited longest. A newcomer may take the mutex before the one that was woken, once:
//! that one then parks again in front of the others, and the newcomer's unlock makes it the owner. So no thread waits
//! for ever for what others lock again and again.
//!
//! The word names the holder, and each waiter remembers on whom it waits ([`crate::sched::SchedState::waits`]): the
//! holder, or the thread that was woken to take the mutex and has not looked yet. Watchdog and dumps read that.

use alloc::collections::VecDeque;

use machine::claim::{Claim, Claimed, Owner, Parking, Turn};
use machine::sync::SpinLock;
use machine::time::now;

use super::WaitReason;
use crate::sched::{self, Schedulable as _, Sleep};
use crate::upper::{ThreadRef, current, try_current};

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

/// The running thread as an owner. Before there are threads it is 0, as the idle threads are.
#[inline]
fn me() -> Owner {
    Owner(try_current().map_or(0, |thread| thread.number()))
}

impl<T> Mutex<T> {
    /// A free mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(Claim::new(value))
    }

    /// Locks it; sleeps while another thread holds it, whatever signals come. No spin lock may be held.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.try_take(me()) {
            Some(guard) => guard,
            None => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, T> {
        let address = self.0.address();
        let list = list_of(address);
        let thread = current();
        let mut turn = Turn::First;
        loop {
            sched::prepare_to_sleep(Sleep::Uninterruptible);
            let entry = (address, thread.to_arc());
            let mut waiting = list.lock();
            match turn {
                Turn::First => waiting.push_back(entry),
                Turn::Woken => waiting.push_front(entry),
            }
            // The mark comes after the entry: an unlock that sees the mark finds the entry. Both under the lock: what
            // the waiters are told here of the holder is told before what its unlock tells them.
            let taken = self.0.take_contended(me(), turn);
            if let Err(holder) = &taken {
                thread.sched().waits_on(holder.0);
                if turn == Turn::Woken {
                    // The others wait for this thread, which came too late.
                    let others = waiting.iter().filter(|(mutex, _)| *mutex == address);
                    others.for_each(|(_, other)| other.sched().waits_on(holder.0));
                }
            }
            drop(waiting);
            if taken.is_ok() {
                sched::cancel_sleep();
            } else {
                sched::sleep_for(WaitReason::Mutex.number(), address as u64, None);
            }
            let mut waiting = list.lock();
            let mine = waiting.iter().position(|(_, other)| core::ptr::eq(&**other, &*thread));
            let gone = mine.and_then(|at| waiting.remove(at));
            drop(waiting);
            drop(gone);
            if let Ok(guard) = taken {
                return guard;
            }
            turn = Turn::Woken;
            sched::breathe();
        }
    }
}

impl Parking for Parked {
    #[cold]
    fn released(address: usize) {
        wake_first(address, |_| ());
    }

    #[cold]
    fn hand_over(address: usize, give: impl FnOnce(Owner)) {
        wake_first(address, give);
    }
}

/// Wakes the thread that has waited longest, after `first` was told its number. The others wait on that one now, and
/// count as having made progress: a program decides how many they are, and only a thread that waits for a mutex which
/// stays with one holder hangs.
fn wake_first(address: usize, first: impl FnOnce(Owner)) {
    let mut waiting = list_of(address).lock();
    let at = waiting.iter().position(|(mutex, _)| *mutex == address);
    let gone = at.and_then(|at| waiting.remove(at));
    if let Some((_, next)) = &gone {
        let (now, next) = (now(), next.number());
        for (_, thread) in waiting.iter().filter(|(mutex, _)| *mutex == address) {
            thread.sched().waits_on(next);
            thread.sched().note_progress(now);
        }
        first(Owner(next));
    }
    drop(waiting);
    if let Some((_, thread)) = gone {
        // One that is awake already looks at the mutex by itself.
        sched::wake(&thread);
    }
}
