//! Futexes whose owner is in the word (`FUTEX_LOCK_PI` and its kin): the kernel hands them over.
//!
//! The word holds the owner's thread id, [`WAITERS`] while somebody sleeps for it, [`OWNER_DIED`] once an owner ended. Programs
//! take and leave an uncontended one without a call. Waiters hang in one list under one lock, best first: real-time threads by
//! priority, everybody else in order of arrival, as Linux sorts them. The owner is not made to run at a waiter's priority.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::sync::SpinLock;
use machine::time::{Nanos, now};
use machine::user;

use super::Key;
use crate::sched::{self, Sleep};
use crate::signal;
use crate::task::{Task, ThreadRef, Tid, current, tree};

/// The owner's part of the word.
pub const TID_MASK: u32 = 0x3fff_ffff;
/// The owner ended without unlocking.
pub const OWNER_DIED: u32 = 0x4000_0000;
/// Somebody sleeps: unlocking takes a call.
pub const WAITERS: u32 = 0x8000_0000;

struct Waiter {
    thread: ThreadRef,
    key: Key,
    /// Where the word is in the waiter's memory.
    addr: u64,
    /// Who has it.
    owner: AtomicU32,
    /// Real-time priority, 0 for none.
    priority: u8,
    granted: AtomicBool,
}

static WAITING: SpinLock<Vec<Arc<Waiter>>> = SpinLock::new(Vec::new());

/// What to do when somebody else has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// `EAGAIN`
    None,
    /// Sleep, at most until then.
    Until(Option<Nanos>),
}

enum Attempt {
    Taken,
    /// The word changed or its page was away: look again.
    Again,
    Queued(Arc<Waiter>),
}

/// Takes the futex for the running thread.
pub fn lock(addr: u64, private: bool, patience: Patience) -> Result<(), Errno> {
    let me = current();
    let key = super::key(addr, private)?;
    let waiter = loop {
        // Faults the page in, for the look under the lock.
        load(addr)?;
        match attempt(&me, addr, &key, patience)? {
            Attempt::Taken => return Ok(()),
            Attempt::Again => {}
            Attempt::Queued(waiter) => break waiter,
        }
    };
    let Patience::Until(deadline) = patience else { return Err(Errno::EAGAIN) };
    loop {
        sched::prepare_to_sleep(Sleep::Interruptible);
        let verdict = if waiter.granted.load(Ordering::Acquire) {
            Ok(())
        } else if deadline.is_some_and(|at| now() >= at) {
            Err(Errno::ETIMEDOUT)
        } else if signal::is_pending(&me, Sleep::Interruptible) {
            Err(Errno::ERESTARTNOINTR)
        } else {
            sched::sleep(deadline);
            continue;
        };
        sched::cancel_sleep();
        // Granted in the same instant counts: the word already says so.
        return if leave(&waiter) { verdict } else { Ok(()) };
    }
}

fn load(addr: u64) -> Result<u32, Errno> {
    user::load_u32(UserAddr(addr)).map_err(|_| Errno::EFAULT)
}

/// Writes `new` if the word still is `seen`; whether it was.
fn exchange(addr: u64, seen: u32, new: u32) -> bool {
    user::compare_exchange_u32(UserAddr(addr), seen, new).is_ok_and(|was| was == seen)
}

fn attempt(me: &Task, addr: u64, key: &Key, patience: Patience) -> Result<Attempt, Errno> {
    let mut waiting = WAITING.lock();
    let Ok(seen) = user::load_u32(UserAddr(addr)) else { return Ok(Attempt::Again) };
    let owner = seen & TID_MASK;
    if owner == me.tid() {
        return Err(Errno::EDEADLK);
    }
    if owner == 0 {
        let marked = if waiting.iter().any(|waiter| waiter.key == *key) { WAITERS } else { 0 };
        let taken = exchange(addr, seen, me.tid() | seen & OWNER_DIED | marked);
        return Ok(if taken { Attempt::Taken } else { Attempt::Again });
    }
    if patience == Patience::None {
        return Err(Errno::EAGAIN);
    }
    if tree::thread(owner).is_none() {
        return Err(Errno::ESRCH);
    }
    if seen & WAITERS == 0 && !exchange(addr, seen, seen | WAITERS) {
        return Ok(Attempt::Again);
    }
    let waiter = Arc::new(Waiter {
        thread: current().to_arc(),
        key: *key,
        addr,
        owner: AtomicU32::new(owner),
        priority: me.sched.real_time_priority(),
        granted: AtomicBool::new(false),
    });
    let behind = waiting.iter().position(|other| other.priority < waiter.priority).unwrap_or(waiting.len());
    waiting.insert(behind, waiter.clone());
    Ok(Attempt::Queued(waiter))
}

