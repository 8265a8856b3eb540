//! Refusals that a call never gives for the arguments that it got, whatever was called before.
//!
//! An argument counts only where it decides alone: no memory behind a pointer, no descriptor, no limit has a part in
//! it. The rules are those of section 2 of Linux's manual pages.

use linux_abi::Errno;

use super::Answered;

/// A refusal that cannot be right: of a call, with an error, when the arguments are so, and what the manual page says.
type Refusal = (&'static str, Errno, fn(&[u64; 6]) -> bool, &'static str);

/// Why the error that a call answered cannot be right; `None` when it can.
pub(super) fn why(row: &Answered<'_>) -> Option<String> {
    let errno = row.errno()?;
    let is_refused = |refused: &&Refusal| refused.0 == row.call.name && refused.1 == errno && refused.2(&row.args);
    REFUSED.iter().find(is_refused).map(|refused| refused.3.to_owned())
}

/// The end of user space with four levels of page tables.
const USER_END: u64 = 0x0000_7fff_ffff_f000;
const PAGE: u64 = 4096;
/// Bytes of a kernel's set of signals.
const SIGSET: u64 = 8;
/// `SIGKILL`, `SIGSTOP` and the last signal.
const KILL: u64 = 9;
const STOP: u64 = 19;
const LAST: u64 = 64;

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const PROT_ALL: u64 = 7;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x22;
/// `WNOHANG`, `WUNTRACED`, `WCONTINUED`.
const WAIT_OPTIONS: u64 = 1 | 2 | 8;
/// `O_CLOEXEC`, `O_NONBLOCK`: the flags of pipe2, eventfd2 and their like.
const CLOEXEC: u64 = 0o200_0000;
const NONBLOCK: u64 = 0o4000;
/// `CLOCK_REALTIME`, `CLOCK_MONOTONIC`.
const CLOCKS: u64 = 1;
/// `FUTEX_PRIVATE_FLAG` with `FUTEX_WAKE`.
const FUTEX_WAKE: [u64; 2] = [1, 129];
/// `AF_UNIX` with `SOCK_STREAM`, `SOCK_DGRAM`.
const UNIX: u64 = 1;
/// `madvise`: `MADV_NORMAL` to `MADV_DONTNEED`.
const MADV_DONTNEED: u64 = 4;

/// A range of whole pages in user space that is not empty.
fn is_range(start: u64, size: u64) -> bool {
    let end = start.checked_add(size);
    start.is_multiple_of(PAGE) && size > 0 && end.is_some_and(|end| end <= USER_END)
}

/// The lower half of a register, as calls with an `int` read it.
fn int(value: u64) -> u64 {
    u64::from(value as u32)
}

const fn only(flags: u64, known: u64) -> bool {
    flags & !known == 0
}

const REFUSED: &[Refusal] = &[
    (
        "arch_prctl",
        Errno::EPERM,
        |args| matches!(args[0], ARCH_SET_FS | ARCH_SET_GS) && args[1] < USER_END,
        "only an address beyond user space is refused with EPERM",
    ),
    (
        "arch_prctl",
        Errno::EINVAL,
        |args| matches!(args[0], ARCH_SET_FS | ARCH_SET_GS),
        "the code is known: only other codes are refused with EINVAL",
    ),
    (
        "rt_sigprocmask",
        Errno::EINVAL,
        |args| (int(args[0]) <= 2 || args[1] == 0) && args[3] == SIGSET,
        "how and size are valid",
    ),
    (
        "rt_sigaction",
        Errno::EINVAL,
        |args| (1..=LAST).contains(&int(args[0])) && ![KILL, STOP].contains(&int(args[0])) && args[3] == SIGSET,
        "signal and size are valid",
    ),
    (
        "mmap",
        Errno::EINVAL,
        |args| {
            let is_fit = args[0] < USER_END && (1..USER_END / 2).contains(&args[1]) && args[5] == 0;
            is_fit && only(args[2], PROT_ALL) && args[3] == MAP_PRIVATE_ANONYMOUS
        },
        "length, rights and flags of the anonymous mapping are valid",
    ),
    ("munmap", Errno::EINVAL, |args| is_range(args[0], args[1]), "the range is whole pages of user space"),
    (
        "mprotect",
        Errno::EINVAL,
        |args| is_range(args[0], args[1]) && only(args[2], PROT_ALL),
        "the range is whole pages of user space, and the rights are known",
    ),
    (
        "madvise",
        Errno::EINVAL,
        |args| is_range(args[0], args[1]) && int(args[2]) < MADV_DONTNEED,
        "the range is whole pages of user space, and the advice is known",
    ),
    ("wait4", Errno::EINVAL, |args| only(int(args[2]), WAIT_OPTIONS), "the options are known"),
    ("pipe2", Errno::EINVAL, |args| only(int(args[1]), CLOEXEC | NONBLOCK), "the flags are known"),
    ("pipe", Errno::EINVAL, |_| true, "it has no argument that can be invalid"),
    ("fork", Errno::EINVAL, |_| true, "it has no argument that can be invalid"),
    ("vfork", Errno::EINVAL, |_| true, "it has no argument that can be invalid"),
    ("eventfd2", Errno::EINVAL, |args| only(int(args[1]), CLOEXEC | NONBLOCK | 1), "the flags are known"),
    ("epoll_create1", Errno::EINVAL, |args| only(int(args[0]), CLOEXEC), "the flags are known"),
    (
        "timerfd_create",
        Errno::EINVAL,
        |args| int(args[0]) <= CLOCKS && only(int(args[1]), CLOEXEC | NONBLOCK),
        "clock and flags are known",
    ),
    ("clock_gettime", Errno::EINVAL, |args| int(args[0]) <= CLOCKS, "the clock is known"),
    ("clock_getres", Errno::EINVAL, |args| int(args[0]) <= CLOCKS, "the clock is known"),
    ("futex", Errno::ENOSYS, |args| FUTEX_WAKE.contains(&int(args[1])), "the operation is known"),
    (
        "socketpair",
        Errno::EINVAL,
        |args| int(args[0]) == UNIX && matches!(int(args[1]) & !(CLOEXEC | NONBLOCK), 1 | 2) && int(args[2]) == 0,
        "domain, type and protocol are known",
    ),
    ("kill", Errno::EINVAL, |args| int(args[1]) <= LAST, "the signal is valid"),
    (
        "tgkill",
        Errno::EINVAL,
        |args| {
            let is_id = |id: u64| (1..=i32::MAX as u64).contains(&int(id));
            is_id(args[0]) && is_id(args[1]) && int(args[2]) <= LAST
        },
        "the ids are positive and the signal is valid",
    ),
    ("dup3", Errno::EINVAL, |args| int(args[0]) != int(args[1]) && only(int(args[2]), CLOEXEC), "the flags are known"),
    ("set_robust_list", Errno::EINVAL, |args| args[1] == 24, "the size is that of the head"),
    ("getrandom", Errno::EINVAL, |args| int(args[2]) <= 3, "the flags are known"),
    ("sched_yield", Errno::EINVAL, |_| true, "it always succeeds"),
];
