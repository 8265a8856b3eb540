//! Condition variables over PI futexes: `FUTEX_WAIT_REQUEUE_PI` and `FUTEX_CMP_REQUEUE_PI` (futex(2)).
//!
//! The thread waits at an ordinary word and says beforehand which futex it will need. Waking it means to take that
//! futex for it, or to move it, still asleep, to those who wait for the futex. The two calls go with each other only.

use alloc::sync::Arc;

use kernel_logic::waiters::WaiterSlot;
use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::sync::SpinLock;
use machine::time::{Nanos, now};
use machine::user;

use super::key::{Key, Need, key};
use super::pi::{self, Attempt};
use super::{ALL_BITS, Waiter, bucket, leave, queue_if};
use crate::sched::{self, Sleep};
use crate::sync::WaitReason;
use crate::task::current;
use crate::task::signal;
use core::sync::atomic::AtomicBool;

/// Sleeps while the word at `addr` holds `value`, and then until the futex at `target` is the running thread's.
pub fn wait(addr: u64, target: u64, private: bool, value: u32, deadline: Option<Nanos>) -> Result<(), Errno> {
    if addr == target {
        return Err(Errno::EINVAL);
    }
    let to = key(target, private, Need::Write)?;
    let from = key(addr, private, Need::Read)?;
    let owner = pi::Waiter::new(target, to);
    let waiter = Arc::new(Waiter {
        thread: current().to_arc(),
        at: SpinLock::new(WaiterSlot::before(from)),
        bits: ALL_BITS,
        woken: AtomicBool::new(false),
        pi: Some(owner.clone()),
    });
    queue_if(&waiter, addr, value, || if from == to { Err(Errno::EINVAL) } else { Ok(()) })?;
    loop {
        sched::prepare_to_sleep(Sleep::Interruptible);
        let timed_out = deadline.is_some_and(|at| now() >= at);
        if !owner.is_granted() && !timed_out && !signal::is_pending(&current(), Sleep::Interruptible) {
            sched::sleep_for(WaitReason::Futex.number(), addr, deadline);
            continue;
        }
        sched::cancel_sleep();
        if leave(&waiter) {
            return Err(if timed_out { Errno::ETIMEDOUT } else { Errno::ERESTARTNOINTR });
        }
        if pi::leave(&owner) {
            // Started again it would find another value in the first word: as on Linux it says so at once.
            return Err(if timed_out { Errno::ETIMEDOUT } else { Errno::EAGAIN });
        }
        return pi::settle(&owner);
    }
}

/// One step of [`requeue`] under the locks.
enum Step {
    Done(usize),
    /// The word at the first or (`true`) second address has to be made ready.
    Again(bool, Attempt),
}

/// If the word at `addr` holds `expected`: takes the futex at `target` for the first of its waiters, or moves that one
/// and up to `most` more to the futex's waiters; how many of both.
pub fn requeue(addr: u64, target: u64, private: bool, most: usize, expected: u32) -> Result<usize, Errno> {
    if addr == target {
        return Err(Errno::EINVAL);
    }
    let from = key(addr, private, Need::Read)?;
    let to = key(target, private, Need::Write)?;
    if from == to {
        return Err(Errno::EINVAL);
    }
    loop {
        match move_waiters(addr, target, &from, &to, most, expected)? {
            Step::Done(count) => return Ok(count),
            Step::Again(second, failed) => pi::prepare(if second { target } else { addr }, failed)?,
        }
    }
}

fn move_waiters(addr: u64, target: u64, from: &Key, to: &Key, most: usize, expected: u32) -> Result<Step, Errno> {
    // Held one after the other: ordinary waiters of the second word only make the call fail.
    let mixed = bucket(to).of(*to).next().is_some();
    let mut queue = bucket(from);
    let mut waiting = pi::list();
    match user::load_u32(UserAddr(addr)) {
        Err(_) => return Ok(Step::Again(false, Attempt::Away)),
        Ok(seen) if seen != expected => return Err(Errno::EAGAIN),
        Ok(_) => {}
    }
    let mark = if most > 0 { pi::WAITERS } else { 0 };
    let mut moved = 0;
    while moved <= most
        && let Some((at, waiter)) = queue.next(WaiterSlot::before(*from))
    {
        let owner = waiter.pi.clone().filter(|owner| owner.key == *to).ok_or(Errno::EINVAL)?;
        match pi::attempt(&mut waiting, &owner, target, false, mixed, mark) {
            Ok(Attempt::Taken) => {
                drop(queue.remove(&at));
                owner.grant();
            }
            Ok(Attempt::Queued) => drop(queue.remove(&at)),
            // Once some were moved the word is marked and its page there: only another thread's change can be in the
            // way.
            Ok(_) | Err(_) if moved > 0 => break,
            Ok(failed) => return Ok(Step::Again(true, failed)),
            Err(error) => return Err(error),
        }
        moved += 1;
    }
    Ok(Step::Done(moved))
}
