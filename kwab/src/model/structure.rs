//! Writes what calls are given and what they give as strace does, from the bytes that an argument pointed at.
//!
//! Which argument points at what is a table of `linux-abi` ([`Pointee`]); layouts are those of x86-64 (the kernel's
//! uapi headers). [`size`] says how many bytes a call reads there, [`write`] shows them, and what it wrote, once it has
//! returned.

use std::fmt::{Display, Formatter, Result as Written, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use linux_abi::flags::{FlagSet, file, process, socket};
use linux_abi::signals::Signal;
use linux_abi::syscalls::pointee::{Count, Layout, Pointee, Way};

use Layout::{
    Address, Buffer, CloneArguments, Entries, Epoll, FileSystem, Ints, Limits, Message, Poll, SignalAction, SignalInfo,
    SignalSet, SignalStack, Stat, SystemInfo, SystemName, Time, Timer, Usage, Vector, WaitStatus,
};

/// Bytes of what a call reads at an argument's address, as far as they are shown.
pub(crate) fn size(name: &str, at: usize, args: &[Option<u64>; 6]) -> Option<usize> {
    let pointee = Pointee::of(name, at, args).filter(|pointee| pointee.way != Way::Out)?;
    (pointee.layout != Buffer).then(|| pointee.size(args, None)).flatten()
}

/// Bytes that an argument points at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'b> {
    /// How they begin.
    pub(crate) start: &'b [u8],
    /// Whether there are more.
    pub(crate) cut: bool,
    /// What the call returned, without an error.
    pub(crate) returned: Option<u64>,
}

/// Writes what an argument points at; `None`, and nothing written, where it has no known layout, or not all of one.
pub(crate) fn write(name: &str, at: usize, args: &[Option<u64>; 6], bytes: Bytes<'_>, out: &mut String) -> Option<()> {
    let pointee = Pointee::of(name, at, args)?;
    let Bytes { start, cut, returned } = bytes;
    let layout = pointee.layout;
    let shown = |bytes| Shown { layout, bytes, done: returned.is_some() };
    let more = if cut { "..." } else { "" };
    let one = match (layout, pointee.count) {
        (Buffer, _) => {
            // getcwd(2) counts the NUL.
            let start = if name == "getcwd" { start.strip_suffix(&[0]).unwrap_or(start) } else { start };
            write!(out, "\"{}\"{more}", start.escape_ascii()).ok()?;
            return Some(());
        }
        (Entries, _) => {
            entries(start, cut, out);
            return Some(());
        }
        (_, Count::One | Count::Reaped | Count::Bytes(_)) => start.get(..pointee.size(args, returned)?)?,
        (_, Count::Length(_)) => start,
        (_, Count::Fixed(1)) => start.get(..layout.size())?,
        (_, Count::Fixed(_) | Count::Told(_) | Count::Returned) => {
            // A dump may hold more than there were.
            let size = pointee.size(args, returned)?;
            let whole = start.len() >= size && pointee.is_whole(args, returned);
            let elements = start[..start.len().min(size)].chunks_exact(layout.size());
            if elements.len() == 0 {
                return None;
            }
            out.push('[');
            for (number, element) in elements.enumerate() {
                write!(out, "{}{}", if number > 0 { ", " } else { "" }, shown(element)).ok()?;
            }
            out.push_str(if whole { "]" } else { ", ...]" });
            return Some(());
        }
    };
    // The length of an address, and a status, are in brackets: strace's way to say that they are pointed at.
    let (open, close) = if matches!(layout, Ints | WaitStatus) { ("[", "]") } else { ("", "") };
    write!(out, "{open}{}{close}", shown(one)).ok()
}

/// `[{d_ino=2, d_type=DT_DIR, d_name="."}, ...]`, as many as are whole.
fn entries(start: &[u8], cut: bool, out: &mut String) {
    let (mut rest, mut separator) = (start, "");
    out.push('[');
    while let Some(head) = rest.first_chunk::<19>() {
        let [ino @ .., _, _, _, _, _, _, _, _, low, high, kind] = *head;
        let length = usize::from(u16::from_le_bytes([low, high]));
        let Some((entry, behind)) = rest.split_at_checked(length).filter(|(entry, _)| entry.len() > head.len()) else {
            break;
        };
        let name = entry[head.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
        // The types are those of a mode, without their twelve zeros.
        let kind = file::FILE_TYPE.display(u64::from(kind) << 12).to_string().replace("S_IF", "DT_");
        let ino = u64::from_le_bytes(ino);
        // What is written to a string cannot fail.
        let _ = write!(out, "{separator}{{d_ino={ino}, d_type={kind}, d_name=\"{}\"}}", name.escape_ascii());
        (rest, separator) = (behind, ", ");
    }
    out.push_str(if cut || !rest.is_empty() { separator } else { "" });
    out.push_str(if cut || !rest.is_empty() { "...]" } else { "]" });
}

/// The bytes of one structure.
struct Shown<'b> {
    layout: Layout,
    bytes: &'b [u8],
    /// Whether the call has returned: what it writes is there.
    done: bool,
}

