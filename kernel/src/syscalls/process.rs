//! Calls about processes and threads.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use kernel_logic::signal::MAX_SIGNAL;
use linux_abi::Errno;
use linux_abi::flags::process as abi;
use linux_abi::syscalls::nr;
use machine::thread::running;

use super::{Call, Calls, SysResult};
use crate::fs::Path;
use crate::task::creds::cap;
use crate::task::limits::{Limit, resource};
use crate::task::process::{Ended, Usage};
use crate::task::wait::{self, Change, Report, Wanted, Which};
use crate::task::{Pid, Process, clone, exec, exit, tree};
use crate::time;
use crate::user::{self, UserPtr, read_words, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::clone, sys_clone),
    (nr::fork, fork),
    (nr::vfork, vfork),
    (nr::clone3, clone3),
    (nr::execve, execve),
    (nr::execveat, execveat),
    (nr::exit, |call| exit::exit_thread(call.arg(0) as u8)),
    (nr::exit_group, |call| exit::exit_process(call.arg(0) as u8)),
    (nr::wait4, wait4),
    (nr::waitid, waitid),
    (nr::getpid, |call| Ok(call.task.pid() as usize)),
    (nr::gettid, |call| Ok(call.task.tid() as usize)),
    (nr::getppid, |call| Ok(call.task.process.ppid() as usize)),
    (nr::getpgrp, |call| Ok(call.task.process.pgid() as usize)),
    (nr::getpgid, |call| Ok(named(call)?.pgid() as usize)),
    (nr::getsid, |call| Ok(named(call)?.sid() as usize)),
    (nr::setpgid, setpgid),
    (nr::setsid, |call| Ok(tree::new_session(&call.task.process)? as usize)),
    (nr::set_tid_address, set_tid_address),
    (nr::set_robust_list, set_robust_list),
    (nr::get_robust_list, get_robust_list),
    (nr::rseq, rseq),
    (nr::prctl, prctl),
    (nr::arch_prctl, arch_prctl),
    (nr::personality, personality),
    (nr::unshare, unshare),
    (nr::getrlimit, getrlimit),
    (nr::setrlimit, setrlimit),
    (nr::prlimit64, prlimit64),
    (nr::getrusage, getrusage),
    (nr::times, times),
];

fn sys_clone(call: &mut Call<'_>) -> SysResult {
    let request = clone::Request {
        flags: call.arg(0) & !0xff & 0xffff_ffff,
        exit_signal: call.arg(0) as u8,
        stack: call.arg(1),
        parent_tid: call.arg(2),
        child_tid: call.arg(3),
        tls: call.arg(4),
    };
    clone::clone(&call.task, call.frame, &request)
}

fn fork(call: &mut Call<'_>) -> SysResult {
    let request = clone::Request { exit_signal: 17, ..clone::Request::default() };
    clone::clone(&call.task, call.frame, &request)
}

fn vfork(call: &mut Call<'_>) -> SysResult {
    let flags = abi::CLONE_VFORK | abi::CLONE_VM;
    let request = clone::Request { flags, exit_signal: 17, ..clone::Request::default() };
    clone::clone(&call.task, call.frame, &request)
}

fn clone3(call: &mut Call<'_>) -> SysResult {
    /// `CLONE_ARGS_SIZE_VER0`: the first eight words; later ones must be zero.
    const FIRST_VERSION: u64 = 64;
    let size = call.arg(1);
    if size < FIRST_VERSION {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let [flags, _pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls] = read_words(call.arg(0))?;
    for at in (FIRST_VERSION..size / 8 * 8).step_by(8) {
        if UserPtr::<u64>::new(call.arg(0) + at).read()? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    let unknown = flags & !(0x3_ffff_ffff) != 0 || flags & 0xff != 0;
    if unknown || exit_signal > u64::from(MAX_SIGNAL) || (stack == 0) != (stack_size == 0) {
        return Err(Errno::EINVAL);
    }
    let stack = stack.wrapping_add(stack_size);
    let request = clone::Request { flags, exit_signal: exit_signal as u8, stack, parent_tid, child_tid, tls };
    clone::clone(&call.task, call.frame, &request)
}

/// Most bytes of a path with its terminator (`PATH_MAX`).
const PATH_MAX: usize = 4096;
/// Most bytes of one argument (`MAX_ARG_STRLEN`).
const MAX_STRING: usize = kernel_logic::stack::MAX_STRING;

fn execve(call: &mut Call<'_>) -> SysResult {
    let path = user::read_string(call.arg(0), PATH_MAX, Errno::ENAMETOOLONG)?;
    let (argv, envp) = vectors(call, call.arg(1), call.arg(2))?;
    let request = exec::Request { path, base: None, place: None, keep_link: false, argv, envp };
    run(call, request)
}

fn execveat(call: &mut Call<'_>) -> SysResult {
    const AT_FDCWD: i32 = -100;
    const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
    const AT_EMPTY_PATH: u64 = 0x1000;
    let (fd, flags) = (call.int(0), call.arg(4));
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut path = user::read_string(call.arg(1), PATH_MAX, Errno::ENAMETOOLONG)?;
    let (argv, envp) = vectors(call, call.arg(2), call.arg(3))?;
    let (mut base, mut place): (Option<Path>, Option<Path>) = (None, None);
    if path.is_empty() {
        if flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT);
        }
        place = Some(call.task.files().get(fd)?.path.clone());
        path = alloc::format!("/dev/fd/{fd}").into_bytes();
    } else if fd != AT_FDCWD && path[0] != b'/' {
        base = Some(call.task.files().get(fd)?.path.clone());
    }
    let keep_link = flags & AT_SYMLINK_NOFOLLOW != 0;
    run(call, exec::Request { path, base, place, keep_link, argv, envp })
}

