//! Writes a system call as strace would: names for flags, commands, signals and errors.
//!
//! What the tables of `linux-abi` do not name is shown as the number it is; pointers are addresses, unless the dump
//! holds what they pointed at.

use std::fmt::Write as _;

use kwab_format::record::{RegId, Registers};
use linux_abi::signals::Signal;
use linux_abi::syscalls::pointee::{Layout, Pointee};
use linux_abi::syscalls::{self, ArgKind, ResultKind};
use linux_abi::{Errno, flags};

use super::structure;

/// A call as it was recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// Number, when it was recorded.
    pub nr: Option<i64>,
    /// Name as the kernel printed it.
    pub name: Option<&'a [u8]>,
    /// The arguments that were recorded.
    pub args: [Option<u64>; 6],
    /// What they pointed at, where that was recorded, and whether it goes on.
    pub texts: [Option<(&'a [u8], bool)>; 6],
    /// What it returned, once it has; an error is negative.
    pub result: Option<i64>,
}

impl<'a> Call<'a> {
    /// What an argument pointed at.
    fn bytes(&self, at: usize) -> Option<structure::Bytes<'a>> {
        let (start, cut) = self.texts[at]?;
        let returned = self.result.and_then(|result| u64::try_from(result).ok());
        Some(structure::Bytes { start, cut, returned })
    }
}

/// The system call that a program's registers at its entry to the kernel show; `None` when it did not enter by one.
///
/// Linux keeps the number in `orig_rax` (System V ABI, appendix A.2), where an exception keeps its error code. SYSCALL
/// leaves its return address in rcx (SDM, "SYSCALL").
#[must_use]
pub fn in_progress(user: &Registers<'_>) -> Option<String> {
    let value = |id: RegId| user.regs.as_ref()?.iter().find(|reg| reg.id == Some(id))?.value;
    if user.error_code.is_some_and(|code| code != 0)
        || value(RegId::RCX).zip(value(RegId::RIP)).is_some_and(|(rcx, rip)| rcx != rip)
    {
        return None;
    }
    let nr = value(RegId::ORIG_RAX).filter(|nr| *nr < 1024)?;
    let args = [RegId::RDI, RegId::RSI, RegId::RDX, RegId::R10, RegId::R8, RegId::R9].map(value);
    Some(arguments(&Call { nr: i64::try_from(nr).ok(), args, ..Call::default() }))
}

/// `openat(AT_FDCWD, 0x7ffe…, O_RDONLY|O_CLOEXEC)`.
pub fn arguments(call: &Call<'_>) -> String {
    let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
    let printed = call.name.map(String::from_utf8_lossy);
    // The number decides, unless the kernel calls it otherwise: then its table is not Linux's.
    let known = known.filter(|known| printed.as_ref().is_none_or(|name| same_name(name, known.name)));
    let name = match (&printed, known, call.nr) {
        (_, Some(known), _) => known.name.to_string(),
        (Some(name), None, Some(nr)) if name.contains("unknown") => format!("syscall_{nr}"),
        (Some(name), None, _) => name.to_string(),
        (None, None, Some(nr)) => format!("syscall_{nr}"),
        (None, None, None) => "?".to_string(),
    };
    let mut out = name;
    out.push('(');
    match known {
        Some(known) => {
            for (index, (arg, value)) in known.args.iter().zip(call.args).enumerate() {
                if skips_mode(known, index, call) {
                    break;
                }
                if index > 0 {
                    out.push_str(", ");
                }
                match (call.texts[index], value) {
                    // A text of strace has what an address points at, and no address.
                    (Some((start, cut)), _) => {
                        let written = call
                            .bytes(index)
                            .and_then(|bytes| structure::write(known.name, index, &call.args, bytes, &mut out));
                        // Half a structure is not a string, nor is what lies there for another argument.
                        let is_string = !matches!(arg.kind, ArgKind::Ptr) || known.name.starts_with("execve");
                        let is_buffer = !is_string || Pointee::of(known.name, index, &call.args).is_some();
                        match (written, value.filter(|_| is_buffer)) {
                            (Some(()), _) => {}
                            (None, Some(value)) => argument(arg.kind, value, &mut out),
                            (None, None) => pointed_at(start, cut, &mut out),
                        }
                    }
                    (None, Some(value)) => argument(arg.kind, value, &mut out),
                    (None, None) => out.push('?'),
                }
            }
        }
        None => {
            let shown = call.args.iter().map_while(|arg| *arg).map(|arg| format!("{arg:#x}"));
            out.push_str(&shown.collect::<Vec<_>>().join(", "));
        }
    }
    out.push(')');
    out
}

