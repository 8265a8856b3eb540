//! Calls about scheduling: policies, nice values, affinity.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::runqueue::Policy;
use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::cpu;

use super::{Call, Calls, SysResult};
use crate::sched;
use crate::task::creds::cap;
use crate::task::limits::resource;
use crate::task::{Pid, Task, ThreadRef, tree};
use crate::user::{UserPtr, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::sched_yield, |_| {
        sched::yield_now();
        Ok(0)
    }),
    (nr::sched_setparam, sched_setparam),
    (nr::sched_getparam, sched_getparam),
    (nr::sched_setscheduler, sched_setscheduler),
    (nr::sched_getscheduler, sched_getscheduler),
    (nr::sched_get_priority_max, |call| priority_bound(call, 99)),
    (nr::sched_get_priority_min, |call| priority_bound(call, 1)),
    (nr::sched_rr_get_interval, sched_rr_get_interval),
    (nr::sched_setaffinity, sched_setaffinity),
    (nr::sched_getaffinity, sched_getaffinity),
    (nr::getcpu, getcpu),
    (nr::getpriority, getpriority),
    (nr::setpriority, setpriority),
];

const SCHED_OTHER: i32 = 0;
const SCHED_FIFO: i32 = 1;
const SCHED_RR: i32 = 2;
const SCHED_BATCH: i32 = 3;
const SCHED_IDLE: i32 = 5;
const RESET_ON_FORK: i32 = 0x4000_0000;

/// The thread argument 0 names.
fn target(call: &Call<'_>) -> Result<ThreadRef, Errno> {
    match call.int(0) {
        0 => Ok(call.task.to_arc()),
        1.. => tree::thread(call.int(0) as Pid).ok_or(Errno::ESRCH),
        _ => Err(Errno::EINVAL),
    }
}

fn policy_number(policy: Policy) -> i32 {
    match policy {
        Policy::Normal => SCHED_OTHER,
        Policy::Fifo(_) => SCHED_FIFO,
        Policy::RoundRobin(_) => SCHED_RR,
        Policy::Idle => SCHED_IDLE,
    }
}

fn priority_of(policy: Policy) -> i32 {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => i32::from(priority),
        Policy::Normal | Policy::Idle => 0,
    }
}

fn make_policy(number: i32, priority: i32) -> Result<Policy, Errno> {
    let real_time = (1..=99).contains(&priority);
    match (number & !RESET_ON_FORK, priority) {
        (SCHED_OTHER | SCHED_BATCH, 0) => Ok(Policy::Normal),
        (SCHED_IDLE, 0) => Ok(Policy::Idle),
        (SCHED_FIFO, _) if real_time => Ok(Policy::Fifo(priority as u8)),
        (SCHED_RR, _) if real_time => Ok(Policy::RoundRobin(priority as u8)),
        _ => Err(Errno::EINVAL),
    }
}

/// Whether the caller may change how `thread` is scheduled.
fn permit(call: &Call<'_>, thread: &Task) -> Result<(), Errno> {
    let mine = call.task.creds();
    let theirs = thread.creds();
    if mine.capable(cap::SYS_NICE) || mine.euid == theirs.uid || mine.euid == theirs.euid {
        Ok(())
    } else {
        Err(Errno::EPERM)
    }
}

fn apply(call: &Call<'_>, thread: &Task, policy: Policy) -> SysResult {
    permit(call, thread)?;
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_NICE));
    let bound = call.task.process.limit(resource::RTPRIO);
    let now = thread.sched.policy();
    let raises = priority_of(policy) > priority_of(now) || policy_number(policy) != policy_number(now);
    if priority_of(policy) > 0 && raises && !privileged && priority_of(policy) as u64 > bound {
        return Err(Errno::EPERM);
    }
    thread.sched.set_policy(policy);
    Ok(0)
}

fn sched_setparam(call: &mut Call<'_>) -> SysResult {
    let thread = target(call)?;
    let priority = UserPtr::<i32>::new(call.arg(1)).read()?;
    let policy = make_policy(policy_number(thread.sched.policy()), priority)?;
    apply(call, &thread, policy)
}

fn sched_getparam(call: &mut Call<'_>) -> SysResult {
    let priority = priority_of(target(call)?.sched.policy());
    UserPtr::<i32>::new(call.arg(1)).write(priority)?;
    Ok(0)
}