/// Takes a waiter out; `false` when it was granted the futex meanwhile.
fn leave(waiter: &Arc<Waiter>) -> bool {
    let mut waiting = WAITING.lock();
    let at = waiting.iter().position(|queued| Arc::ptr_eq(queued, waiter));
    let gone = at.map(|at| waiting.remove(at));
    drop(waiting);
    gone.is_some()
}

/// Gives the running thread's futex to the best waiter, or frees it. `EPERM` when it is not the running thread's.
pub fn unlock(addr: u64, private: bool) -> Result<(), Errno> {
    let me = current();
    let key = super::key(addr, private)?;
    loop {
        if load(addr)? & TID_MASK != me.tid() {
            return Err(Errno::EPERM);
        }
        let mut waiting = WAITING.lock();
        let Ok(seen) = user::load_u32(UserAddr(addr)) else { continue };
        if seen & TID_MASK == me.tid() && hand_over(&mut waiting, addr, &key, seen, 0) {
            return Ok(());
        }
    }
}

/// Hands the word, which holds `seen`, to the best waiter of `key`, with `mark` in it; `false` when it changed meanwhile.
fn hand_over(waiting: &mut Vec<Arc<Waiter>>, addr: u64, key: &Key, seen: u32, mark: u32) -> bool {
    let Some(best) = waiting.iter().position(|waiter| waiter.key == *key) else {
        return exchange(addr, seen, mark);
    };
    let tid: Tid = waiting[best].thread.tid();
    if !exchange(addr, seen, tid | WAITERS | mark) {
        return false;
    }
    let heir = waiting.remove(best);
    for other in waiting.iter().filter(|other| other.key == *key) {
        other.owner.store(tid, Ordering::Relaxed);
    }
    heir.granted.store(true, Ordering::Release);
    sched::wake(&heir.thread);
    true
}

/// The running thread ends: what others wait for and it still has in its own memory goes to them, also where a program's own
/// clean-up has already emptied the word.
pub fn release_all(me: &Task) {
    loop {
        let held = {
            let waiting = WAITING.lock();
            let mine = waiting.iter().find(|waiter| {
                waiter.owner.load(Ordering::Relaxed) == me.tid() && matches!(waiter.key, Key::Private { .. })
            });
            mine.map(|waiter| (waiter.addr, waiter.key))
        };
        let Some((addr, key)) = held else { return };
        if !pass_on(me, addr, &key, true) {
            forget_owner(me, addr, &key);
        }
    }
}

/// The owner of the word at `addr` ends: hands it over marked [`OWNER_DIED`].
pub fn owner_died(me: &Task, addr: u64, key: &Key) {
    pass_on(me, addr, key, false);
}

/// `or_free`: also when nobody has it. `false` when it is somebody else's, or not there.
fn pass_on(me: &Task, addr: u64, key: &Key, or_free: bool) -> bool {
    loop {
        if load(addr).is_err() {
            return false;
        }
        let mut waiting = WAITING.lock();
        let Ok(seen) = user::load_u32(UserAddr(addr)) else { continue };
        let owner = seen & TID_MASK;
        if owner != me.tid() && !(or_free && owner == 0) {
            return false;
        }
        if hand_over(&mut waiting, addr, key, seen, OWNER_DIED) {
            return true;
        }
    }
}

/// The word at `addr` does not name `me`, whatever the waiters remember: they wait for whom it names.
fn forget_owner(me: &Task, addr: u64, key: &Key) {
    let owner = load(addr).map_or(0, |seen| seen & TID_MASK);
    let owner = if owner == me.tid() { 0 } else { owner };
    for waiter in WAITING.lock().iter().filter(|waiter| waiter.key == *key) {
        let _ = waiter.owner.compare_exchange(me.tid(), owner, Ordering::Relaxed, Ordering::Relaxed);
    }
}