/// The structure that an argument points at, as far as it was recorded, and whether its numbers are the same in each
/// run; `None` for strings and buffers.
pub(crate) fn structure(call: &Call<'_>, at: usize) -> Option<(String, bool)> {
    let known = call.nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number)?;
    let bytes = call.bytes(at)?;
    let pointee = Pointee::of(known.name, at, &call.args).filter(|pointee| pointee.layout != Layout::Buffer)?;
    let mut out = String::new();
    structure::write(known.name, at, &call.args, bytes, &mut out)?;
    // Other structures have processes, addresses or times in them.
    let names_users = known.name.starts_with("getres") || known.name.contains("groups");
    let exact = names_users || matches!(pointee.layout, Layout::Limits | Layout::Stat | Layout::WaitStatus);
    Some((out, exact))
}

/// `"/etc/passwd"`, `["sh", "-c"...]`: a path, or strings that each end with a NUL.
fn pointed_at(text: &[u8], cut: bool, out: &mut String) {
    let more = if cut { "..." } else { "" };
    // What is written to a string cannot fail.
    let _ = if text.contains(&0) {
        let whole = text.strip_suffix(&[0]).unwrap_or(text);
        let words: Vec<_> = whole.split(|byte| *byte == 0).map(|word| format!("\"{}\"", word.escape_ascii())).collect();
        write!(out, "[{}{more}]", words.join(", "))
    } else {
        write!(out, "\"{}\"{more}", text.escape_ascii())
    };
}

/// Kernels name some calls after the C function rather than the table.
fn same_name(printed: &str, table: &str) -> bool {
    printed == table
        || printed.contains("unknown")
        || printed.is_empty()
        || table.contains(printed)
        || printed.contains(table)
}

/// `open` without `O_CREAT` has no mode, whatever the register holds.
fn skips_mode(call: &syscalls::Syscall, index: usize, recorded: &Call<'_>) -> bool {
    let is_mode = matches!(call.args[index].kind, ArgKind::Mode) && call.name.starts_with("open");
    let open_flags = index.checked_sub(1).and_then(|before| recorded.args[before]).unwrap_or(0);
    is_mode && open_flags & (flags::file::O_CREAT | flags::file::O_TMPFILE & !flags::file::O_DIRECTORY) == 0
}

/// Writes one argument as strace does: octal modes, flags by name, pointers in hexadecimal.
fn argument(kind: ArgKind, value: u64, out: &mut String) {
    let int = value as u32 as i32;
    let _ = match kind {
        ArgKind::Fd | ArgKind::Int | ArgKind::Pid | ArgKind::Time => write!(out, "{int}"),
        ArgKind::DirFd if int == -100 => write!(out, "AT_FDCWD"),
        ArgKind::DirFd => write!(out, "{int}"),
        ArgKind::Path | ArgKind::Str | ArgKind::Ptr if value == 0 => write!(out, "NULL"),
        ArgKind::Path | ArgKind::Str | ArgKind::Ptr | ArgKind::Hex => write!(out, "{value:#x}"),
        ArgKind::Size if value > 1 << 48 => write!(out, "{value:#x}"),
        ArgKind::Size => write!(out, "{value}"),
        ArgKind::Offset | ArgKind::Long => write!(out, "{}", value as i64),
        ArgKind::Mode => write!(out, "0{:02o}", value as u32),
        ArgKind::Id if int == -1 => write!(out, "-1"),
        ArgKind::Id | ArgKind::Uint => write!(out, "{}", value as u32),
        ArgKind::Signal => match Signal::new(u64::from(value as u32)) {
            Some(signal) => write!(out, "{signal}"),
            None => write!(out, "{int}"),
        },
        ArgKind::Flags(set) => set.write(u64::from(value as u32), out),
        ArgKind::Flags64(set) => set.write(value, out),
        ArgKind::CloneFlags => clone_flags(value, out),
    };
}

