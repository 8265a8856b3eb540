//! What the address in an argument points at besides a path or a string: its layout, its size, and when it is valid.
//!
//! The rows follow the manual page of each call. A tracer reads what goes in when the call begins, and what comes out
//! when it has returned without an error.

/// How the bytes at an address are laid out, on x86_64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Bytes as a file or a stream has them.
    Buffer,
    /// `int`s.
    Ints,
    /// The status that wait4(2) gives.
    WaitStatus,
    /// `sigset_t` of the kernel: 64 bits.
    SignalSet,
    /// `struct sigaction` of the kernel.
    SignalAction,
    /// `siginfo_t`.
    SignalInfo,
    /// `stack_t`.
    SignalStack,
    /// Seconds and a fraction, which has this name: `struct timespec`, `struct timeval`.
    Time(&'static str),
    /// Interval and value of such times: `struct itimerspec`, `struct itimerval`.
    Timer(&'static str),
    /// `struct sockaddr` of any family.
    Address,
    /// `struct iovec`.
    Vector,
    /// `struct msghdr`.
    Message,
    /// `struct pollfd`.
    Poll,
    /// `struct epoll_event`.
    Epoll,
    /// `struct rlimit`, `struct rlimit64`.
    Limits,
    /// `struct rusage`.
    Usage,
    /// `struct clone_args`.
    CloneArguments,
    /// `struct stat`.
    Stat,
    /// `struct statfs`.
    FileSystem,
    /// `struct linux_dirent64`, each as long as it says.
    Entries,
    /// `struct utsname`.
    SystemName,
    /// `struct sysinfo`.
    SystemInfo,
}
use Layout::{
    Address, Buffer, CloneArguments, Entries, Epoll, FileSystem, Ints, Limits, Message, Poll, SignalAction, SignalInfo,
    SignalSet, SignalStack, Stat, SystemInfo, SystemName, Time, Timer, Usage, Vector, WaitStatus,
};

impl Layout {
    /// Bytes of one; of what is shorter by its own length, the most that is looked at.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Buffer => 1,
            Ints | WaitStatus => 4,
            SignalSet | Poll => 8,
            Epoll => 12,
            Vector | Limits | Time(_) => 16,
            SignalStack => 24,
            SignalAction | Timer(_) => 32,
            Message => 56,
            CloneArguments => 88,
            SystemInfo => 112,
            FileSystem => 120,
            SignalInfo | Address => 128,
            Stat | Usage => 144,
            Entries => 280,
            SystemName => 390,
        }
    }

    /// Bytes of one from its beginning that a reader needs to say the usual.
    #[must_use]
    pub const fn needed(self) -> usize {
        match self {
            // Signal, code, process, user, status.
            SignalInfo => 32,
            // The times.
            Usage => 32,
            // As far as the size.
            Stat => 56,
            // As far as the length of names.
            FileSystem => 72,
            // As far as the number of processes.
            SystemInfo => 82,
            // The name of the system, and how that of the host begins.
            SystemName => 96,
            Entries => 19,
            other => other.size(),
        }
    }
}

/// How many of them lie there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Nothing else of its kind behind it.
    One,
    /// As many as an array has.
    Fixed(usize),
    /// As many as this argument says.
    Told(usize),
    /// One, or a buffer, of as many bytes as this argument says.
    Bytes(usize),
    /// One, of as many bytes as the `int` says that this argument points at.
    Length(usize),
    /// As many as the call returned.
    Returned,
    /// One, where the call returned a process: wait4(2) with WNOHANG writes nothing when it returns 0.
    Reaped,
}
use Count::{Bytes, Fixed, Length, One, Reaped, Returned, Told};

/// When the bytes are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The call reads them.
    In,
    /// The call writes them.
    Out,
    /// It reads some of them and writes others.
    Both,
}
use Way::{Both, In, Out};

/// What an argument points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointee {
    /// How one is laid out.
    pub layout: Layout,
    /// How many of them lie there.
    pub count: Count,
    /// When they are valid.
    pub way: Way,
}

const NS: Layout = Time("tv_nsec");
const US: Layout = Time("tv_usec");

