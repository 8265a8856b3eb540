//! Calls about signals, and the `setitimer` family.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use kernel_logic::signal::{Disposition, MAX_SIGNAL, SigInfo, SigSet, code, sig};
use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::time::now;

use super::{Call, Calls, SysResult, clock, futexes};
use crate::sched::{Sleep, breathe};
use crate::task::signal::permit::permit;
use crate::task::signal::{self, Restart, frame};
use crate::task::{Pid, Process, Task, ThreadRef, Tid, pidfd, tree};
use crate::time;
use crate::user::{UserPtr, read_words, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::rt_sigaction, rt_sigaction),
    (nr::rt_sigprocmask, rt_sigprocmask),
    (nr::rt_sigreturn, rt_sigreturn),
    (nr::rt_sigpending, rt_sigpending),
    (nr::rt_sigtimedwait, rt_sigtimedwait),
    (nr::rt_sigsuspend, rt_sigsuspend),
    (nr::rt_sigqueueinfo, rt_sigqueueinfo),
    (nr::rt_tgsigqueueinfo, rt_tgsigqueueinfo),
    (nr::pidfd_send_signal, pidfd_send_signal),
    (nr::sigaltstack, sigaltstack),
    (nr::kill, kill),
    (nr::tkill, tkill),
    (nr::tgkill, tgkill),
    (nr::pause, pause),
    (nr::restart_syscall, restart_syscall),
    (nr::alarm, alarm),
    (nr::getitimer, getitimer),
    (nr::setitimer, setitimer),
];

fn check_set_size(size: u64) -> Result<(), Errno> {
    if size == 8 { Ok(()) } else { Err(Errno::EINVAL) }
}

fn check_signal(signal: u64) -> Result<u8, Errno> {
    if signal as u32 <= u32::from(MAX_SIGNAL) { Ok(signal as u8) } else { Err(Errno::EINVAL) }
}

fn rt_sigaction(call: &mut Call<'_>) -> SysResult {
    check_set_size(call.arg(3))?;
    let (signal, new_at, old_at) = (call.uint(0), call.arg(1), call.arg(2));
    let new = match new_at {
        0 => None,
        at => {
            let [handler, flags, restorer, mask] = read_words(at)?;
            Some(Disposition { handler, flags, restorer, mask: SigSet(mask).without(SigSet::UNBLOCKABLE) })
        }
    };
    if signal == 0 || signal > u32::from(MAX_SIGNAL) {
        return Err(Errno::EINVAL);
    }
    let signal = signal as u8;
    if new.is_some() && SigSet::UNBLOCKABLE.has(signal) {
        return Err(Errno::EINVAL);
    }
    let old = call.task.process.signals.edit_action(signal, |entry| {
        let old = (old_at != 0).then_some(*entry);
        if let Some(new) = new {
            *entry = new;
        }
        old
    });
    if new.is_some_and(|new| new.ignores(signal)) {
        signal::discard_own(&call.task, SigSet::only(signal));
    }
    if let Some(old) = old {
        write_words(old_at, &[old.handler, old.flags, old.restorer, old.mask.0])?;
    }
    Ok(0)
}

fn rt_sigprocmask(call: &mut Call<'_>) -> SysResult {
    check_set_size(call.arg(3))?;
    let (how, new_at, old_at) = (call.int(0), call.arg(1), call.arg(2));
    let old = call.task.signals.blocked();
    if new_at != 0 {
        let set = SigSet(UserPtr::<u64>::new(new_at).read()?);
        let mask = match how {
            0 => old.with(set),
            1 => old.without(set),
            2 => set,
            _ => return Err(Errno::EINVAL),
        };
        signal::set_blocked(&call.task, mask);
    }
    UserPtr::<u64>::new(old_at).write_if_wanted(old.0)?;
    Ok(0)
}

fn rt_sigreturn(call: &mut Call<'_>) -> SysResult {
    if frame::pop(&call.task, call.frame).is_err() {
        signal::force(SigInfo::kernel(sig::SEGV));
    }
    call.frame.forget_syscall();
    Ok(call.frame.result() as usize)
}

fn rt_sigpending(call: &mut Call<'_>) -> SysResult {
    if call.arg(1) > 8 {
        return Err(Errno::EINVAL);
    }
    let me = &call.task;
    let pending = signal::pending_set(me);
    call.pointer::<u64>(0).write(pending.0 & me.signals.blocked().0)?;
    Ok(0)
}

fn rt_sigtimedwait(call: &mut Call<'_>) -> SysResult {
    check_set_size(call.arg(3))?;
    let wanted = SigSet(call.pointer::<u64>(0).read()?).without(SigSet::UNBLOCKABLE);
    let deadline = match call.arg(2) {
        0 => None,
        at => Some(now().saturating_add(time::from_timespec(read_words(at)?)?)),
    };
    let me = &call.task;
    me.signals.waiting_for.store(wanted.0, Ordering::SeqCst);
    let outcome = me.signals.arrived.wait_until(deadline, Sleep::Interruptible, || signal::take(me, wanted));
    me.signals.waiting_for.store(0, Ordering::SeqCst);
    let info = match outcome {
        Ok(info) => info,
        Err(crate::sync::wait::WaitError::TimedOut) => return Err(Errno::EAGAIN),
        Err(crate::sync::wait::WaitError::Interrupted) => return Err(Errno::EINTR),
    };
    if call.arg(1) != 0 {
        write_words(call.arg(1), &info.words())?;
    }
    Ok(usize::from(info.signal))
}

