//! Writes the structures that calls are given as strace does, from the bytes that an argument pointed at.
//!
//! Layouts are those of x86-64 (the kernel's uapi headers). [`size`] says how many bytes an argument's structure has,
//! [`write`] shows them; both know only what a call reads, because what it writes is there only once it has returned.

use std::fmt::{Display, Formatter, Result as Written, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use linux_abi::flags::{FlagSet, process, socket};
use linux_abi::signals::Signal;

/// A structure, or how it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    SignalSet,
    SignalAction,
    SignalStack,
    /// Seconds and a fraction with this name.
    Time(&'static str),
    /// Interval and value of a timer, likewise.
    Timer(&'static str),
    Address,
    Vector,
    Poll,
    Epoll,
    Limits,
    CloneArguments,
    Message,
}
use Layout::{
    Address, CloneArguments, Epoll, Limits, Message, Poll, SignalAction, SignalSet, SignalStack, Time, Timer, Vector,
};

/// How many of them an argument points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    One,
    /// As many as an array has.
    Fixed(usize),
    /// As many as another argument says.
    Told(usize),
    /// One, of as many bytes as another argument says.
    Bytes(usize),
}
use Count::{Bytes, Fixed, One, Told};

const NS: Layout = Time("tv_nsec");
const US: Layout = Time("tv_usec");

/// Call, argument, what it points at.
const INPUTS: &[(&str, usize, Layout, Count)] = &[
    ("rt_sigaction", 1, SignalAction, One),
    ("rt_sigprocmask", 1, SignalSet, One),
    ("rt_sigsuspend", 0, SignalSet, One),
    ("rt_sigtimedwait", 0, SignalSet, One),
    ("rt_sigtimedwait", 2, NS, One),
    ("signalfd", 1, SignalSet, One),
    ("signalfd4", 1, SignalSet, One),
    ("sigaltstack", 0, SignalStack, One),
    ("poll", 0, Poll, Told(1)),
    ("ppoll", 0, Poll, Told(1)),
    ("ppoll", 2, NS, One),
    ("ppoll", 3, SignalSet, One),
    ("epoll_ctl", 3, Epoll, One),
    ("epoll_pwait", 4, SignalSet, One),
    ("epoll_pwait2", 3, NS, One),
    ("select", 4, US, One),
    ("pselect6", 4, NS, One),
    ("nanosleep", 0, NS, One),
    ("clock_nanosleep", 2, NS, One),
    ("clock_settime", 1, NS, One),
    ("settimeofday", 0, US, One),
    ("utimensat", 2, NS, Fixed(2)),
    ("utimes", 1, US, Fixed(2)),
    ("setitimer", 1, Timer("tv_usec"), One),
    ("timer_settime", 2, Timer("tv_nsec"), One),
    ("timerfd_settime", 2, Timer("tv_nsec"), One),
    ("mq_timedsend", 4, NS, One),
    ("mq_timedreceive", 4, NS, One),
    ("semtimedop", 3, NS, One),
    ("bind", 1, Address, Bytes(2)),
    ("connect", 1, Address, Bytes(2)),
    ("sendto", 4, Address, Bytes(5)),
    ("sendmsg", 1, Message, One),
    ("recvmsg", 1, Message, One),
    ("readv", 1, Vector, Told(2)),
    ("writev", 1, Vector, Told(2)),
    ("preadv", 1, Vector, Told(2)),
    ("pwritev", 1, Vector, Told(2)),
    ("preadv2", 1, Vector, Told(2)),
    ("pwritev2", 1, Vector, Told(2)),
    ("vmsplice", 1, Vector, Told(2)),
    ("setrlimit", 1, Limits, One),
    ("prlimit64", 2, Limits, One),
    ("clone3", 0, CloneArguments, Bytes(1)),
];

/// Operations of `futex` that take a time in the fourth argument (futex(2)); others take a number there.
const TIMED_FUTEX: [u64; 5] = [0, 6, 9, 11, 13];
/// Elements of an array that are shown.
const MOST: usize = 16;

impl Layout {
    const fn size(self) -> usize {
        match self {
            SignalSet | Poll => 8,
            Epoll => 12,
            Vector | Limits | Time(_) => 16,
            SignalStack => 24,
            SignalAction | Timer(_) => 32,
            Message => 56,
            CloneArguments => 88,
            Address => 128,
        }
    }
}

fn input(name: &str, at: usize, args: &[Option<u64>; 6]) -> Option<(Layout, Count)> {
    if name == "futex" && at == 3 {
        return TIMED_FUTEX.contains(&(args[1]? & 0x7f)).then_some((NS, One));
    }
    let found = INPUTS.iter().find(|(call, arg, ..)| (*call, *arg) == (name, at))?;
    Some((found.2, found.3))
}

/// Bytes of the structure or array that an argument of a call points at, as far as they are shown.
pub(crate) fn size(name: &str, at: usize, args: &[Option<u64>; 6]) -> Option<usize> {
    let (layout, count) = input(name, at, args)?;
    let told = |at: usize| usize::try_from(args[at]?).ok().filter(|count| *count > 0);
    Some(match count {
        One => layout.size(),
        Fixed(count) => count * layout.size(),
        Told(at) => told(at)?.min(MOST) * layout.size(),
        Bytes(at) => told(at)?.min(layout.size()),
    })
}

/// Writes what an argument points at; `None`, and nothing written, where it is not such a structure or not all of it.
pub(crate) fn write(name: &str, at: usize, args: &[Option<u64>; 6], bytes: &[u8], out: &mut String) -> Option<()> {
    let (layout, count) = input(name, at, args)?;
    let bytes = bytes.get(..size(name, at, args)?)?;
    let one = |out: &mut String, bytes: &[u8]| write!(out, "{}", Shown(layout, bytes)).ok();
    let all = match count {
        One | Bytes(_) => return one(out, bytes),
        Fixed(count) => count,
        Told(at) => usize::try_from(args[at]?).ok()?,
    };
    out.push('[');
    for (number, element) in bytes.chunks_exact(layout.size()).enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        one(out, element)?;
    }
    out.push_str(if all > MOST { ", ...]" } else { "]" });
    Some(())
}