fn run(call: &mut Call<'_>, request: exec::Request) -> SysResult {
    exec::exec(&call.task, call.frame, request)?;
    Ok(0)
}

type Strings = Vec<Vec<u8>>;

fn vectors(call: &Call<'_>, argv: u64, envp: u64) -> Result<(Strings, Strings), Errno> {
    let stack = call.task.process.limit(resource::STACK);
    let mut left = (stack / 4).clamp(128 << 10, 6 << 20) as usize;
    let mut argv = strings(argv, &mut left)?;
    if argv.is_empty() {
        // A program without even a name would index past its arguments; Linux gives it an empty one too.
        argv.push(Vec::new());
    }
    Ok((argv, strings(envp, &mut left)?))
}

/// Reads a null-terminated array of strings; pointers and bytes count against `left`.
fn strings(array: u64, left: &mut usize) -> Result<Strings, Errno> {
    let mut list = Vec::new();
    if array == 0 {
        return Ok(list);
    }
    for at in 0.. {
        let pointer = UserPtr::<u64>::new(array).add(at).read()?;
        if pointer == 0 {
            break;
        }
        let string = user::read_string(pointer, MAX_STRING, Errno::E2BIG)?;
        *left = left.checked_sub(string.len() + 9).ok_or(Errno::E2BIG)?;
        list.push(string);
    }
    Ok(list)
}

fn wait4(call: &mut Call<'_>) -> SysResult {
    let (pid, status_at, options, usage_at) = (call.int(0), call.arg(1), call.arg(2), call.arg(3));
    let known = abi::WNOHANG | abi::WUNTRACED | abi::WCONTINUED | abi::__WNOTHREAD | abi::__WALL | abi::__WCLONE;
    if options & 0xffff_ffff & !known != 0 {
        return Err(Errno::EINVAL);
    }
    let which = match pid {
        -1 => Which::Any,
        0 => Which::Group(call.task.process.pgid()),
        i32::MIN => return Err(Errno::ESRCH),
        1.. => Which::Process(pid as Pid),
        _ => Which::Group(pid.unsigned_abs()),
    };
    let wanted = Wanted {
        which,
        ended: true,
        stopped: options & abi::WUNTRACED != 0,
        continued: options & abi::WCONTINUED != 0,
        no_hang: options & abi::WNOHANG != 0,
        keep: false,
    };
    let Some(report) = wait::wait(&call.task, &wanted)? else { return Ok(0) };
    let status = match report.change {
        Change::Ended(ended) => ended.wait_status(),
        Change::Stopped(signal) => i32::from(signal) << 8 | 0x7f,
        Change::Continued => 0xffff,
    };
    UserPtr::<i32>::new(status_at).write_if_wanted(status)?;
    if usage_at != 0 {
        write_usage(usage_at, &whole_usage(&report.process))?;
    }
    Ok(report.process.pid as usize)
}

