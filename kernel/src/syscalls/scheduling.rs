//! Calls about scheduling: policies, nice values, affinity.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::runqueue::Policy;
use linux_abi::Errno;
use linux_abi::flags::process;
use linux_abi::syscalls::nr;
use machine::addr::PAGE_SIZE;
use machine::cpu;

use super::{Call, Calls, SysResult};
use crate::sched;
use crate::task::creds::cap;
use crate::task::limits::resource;
use crate::task::{Pid, Task, ThreadRef, tree};
use crate::user::{UserPtr, read_bytes, write_bytes, write_words};

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
    (nr::sched_setattr, sched_setattr),
    (nr::sched_getattr, sched_getattr),
    (nr::sched_setaffinity, sched_setaffinity),
    (nr::sched_getaffinity, sched_getaffinity),
    (nr::getcpu, getcpu),
    (nr::getpriority, getpriority),
    (nr::setpriority, setpriority),
];

const SCHED_OTHER: i32 = process::SCHED_OTHER as i32;
const SCHED_FIFO: i32 = process::SCHED_FIFO as i32;
const SCHED_RR: i32 = process::SCHED_RR as i32;
const SCHED_BATCH: i32 = process::SCHED_BATCH as i32;
const SCHED_IDLE: i32 = process::SCHED_IDLE as i32;
const RESET_ON_FORK: i32 = process::SCHED_RESET_ON_FORK as i32;

/// The thread argument 0 names.
fn target(call: &Call<'_>) -> Result<ThreadRef, Errno> {
    match call.int(0) {
        0 => Ok(call.task.to_arc()),
        1.. => tree::thread(call.int(0) as Pid).ok_or(Errno::ESRCH),
        _ => Err(Errno::EINVAL),
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

/// Schedules `thread` by `policy`, and lets its children inherit that unless `resets`. Limits are those of `thread`
/// (sched(7), "Privileges and resource limits").
fn apply(call: &Call<'_>, thread: &Task, policy: Policy, resets: bool) -> SysResult {
    permit(call, thread)?;
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_NICE));
    let bound = thread.process.limit(resource::RTPRIO);
    let now = thread.sched.policy();
    let (priority, before) = (priority_of(policy), priority_of(now));
    let becomes = priority > 0 && policy.number() != now.number() && bound == 0;
    let raises = priority > before && priority as u64 > bound;
    // Leaving SCHED_IDLE is a lower nice value by another name.
    let leaves_idle = now == Policy::Idle && policy != now && thread.sched.nice() < nice_floor(thread);
    let unresets = thread.sched.reset_on_fork.load(Ordering::Relaxed) && !resets;
    if !privileged && (becomes || raises || leaves_idle || unresets) {
        return Err(Errno::EPERM);
    }
    thread.sched.set_policy(policy);
    thread.sched.reset_on_fork.store(resets, Ordering::Relaxed);
    Ok(0)
}

/// The least nice value a thread may be given without privilege (`RLIMIT_NICE`).
fn nice_floor(thread: &Task) -> i32 {
    20 - thread.process.limit(resource::NICE).min(40) as i32
}

/// Where a `struct sched_param` lies. A missing one and a negative id are EINVAL before anything else.
fn param(call: &Call<'_>, index: usize) -> Result<UserPtr<i32>, Errno> {
    if call.arg(index) == 0 || call.int(0) < 0 { Err(Errno::EINVAL) } else { Ok(call.pointer(index)) }
}

fn sched_setparam(call: &mut Call<'_>) -> SysResult {
    let priority = param(call, 1)?.read()?;
    let thread = target(call)?;
    let policy = make_policy(thread.sched.policy().number(), priority)?;
    apply(call, &thread, policy, thread.sched.reset_on_fork.load(Ordering::Relaxed))
}

fn sched_getparam(call: &mut Call<'_>) -> SysResult {
    let at = param(call, 1)?;
    at.write(priority_of(target(call)?.sched.policy()))?;
    Ok(0)
}

