//! Priority-inheritance futexes (`FUTEX_LOCK_PI` and its kin): the word holds the owner, and the kernel hands it over.
//!
//! The word holds the owner's thread id, [`WAITERS`] while threads sleep for it, [`OWNER_DIED`] once an owner ended.
//! Programs take and leave an uncontended one without a call. The waiters of all hang under one lock ([`Waiting`]), of
//! each futex best first: real-time threads by priority, all others in order of arrival, as Linux sorts them. The owner
//! is not made to run at a waiter's priority.
//!
//! Under that lock nothing faults. An attempt that meets a page that is away or not writable says so ([`Attempt`]); its
//! caller unlocks, faults the page in for what is needed, and tries again.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::sync::{SpinGuard, SpinLock};
use machine::time::{Nanos, now};
use machine::user;

use super::key::{Key, Need, key};
use crate::sched::{self, Sleep, breathe_or_stop};
use crate::sync::WaitReason;
use crate::task::signal;
use crate::task::{Task, ThreadRef, Tid, current, tree};

mod heirs;
mod waiting;

pub use heirs::{owner_died, release_all, renumber};
use waiting::{Standing, Waiting};

/// The owner's part of the word.
pub const TID_MASK: u32 = 0x3fff_ffff;
/// The owner ended without unlocking.
pub const OWNER_DIED: u32 = 0x4000_0000;
/// Threads sleep: unlocking takes a call.
pub const WAITERS: u32 = 0x8000_0000;

/// A thread that waits for a futex, or is to wait for it once it is moved there.
pub(super) struct Waiter {
    thread: ThreadRef,
    pub(super) key: Key,
    /// Where the word is in the waiter's memory.
    addr: u64,
    /// Real-time priority, 0 for none.
    priority: u8,
    granted: AtomicBool,
    /// Changes under the lock of the waiters.
    standing: SpinLock<Option<Standing>>,
    /// Granted by the owner's end, and still in the list: the word is to be written by the waiter itself.
    heir: AtomicBool,
}

/// The waiters, locked.
pub(super) type List = SpinGuard<'static, Waiting>;

static WAITING: SpinLock<Waiting> = SpinLock::new(Waiting::new());
/// Their number, readable without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Owners that wait for each other in a row (`max_lock_depth`): a longer row is taken for a circle.
const MOST_IN_A_ROW: u32 = 1024;

/// What to do when another thread has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Return `EAGAIN` in place of sleep.
    None,
    /// Sleep, at most until then.
    Until(Option<Nanos>),
}

/// What came of an attempt under the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The waiter's thread has the futex.
    Taken,
    /// The waiter is in the list.
    Queued,
    /// The word changed meanwhile.
    Changed,
    /// Its page is not there.
    Away,
    /// Its page is not writable as it is.
    Unwritable,
}

/// Locks the list. A bucket's lock is taken before it, never after.
pub(super) fn list() -> List {
    WAITING.lock()
}

/// Whether a thread waits for the futex of `key`.
pub(super) fn is_awaited(key: &Key) -> bool {
    COUNT.load(Ordering::Relaxed) != 0 && WAITING.lock().is_awaited(key)
}

impl Waiter {
    /// Of the running thread, for the word at `addr`; in no list yet.
    pub(super) fn new(addr: u64, key: Key) -> Arc<Self> {
        let me = current();
        Arc::new(Self {
            thread: me.to_arc(),
            key,
            addr,
            priority: me.sched.real_time_priority(),
            granted: AtomicBool::new(false),
            standing: SpinLock::new(None),
            heir: AtomicBool::new(false),
        })
    }

    pub(super) fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    fn is_heir(&self) -> bool {
        self.heir.load(Ordering::Relaxed)
    }

    /// The futex is its thread's, which may sleep.
    pub(super) fn grant(&self) {
        self.granted.store(true, Ordering::Release);
        sched::wake(&self.thread);
    }
}

