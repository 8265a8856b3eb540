//! Calls that make, execute, end and wait for processes and threads.

use alloc::vec::Vec;

use kernel_logic::signal::MAX_SIGNAL;
use linux_abi::Errno;
use linux_abi::flags::file::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW};
use linux_abi::flags::process as abi;
use linux_abi::numbers::{AT_FDCWD, CLONE_INTO_CGROUP};
use linux_abi::syscalls::nr;

use super::file_open::install;
use super::process_usage::{usage_of_child, write_usage};
use super::{Call, Calls, SysResult, named};
use crate::fs::Path;
use crate::mm::frames;
use crate::sched::{Sleep, breathe_or_stop};
use crate::task::access::{self, By};
use crate::task::limits::resource;
use crate::task::process::{Change, Changes, Ended};
use crate::task::wait::{self, Kind, Report, Wanted, Which};
use crate::task::{Pid, clone, exec, exit, pidfd, tree};
use crate::trace::ring;
use crate::user::{self, UserPtr};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::clone, sys_clone),
    (nr::fork, fork),
    (nr::vfork, vfork),
    (nr::clone3, clone3),
    (nr::execve, execve),
    (nr::execveat, execveat),
    (nr::exit, |call| exit::exit_thread(call.int(0) as u8)),
    (nr::exit_group, |call| exit::exit_process(call.int(0) as u8)),
    (nr::wait4, wait4),
    (nr::waitid, waitid),
    (nr::pidfd_open, pidfd_open),
    (nr::pidfd_getfd, pidfd_getfd),
    (nr::getpid, |call| Ok(call.task.pid() as usize)),
    (nr::gettid, |call| Ok(call.task.tid() as usize)),
    (nr::getppid, |call| Ok(call.task.process.ppid() as usize)),
    (nr::getpgrp, |call| Ok(call.task.process.pgid() as usize)),
    (nr::getpgid, |call| Ok(named(call)?.pgid() as usize)),
    (nr::getsid, |call| Ok(named(call)?.sid() as usize)),
    (nr::setpgid, setpgid),
    (nr::setsid, |call| Ok(tree::new_session(&call.task.process)? as usize)),
];