fn clone_flags(value: u64, out: &mut String) -> std::fmt::Result {
    let (bits, signal) = (value & !0xff, value & 0xff);
    if bits != 0 || signal == 0 {
        flags::process::CLONE.write(bits, out)?;
    }
    match Signal::new(signal) {
        Some(signal) => write!(out, "{}{signal}", if bits == 0 { "" } else { "|" }),
        None => Ok(()),
    }
}

/// What a call returned: `3`, `0x7f12…`, `-1 ENOENT (No such file or directory)`.
pub fn result(nr: Option<i64>, value: i64) -> String {
    if let Some(errno) = Errno::from_result(value) {
        return format!("-1 {errno}");
    }
    let known = nr.and_then(|nr| u64::try_from(nr).ok()).and_then(syscalls::by_number);
    match known.map(|known| known.result) {
        Some(ResultKind::Address | ResultKind::Hex) => format!("{value:#x}"),
        _ if !(-0x1_0000_0000..=0x1_0000_0000).contains(&value) => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(nr: i64, args: [u64; 6]) -> String {
        arguments(&Call { nr: Some(nr), args: args.map(Some), ..Call::default() })
    }

    #[test]
    fn calls_read_as_strace_prints_them() {
        let at_fdcwd = 0xffff_ff9c;
        assert_eq!(
            show(257, [at_fdcwd, 0x7000, 0o2_100_000, 0, 0, 0]),
            "openat(AT_FDCWD, 0x7000, O_RDONLY|O_LARGEFILE|O_CLOEXEC)"
        );
        assert_eq!(
            show(257, [at_fdcwd, 0x7000, 0o101, 0o644, 0, 0]),
            "openat(AT_FDCWD, 0x7000, O_WRONLY|O_CREAT, 0644)"
        );
        assert_eq!(
            show(9, [0, 4096, 3, 0x22, u64::MAX, 0]),
            "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x0)"
        );
        assert_eq!(show(62, [7, 15, 0, 0, 0, 0]), "kill(7, SIGTERM)");
        assert_eq!(show(56, [0x11, 0, 0, 0, 0, 0]), "clone(SIGCHLD, NULL, NULL, NULL, NULL)");
        assert_eq!(show(9999, [1, 2, 3, 4, 5, 6]), "syscall_9999(0x1, 0x2, 0x3, 0x4, 0x5, 0x6)");
        assert_eq!(
            arguments(&Call {
                nr: Some(0),
                name: Some(b"read"),
                args: [Some(3), None, None, None, None, None],
                ..Call::default()
            }),
            "read(3, ?, ?)"
        );
        let mut open = Call { nr: Some(82), args: [1, 2, 0, 0, 0, 0].map(Some), ..Call::default() };
        (open.texts[0], open.texts[1]) = (Some((&b"/a\"b"[..], false)), Some((&b"/long"[..], true)));
        assert_eq!(arguments(&open), r#"rename("/a\"b", "/long"...)"#);
        open = Call { nr: Some(59), ..open };
        open.texts[1] = Some((&b"sh\0-c\0"[..], false));
        assert_eq!(arguments(&open), r#"execve("/a\"b", ["sh", "-c"], NULL)"#);
        // The same address as the first argument's, in which nothing was written.
        let time = [1_u64.to_le_bytes(), 0_u64.to_le_bytes()].concat();
        let mut sleep = Call { nr: Some(35), args: [0x7000, 0x7000, 0, 0, 0, 0].map(Some), ..Call::default() };
        sleep.texts = [Some((&time[..], false)), Some((&time[..], false)), None, None, None, None];
        assert_eq!(arguments(&sleep), "nanosleep({tv_sec=1, tv_nsec=0}, 0x7000)");
        assert_eq!(result(Some(2), -2), "-1 ENOENT (No such file or directory)");
        assert_eq!(result(Some(12), 0x52_3000), "0x523000");
        assert_eq!(result(Some(0), 17), "17");
    }
}