/// Call, argument, what it points at.
const POINTEES: &[(&str, usize, Layout, Count, Way)] = &[
    ("read", 1, Buffer, Returned, Out),
    ("pread64", 1, Buffer, Returned, Out),
    ("recvfrom", 1, Buffer, Returned, Out),
    ("readlink", 1, Buffer, Returned, Out),
    ("readlinkat", 2, Buffer, Returned, Out),
    ("getcwd", 0, Buffer, Returned, Out),
    ("write", 1, Buffer, Bytes(2), In),
    ("pwrite64", 1, Buffer, Bytes(2), In),
    ("sendto", 1, Buffer, Bytes(2), In),
    ("stat", 1, Stat, One, Out),
    ("fstat", 1, Stat, One, Out),
    ("lstat", 1, Stat, One, Out),
    ("newfstatat", 2, Stat, One, Out),
    ("statfs", 1, FileSystem, One, Out),
    ("fstatfs", 1, FileSystem, One, Out),
    ("getdents64", 1, Entries, Returned, Out),
    ("pipe", 0, Ints, Fixed(2), Out),
    ("pipe2", 0, Ints, Fixed(2), Out),
    ("socketpair", 3, Ints, Fixed(2), Out),
    ("getresuid", 0, Ints, Fixed(1), Out),
    ("getresuid", 1, Ints, Fixed(1), Out),
    ("getresuid", 2, Ints, Fixed(1), Out),
    ("getresgid", 0, Ints, Fixed(1), Out),
    ("getresgid", 1, Ints, Fixed(1), Out),
    ("getresgid", 2, Ints, Fixed(1), Out),
    ("getgroups", 1, Ints, Returned, Out),
    ("setgroups", 1, Ints, Told(0), In),
    ("wait4", 1, WaitStatus, Reaped, Out),
    ("wait4", 3, Usage, Reaped, Out),
    ("waitid", 2, SignalInfo, One, Out),
    ("getrusage", 1, Usage, One, Out),
    ("uname", 0, SystemName, One, Out),
    ("sysinfo", 0, SystemInfo, One, Out),
    ("rt_sigaction", 1, SignalAction, One, In),
    ("rt_sigaction", 2, SignalAction, One, Out),
    ("rt_sigprocmask", 1, SignalSet, One, In),
    ("rt_sigprocmask", 2, SignalSet, One, Out),
    ("rt_sigpending", 0, SignalSet, One, Out),
    ("rt_sigsuspend", 0, SignalSet, One, In),
    ("rt_sigtimedwait", 0, SignalSet, One, In),
    ("rt_sigtimedwait", 1, SignalInfo, One, Out),
    ("rt_sigtimedwait", 2, NS, One, In),
    ("signalfd", 1, SignalSet, One, In),
    ("signalfd4", 1, SignalSet, One, In),
    ("sigaltstack", 0, SignalStack, One, In),
    ("sigaltstack", 1, SignalStack, One, Out),
    ("poll", 0, Poll, Told(1), Both),
    ("ppoll", 0, Poll, Told(1), Both),
    ("ppoll", 2, NS, One, In),
    ("ppoll", 3, SignalSet, One, In),
    ("epoll_ctl", 3, Epoll, One, In),
    ("epoll_wait", 1, Epoll, Returned, Out),
    ("epoll_pwait", 1, Epoll, Returned, Out),
    ("epoll_pwait", 4, SignalSet, One, In),
    ("epoll_pwait2", 1, Epoll, Returned, Out),
    ("epoll_pwait2", 3, NS, One, In),
    ("select", 4, US, One, In),
    ("pselect6", 4, NS, One, In),
    ("nanosleep", 0, NS, One, In),
    ("clock_nanosleep", 2, NS, One, In),
    ("clock_gettime", 1, NS, One, Out),
    ("clock_getres", 1, NS, One, Out),
    ("clock_settime", 1, NS, One, In),
    ("gettimeofday", 0, US, One, Out),
    ("settimeofday", 0, US, One, In),
    ("utimensat", 2, NS, Fixed(2), In),
    ("utimes", 1, US, Fixed(2), In),
    ("getitimer", 1, Timer("tv_usec"), One, Out),
    ("setitimer", 1, Timer("tv_usec"), One, In),
    ("setitimer", 2, Timer("tv_usec"), One, Out),
    ("timer_gettime", 1, Timer("tv_nsec"), One, Out),
    ("timer_settime", 2, Timer("tv_nsec"), One, In),
    ("timer_settime", 3, Timer("tv_nsec"), One, Out),
    ("timerfd_gettime", 1, Timer("tv_nsec"), One, Out),
    ("timerfd_settime", 2, Timer("tv_nsec"), One, In),
    ("timerfd_settime", 3, Timer("tv_nsec"), One, Out),
    ("mq_timedsend", 4, NS, One, In),
    ("mq_timedreceive", 4, NS, One, In),
    ("semtimedop", 3, NS, One, In),
    ("bind", 1, Address, Bytes(2), In),
    ("connect", 1, Address, Bytes(2), In),
    ("sendto", 4, Address, Bytes(5), In),
    ("accept", 1, Address, Length(2), Out),
    ("accept4", 1, Address, Length(2), Out),
    ("getsockname", 1, Address, Length(2), Out),
    ("getpeername", 1, Address, Length(2), Out),
    ("recvfrom", 4, Address, Length(5), Out),
    ("accept", 2, Ints, Fixed(1), Out),
    ("accept4", 2, Ints, Fixed(1), Out),
    ("getsockname", 2, Ints, Fixed(1), Out),
    ("getpeername", 2, Ints, Fixed(1), Out),
    ("recvfrom", 5, Ints, Fixed(1), Out),
    ("sendmsg", 1, Message, One, In),
    ("recvmsg", 1, Message, One, In),
    ("readv", 1, Vector, Told(2), In),
    ("writev", 1, Vector, Told(2), In),
    ("preadv", 1, Vector, Told(2), In),
    ("pwritev", 1, Vector, Told(2), In),
    ("preadv2", 1, Vector, Told(2), In),
    ("pwritev2", 1, Vector, Told(2), In),
    ("vmsplice", 1, Vector, Told(2), In),
    ("getrlimit", 1, Limits, One, Out),
    ("setrlimit", 1, Limits, One, In),
    ("prlimit64", 2, Limits, One, In),
    ("prlimit64", 3, Limits, One, Out),
    ("clone3", 0, CloneArguments, Bytes(1), In),
];