/// The bytes of one structure.
struct Shown<'b>(Layout, &'b [u8]);

impl Shown<'_> {
    /// Zeros behind the end: of what is shorter by its own length.
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.1.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    fn short(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    fn flags(&self, set: &'static FlagSet, at: usize) -> impl Display + use<> {
        set.display(u64::from(self.half(at)))
    }

    fn time(&self, at: usize, fraction: &str) -> impl Display + use<> {
        let (seconds, rest) = (self.word(at) as i64, self.word(at + 8) as i64);
        format!("{{tv_sec={seconds}, {fraction}={rest}}}")
    }

    fn address(&self, f: &mut Formatter<'_>) -> Written {
        let family = socket::FAMILY.display(u64::from(self.short(0)));
        let port = u16::from_be_bytes(self.array(2));
        let rest = self.1.get(2..).unwrap_or_default();
        match u64::from(self.short(0)) {
            socket::AF_UNIX => {
                write!(f, "{{sa_family={family}")?;
                match rest.split_first() {
                    None => {}
                    Some((0, name)) => write!(f, ", sun_path=@\"{}\"", name.escape_ascii())?,
                    _ => {
                        let path = rest.split(|byte| *byte == 0).next().unwrap_or_default();
                        write!(f, ", sun_path=\"{}\"", path.escape_ascii())?;
                    }
                }
                write!(f, "}}")
            }
            socket::AF_INET if self.1.len() >= 8 => {
                let host = Ipv4Addr::from(self.array::<4>(4));
                write!(f, "{{sa_family={family}, sin_port=htons({port}), sin_addr=inet_addr(\"{host}\")}}")
            }
            socket::AF_INET6 if self.1.len() >= 24 => {
                let (flow, host) = (u32::from_be_bytes(self.array(4)), Ipv6Addr::from(self.array::<16>(8)));
                let scope = self.half(24);
                write!(
                    f,
                    "{{sa_family={family}, sin6_port=htons({port}), sin6_flowinfo=htonl({flow}), \
                     inet_pton(AF_INET6, \"{host}\", &sin6_addr), sin6_scope_id={scope}}}"
                )
            }
            _ => write!(f, "{{sa_family={family}, sa_data=\"{}\"}}", rest.escape_ascii()),
        }
    }

    fn clone_arguments(&self, f: &mut Formatter<'_>) -> Written {
        write!(f, "{{flags={}", process::CLONE.display(self.word(0)))?;
        for (name, at) in [("pidfd", 8), ("child_tid", 16), ("parent_tid", 24)] {
            if self.word(at) != 0 {
                write!(f, ", {name}={:#x}", self.word(at))?;
            }
        }
        match Signal::new(self.word(32)) {
            Some(signal) => write!(f, ", exit_signal={signal}")?,
            None => write!(f, ", exit_signal={}", self.word(32))?,
        }
        write!(f, ", stack={}, stack_size={:#x}", Pointer(self.word(40)), self.word(48))?;
        if self.word(56) != 0 {
            write!(f, ", tls={:#x}", self.word(56))?;
        }
        write!(f, "}}")
    }
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        match self.0 {
            SignalSet => write!(f, "{}", Signals(self.word(0))),
            SignalAction => {
                match self.word(0) {
                    0 => write!(f, "{{sa_handler=SIG_DFL")?,
                    1 => write!(f, "{{sa_handler=SIG_IGN")?,
                    handler => write!(f, "{{sa_handler={handler:#x}")?,
                }
                let (flags, restorer) = (process::SIGACTION.display(self.word(8)), self.word(16));
                write!(f, ", sa_mask={}, sa_flags={flags}", Signals(self.word(24)))?;
                if self.word(8) & process::SA_RESTORER != 0 {
                    write!(f, ", sa_restorer={restorer:#x}")?;
                }
                write!(f, "}}")
            }
            SignalStack => {
                let (stack, flags, size) = (self.word(0), self.flags(&process::SIGSTACK, 8), self.word(16));
                write!(f, "{{ss_sp={}, ss_flags={flags}, ss_size={size}}}", Pointer(stack))
            }
            Time(fraction) => write!(f, "{}", self.time(0, fraction)),
            Timer(fraction) => {
                write!(f, "{{it_interval={}, it_value={}}}", self.time(0, fraction), self.time(16, fraction))
            }
            Address => self.address(f),
            Vector => write!(f, "{{iov_base={}, iov_len={}}}", Pointer(self.word(0)), self.word(8)),
            Poll => {
                let events = socket::POLL.display(u64::from(self.short(4)));
                write!(f, "{{fd={}, events={events}}}", self.half(0) as i32)
            }
            Epoll => write!(f, "{{events={}, data={:#x}}}", self.flags(&socket::EPOLL, 0), self.word(4)),
            Limits => write!(f, "{{rlim_cur={}, rlim_max={}}}", Limit(self.word(0)), Limit(self.word(8))),
            CloneArguments => self.clone_arguments(f),
            Message => {
                let (name, vectors) = (Pointer(self.word(0)), Pointer(self.word(16)));
                let (control, flags) = (Pointer(self.word(32)), self.flags(&socket::MESSAGE, 48));
                write!(f, "{{msg_name={name}, msg_namelen={}, msg_iov={vectors}", self.half(8))?;
                write!(f, ", msg_iovlen={}, msg_control={control}", self.word(24))?;
                write!(f, ", msg_controllen={}, msg_flags={flags}}}", self.word(40))
            }
        }
    }
}

/// An address, or NULL.
struct Pointer(u64);

impl Display for Pointer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        if self.0 == 0 { f.write_str("NULL") } else { write!(f, "{:#x}", self.0) }
    }
}

/// A resource limit.
struct Limit(u64);

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        if self.0 == u64::MAX { f.write_str("RLIM64_INFINITY") } else { write!(f, "{}", self.0) }
    }
}

/// A set of signals: those in it, or behind `~` those that are not, whichever are fewer.
struct Signals(u64);

impl Display for Signals {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        let most = self.0.count_ones() > 32;
        let set = if most { !self.0 } else { self.0 };
        f.write_str(if most { "~[" } else { "[" })?;
        let mut separator = "";
        for number in (1..=64u64).filter(|number| set >> (number - 1) & 1 != 0) {
            f.write_str(separator)?;
            separator = " ";
            match Signal::new(number).and_then(Signal::name) {
                Some(name) => f.write_str(name.trim_start_matches("SIG"))?,
                None if number == 32 => f.write_str("RTMIN")?,
                None => write!(f, "RT_{}", number - 32)?,
            }
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests;
