//! Answers that a call never gives, whatever was called before: more bytes than were asked for, another descriptor than
//! the one that was named, a number where there is only success (section 2 of Linux's manual pages).

use linux_abi::syscalls::{ArgKind, ResultKind};

use super::Answered;

/// Why the answer of a call cannot be right; `None` when it can.
pub(super) fn why(row: &Answered<'_>) -> Option<String> {
    let (name, result) = (row.call.name, row.result);
    if result < 0 {
        // F_GETOWN answers a process group as its negative number.
        let number = !matches!(row.call.result, ResultKind::Address | ResultKind::Hex) && name != "fcntl";
        return (number && row.errno().is_none()).then(|| "it is neither an answer nor an error".to_owned());
    }
    let count = result.cast_unsigned();
    if SUCCEEDS.contains(&name) && count != 0 {
        return Some(format!("{name} answers 0 or an error"));
    }
    if let Some(asked) = asked_for(row).filter(|asked| count > *asked) {
        return Some(format!("it is more than the {asked} asked for"));
    }
    if WRITES.contains(&name) && count == 0 && row.args[2] > 0 {
        return Some(format!("nothing of {} bytes was written, and no error says why", row.args[2]));
    }
    let args = &row.args;
    match name {
        "dup2" | "dup3" if count != u64::from(args[1] as u32) => Some(format!("{name} answers its second argument")),
        "fcntl" if DUPLICATES.contains(&args[1]) && count < args[2] => {
            Some(format!("the new descriptor is below {}", args[2]))
        }
        "lseek" if args[2] == 0 && result != args[1].cast_signed() => {
            Some("SEEK_SET answers the offset that it was given".to_owned())
        }
        "mmap" if args[3] & MAP_FIXED != 0 && count != args[0] => Some("MAP_FIXED answers its address".to_owned()),
        "mremap" if args[3] & MREMAP_FIXED != 0 && count != args[4] => {
            Some("MREMAP_FIXED answers the new address".to_owned())
        }
        "mmap" | "mremap" if !count.is_multiple_of(PAGE) => Some("a mapping begins at a page".to_owned()),
        "set_tid_address" if row.record.tid.is_some_and(|tid| count != u64::from(tid)) => {
            Some(format!("the caller is thread {}", row.record.tid.unwrap_or(0)))
        }
        "setsid" if row.record.pid.is_some_and(|pid| count != u64::from(pid)) => {
            Some(format!("the caller is process {}", row.record.pid.unwrap_or(0)))
        }
        "wait4" => waited(row),
        "poll" | "epoll_wait" | "epoll_pwait" => too_early(row),
        _ => None,
    }
}

/// wait4(2): the child that was named, or 0 with WNOHANG.
fn waited(row: &Answered<'_>) -> Option<String> {
    let (wanted, answered) = (row.args[0] as u32 as i32, row.result);
    match answered {
        0 if row.args[2] & WNOHANG == 0 => Some("without WNOHANG it answers a child".to_owned()),
        1.. if wanted > 0 && answered != i64::from(wanted) => Some(format!("it was asked for process {wanted}")),
        _ => None,
    }
}

/// A wait with a timeout in milliseconds that found nothing before the time was over.
fn too_early(row: &Answered<'_>) -> Option<String> {
    let timeout = if row.call.name == "poll" { row.args[2] } else { row.args[3] };
    let least = u64::try_from(timeout as u32 as i32).ok()?.saturating_mul(1_000_000);
    let lasted = row.record.duration_ns.filter(|_| row.result == 0)?;
    let early = lasted.saturating_add(CLOCK) < least;
    early.then(|| format!("it answers that nothing happened after {} ms", lasted / 1_000_000))
}

/// The most that a call may answer, where an argument says it.
fn asked_for(row: &Answered<'_>) -> Option<u64> {
    let most = match row.call.name {
        "poll" | "ppoll" => u64::from(row.args[1] as u32),
        "epoll_wait" | "epoll_pwait" => u64::from(row.args[2] as u32),
        "futex" if row.args[1] & 0x7f == FUTEX_WAKE => u64::from(row.args[2] as u32),
        // MSG_TRUNC answers the length of the message, xattr calls with a size of 0 the size that is needed.
        "recvfrom" | "msgrcv" | "process_vm_readv" | "process_vm_writev" | "vmsplice" | "process_madvise" => {
            return None;
        }
        name if name.contains("xattr") => return None,
        _ if row.call.result != ResultKind::Size => return None,
        _ => {
            let at = row.call.args.iter().position(|arg| matches!(arg.kind, ArgKind::Size) || arg.name == "count")?;
            row.args[at]
        }
    };
    // A value that does not fit is refused, not asked for; what it becomes is the call's business.
    (most <= i64::MAX as u64).then_some(most)
}

const PAGE: u64 = 4096;
const MAP_FIXED: u64 = 0x10;
const MREMAP_FIXED: u64 = 2;
const WNOHANG: u64 = 1;
const FUTEX_WAKE: u64 = 1;
/// `F_DUPFD`, `F_DUPFD_CLOEXEC`.
const DUPLICATES: [u64; 2] = [0, 1030];
/// Two clocks may differ by this, nanoseconds.
const CLOCK: u64 = 2_000_000;
/// Calls that write at least a byte or fail.
const WRITES: &[&str] = &["write", "pwrite64"];
/// Calls that answer nothing but success.
const SUCCEEDS: &[&str] = &[
    "close",
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "munmap",
    "mprotect",
    "madvise",
    "msync",
    "rt_sigaction",
    "rt_sigprocmask",
    "sigaltstack",
    "pipe",
    "pipe2",
    "socketpair",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "setitimer",
    "getitimer",
    "timerfd_settime",
    "timerfd_gettime",
    "timer_settime",
    "timer_gettime",
    "timer_delete",
    "mkdir",
    "mkdirat",
    "rmdir",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "chmod",
    "fchmod",
    "fchmodat",
    "chown",
    "fchown",
    "lchown",
    "fchownat",
    "truncate",
    "ftruncate",
    "fsync",
    "fdatasync",
    "chdir",
    "fchdir",
    "chroot",
    "utimensat",
    "kill",
    "tkill",
    "tgkill",
    "bind",
    "listen",
    "connect",
    "shutdown",
    "uname",
    "sysinfo",
    "getrlimit",
    "setrlimit",
    "prlimit64",
    "getrusage",
    "setpgid",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "epoll_ctl",
    "mount",
    "umount2",
    "execve",
    "execveat",
    "set_robust_list",
    "sched_setaffinity",
    "sched_yield",
    "waitid",
    "flock",
    "fallocate",
    "close_range",
];