fn sched_setscheduler(call: &mut Call<'_>) -> SysResult {
    if call.int(1) < 0 {
        return Err(Errno::EINVAL);
    }
    let thread = target(call)?;
    let priority = UserPtr::<i32>::new(call.arg(2)).read()?;
    apply(call, &thread, make_policy(call.int(1), priority)?)?;
    thread.sched.reset_on_fork.store(call.int(1) & RESET_ON_FORK != 0, Ordering::Relaxed);
    Ok(0)
}

fn priority_bound(call: &Call<'_>, real_time: usize) -> SysResult {
    match call.int(0) {
        SCHED_FIFO | SCHED_RR => Ok(real_time),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn sched_getscheduler(call: &mut Call<'_>) -> SysResult {
    let thread = target(call)?;
    let resets = thread.sched.reset_on_fork.load(Ordering::Relaxed);
    Ok((policy_number(thread.sched.policy()) | if resets { RESET_ON_FORK } else { 0 }) as usize)
}

fn sched_rr_get_interval(call: &mut Call<'_>) -> SysResult {
    let nanos = match target(call)?.sched.policy() {
        Policy::Fifo(_) => 0,
        _ => kernel_logic::runqueue::SLICE,
    };
    write_words(call.arg(1), &[0, nanos])?;
    Ok(0)
}

fn sched_setaffinity(call: &mut Call<'_>) -> SysResult {
    let thread = target(call)?;
    permit(call, &thread)?;
    let mut mask = 0;
    for at in 0..(call.arg(1) as usize).min(8) {
        mask |= u64::from(UserPtr::<u8>::new(call.arg(2)).add(at).read()?) << (8 * at);
    }
    if mask & cpu::online() == 0 {
        return Err(Errno::EINVAL);
    }
    thread.sched.set_affinity(mask);
    if thread.tid() == call.task.tid() {
        sched::migrate_if_needed();
    } else {
        sched::notify(&thread, false);
    }
    Ok(0)
}

fn sched_getaffinity(call: &mut Call<'_>) -> SysResult {
    let size = call.arg(1);
    if size < 8 || !size.is_multiple_of(8) {
        return Err(Errno::EINVAL);
    }
    let mask = target(call)?.sched.affinity() & cpu::online();
    UserPtr::<u64>::new(call.arg(2)).write(mask)?;
    Ok(8)
}

fn getcpu(call: &mut Call<'_>) -> SysResult {
    UserPtr::<u32>::new(call.arg(0)).write_if_wanted(cpu::id().0)?;
    UserPtr::<u32>::new(call.arg(1)).write_if_wanted(0)?;
    Ok(0)
}

/// The threads `which` and `who` name (getpriority(2)).
fn threads(call: &Call<'_>) -> Result<Vec<ThreadRef>, Errno> {
    let who = call.arg(1) as u32;
    let me = &call.task;
    let found: Vec<ThreadRef> = match call.int(0) {
        0 if who == 0 => alloc::vec![me.to_arc()],
        0 => tree::thread(who).into_iter().collect(),
        1 => {
            let group = if who == 0 { me.process.pgid() } else { who };
            tree::group_members(group).iter().flat_map(|process| process.live_threads()).collect()
        }
        2 => {
            let uid = if who == 0 { me.creds.with(|creds| creds.uid) } else { who };
            let all = tree::all_processes();
            let threads = all.iter().flat_map(|process| process.live_threads());
            threads.filter(|thread| thread.creds.with(|creds| creds.uid) == uid).collect()
        }
        _ => return Err(Errno::EINVAL),
    };
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

fn getpriority(call: &mut Call<'_>) -> SysResult {
    if call.int(0) == 0 && call.arg(1) as u32 == 0 {
        return Ok((20 - call.task.sched.nice()) as usize);
    }
    let best = threads(call)?.iter().map(|thread| 20 - thread.sched.nice()).max();
    Ok(best.unwrap_or(20) as usize)
}

fn setpriority(call: &mut Call<'_>) -> SysResult {
    let nice = call.int(2).clamp(-20, 19);
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_NICE));
    let floor = 20 - call.task.process.limit(resource::NICE).min(40) as i32;
    for thread in threads(call)? {
        permit(call, &thread)?;
        if nice < thread.sched.nice() && !privileged && nice < floor {
            return Err(Errno::EACCES);
        }
        thread.sched.set_nice(nice);
    }
    Ok(0)
}