fn waitid(call: &mut Call<'_>) -> SysResult {
    let (kind, id, info_at, options, usage_at) = (call.arg(0), call.int(1), call.arg(2), call.arg(3), call.arg(4));
    let known = abi::WNOHANG | abi::WNOWAIT | abi::WEXITED | abi::WUNTRACED | abi::WCONTINUED;
    let known = known | abi::__WNOTHREAD | abi::__WALL | abi::__WCLONE;
    let events = abi::WEXITED | abi::WUNTRACED | abi::WCONTINUED;
    if options & 0xffff_ffff & !known != 0 || options & events == 0 {
        return Err(Errno::EINVAL);
    }
    let which = match kind {
        0 => Which::Any,
        1 if id > 0 => Which::Process(id as Pid),
        2 if id == 0 => Which::Group(call.task.process.pgid()),
        2 if id > 0 => Which::Group(id as Pid),
        _ => return Err(Errno::EINVAL),
    };
    let wanted = Wanted {
        which,
        ended: options & abi::WEXITED != 0,
        stopped: options & abi::WUNTRACED != 0,
        continued: options & abi::WCONTINUED != 0,
        no_hang: options & abi::WNOHANG != 0,
        keep: options & abi::WNOWAIT != 0,
    };
    let report = wait::wait(&call.task, &wanted)?;
    if info_at != 0 {
        write_wait_info(info_at, report.as_ref())?;
    }
    if let Some(report) = report
        && usage_at != 0
    {
        write_usage(usage_at, &whole_usage(&report.process))?;
    }
    Ok(0)
}

/// Stores the fields of siginfo that waitid(2) defines, and leaves the rest alone.
fn write_wait_info(at: u64, report: Option<&Report>) -> Result<(), Errno> {
    use kernel_logic::signal::code;
    let (signal, code, pid, uid, status) = match report {
        None => (0, 0, 0, 0, 0),
        Some(Report { process, change, uid }) => {
            let (code, status) = match change {
                Change::Ended(Ended::Exited(value)) => (code::CLD_EXITED, i32::from(*value)),
                Change::Ended(Ended::Killed { signal, core: true }) => (code::CLD_DUMPED, i32::from(*signal)),
                Change::Ended(Ended::Killed { signal, core: false }) => (code::CLD_KILLED, i32::from(*signal)),
                Change::Stopped(signal) => (code::CLD_STOPPED, i32::from(*signal)),
                Change::Continued => (code::CLD_CONTINUED, 18),
            };
            (17, code, process.pid as i32, *uid as i32, status)
        }
    };
    let words = UserPtr::<i32>::new(at);
    for (index, value) in [(0, signal), (1, 0), (2, code), (4, pid), (5, uid), (6, status)] {
        words.add(index).write(value)?;
    }
    Ok(())
}

/// The process argument 0 names; the caller for 0.
fn named(call: &Call<'_>) -> Result<alloc::sync::Arc<Process>, Errno> {
    match call.int(0) {
        0 => Ok(call.task.process.clone()),
        pid => tree::process(pid as Pid).ok_or(Errno::ESRCH),
    }
}

fn setpgid(call: &mut Call<'_>) -> SysResult {
    let (pid, pgid) = (call.int(0), call.int(1));
    if pid < 0 || pgid < 0 {
        return Err(Errno::EINVAL);
    }
    let target = if pid == 0 { call.task.pid() } else { pid as Pid };
    let group = if pgid == 0 { target } else { pgid as Pid };
    tree::set_group(&call.task.process, target, group)?;
    Ok(0)
}

fn set_tid_address(call: &mut Call<'_>) -> SysResult {
    call.task.clear_child_tid.store(call.arg(0), Ordering::Relaxed);
    Ok(call.task.tid() as usize)
}

fn set_robust_list(call: &mut Call<'_>) -> SysResult {
    if call.arg(1) != ROBUST_HEAD_BYTES {
        return Err(Errno::EINVAL);
    }
    call.task.robust_list.store(call.arg(0), Ordering::Relaxed);
    Ok(0)
}

/// `sizeof(struct robust_list_head)`
const ROBUST_HEAD_BYTES: u64 = 24;

fn get_robust_list(call: &mut Call<'_>) -> SysResult {
    let head = match call.int(0) {
        0 => call.task.robust_list.load(Ordering::Relaxed),
        tid => tree::thread(tid as Pid).ok_or(Errno::ESRCH)?.robust_list.load(Ordering::Relaxed),
    };
    UserPtr::<u64>::new(call.arg(1)).write(head)?;
    UserPtr::<u64>::new(call.arg(2)).write(ROBUST_HEAD_BYTES)?;
    Ok(0)
}

