//! Calls about what a process may use and has used: getrlimit(2), getrusage(2), times(2).

use linux_abi::Errno;
use linux_abi::syscalls::nr;

use super::{Call, Calls, SysResult, named};
use crate::task::Process;
use crate::task::clock;
use crate::task::creds::cap;
use crate::task::limits::Limit;
use crate::task::process::Usage;
use crate::time;
use crate::user::{read_words, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::getrlimit, getrlimit),
    (nr::setrlimit, setrlimit),
    (nr::prlimit64, prlimit64),
    (nr::getrusage, getrusage),
    (nr::times, times),
];

fn getrlimit(call: &mut Call<'_>) -> SysResult {
    let limits = call.task.process.accounting.limits();
    let limit = limits.0.get(call.uint(0) as usize).ok_or(Errno::EINVAL)?;
    write_words(call.arg(1), &[limit.soft, limit.hard])?;
    Ok(0)
}

fn setrlimit(call: &mut Call<'_>) -> SysResult {
    let [soft, hard] = read_words(call.arg(1))?;
    change_limit(call, &call.task.process, call.uint(0) as usize, Limit { soft, hard })
}

fn change_limit(call: &Call<'_>, process: &Process, resource: usize, limit: Limit) -> SysResult {
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
    process.accounting.change_limits(|limits| limits.change(resource, limit, privileged))?;
    Ok(0)
}

fn prlimit64(call: &mut Call<'_>) -> SysResult {
    let (resource, new_at, old_at) = (call.uint(1) as usize, call.arg(2), call.arg(3));
    let new = if new_at == 0 { None } else { Some(read_words(new_at)?) };
    let process = named(call)?;
    if process.pid != call.task.pid() {
        let mine = call.task.creds();
        let theirs = process.threads.first().map(|thread| thread.creds());
        let same = theirs
            .is_some_and(|t| [t.uid, t.euid, t.suid] == [mine.uid; 3] && [t.gid, t.egid, t.sgid] == [mine.gid; 3]);
        if !same && !mine.capable(cap::SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
    }
    let old = *process.accounting.limits().0.get(resource).ok_or(Errno::EINVAL)?;
    if let Some([soft, hard]) = new {
        change_limit(call, &process, resource, Limit { soft, hard })?;
    }
    if old_at != 0 {
        write_words(old_at, &[old.soft, old.hard])?;
    }
    Ok(0)
}

/// What a process and its ended threads used so far.
pub(super) fn whole_usage(process: &Process) -> Usage {
    // Both in one step: a thread that ends goes from the one sum to the other.
    process.threads.with(|threads| {
        let mut usage = process.accounting.ended_threads();
        for thread in threads {
            usage.add(&clock::thread_usage(thread));
            if let Some(mm) = thread.mm() {
                usage.max_rss = usage.max_rss.max(mm.peak() * 4);
            }
        }
        usage
    })
}

/// What a child that is waited for used, with the children it has waited for (wait4(2)).
pub(super) fn usage_of_child(child: &Process) -> Usage {
    let mut usage = whole_usage(child);
    usage.add(&child.accounting.children());
    usage
}

pub(super) fn write_usage(at: u64, usage: &Usage) -> Result<(), Errno> {
    let [user_s, user_us] = time::to_timeval(usage.user);
    let [system_s, system_us] = time::to_timeval(usage.system);
    let words = [
        user_s,
        user_us,
        system_s,
        system_us,
        usage.max_rss,
        0,
        0,
        0,
        usage.minor_faults,
        usage.major_faults,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    write_words(at, &words)?;
    // The switches are the last two of the eighteen words.
    write_words(at + 8 * 16, &[usage.voluntary, usage.involuntary])
}

fn getrusage(call: &mut Call<'_>) -> SysResult {
    const CHILDREN: i32 = -1;
    const OWN: i32 = 0;
    const THREAD: i32 = 1;
    let usage = match call.int(0) {
        OWN => whole_usage(&call.task.process),
        CHILDREN => call.task.process.accounting.children(),
        THREAD => {
            let max_rss = whole_usage(&call.task.process).max_rss;
            Usage { max_rss, ..clock::thread_usage(&call.task) }
        }
        _ => return Err(Errno::EINVAL),
    };
    write_usage(call.arg(1), &usage)?;
    Ok(0)
}

fn times(call: &mut Call<'_>) -> SysResult {
    if call.arg(0) != 0 {
        let (usage, children) = (whole_usage(&call.task.process), call.task.process.accounting.children());
        let all = [usage.user, usage.system, children.user, children.system];
        write_words(call.arg(0), &all.map(time::to_ticks))?;
    }
    Ok(time::to_ticks(machine::time::now()) as usize)
}