/// Operations of `futex` that take a time in the fourth argument (futex(2)); others take a number there.
const TIMED_FUTEX: [u64; 5] = [0, 6, 9, 11, 13];
/// Elements of an array that are looked at, as by strace.
const MOST: usize = 16;

impl Pointee {
    /// What the argument at a position points at, of a call with these arguments; `None` for a path, a string, and what
    /// has no row.
    #[must_use]
    pub fn of(call: &str, at: usize, args: &[Option<u64>; 6]) -> Option<Self> {
        if call == "futex" && at == 3 {
            return TIMED_FUTEX.contains(&(args[1]? & 0x7f)).then_some(Self { layout: NS, count: One, way: In });
        }
        // getgroups(2): with a size of 0 it only counts.
        if call == "getgroups" && args[0] == Some(0) {
            return None;
        }
        let found = POINTEES.iter().find(|(name, arg, ..)| (*name, *arg) == (call, at))?;
        Some(Self { layout: found.2, count: found.3, way: found.4 })
    }

    /// How many bytes lie there, as far as a reader looks at them; `returned` is what the call returned. `None` when
    /// there are none, and of a [`Length`] that is not known here.
    #[must_use]
    pub fn size(&self, args: &[Option<u64>; 6], returned: Option<u64>) -> Option<usize> {
        let small = |count: u64| usize::try_from(count).ok().filter(|count| *count > 0);
        let (one, needed) = (self.layout.size(), self.layout.needed());
        let of_bytes = |count: usize| if self.layout == Buffer { count } else { count.min(one) };
        match self.count {
            One => Some(needed),
            Reaped => (returned? > 0).then_some(needed),
            Fixed(count) => Some(count * one),
            Told(at) => Some(small((*args.get(at)?)?)?.min(MOST) * one),
            Bytes(at) => Some(of_bytes(small((*args.get(at)?)?)?)),
            Length(_) => None,
            Returned => {
                let count = small(returned?)?;
                Some(if matches!(self.layout, Buffer | Entries) { count } else { count.min(MOST) * one })
            }
        }
    }