fn rseq(call: &mut Call<'_>) -> SysResult {
    let (addr, len, flags, signature) = (call.arg(0), call.arg(1) as u32, call.int(2), call.arg(3) as u32);
    let area = &call.task.rseq;
    let registered = area.addr.load(Ordering::Relaxed);
    let same = registered == addr && area.len.load(Ordering::Relaxed) == len;
    match flags {
        1 => {
            if registered == 0 || !same {
                return Err(Errno::EINVAL);
            }
            if area.signature.load(Ordering::Relaxed) != signature {
                return Err(Errno::EPERM);
            }
            area.addr.store(0, Ordering::Relaxed);
            Ok(0)
        }
        0 if registered != 0 => Err(if same { Errno::EBUSY } else { Errno::EINVAL }),
        0 => {
            if addr == 0 || !addr.is_multiple_of(32) || len < 32 {
                return Err(Errno::EINVAL);
            }
            area.len.store(len, Ordering::Relaxed);
            area.signature.store(signature, Ordering::Relaxed);
            area.addr.store(addr, Ordering::Relaxed);
            crate::task::rseq::update(&call.task)?;
            machine::cpu::request_work();
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn prctl(call: &mut Call<'_>) -> SysResult {
    let (option, value) = (call.int(0), call.arg(1));
    let me = &call.task;
    match option {
        // PR_SET_PDEATHSIG, PR_GET_PDEATHSIG
        1 if value <= u64::from(MAX_SIGNAL) => me.parent_death_signal.store(value as u32, Ordering::Relaxed),
        2 => UserPtr::<u32>::new(value).write(me.parent_death_signal.load(Ordering::Relaxed))?,
        // PR_GET_DUMPABLE, PR_SET_DUMPABLE
        3 => return Ok(me.process.dumpable.load(Ordering::Relaxed) as usize),
        4 if value <= 1 => me.process.dumpable.store(value as u32, Ordering::Relaxed),
        // PR_GET_KEEPCAPS, PR_SET_KEEPCAPS
        7 => return Ok(usize::from(me.creds.with(|creds| creds.keep_caps))),
        8 if value <= 1 => crate::task::creds::change(me, |creds| creds.keep_caps = value == 1),
        // PR_SET_NAME, PR_GET_NAME
        15 => {
            let mut name = [0; 15];
            let len = read_name(value, &mut name)?;
            me.set_comm(&name[..len]);
        }
        16 => user::write_bytes(value, &*me.name.lock())?,
        // PR_CAPBSET_READ, PR_CAPBSET_DROP
        23 if value <= 40 => return Ok(me.creds.with(|creds| creds.bounding >> value & 1) as usize),
        24 if value <= 40 => {
            if !me.creds.with(|creds| creds.capable(cap::SETPCAP)) {
                return Err(Errno::EPERM);
            }
            crate::task::creds::change(me, |creds| creds.bounding &= !(1 << value));
        }
        // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
        29 => {}
        30 => return Ok(50_000),
        // PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER
        36 => me.process.subreaper.store(value != 0, Ordering::Relaxed),
        37 => UserPtr::<u32>::new(value).write(u32::from(me.process.subreaper.load(Ordering::Relaxed)))?,
        // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
        38 if value == 1 => crate::task::creds::change(me, |creds| creds.no_new_privs = true),
        39 => return Ok(usize::from(me.creds.with(|creds| creds.no_new_privs))),
        // PR_GET_TID_ADDRESS
        40 => UserPtr::<u64>::new(value).write(me.clear_child_tid.load(Ordering::Relaxed))?,
        // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
        41 | 42 => {}
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn read_name(at: u64, name: &mut [u8; 15]) -> Result<usize, Errno> {
    for (index, byte) in name.iter_mut().enumerate() {
        *byte = UserPtr::<u8>::new(at).add(index).read()?;
        if *byte == 0 {
            return Ok(index);
        }
    }
    Ok(name.len())
}

fn arch_prctl(call: &mut Call<'_>) -> SysResult {
    const SET_GS: i32 = 0x1001;
    const SET_FS: i32 = 0x1002;
    const GET_FS: i32 = 0x1003;
    const GET_GS: i32 = 0x1004;
    let value = call.arg(1);
    match call.int(0) {
        SET_FS if value < kernel_logic::vma::USER_END => running::set_tls(value).map_err(|_| Errno::EPERM)?,
        SET_GS if value < kernel_logic::vma::USER_END => running::set_second_base(value).map_err(|_| Errno::EPERM)?,
        SET_FS | SET_GS => return Err(Errno::EPERM),
        GET_FS => UserPtr::<u64>::new(value).write(running::tls())?,
        GET_GS => UserPtr::<u64>::new(value).write(running::second_base())?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn personality(call: &mut Call<'_>) -> SysResult {
    let personality = &call.task.process.personality;
    let old = personality.load(Ordering::Relaxed);
    if call.arg(0) as u32 != u32::MAX {
        personality.store(call.arg(0) as u32, Ordering::Relaxed);
    }
    Ok(old as usize)
}

fn unshare(call: &mut Call<'_>) -> SysResult {
    let flags = call.arg(0);
    let known = abi::CLONE_FS | abi::CLONE_FILES | abi::CLONE_SYSVSEM;
    if flags & !known != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & abi::CLONE_FS != 0 {
        drop(call.task.fs.set(Some(call.task.fs().fork())));
    }
    if flags & abi::CLONE_FILES != 0 {
        drop(call.task.files.set(Some(call.task.files().fork())));
    }
    Ok(0)
}

fn getrlimit(call: &mut Call<'_>) -> SysResult {
    let limits = *call.task.process.limits.lock();
    let limit = limits.0.get(call.arg(0) as u32 as usize).ok_or(Errno::EINVAL)?;
    write_words(call.arg(1), &[limit.soft, limit.hard])?;
    Ok(0)
}

fn setrlimit(call: &mut Call<'_>) -> SysResult {
    let [soft, hard] = read_words(call.arg(1))?;
    change_limit(call, &call.task.process, call.arg(0) as u32 as usize, Limit { soft, hard })
}

fn change_limit(call: &Call<'_>, process: &Process, resource: usize, limit: Limit) -> SysResult {
    let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_RESOURCE));
    process.limits.lock().change(resource, limit, privileged)?;
    Ok(0)
}

fn prlimit64(call: &mut Call<'_>) -> SysResult {
    let (resource, new_at, old_at) = (call.arg(1) as u32 as usize, call.arg(2), call.arg(3));
    let process = named(call)?;
    if process.pid != call.task.pid() {
        let mine = call.task.creds();
        let theirs = process.any_thread().map(|thread| thread.creds());
        let same = theirs.is_some_and(|t| [t.uid, t.euid, t.suid] == [mine.uid; 3]);
        if !same && !mine.capable(cap::SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
    }
    let old = *process.limits.lock().0.get(resource).ok_or(Errno::EINVAL)?;
    if new_at != 0 {
        let [soft, hard] = read_words(new_at)?;
        change_limit(call, &process, resource, Limit { soft, hard })?;
    }
    if old_at != 0 {
        write_words(old_at, &[old.soft, old.hard])?;
    }
    Ok(0)
}

/// What a process and its ended threads used so far.
fn whole_usage(process: &Process) -> Usage {
    let mut usage = *process.usage.lock();
    for thread in process.threads.lock().iter() {
        let (user, system) = time::split_time(thread);
        usage.user += user;
        usage.system += system;
        usage.minor_faults += thread.minor_faults.load(Ordering::Relaxed);
        usage.major_faults += thread.major_faults.load(Ordering::Relaxed);
        usage.voluntary += thread.sched.voluntary.load(Ordering::Relaxed);
        usage.involuntary += thread.sched.involuntary.load(Ordering::Relaxed);
        if let Some(mm) = thread.mm() {
            usage.max_rss = usage.max_rss.max(mm.peak() * 4);
        }
    }
    usage
}

fn write_usage(at: u64, usage: &Usage) -> Result<(), Errno> {
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
        CHILDREN => {
            let all = *call.task.process.usage.lock();
            Usage {
                user: all.child_user,
                system: all.child_system,
                minor_faults: all.child_minor,
                major_faults: all.child_major,
                max_rss: all.child_max_rss,
                ..Usage::default()
            }
        }
        THREAD => {
            let (user, system) = time::split_time(&call.task);
            let minor_faults = call.task.minor_faults.load(Ordering::Relaxed);
            Usage { user, system, minor_faults, ..Usage::default() }
        }
        _ => return Err(Errno::EINVAL),
    };
    write_usage(call.arg(1), &usage)?;
    Ok(0)
}

fn times(call: &mut Call<'_>) -> SysResult {
    if call.arg(0) != 0 {
        let usage = whole_usage(&call.task.process);
        let all = [usage.user, usage.system, usage.child_user, usage.child_system];
        write_words(call.arg(0), &all.map(time::to_ticks))?;
    }
    Ok(time::to_ticks(machine::time::now()) as usize)
}