fn sched_setscheduler(call: &mut Call<'_>) -> SysResult {
    if call.int(1) < 0 {
        return Err(Errno::EINVAL);
    }
    let priority = param(call, 2)?.read()?;
    let thread = target(call)?;
    apply(call, &thread, make_policy(call.int(1), priority)?, call.int(1) & RESET_ON_FORK != 0)
}

/// Bytes of a `struct sched_attr` in its first version, and in that with the two clamps.
const ATTR_BYTES: [u64; 2] = [48, 56];
/// `SCHED_FLAG_RESET_ON_FORK`, `SCHED_FLAG_KEEP_POLICY`, `SCHED_FLAG_KEEP_PARAMS`
const FLAG_RESET_ON_FORK: u64 = 1;
const FLAG_KEEP_POLICY: u64 = 8;
const FLAG_KEEP_PARAMS: u64 = 16;

/// A `struct sched_attr` as `size`, `sched_policy`; flags; `sched_nice`, `sched_priority`; deadline parameters and
/// clamps. A size that is not known is answered with E2BIG, and with the size that is.
fn read_attr(at: u64) -> Result<[u64; 7], Errno> {
    let size = u64::from(UserPtr::<u32>::new(at).read()?);
    let size = if size == 0 { ATTR_BYTES[0] } else { size };
    let known = ATTR_BYTES[1];
    let mut bytes = [0; ATTR_BYTES[1] as usize];
    let strange = || {
        let tell = UserPtr::<u32>::new(at).write(known as u32);
        tell.and(Err(Errno::E2BIG))
    };
    if !(ATTR_BYTES[0]..=PAGE_SIZE as u64).contains(&size) {
        return strange();
    }
    for beyond in known..size {
        if UserPtr::<u8>::new(at).add(beyond as usize).read()? != 0 {
            return strange();
        }
    }
    read_bytes(at, &mut bytes[..size.min(known) as usize])?;
    let mut words = [0; 7];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    }
    Ok(words)
}

fn sched_setattr(call: &mut Call<'_>) -> SysResult {
    if call.arg(1) == 0 || call.int(0) < 0 || call.uint(2) != 0 {
        return Err(Errno::EINVAL);
    }
    let [head, flags, values, ..] = read_attr(call.arg(1))?;
    let (policy, nice, priority) = ((head >> 32) as i32, values as i32, (values >> 32) as i32);
    if policy < 0 {
        return Err(Errno::EINVAL);
    }
    let thread = target(call)?;
    if flags & !(FLAG_RESET_ON_FORK | FLAG_KEEP_POLICY | FLAG_KEEP_PARAMS) != 0 {
        return Err(Errno::EINVAL);
    }
    let now = thread.sched.policy();
    let number = if flags & FLAG_KEEP_POLICY != 0 { now.number() } else { policy };
    let priority = if flags & FLAG_KEEP_PARAMS != 0 { priority_of(now) } else { priority };
    let chosen = make_policy(number & !RESET_ON_FORK, priority)?;
    permit(call, &thread)?;
    let nice = nice.clamp(-20, 19);
    let renices = chosen == Policy::Normal && flags & FLAG_KEEP_PARAMS == 0 && nice != thread.sched.nice();
    if renices && !may_renice(call, &thread, nice) {
        return Err(Errno::EPERM);
    }
    // A call that keeps the policy keeps the flag that came with it.
    let resets = match flags & FLAG_KEEP_POLICY {
        0 => flags & FLAG_RESET_ON_FORK != 0,
        _ => thread.sched.reset_on_fork.load(Ordering::Relaxed),
    };
    apply(call, &thread, chosen, resets)?;
    if renices {
        thread.sched.set_nice(nice);
    }
    Ok(0)
}