fn rt_sigsuspend(call: &mut Call<'_>) -> SysResult {
    check_set_size(call.arg(1))?;
    let mask = SigSet(call.pointer::<u64>(0).read()?);
    signal::set_temporary_mask(&call.task, mask);
    sleep_for_signal()
}

fn pause(_call: &mut Call<'_>) -> SysResult {
    sleep_for_signal()
}

fn sleep_for_signal() -> SysResult {
    // Nothing but a signal ends this.
    while crate::sync::wait::sleep_until(u64::MAX, Sleep::Interruptible).is_ok() {}
    Err(Errno::ERESTARTNOHAND)
}

fn rt_sigqueueinfo(call: &mut Call<'_>) -> SysResult {
    let info = queued_info(call, call.arg(1), call.arg(2), call.int(0))?;
    let process = process_by_any_id(call.int(0) as Pid)?;
    permit(&call.task, &process, info.signal)?;
    if info.signal != 0 {
        signal::send_process(&process, info)?;
    }
    Ok(0)
}

fn rt_tgsigqueueinfo(call: &mut Call<'_>) -> SysResult {
    let info = queued_info(call, call.arg(2), call.arg(3), call.int(0))?;
    let thread = thread_of(call, call.int(0), call.int(1))?;
    permit(&call.task, &thread.process, info.signal)?;
    if info.signal != 0 {
        signal::send_thread(&thread, info)?;
    }
    Ok(0)
}

fn pidfd_send_signal(call: &mut Call<'_>) -> SysResult {
    let process = pidfd::process_of(&call.task, call.int(0))?;
    call.flags(3, 0)?;
    let signal = check_signal(call.arg(1))?;
    let info = match call.arg(2) {
        0 => signal::from_caller(&call.task, signal, code::USER),
        at => {
            let told = UserPtr::<u32>::new(at).read()?;
            if told != u32::from(signal) {
                return Err(Errno::EINVAL);
            }
            queued_info(call, call.arg(1), at, process.pid as i32)?
        }
    };
    // A reaped process is gone for good, even if its number was reused.
    tree::process(process.pid).filter(|found| Arc::ptr_eq(found, &process)).ok_or(Errno::ESRCH)?;
    permit(&call.task, &process, signal)?;
    if signal != 0 {
        signal::send_process(&process, info)?;
    }
    Ok(0)
}

/// The siginfo a program made; it may not pretend that the kernel or `kill` sent it to another process.
fn queued_info(call: &Call<'_>, signal: u64, at: u64, target: i32) -> Result<SigInfo, Errno> {
    let words = read_words(at)?;
    let mut info = SigInfo::decode(&words, 0);
    if (info.code >= 0 || info.code == code::TKILL) && target != call.task.pid() as i32 {
        return Err(Errno::EPERM);
    }
    info.signal = check_signal(signal)?;
    Ok(info)
}

/// The thread with this id; the caller, most often, needs no search.
#[inline]
fn thread_by_id(call: &Call<'_>, tid: Tid) -> Option<ThreadRef> {
    if tid == call.task.tid() { Some(call.task.to_arc()) } else { tree::thread(tid) }
}

fn thread_of(call: &Call<'_>, tgid: i32, tid: i32) -> Result<ThreadRef, Errno> {
    if tgid <= 0 || tid <= 0 {
        return Err(Errno::EINVAL);
    }
    let thread = thread_by_id(call, tid as Tid).ok_or(Errno::ESRCH)?;
    if thread.pid() == tgid as Pid { Ok(thread) } else { Err(Errno::ESRCH) }
}

/// The process with this id, or with a thread that has it: kill(2) takes both.
fn process_by_any_id(id: Pid) -> Result<Arc<Process>, Errno> {
    tree::process(id).or_else(|| tree::thread(id).map(|thread| thread.process.clone())).ok_or(Errno::ESRCH)
}

fn kill(call: &mut Call<'_>) -> SysResult {
    let pid = call.int(0);
    let me = &call.task;
    // A process that does not exist is told before a signal that does not.
    let target = if pid > 0 { Some(process_by_any_id(pid as Pid)?) } else { None };
    let signal = check_signal(call.arg(1))?;
    let info = signal::from_caller(me, signal, code::USER);
    if let Some(process) = target {
        permit(me, &process, signal)?;
        if signal != 0 {
            signal::send_process(&process, info)?;
        }
        return Ok(0);
    }
    match pid {
        -1 => {
            let others = tree::all_processes().into_iter().filter(|p| p.pid > 1 && p.pid != me.pid() && !p.is_zombie());
            send_many(me, others, info)
        }
        i32::MIN => Err(Errno::ESRCH),
        _ => {
            let group = if pid == 0 { me.process.pgid() } else { pid.unsigned_abs() };
            send_many(me, tree::group_members(group).into_iter(), info)
        }
    }
}