fn sys_clone(call: &mut Call<'_>) -> SysResult {
    let request = clone::Request {
        flags: call.word(0) & !0xff,
        exit_signal: call.int(0) as u8,
        stack: call.arg(1),
        parent_tid: call.arg(2),
        pidfd: call.arg(2),
        child_tid: call.arg(3),
        tls: call.arg(4),
        chosen_id: None,
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
    /// Bytes of the structure as Linux 6.1 knows it.
    const KNOWN: usize = 88;
    /// Most ids in `set_tid` (`MAX_PID_NS_LEVEL`).
    const MOST_IDS: u64 = 32;
    let size = call.arg(1);
    if size < FIRST_VERSION {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    for at in KNOWN as u64..size {
        if UserPtr::<u8>::new(call.arg(0).wrapping_add(at)).read()? != 0 {
            return Err(Errno::E2BIG);
        }
    }
    let mut bytes = [0; KNOWN];
    user::read_bytes(call.arg(0), &mut bytes[..KNOWN.min(size as usize)])?;
    let mut words = [0; KNOWN / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    let [flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, ids_at, ids, cgroup] = words;
    // Process namespaces do not nest, and an array without a length is as wrong as a length without an array.
    if ids > MOST_IDS || (ids == 0) != (ids_at == 0) || exit_signal > u64::from(MAX_SIGNAL) {
        return Err(Errno::EINVAL);
    }
    let into_cgroup = flags & CLONE_INTO_CGROUP != 0;
    if into_cgroup && (cgroup > i32::MAX as u64 || size < KNOWN as u64) {
        return Err(Errno::EINVAL);
    }
    let mut chosen = [0_u32; MOST_IDS as usize];
    for (index, id) in chosen.iter_mut().enumerate().take(ids as usize) {
        *id = UserPtr::new(ids_at).add(index).read()?;
    }
    let both = abi::CLONE_SIGHAND | clone::CLONE_CLEAR_SIGHAND;
    let unknown = flags & (!0x3_ffff_ffff | 0xff | abi::CLONE_DETACHED) != 0;
    if unknown || flags & both == both || (stack == 0) != (stack_size == 0) {
        return Err(Errno::EINVAL);
    }
    if stack.checked_add(stack_size).is_none_or(|end| end > kernel_logic::vma::USER_END) {
        return Err(Errno::EINVAL);
    }
    // A thread has no exit signal, and a sibling has its parent's.
    if flags & (abi::CLONE_THREAD | abi::CLONE_PARENT) != 0 && exit_signal != 0 {
        return Err(Errno::EINVAL);
    }
    if into_cgroup {
        // There are no control groups, so no descriptor is one's.
        call.task.files().get(cgroup as i32)?;
        return Err(Errno::EBADF);
    }
    let chosen_id = match ids {
        0 => None,
        1 => Some(clone::chosen_id(&call.task, chosen[0])?),
        _ => return Err(Errno::EINVAL),
    };
    let stack = stack.wrapping_add(stack_size);
    let exit_signal = exit_signal as u8;
    let request = clone::Request { flags, exit_signal, stack, parent_tid, child_tid, pidfd, tls, chosen_id };
    clone::clone(&call.task, call.frame, &request)
}

/// Most bytes of a path with its terminator (`PATH_MAX`).
const PATH_MAX: usize = 4096;
/// Most bytes of one argument (`MAX_ARG_STRLEN`).
const MAX_STRING: usize = kernel_logic::stack::MAX_STRING;

fn execve(call: &mut Call<'_>) -> SysResult {
    frames::spare()?;
    let path = user::read_string(call.arg(0), PATH_MAX, Errno::ENAMETOOLONG)?;
    let (argv, envp) = vectors(call, call.arg(1), call.arg(2))?;
    record(call, (0, &path), (1, &argv));
    let request = exec::Request { path, base: None, location: None, keep_link: false, argv, envp };
    run(call, request)
}

fn execveat(call: &mut Call<'_>) -> SysResult {
    let (fd, flags) = (call.int(0), call.word(4));
    if flags & !(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0 {
        return Err(Errno::EINVAL);
    }
    let mut path = user::read_string(call.arg(1), PATH_MAX, Errno::ENAMETOOLONG)?;
    let (argv, envp) = vectors(call, call.arg(2), call.arg(3))?;
    record(call, (1, &path), (2, &argv));
    let (mut base, mut location): (Option<Path>, Option<Path>) = (None, None);
    if path.is_empty() {
        if flags & AT_EMPTY_PATH == 0 {
            return Err(Errno::ENOENT);
        }
        location = Some(call.task.files().get(fd)?.path.clone());
        path = alloc::format!("/dev/fd/{fd}").into_bytes();
    } else if fd != AT_FDCWD && path[0] != b'/' {
        base = Some(call.task.files().get(fd)?.path.clone());
    }
    let keep_link = flags & AT_SYMLINK_NOFOLLOW != 0;
    run(call, exec::Request { path, base, location, keep_link, argv, envp })
}

/// Path and arguments of a program as the call's strings: each argument with its terminator.
fn record(call: &Call<'_>, (path_at, path): (usize, &[u8]), (argv_at, argv): (usize, &Strings)) {
    ring::strings(call.arg(path_at), core::iter::once(path), path.len());
    let len = argv.iter().map(|argument| argument.len() + 1).sum();
    ring::strings(call.arg(argv_at), argv.iter().flat_map(|argument| [argument, &b"\0"[..]]), len);
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
        // Their number is the program's choice, so the kernel's own memory bounds it too.
        frames::spare()?;
        let string = user::read_string(pointer, MAX_STRING, Errno::E2BIG)?;
        *left = left.checked_sub(string.len() + 9).ok_or(Errno::E2BIG)?;
        list.try_reserve(1).map_err(|_| Errno::ENOMEM)?;
        list.push(string);
        breathe_or_stop(Sleep::Killable)?;
    }
    Ok(list)
}

fn wait4(call: &mut Call<'_>) -> SysResult {
    let (pid, status_at, options, usage_at) = (call.int(0), call.arg(1), call.word(2), call.arg(3));
    let known = abi::WNOHANG | abi::WUNTRACED | abi::WCONTINUED | abi::__WNOTHREAD | abi::__WALL | abi::__WCLONE;
    if options & !known != 0 {
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
        changes: Changes {
            ended: true,
            stopped: options & abi::WUNTRACED != 0,
            continued: options & abi::WCONTINUED != 0,
        },
        no_hang: options & abi::WNOHANG != 0,
        keep: false,
        kind: kind_of(options),
        of_thread: options & abi::__WNOTHREAD != 0,
    };
    let Some(report) = wait::wait(&call.task, &wanted)? else { return Ok(0) };
    let status = match report.change {
        Change::Ended(ended) => ended.wait_status(),
        Change::Stopped(signal) => i32::from(signal) << 8 | 0x7f,
        Change::Continued => 0xffff,
    };
    UserPtr::<i32>::new(status_at).write_if_wanted(status)?;
    if usage_at != 0 {
        write_usage(usage_at, &usage_of_child(&report.process))?;
    }
    Ok(report.process.pid as usize)
}

fn waitid(call: &mut Call<'_>) -> SysResult {
    let (info_at, usage_at) = (call.arg(2), call.arg(4));
    let outcome = wait_by_id(call);
    if info_at != 0 {
        // Zeros for nothing, after an error too.
        write_wait_info(info_at, outcome.as_ref().ok().and_then(Option::as_ref))?;
    }
    if let Some(report) = outcome?
        && usage_at != 0
    {
        write_usage(usage_at, &usage_of_child(&report.process))?;
    }
    Ok(0)
}

fn wait_by_id(call: &Call<'_>) -> Result<Option<Report>, Errno> {
    let (kind, id, options) = (call.word(0), call.int(1), call.word(3));
    let known = abi::WNOHANG | abi::WNOWAIT | abi::WEXITED | abi::WUNTRACED | abi::WCONTINUED;
    let known = known | abi::__WNOTHREAD | abi::__WALL | abi::__WCLONE;
    let events = abi::WEXITED | abi::WUNTRACED | abi::WCONTINUED;
    if options & !known != 0 || options & events == 0 {
        return Err(Errno::EINVAL);
    }
    // A nonblocking pidfd asks for EAGAIN in place of sleep (pidfd_open(2)).
    let mut impatient = false;
    let which = match kind {
        0 => Which::Any,
        1 if id > 0 => Which::Process(id as Pid),
        3 if id >= 0 => {
            impatient = call.task.files().get(id)?.is_nonblocking() && options & abi::WNOHANG == 0;
            Which::This(pidfd::process_of(&call.task, id)?.family.identity())
        }
        2 if id == 0 => Which::Group(call.task.process.pgid()),
        2 if id > 0 => Which::Group(id as Pid),
        _ => return Err(Errno::EINVAL),
    };
    let wanted = Wanted {
        which,
        changes: Changes {
            ended: options & abi::WEXITED != 0,
            stopped: options & abi::WUNTRACED != 0,
            continued: options & abi::WCONTINUED != 0,
        },
        no_hang: impatient || options & abi::WNOHANG != 0,
        keep: options & abi::WNOWAIT != 0,
        kind: kind_of(options),
        of_thread: options & abi::__WNOTHREAD != 0,
    };
    let report = wait::wait(&call.task, &wanted)?;
    if impatient && report.is_none() { Err(Errno::EAGAIN) } else { Ok(report) }
}

/// Which children `__WALL` and `__WCLONE` ask for.
fn kind_of(options: u64) -> Kind {
    match options {
        _ if options & abi::__WALL != 0 => Kind::All,
        _ if options & abi::__WCLONE != 0 => Kind::Clones,
        _ => Kind::Ordinary,
    }
}

fn pidfd_open(call: &mut Call<'_>) -> SysResult {
    let (pid, flags) = (call.int(0), call.word(1));
    if pid <= 0 || flags & !abi::PIDFD_NONBLOCK != 0 {
        return Err(Errno::EINVAL);
    }
    // A thread that is not the first of its process has none (pidfd_open(2)).
    let of_thread = || if tree::thread(pid as Pid).is_some() { Errno::EINVAL } else { Errno::ESRCH };
    let process = tree::process(pid as Pid).ok_or_else(of_thread)?;
    Ok(pidfd::open(&call.task, &process, flags != 0)? as usize)
}

/// A copy of another process's descriptor, for those who may trace it (pidfd_getfd(2)).
fn pidfd_getfd(call: &mut Call<'_>) -> SysResult {
    if call.uint(2) != 0 {
        return Err(Errno::EINVAL);
    }
    let process = pidfd::process_of(&call.task, call.int(0))?;
    let thread = process.threads.first().filter(|_| !process.is_zombie()).ok_or(Errno::ESRCH)?;
    let number = call.int(1);
    let file =
        access::take(&call.task, &thread, By::RealIds, |thread| thread.files.get().ok_or(Errno::ESRCH)?.get(number))??;
    install(call, file, true)
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

fn setpgid(call: &mut Call<'_>) -> SysResult {
    let (pid, pgid) = (call.int(0), call.int(1));
    if pid < 0 || pgid < 0 {
        return Err(Errno::EINVAL);
    }
    let target = if pid == 0 { call.task.pid() } else { pid as Pid };
    if tree::process(target).is_none() && tree::thread(target).is_some() {
        return Err(Errno::EINVAL);
    }
    let group = if pgid == 0 { target } else { pgid as Pid };
    tree::set_group(&call.task.process, target, group)?;
    Ok(0)
}