fn sched_getattr(call: &mut Call<'_>) -> SysResult {
    let size = call.word(2);
    let fits = (ATTR_BYTES[0]..=PAGE_SIZE as u64).contains(&size);
    if call.arg(1) == 0 || call.int(0) < 0 || !fits || call.uint(3) != 0 {
        return Err(Errno::EINVAL);
    }
    let thread = target(call)?;
    let policy = thread.sched.policy();
    let length = size.min(ATTR_BYTES[1]);
    let flags = u64::from(thread.sched.reset_on_fork.load(Ordering::Relaxed));
    let nice = if policy == Policy::Normal { thread.sched.nice() as u32 } else { 0 };
    let words = [
        length | (policy.number() as u64) << 32,
        flags,
        u64::from(nice) | (priority_of(policy) as u64) << 32,
        0,
        0,
        0,
        // The clamps of a thread that has none: 0 and SCHED_CAPACITY_SCALE.
        1024 << 32,
    ];
    let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).take(length as usize).collect();
    write_bytes(call.arg(1), &bytes)?;
    Ok(0)
}

/// Whether the caller may give `thread` this nice value: a higher one always (sched(7), RLIMIT_NICE).
fn may_renice(call: &Call<'_>, thread: &Task, nice: i32) -> bool {
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_NICE));
    nice >= thread.sched.nice() || privileged || nice >= nice_floor(thread)
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
    Ok((thread.sched.policy().number() | if resets { RESET_ON_FORK } else { 0 }) as usize)
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
    let mut mask = 0;
    for at in 0..(call.size(1)).min(8) {
        mask |= u64::from(call.pointer::<u8>(2).add(at).read()?) << (8 * at);
    }
    let thread = target(call).map_err(|_| Errno::ESRCH)?;
    permit(call, &thread)?;
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
    let mask = target(call).map_err(|_| Errno::ESRCH)?.sched.affinity() & cpu::online();
    call.pointer::<u64>(2).write(mask)?;
    Ok(8)
}

fn getcpu(call: &mut Call<'_>) -> SysResult {
    call.pointer::<u32>(0).write_if_wanted(cpu::id().0)?;
    call.pointer::<u32>(1).write_if_wanted(0)?;
    Ok(0)
}

/// The threads `which` and `who` name (getpriority(2)).
fn threads(call: &Call<'_>) -> Result<Vec<ThreadRef>, Errno> {
    let who = call.uint(1);
    let me = &call.task;
    let found: Vec<ThreadRef> = match call.int(0) {
        0 if who == 0 => alloc::vec![me.to_arc()],
        0 => tree::thread(who).into_iter().collect(),
        1 => {
            let group = if who == 0 { me.process.pgid() } else { who };
            tree::group_members(group).iter().flat_map(|process| process.threads.list()).collect()
        }
        2 => {
            let uid = if who == 0 { me.creds.with(|creds| creds.uid) } else { who };
            let all = tree::all_processes();
            let threads = all.iter().flat_map(|process| process.threads.list());
            threads.filter(|thread| thread.creds.with(|creds| creds.uid) == uid).collect()
        }
        _ => return Err(Errno::EINVAL),
    };
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

fn getpriority(call: &mut Call<'_>) -> SysResult {
    if call.int(0) == 0 && call.uint(1) == 0 {
        return Ok((20 - call.task.sched.nice()) as usize);
    }
    let best = threads(call)?.iter().map(|thread| 20 - thread.sched.nice()).max();
    Ok(best.unwrap_or(20) as usize)
}

fn setpriority(call: &mut Call<'_>) -> SysResult {
    let nice = call.int(2).clamp(-20, 19);
    let mut outcome = Ok(0);
    // One that may not be changed keeps no other from it.
    for thread in threads(call)? {
        match permit(call, &thread) {
            Err(error) => outcome = Err(error),
            Ok(()) if !may_renice(call, &thread, nice) => outcome = Err(Errno::EACCES),
            Ok(()) => thread.sched.set_nice(nice),
        }
    }
    outcome
}