/// Takes the futex for the running thread.
pub fn lock(addr: u64, private: bool, patience: Patience) -> Result<(), Errno> {
    let key = key(addr, private, Need::Write)?;
    let waiter = Waiter::new(addr, key);
    loop {
        let outcome = {
            let plain = super::bucket(&key);
            let mixed = plain.of(key).next().is_some();
            attempt(&mut list(), &waiter, addr, patience == Patience::None, mixed, 0)?
        };
        match outcome {
            Attempt::Taken => return Ok(()),
            Attempt::Queued => break,
            other => prepare(addr, other)?,
        }
    }
    let Patience::Until(deadline) = patience else { return Err(Errno::EAGAIN) };
    loop {
        sched::prepare_to_sleep(Sleep::Interruptible);
        let verdict = if waiter.is_granted() {
            Ok(())
        } else if deadline.is_some_and(|at| now() >= at) {
            Err(Errno::ETIMEDOUT)
        } else if signal::is_pending(&current(), Sleep::Interruptible) {
            Err(Errno::ERESTARTNOINTR)
        } else {
            sched::sleep_for(WaitReason::FutexOwnership.number(), addr, deadline);
            continue;
        };
        sched::cancel_sleep();
        // Granted in the same instant counts: the word already says so.
        return if leave(&waiter) { verdict } else { settle(&waiter) };
    }
}

/// What a granted thread still has to do before the futex is its own.
pub(super) fn settle(waiter: &Arc<Waiter>) -> Result<(), Errno> {
    if waiter.is_heir() { heirs::claim(waiter) } else { Ok(()) }
}

/// Outside the lock: makes the page what the failed attempt needs. EFAULT if it cannot be, EINTR if the process ends.
pub(super) fn prepare(addr: u64, failed: Attempt) -> Result<(), Errno> {
    match failed {
        Attempt::Unwritable => make_writable(addr)?,
        Attempt::Away => drop(load(addr)?),
        _ => {}
    }
    breathe_or_stop(Sleep::Killable)
}

fn load(addr: u64) -> Result<u32, Errno> {
    user::load_u32(UserAddr(addr)).map_err(|_| Errno::EFAULT)
}

/// Faults the page in for writing, which copies one that a fork shares.
fn make_writable(addr: u64) -> Result<(), Errno> {
    let seen = load(addr)?;
    // An exchange of a word with itself is a write that changes nothing.
    user::compare_exchange_u32(UserAddr(addr), seen, seen).map(drop).map_err(|_| Errno::EFAULT)
}

/// Writes `new` if the word still is `seen`; with the lock held.
fn exchange(addr: u64, seen: u32, new: u32) -> Result<(), Attempt> {
    match user::compare_exchange_u32(UserAddr(addr), seen, new) {
        Ok(was) if was == seen => Ok(()),
        Ok(_) => Err(Attempt::Changed),
        Err(_) => Err(Attempt::Unwritable),
    }
}

/// Takes the futex for the thread of `waiter`, or queues it, or with `try_only` fails with EAGAIN. The word is at
/// `addr` of the running thread. `mixed`: threads wait for the same word with other operations. `mark` goes into the
/// word that is taken.
pub(super) fn attempt(
    waiting: &mut List,
    waiter: &Arc<Waiter>,
    addr: u64,
    try_only: bool,
    mixed: bool,
    mark: u32,
) -> Result<Attempt, Errno> {
    let tid = waiter.thread.tid();
    let Ok(seen) = user::load_u32(UserAddr(addr)) else { return Ok(Attempt::Away) };
    let owner = seen & TID_MASK;
    if owner == tid {
        return Err(Errno::EDEADLK);
    }
    if mixed {
        return Err(Errno::EINVAL);
    }
    let heir = waiting.heir(&waiter.key).map(|heir| heir.thread.tid());
    let outcome = match heir.or_else(|| waiting.owner(&waiter.key)) {
        Some(awaited) if heir.is_some() => Ok(awaited),
        Some(_) if owner == 0 && seen & OWNER_DIED != 0 => {
            exchange(addr, seen, tid | OWNER_DIED | WAITERS).and(Err(Attempt::Taken))
        }
        // A program that writes another owner into a word with waiters is refused.
        Some(awaited) if awaited != owner => return Err(Errno::EINVAL),
        Some(_) => Ok(owner),
        None if owner == 0 => exchange(addr, seen, tid | seen & OWNER_DIED | mark).and(Err(Attempt::Taken)),
        None => exchange(addr, seen, seen | WAITERS).map(|()| owner),
    };
    match outcome {
        Ok(owner) => {
            let lives = tree::thread(owner).is_some_and(|thread| !thread.pi_released.load(Ordering::Relaxed));
            if !lives {
                return Err(Errno::ESRCH);
            }
            if try_only {
                return Err(Errno::EAGAIN);
            }
            if closes_circle(waiting, owner, tid) {
                return Err(Errno::EDEADLK);
            }
            enqueue(waiting, waiter, owner);
            Ok(Attempt::Queued)
        }
        Err(Attempt::Taken) => {
            waiting.rename_owner(&waiter.key, tid);
            Ok(Attempt::Taken)
        }
        Err(failed) => Ok(failed),
    }
}

