//! Handing over PI futexes whose owner ends.
//!
//! If the ending thread can reach the word it hands it over at once. If not (its mapping is gone, or was never there),
//! the best waiter becomes the *heir*: it stays in the list, is woken, and writes the word itself.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::user;

use super::{Attempt, Key, List, OWNER_DIED, TID_MASK, WAITERS, Waiter, dequeue, exchange, hand_over, list, prepare};
use super::{load, make_writable};
use crate::sched;
use crate::task::{Task, Tid};

/// Attempts at a word that other threads keep changing, for a thread that ends and cannot be killed once more.
const ATTEMPTS: u32 = 1000;

/// The running thread ends, or (`exec`) executes another program: what others wait for and it still has goes to them,
/// also where a program's own clean-up has already emptied the word. One that ends is waited for no more.
pub fn release_all(me: &Task, exec: bool) {
    if !exec {
        // Under the lock under which others look at it before they queue.
        let _waiting = list();
        me.pi_released.store(true, Ordering::Relaxed);
    }
    // Others may queue again for a thread that executes a program, for as long as they like.
    let rounds = if exec { list().owned_by(me.tid()).count() } else { usize::MAX };
    for _ in 0..rounds {
        sched::breathe();
        let held = {
            let waiting = list();
            let best = waiting.owned_by(me.tid()).find_map(|key| waiting.best(&key));
            best.map(|waiter| (waiter.addr, waiter.key))
        };
        let Some((addr, key)) = held else { return };
        // A waiter may be in another space, a copy of this one for instance: that word is for it to write.
        let own_space = me.mm().map(|mm| Arc::as_ptr(&mm).addr());
        let reachable = matches!(key, Key::Private { space, .. } if Some(space) == own_space);
        if !reachable || !pass_on(me, addr, &key, true) {
            appoint(&mut list(), &key, me.tid());
        }
    }
}

/// The owner `old`, which executes a program, goes on as `new`. Its words still have the old number, so that no thread
/// queues for them meanwhile.
pub fn renumber(old: Tid, new: Tid) {
    if old == new {
        return;
    }
    loop {
        let mut waiting = list();
        let Some(key) = waiting.owned_by(old).next() else { return };
        waiting.rename_owner(&key, new);
        drop(waiting);
        sched::breathe();
    }
}

/// The owner of the word at `addr` ends: hands it over marked [`OWNER_DIED`]. `false` if the word cannot be written.
pub fn owner_died(me: &Task, addr: u64, key: &Key) -> bool {
    match load(addr) {
        Err(_) => false,
        Ok(seen) if seen & TID_MASK != me.tid() => true,
        Ok(_) => pass_on(me, addr, key, false),
    }
}

/// `or_free`: also when it has no owner. `false` when it has another, or is not there.
fn pass_on(me: &Task, addr: u64, key: &Key, or_free: bool) -> bool {
    for _ in 0..ATTEMPTS {
        let failed = {
            let mut waiting = list();
            match user::load_u32(UserAddr(addr)) {
                Err(_) => Attempt::Away,
                Ok(seen) => {
                    let owner = seen & TID_MASK;
                    if owner != me.tid() && !(or_free && owner == 0) {
                        return false;
                    }
                    hand_over(&mut waiting, addr, key, seen, OWNER_DIED | seen & WAITERS)
                }
            }
        };
        let retry = match failed {
            Attempt::Taken => return true,
            Attempt::Away => load(addr).map(drop),
            Attempt::Unwritable => make_writable(addr),
            _ => Ok(()),
        };
        if retry.is_err() {
            return false;
        }
        sched::breathe();
    }
    false
}

/// Makes the best waiter of `key` the heir of `owner`.
fn appoint(waiting: &mut List, key: &Key, owner: u32) {
    let Some(heir) = waiting.appoint(key, owner) else { return };
    heir.heir.store(true, Ordering::Relaxed);
    heir.grant();
}

/// The running thread is an heir: writes itself into the word. EFAULT if that cannot be; then the next in line
/// inherits.
pub(super) fn claim(waiter: &Arc<Waiter>) -> Result<(), Errno> {
    let tid = waiter.thread.tid();
    loop {
        let failed = {
            let mut waiting = list();
            let mark = OWNER_DIED | if waiting.has_others(waiter) { WAITERS } else { 0 };
            match user::load_u32(UserAddr(waiter.addr)) {
                Err(_) => Attempt::Away,
                Ok(seen) => match exchange(waiter.addr, seen, tid | mark) {
                    Err(failed) => failed,
                    Ok(()) => {
                        dequeue(&mut waiting, waiter);
                        return Ok(());
                    }
                },
            }
        };
        if let Err(error) = prepare(waiter.addr, failed) {
            let mut waiting = list();
            dequeue(&mut waiting, waiter);
            appoint(&mut waiting, &waiter.key, tid);
            return Err(error);
        }
    }
}