/// Sends to all that may be sent to: fine if any could, `EPERM` if none could, `ESRCH` if there are none.
fn send_many(me: &Task, targets: impl Iterator<Item = Arc<Process>>, info: SigInfo) -> SysResult {
    let mut outcome = Err(Errno::ESRCH);
    for target in targets {
        breathe();
        match permit(me, &target, info.signal) {
            Ok(()) => {
                if info.signal != 0 {
                    // A full queue of one of many is not the caller's concern.
                    let _ = signal::send_process(&target, info.clone());
                }
                outcome = Ok(0);
            }
            Err(errno) if outcome.is_err() => outcome = Err(errno),
            Err(_) => {}
        }
    }
    outcome
}

fn tkill(call: &mut Call<'_>) -> SysResult {
    if call.int(0) <= 0 {
        return Err(Errno::EINVAL);
    }
    match thread_by_id(call, call.int(0) as Tid) {
        Some(thread) => send_to_thread(call, &thread, call.arg(1)),
        None => send_to_dead_thread(call, call.int(0), call.arg(1)),
    }
}

fn tgkill(call: &mut Call<'_>) -> SysResult {
    match thread_of(call, call.int(0), call.int(1)) {
        Err(Errno::ESRCH) if call.int(0) == call.int(1) => send_to_dead_thread(call, call.int(0), call.arg(2)),
        thread => send_to_thread(call, &thread?, call.arg(2)),
    }
}

/// The first thread of a process stays until that is waited for, though no signal reaches it any more.
fn send_to_dead_thread(call: &Call<'_>, tid: i32, signal: u64) -> SysResult {
    let process = tree::process(tid as Pid).ok_or(Errno::ESRCH)?;
    permit(&call.task, &process, check_signal(signal)?)?;
    Ok(0)
}

#[inline]
fn send_to_thread(call: &Call<'_>, thread: &ThreadRef, signal: u64) -> SysResult {
    let signal = check_signal(signal)?;
    permit(&call.task, &thread.process, signal)?;
    if signal != 0 {
        signal::send_thread(thread, signal::from_caller(&call.task, signal, code::TKILL))?;
    }
    Ok(0)
}

fn sigaltstack(call: &mut Call<'_>) -> SysResult {
    let (new_at, old_at) = (call.arg(0), call.arg(1));
    let sp = call.frame.sp();
    let old = call.task.signals.alt_stack.get();
    if new_at != 0 {
        call.task.signals.alt_stack.set(old.replaced_by(read_words(new_at)?, sp)?);
    }
    if old_at != 0 {
        write_words(old_at, &[old.base, old.flags(sp), old.size])?;
    }
    Ok(0)
}

fn restart_syscall(call: &mut Call<'_>) -> SysResult {
    let restart = call.task.signals.restart.lock().take();
    match restart {
        Some(Restart::Sleep { deadline, remaining }) => clock::sleep_on(&call.task, deadline, remaining),
        Some(Restart::Futex { addr, value, bits, deadline, private }) => {
            futexes::wait_on(&call.task, addr, private, value, bits, deadline)
        }
        None => Err(Errno::EINTR),
    }
}

fn alarm(call: &mut Call<'_>) -> SysResult {
    let after = call.word(0) * time::SECOND;
    let process = &call.task.process;
    let (left, _) = process.itimers.set(process, 0, after, 0)?;
    // Rounded to the nearest second, but never to "none" while there is something left.
    let seconds = (left + time::SECOND / 2) / time::SECOND;
    // An unsigned int to the caller.
    Ok(if left != 0 { seconds.max(1) as u32 } else { 0 } as usize)
}

fn getitimer(call: &mut Call<'_>) -> SysResult {
    let (left, interval) = call.task.process.itimers.get(call.uint(0) as usize)?;
    write_itimer(call.arg(1), left, interval)?;
    Ok(0)
}

fn setitimer(call: &mut Call<'_>) -> SysResult {
    let (interval, after) = match call.arg(1) {
        0 => (0, 0),
        at => {
            let [is, iu, vs, vu] = read_words(at)?;
            (time::from_timeval([is, iu])?, time::from_timeval([vs, vu])?)
        }
    };
    let process = &call.task.process;
    let (left, old_interval) = process.itimers.set(process, call.uint(0) as usize, after, interval)?;
    if call.arg(2) != 0 {
        write_itimer(call.arg(2), left, old_interval)?;
    }
    Ok(0)
}

fn write_itimer(at: u64, left: u64, interval: u64) -> Result<(), Errno> {
    let ([is, iu], [vs, vu]) = (time::to_timeval(interval), time::to_timeval(left));
    // Less than a microsecond left is not nothing.
    let vu = if left != 0 && vs == 0 { vu.max(1) } else { vu };
    write_words(at, &[is, iu, vs, vu])
}