/// Whether `owner` waits, over any number of futexes and their owners, for `tid`.
fn closes_circle(waiting: &List, owner: Tid, tid: Tid) -> bool {
    let mut at = owner;
    for _ in 0..MOST_IN_A_ROW {
        let Some(next) = waiting.awaited_by(at) else { return false };
        at = next;
        if at == tid {
            return true;
        }
    }
    true
}

fn enqueue(waiting: &mut List, waiter: &Arc<Waiter>, owner: Tid) {
    waiting.enqueue(waiter, owner);
    COUNT.store(waiting.len(), Ordering::Relaxed);
}

/// Takes a waiter out; whether it was in.
fn dequeue(waiting: &mut List, waiter: &Arc<Waiter>) -> bool {
    let gone = waiting.dequeue(waiter);
    COUNT.store(waiting.len(), Ordering::Relaxed);
    gone
}

/// Takes a waiter out; `false` when it was granted the futex meanwhile.
pub(super) fn leave(waiter: &Arc<Waiter>) -> bool {
    let mut waiting = list();
    if waiter.is_granted() {
        return false;
    }
    dequeue(&mut waiting, waiter)
}

/// Gives the running thread's futex to the best waiter, or frees it. `EPERM` when it is not the running thread's.
pub fn unlock(addr: u64, private: bool) -> Result<(), Errno> {
    let me = current();
    // As on Linux its owner is looked at before its alignment.
    let seen: u32 = user::read(UserAddr(addr)).map_err(|_| Errno::EFAULT)?;
    if seen & TID_MASK != me.tid() {
        return Err(Errno::EPERM);
    }
    let key = key(addr, private, Need::Write)?;
    loop {
        match release(&me, addr, &key)? {
            Attempt::Taken => return Ok(()),
            failed => prepare(addr, failed)?,
        }
        if load(addr)? & TID_MASK != me.tid() {
            return Err(Errno::EPERM);
        }
    }
}

/// One attempt at unlocking, `Taken` if it was.
fn release(me: &Task, addr: u64, key: &Key) -> Result<Attempt, Errno> {
    let plain = super::bucket(key);
    if plain.of(*key).next().is_some() {
        return Err(Errno::EINVAL);
    }
    let mut waiting = list();
    let Ok(seen) = user::load_u32(UserAddr(addr)) else { return Ok(Attempt::Away) };
    if seen & TID_MASK != me.tid() {
        return Ok(Attempt::Changed);
    }
    if waiting.owner(key).is_some_and(|owner| owner != me.tid()) {
        return Err(Errno::EINVAL);
    }
    Ok(hand_over(&mut waiting, addr, key, seen, 0))
}

/// Hands the word, which holds `seen`, to the best waiter of `key`, with `mark` in it; `Taken` if that was done.
fn hand_over(waiting: &mut List, addr: u64, key: &Key, seen: u32, mark: u32) -> Attempt {
    let best = waiting.best(key).cloned();
    let tid = best.as_ref().map(|best| best.thread.tid());
    if let Err(failed) = exchange(addr, seen, tid.map_or(mark, |tid| tid | WAITERS | mark)) {
        return failed;
    }
    if let (Some(next), Some(tid)) = (best, tid) {
        dequeue(waiting, &next);
        waiting.rename_owner(key, tid);
        next.grant();
    }
    Attempt::Taken
}