    /// The address of the `int` that says how many bytes there are, of a [`Length`].
    #[must_use]
    pub fn length_at(&self, args: &[Option<u64>; 6]) -> Option<u64> {
        let Length(at) = self.count else { return None };
        (*args.get(at)?).filter(|address| *address != 0)
    }

    /// Whether all elements that there are were looked at.
    #[must_use]
    pub fn is_whole(&self, args: &[Option<u64>; 6], returned: Option<u64>) -> bool {
        let count = match self.count {
            Told(at) => args.get(at).copied().flatten(),
            Returned if !matches!(self.layout, Buffer | Entries) => returned,
            _ => None,
        };
        count.is_none_or(|count| count <= MOST as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::{ArgKind, Traits, by_name};

    #[test]
    fn every_row_is_of_an_argument_that_is_an_address_and_counts_by_one_that_the_call_has() {
        for (call, at, layout, count, way) in POINTEES {
            let known = by_name(call).unwrap_or_else(|| panic!("{call}"));
            assert!(matches!(known.args[*at].kind, ArgKind::Ptr), "{call} {at}");
            match count {
                Told(by) | Bytes(by) => assert!(!matches!(known.args[*by].kind, ArgKind::Ptr), "{call} {by}"),
                Length(by) => assert!(matches!(known.args[*by].kind, ArgKind::Ptr), "{call} {by}"),
                Returned | Reaped => assert_eq!(*way, Out, "{call} {at}"),
                One | Fixed(_) => {}
            }
            assert!(*way == In || known.traits.has(Traits::FILLS_MEMORY), "{call} writes to memory");
            assert!(layout.needed() <= layout.size(), "{layout:?}");
            let twice = POINTEES.iter().filter(|row| (row.0, row.1) == (*call, *at)).count();
            assert_eq!(twice, 1, "{call} {at}");
        }
    }

    #[test]
    fn sizes_follow_the_arguments_and_the_result() {
        let of = |call: &str, at: usize, args: [u64; 6], returned: u64| {
            let args = args.map(Some);
            Pointee::of(call, at, &args)?.size(&args, Some(returned))
        };
        assert_eq!(of("read", 1, [3, 1, 4096, 0, 0, 0], 12), Some(12));
        assert_eq!(of("read", 1, [3, 1, 4096, 0, 0, 0], 0), None);
        assert_eq!(of("write", 1, [3, 1, 5, 0, 0, 0], 3), Some(5));
        assert_eq!(of("fstat", 1, [3, 1, 0, 0, 0, 0], 0), Some(56));
        assert_eq!(of("poll", 0, [1, u64::MAX, 0, 0, 0, 0], 1), Some(128));
        assert_eq!(of("epoll_wait", 1, [1, 1, 64, 0, 0, 0], 2), Some(24));
        assert_eq!(of("bind", 1, [1, 1, 1 << 40, 0, 0, 0], 0), Some(128));
        assert_eq!(of("accept", 1, [1, 1, 1, 0, 0, 0], 4), None);
        assert_eq!(of("futex", 3, [1, 1, 1, 7, 0, 0], 0), None);
        assert_eq!(of("futex", 3, [1, 128, 1, 7, 0, 0], 0), Some(16));
        assert_eq!(of("getpid", 0, [0; 6], 0), None);
        // What was there before is not an answer.
        assert_eq!((of("wait4", 1, [1; 6], 0), of("wait4", 1, [1; 6], 7)), (None, Some(4)));
        assert_eq!((of("getgroups", 1, [0; 6], 3), of("getgroups", 1, [8; 6], 3)), (None, Some(12)));
    }
}