impl Shown<'_> {
    /// Zeros behind the end: of what is shorter by its own length.
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
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

    /// A string with a NUL behind it, in the array of `room` bytes at `at`; an ellipsis where the bytes end before.
    fn string(&self, at: usize, room: usize) -> String {
        let bytes = self.bytes.get(at..).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(room)];
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => format!("\"{}\"", bytes[..end].escape_ascii()),
            None => format!("\"{}\"...", bytes.escape_ascii()),
        }
    }

    fn stat(&self, f: &mut Formatter<'_>) -> Written {
        let mode = self.half(24);
        write!(f, "{{st_mode={}|0{:03o}", file::FILE_TYPE.display(u64::from(mode & 0o170_000)), mode & 0o7777)?;
        match mode & 0o170_000 {
            0o20_000 | 0o60_000 => {
                let device = self.word(40);
                // makedev(3): twelve bits of the major number and eight of the minor are where they always were.
                let major = device >> 8 & 0xfff | device >> 32 & 0xffff_f000;
                let minor = device & 0xff | device >> 12 & 0xffff_ff00;
                write!(f, ", st_rdev=makedev({major:#x}, {minor:#x}), ...}}")
            }
            _ => write!(f, ", st_size={}, ...}}", self.word(48) as i64),
        }
    }

    fn wait_status(&self, f: &mut Formatter<'_>) -> Written {
        let status = self.half(0);
        let signal = |number: u32| match Signal::new(u64::from(number)) {
            Some(signal) => signal.to_string(),
            None => number.to_string(),
        };
        match (status & 0x7f, status >> 8 & 0xff) {
            (0, code) => write!(f, "{{WIFEXITED(s) && WEXITSTATUS(s) == {code}}}"),
            (0x7f, _) if status == 0xffff => write!(f, "{{WIFCONTINUED(s)}}"),
            (0x7f, number) => write!(f, "{{WIFSTOPPED(s) && WSTOPSIG(s) == {}}}", signal(number)),
            (number, _) => {
                let core = if status & 0x80 != 0 { " && WCOREDUMP(s)" } else { "" };
                write!(f, "{{WIFSIGNALED(s) && WTERMSIG(s) == {}{core}}}", signal(number))
            }
        }
    }

    fn signal_info(&self, f: &mut Formatter<'_>) -> Written {
        let (number, code) = (self.half(0), self.half(8) as i32);
        let Some(signal) = Signal::new(u64::from(number)) else { return write!(f, "{{si_signo={number}}}") };
        write!(f, "{{si_signo={signal}, si_code={code}, si_pid={}, si_uid={}", self.half(16) as i32, self.half(20))?;
        let child = signal.to_string() == "SIGCHLD";
        if child { write!(f, ", si_status={}, ...}}", self.half(24) as i32) } else { write!(f, ", ...}}") }
    }

    fn system_info(&self, f: &mut Formatter<'_>) -> Written {
        write!(f, "{{uptime={}", self.word(0))?;
        write!(f, ", loads=[{}, {}, {}]", self.word(8), self.word(16), self.word(24))?;
        let names = ["totalram", "freeram", "sharedram", "bufferram", "totalswap", "freeswap"];
        for (name, at) in names.into_iter().zip((32..).step_by(8)) {
            write!(f, ", {name}={}", self.word(at))?;
        }
        write!(f, ", procs={}, ...}}", self.short(80))
    }

    fn address(&self, f: &mut Formatter<'_>) -> Written {
        let family = socket::FAMILY.display(u64::from(self.short(0)));
        let port = u16::from_be_bytes(self.array(2));
        let rest = self.bytes.get(2..).unwrap_or_default();
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
            socket::AF_INET if self.bytes.len() >= 8 => {
                let host = Ipv4Addr::from(self.array::<4>(4));
                write!(f, "{{sa_family={family}, sin_port=htons({port}), sin_addr=inet_addr(\"{host}\")}}")
            }
            socket::AF_INET6 if self.bytes.len() >= 24 => {
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
        match self.layout {
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
                write!(f, "{{fd={}, events={events}", self.half(0) as i32)?;
                match self.short(6) {
                    0 => write!(f, "}}"),
                    _ if !self.done => write!(f, "}}"),
                    found => write!(f, ", revents={}}}", socket::POLL.display(u64::from(found))),
                }
            }
            Epoll => write!(f, "{{events={}, data={:#x}}}", self.flags(&socket::EPOLL, 0), self.word(4)),
            Limits => write!(f, "{{rlim_cur={}, rlim_max={}}}", Limit(self.word(0)), Limit(self.word(8))),
            CloneArguments => self.clone_arguments(f),
            Buffer | Entries => write!(f, "\"{}\"", self.bytes.escape_ascii()),
            Ints => write!(f, "{}", self.half(0) as i32),
            WaitStatus => self.wait_status(f),
            SignalInfo => self.signal_info(f),
            Usage => {
                let (user, system) = (self.time(0, "tv_usec"), self.time(16, "tv_usec"));
                write!(f, "{{ru_utime={user}, ru_stime={system}, ...}}")
            }
            Stat => self.stat(f),
            FileSystem => {
                write!(f, "{{f_type={:#x}, f_bsize={}", self.word(0), self.word(8) as i64)?;
                let names = ["f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree"];
                for (name, at) in names.into_iter().zip((16..).step_by(8)) {
                    write!(f, ", {name}={}", self.word(at))?;
                }
                write!(f, ", f_namelen={}, ...}}", self.word(64) as i64)
            }
            SystemName => write!(f, "{{sysname={}, nodename={}, ...}}", self.string(0, 65), self.string(65, 65)),
            SystemInfo => self.system_info(f),
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
