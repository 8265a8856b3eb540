//! The text that Linux prints when it oopses or panics, and when a program dies.
//!
//! Forms as arch/x86/kernel/dumpstack.c, kernel/panic.c and arch/x86/mm/fault.c print them.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use nom::Parser;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::char;
use nom::combinator::opt;
use nom::multi::many1;
use nom::sequence::preceded;

use super::{Location, Parsed, decimal, hex, location, spaces};

/// Splits `[   12.345678] text` (and `[   12.345678][   T1] text`) into nanoseconds since boot and the text.
pub fn timestamp(line: &[u8]) -> Option<(u64, &[u8])> {
    let inner = line.strip_prefix(b"[")?;
    let blanks = inner.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let (seconds, rest) = digits(&inner[blanks..])?;
    let (fraction, rest) = digits(rest.strip_prefix(b".")?)?;
    let rest = rest.strip_prefix(b"]")?;
    // The caller's id, or another field in brackets.
    let rest = match rest.strip_prefix(b"[").and_then(|field| memchr::memchr(b']', field).map(|end| &field[end + 1..]))
    {
        Some(behind) => behind,
        None => rest,
    };
    let scale = 10u64.pow(9u32.saturating_sub(u32::try_from(fraction.len()).unwrap_or(u32::MAX)));
    let ns = number(seconds)?.saturating_mul(1_000_000_000);
    let ns = ns.saturating_add(number(fraction).unwrap_or(0).saturating_mul(scale));
    Some((ns, rest.strip_prefix(b" ").unwrap_or(rest)))
}

/// The decimal digits at the front of a text, at least one, and what follows them.
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The value of decimal digits, if it fits 64 bits.
fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// How a line announces the end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm<'a> {
    /// `Kernel panic - not syncing: …`
    Panic(&'a [u8]),
    /// `BUG: …`, `Oops: …`, `general protection fault …`: an exception in the kernel.
    Oops(&'a [u8]),
    /// `watchdog: BUG: soft lockup …`
    Lockup(&'a [u8]),
    /// `INFO: task … blocked for more than … seconds`
    HungTask(&'a [u8]),
}

/// The beginnings of exceptions that the kernel did not expect.
const OOPSES: &[&[u8]] = &[
    b"BUG: ",
    b"Oops: ",
    b"Unable to handle kernel ",
    b"general protection fault",
    b"invalid opcode: ",
    b"divide error: ",
    b"double fault: ",
    b"stack segment: ",
    b"kernel BUG at ",
    b"int3: ",
    b"alignment check: ",
    b"traps: PANIC: ",
    b"PANIC: double fault",
];

/// Texts of which every line holds one that [`alarm`] or [`segfault`] knows.
pub const NEEDLES: &[&[u8]] = &[
    b"Kernel panic - not syncing: ",
    b"lockup",
    b" blocked for more than ",
    b"BUG: ",
    b"Oops: ",
    b"Unable to handle kernel ",
    b"general protection ",
    b"invalid opcode: ",
    b"divide error: ",
    b"double fault",
    b"stack segment: ",
    b"kernel BUG at ",
    b"int3: ",
    b"alignment check: ",
    b"traps: PANIC: ",
    b": segfault at ",
    b"]: unhandled ",
    b"]: segfault (",
    b" trap ",
];

/// Recognises an [`Alarm`].
pub fn alarm(text: &[u8]) -> Option<Alarm<'_>> {
    if let Some(message) = text.strip_prefix(b"Kernel panic - not syncing: ") {
        return Some(Alarm::Panic(message));
    }
    // `watchdog: Delayed init of the lockup detector failed` is none.
    let holds = |word: &[u8]| crate::import::reports::words::find(text, word).is_some();
    if text.starts_with(b"watchdog: ") && (holds(b"soft lockup") || holds(b"hard lockup")) && holds(b"CPU") {
        return Some(Alarm::Lockup(text));
    }
    if text.starts_with(b"INFO: task ")
        && crate::import::reports::words::find(text, b" blocked for more than ").is_some()
    {
        return Some(Alarm::HungTask(text));
    }
    OOPSES.iter().any(|start| text.starts_with(start)).then_some(Alarm::Oops(text))
}

/// `CPU: 0 PID: 1 Comm: init Not tainted 6.1.0 #1`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrintedTask<'a> {
    /// Processor that printed the line.
    pub cpu: u32,
    /// Process that ran on it.
    pub pid: u32,
    /// Name of the task.
    pub comm: &'a [u8],
    /// Taint and kernel version, as printed.
    pub kernel: &'a [u8],
}

/// Reads a [`PrintedTask`].
pub fn context(text: &[u8]) -> Option<PrintedTask<'_>> {
    fn parse(input: &[u8]) -> Parsed<'_, (u64, u64)> {
        let (rest, cpu) = preceded(tag(&b"CPU: "[..]), decimal).parse(input)?;
        let (rest, _) = spaces(rest)?;
        // Newer kernels print the user id in between.
        let (rest, _) = opt((tag(&b"UID: "[..]), decimal, spaces)).parse(rest)?;
        let (rest, pid) = preceded(tag(&b"PID: "[..]), decimal).parse(rest)?;
        let (rest, _) = (spaces, tag(&b"Comm: "[..])).parse(rest)?;
        Ok((rest, (cpu, pid)))
    }
    let (rest, (cpu, pid)) = parse(text).ok()?;
    let end =
        [&b" Not tainted "[..], b" Tainted: "].iter().find_map(|mark| crate::import::reports::words::find(rest, mark));
    let (comm, kernel) = rest.split_at(end.unwrap_or(rest.len()));
    Some(PrintedTask {
        cpu: u32::try_from(cpu).ok()?,
        pid: u32::try_from(pid).ok()?,
        comm,
        kernel: kernel.trim_ascii(),
    })
}

/// `RIP: 0010:sysrq_handle_crash+0x16/0x20`, `RIP: 0033:0x47b7a0`: selector, then an address or a location.
pub fn instruction(text: &[u8]) -> Option<(u64, Option<u64>, Option<Location<'_>>)> {
    let rest = text.strip_prefix(b"RIP: ")?;
    let (rest, selector) = hex(rest).ok()?;
    let position = rest.strip_prefix(b":")?;
    if position.starts_with(b"0x") {
        let (rest, address) = hex(position).ok()?;
        return rest.trim_ascii().is_empty().then_some((selector, Some(address), None));
    }
    Some((selector, None, location(position.trim_ascii())))
}

/// A line of registers: `RAX: ffffffffffffffda RBX: 0000000000000001`, `RSP: 002b:00007ffd8bb7b128 EFLAGS: 00000202`.
pub fn registers(text: &[u8]) -> Option<Vec<(&[u8], u64)>> {
    fn pair(input: &[u8]) -> Parsed<'_, (&[u8], u64)> {
        let (rest, name) =
            take_while1(|byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_').parse(input)?;
        let (rest, _) = tag(&b": "[..]).parse(rest)?;
        let (rest, first) = hex(rest)?;
        let (rest, second) = opt(preceded(char(':'), hex)).parse(rest)?;
        let (rest, _) = opt(spaces).parse(rest)?;
        Ok((rest, (name, second.unwrap_or(first))))
    }
    let known = |name: &[u8]| {
        matches!(
            name,
            [b'R', b'A'..=b'Z', _]
                | [b'R', b'0'..=b'9', ..]
                | b"EFLAGS"
                | b"ORIG_RAX"
                | [b'C', b'R', _]
                | [b'D', b'R', _]
                | b"CS"
                | b"DS"
                | b"ES"
                | b"FS"
                | b"GS"
        )
    };
    let (rest, pairs) = many1(pair).parse(text).ok()?;
    (rest.is_empty() && pairs.iter().all(|(name, _)| known(name))).then_some(pairs)
}

/// The selector that `RSP: 002b:…` prints before the stack pointer.
pub fn stack_selector(text: &[u8]) -> Option<u64> {
    let (rest, selector) = hex(text.strip_prefix(b"RSP: ")?).ok()?;
    rest.starts_with(b":").then_some(selector)
}

/// A line of a call trace: ` ? _printk+0x68/0x83`; says whether the kernel trusts it.
pub fn frame(text: &[u8]) -> Option<(bool, Location<'_>)> {
    if !text.starts_with(b" ") {
        return None;
    }
    let trimmed = text.trim_ascii();
    let (reliable, position) = match trimmed.strip_prefix(b"? ") {
        Some(position) => (false, position),
        None => (true, trimmed),
    };
    // Older kernels print the address first.
    let position = match position
        .strip_prefix(b"[<")
        .and_then(|rest| crate::import::reports::words::find(rest, b">] ").map(|end| &rest[end + 3..]))
    {
        Some(rest) => rest.strip_prefix(b"? ").unwrap_or(rest),
        None => position,
    };
    location(position).filter(|at| at.size.is_some()).map(|at| (reliable, at))
}

/// `Code: 40 00 48 <48> 3d`: the bytes and the index of the marked one.
pub fn code(text: &[u8]) -> Option<(Vec<u8>, Option<u64>)> {
    let mut bytes = Vec::new();
    let mut marked = None;
    for word in text.strip_prefix(b"Code: ")?.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
        let inner = word.strip_prefix(b"<").and_then(|word| word.strip_suffix(b">"));
        if inner.is_some() {
            marked = Some(bytes.len() as u64);
        }
        let digits = std::str::from_utf8(inner.unwrap_or(word)).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    (!bytes.is_empty()).then_some((bytes, marked))
}

/// `Kernel Offset: 0x38c00000 from 0xffffffff81000000 …`
pub fn kernel_offset(text: &[u8]) -> Option<u64> {
    hex(text.strip_prefix(b"Kernel Offset: ")?).ok().map(|(_, value)| value)
}

/// `task:init            state:R  running task     stack:0     pid:1     ppid:0      flags:0x00000008`, and what the
/// kernel of this workspace says behind it: `tid:7 … asleep:17.324 call:write waits:output of a terminal to go on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLine<'a> {
    /// Name of the task.
    pub comm: &'a [u8],
    /// State letter and what follows it.
    pub state: &'a [u8],
    /// Process id of the task.
    pub pid: u32,
    /// Process id of its parent.
    pub ppid: Option<u32>,
    /// Thread id, where it is said.
    pub tid: Option<u32>,
    /// How long it has slept, in nanoseconds.
    pub asleep_ns: Option<u64>,
    /// The system call that it sleeps in.
    pub call: Option<&'a [u8]>,
    /// What it waits for, in words.
    pub waits: Option<&'a [u8]>,
}

/// Reads a [`TaskLine`].
pub fn task(text: &[u8]) -> Option<TaskLine<'_>> {
    let rest = text.strip_prefix(b"task:")?;
    let state_at = crate::import::reports::words::find(rest, b" state:")?;
    let after = &rest[state_at + 7..];
    let stack_at = crate::import::reports::words::find(after, b" stack:")?;
    let number = |name: &[u8]| {
        let at = crate::import::reports::words::find(after, name)?;
        decimal(after[at + name.len()..].trim_ascii_start()).ok().and_then(|(_, value)| u32::try_from(value).ok())
    };
    let said = |name: &[u8]| crate::import::reports::words::find(after, name).map(|at| &after[at + name.len()..]);
    let word = |text: &[u8]| text.iter().position(|byte| *byte == b' ').unwrap_or(text.len());
    Some(TaskLine {
        comm: rest[..state_at].trim_ascii(),
        state: after[..stack_at].trim_ascii(),
        pid: number(b" pid:")?,
        ppid: number(b"ppid:"),
        tid: number(b" tid:"),
        asleep_ns: said(b" asleep:").and_then(|text| nanoseconds(&text[..word(text)])),
        call: said(b" call:").map(|text| &text[..word(text)]),
        waits: said(b" waits:"),
    })
}

/// Seconds with three decimals, in nanoseconds.
fn nanoseconds(text: &[u8]) -> Option<u64> {
    let (rest, whole) = decimal(text).ok()?;
    let (rest, thousandths) = decimal(rest.strip_prefix(b".").filter(|rest| rest.len() == 3)?).ok()?;
    let all = whole.checked_mul(1000)?.checked_add(thousandths)?.checked_mul(1_000_000)?;
    rest.is_empty().then_some(all)
}

/// `init[1]: segfault at 10 ip 000000000040116c sp 00007ffd8bb7b128 error 4 in init[400000+1000]`, and what other
/// architectures print of a program that a signal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segfault<'a> {
    /// Name of the program.
    pub comm: &'a [u8],
    /// Thread that faulted, which Linux prints as the process.
    pub pid: u32,
    /// Address it failed on; absent for a general protection fault.
    pub address: Option<u64>,
    /// Number of the signal that ended the program.
    pub signal: u32,
    /// Address of the instruction that faulted.
    pub ip: Option<u64>,
    /// Stack pointer at the fault.
    pub sp: Option<u64>,
    /// Error code of the exception, of x86.
    pub error: Option<u64>,
}

/// Reads a [`Segfault`], also the `traps: init[1] general protection fault ip:… sp:… error:…` form.
pub fn segfault(text: &[u8]) -> Option<Segfault<'_>> {
    let text = text.strip_prefix(b"traps: ").unwrap_or(text);
    static MARKS: LazyLock<[Finder<'static>; 4]> = LazyLock::new(|| {
        [&b": segfault at "[..], b" general protection fault ip:", b" general protection ip:", b" trap "]
            .map(Finder::new)
    });
    let found = MARKS.iter().find_map(|mark| Some((mark.needle(), mark.find(text)?)));
    let Some((mark, fault_at)) = found else { return unhandled(text) };
    let head = text[..fault_at].strip_suffix(b"]")?;
    let open = memchr::memrchr(b'[', head)?;
    let pid = std::str::from_utf8(&head[open + 1..]).ok()?.parse().ok()?;
    let after = &text[fault_at..];
    let number = |names: [&[u8]; 2]| {
        names
            .iter()
            .find_map(|name| {
                crate::import::reports::words::find(after, name).and_then(|at| hex(&after[at + name.len()..]).ok())
            })
            .map(|found| found.1)
    };
    Some(Segfault {
        comm: name(&head[..open]),
        pid,
        address: if mark == b": segfault at " { hex(&after[mark.len()..]).ok().map(|found| found.1) } else { None },
        signal: SIGSEGV,
        ip: Some(number([b" ip ", b" ip:"])?),
        sp: Some(number([b" sp ", b" sp:"])?),
        error: Some(number([b" error ", b" error:"])?),
    })
}

const SIGSEGV: u32 = 11;

/// The program's name behind what syslog, `dmesg -x` and the kernel itself put before it.
fn name(head: &[u8]) -> &[u8] {
    let mut rest = head;
    for mark in [&b"kernel: "[..], b"] ", b"traps: "] {
        if let Some(at) = memchr::memmem::rfind(rest, mark) {
            rest = &rest[at + mark.len()..];
        }
    }
    rest.trim_ascii_start()
}

/// `a[1]: unhandled signal 11 code 0x1 at 0x38 in …` (riscv), `a[1]: unhandled level 2 translation fault (11) at 0x0,
/// esr …` (arm64), `a[1]: segfault (11) at 0 nip 10000468 lr …` (powerpc).
fn unhandled(text: &[u8]) -> Option<Segfault<'_>> {
    let close = crate::import::reports::words::find(text, b"]: ")?;
    let open = memchr::memrchr(b'[', &text[..close])?;
    let pid = std::str::from_utf8(&text[open + 1..close]).ok()?.parse().ok()?;
    let said = &text[close + 3..];
    let behind = |mark: &[u8]| crate::import::reports::words::find(said, mark).map(|at| &said[at + mark.len()..]);
    let rest = match said.strip_prefix(b"unhandled signal ") {
        Some(rest) => rest,
        None if said.starts_with(b"unhandled ") || said.starts_with(b"segfault (") => behind(b"(")?,
        None => return None,
    };
    let (_, signal) = decimal(rest).ok()?;
    let number = |mark: &[u8]| behind(mark).and_then(|rest| hex(rest).ok()).map(|(_, value)| value);
    // A program may print such words too; the address is the kernel's.
    let address = number(b" at 0x").or_else(|| number(b" at "))?;
    let signal = u32::try_from(signal).ok().filter(|signal| (1..=64).contains(signal))?;
    let (comm, address) = (name(&text[..open]), Some(address));
    Some(Segfault { comm, pid, address, signal, ip: number(b" nip "), sp: None, error: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_died_on_other_architectures_are_read() {
        let read = |line: &'static str| {
            segfault(line.as_bytes()).map(|found| (found.comm, found.pid, found.signal, found.address, found.ip))
        };
        let riscv = "xargs[57]: unhandled signal 11 code 0x1 at 0x0000000000000038 in libc-2.26.so[2000024000+13e000]";
        assert_eq!(read(riscv), Some((&b"xargs"[..], 57, 11, Some(0x38), None)));
        let arm64 = "crasher[112]: unhandled level 2 translation fault (11) at 0x00000010, esr 0x92000006, in crasher";
        assert_eq!(read(arm64), Some((&b"crasher"[..], 112, 11, Some(0x10), None)));
        let powerpc = "touch[99]: segfault (11) at 0 nip 10000468 lr 1000045c code 1 in touch[10000000+10000]";
        assert_eq!(read(powerpc), Some((&b"touch"[..], 99, 11, Some(0), Some(0x1000_0468))));
        assert_eq!(read("app[12]: unhandled promise rejection (Error) at 0x10"), None);
        assert_eq!(read("app[12]: unhandled error (404) at 0x10"), None);
    }

    #[test]
    fn lines_of_a_real_panic_are_read() {
        assert_eq!(timestamp(b"[    2.680689] Kernel panic"), Some((2_680_689_000, &b"Kernel panic"[..])));
        assert_eq!(timestamp(b"[   12.000001][   T17]  frame"), Some((12_000_001_000, &b" frame"[..])));
        assert_eq!(timestamp(b"[PANIC] CPU=0"), None);
        assert_eq!(alarm(b"watchdog: Delayed init of the lockup detector failed: -19"), None);
        assert_eq!(
            alarm(b"Kernel panic - not syncing: sysrq triggered crash"),
            Some(Alarm::Panic(b"sysrq triggered crash"))
        );
        let line = b"CPU: 0 PID: 1 Comm: init Not tainted 6.1.0-56-cloud-amd64 #1  Debian 6.1.192-2";
        let found = context(line).expect("a context");
        assert_eq!((found.cpu, found.pid, found.comm), (0, 1, &b"init"[..]));
        let (reliable, position) = frame(b"  ? _printk+0x68/0x83").expect("a frame");
        assert_eq!((reliable, position.symbol, position.size), (false, &b"_printk"[..], Some(0x83)));
        assert_eq!(frame(b"  <TASK>"), None);
        assert_eq!(instruction(b"RIP: 0033:0x47b7a0"), Some((0x33, Some(0x47_b7a0), None)));
        assert!(instruction(b"RIP: 0010:sysrq_handle_crash+0x16/0x20").is_some_and(|found| found.2.is_some()));
        let line = b"RSP: 002b:00007ffd8bb7b128 EFLAGS: 00000202 ORIG_RAX: 0000000000000001";
        let words = registers(line).map(|pairs| pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
        assert_eq!(words, Some(vec![0x7ffd_8bb7_b128, 0x202, 1]));
        assert_eq!(registers(b"NOTE: 12 apples"), None);
        assert_eq!(code(b"Code: 0f 05 <48> 3d"), Some((vec![0x0f, 5, 0x48, 0x3d], Some(2))));
        assert_eq!(kernel_offset(b"Kernel Offset: 0x38c00000 from 0xffffffff81000000"), Some(0x38c0_0000));
    }

    #[test]
    fn tasks_and_segfaults_are_read() {
        let line = b"task:init            state:R  running task     stack:0     pid:1     ppid:0      flags:0x00000008";
        let found = task(line).expect("a task");
        assert_eq!(
            (found.comm, found.state, found.pid, found.ppid),
            (&b"init"[..], &b"R  running task"[..], 1, Some(0))
        );
        let line = b"task:sh state:S stack:0 pid:7 tid:8 ppid:1 asleep:17.032 call:write waits:output of a terminal";
        let found = task(line).expect("a task of our kernel");
        assert_eq!((found.pid, found.tid, found.ppid), (7, Some(8), Some(1)));
        assert_eq!(found.asleep_ns, Some(17_032_000_000));
        assert_eq!((found.call, found.waits), (Some(&b"write"[..]), Some(&b"output of a terminal"[..])));
        let line = b"init[7]: segfault at 10 ip 000000000040116c sp 00007ffd8bb7b128 error 4 in init[400000+1000]";
        let found = segfault(line).expect("a segfault");
        assert_eq!(
            (found.comm, found.pid, found.address, found.ip, found.error),
            (&b"init"[..], 7, Some(0x10), Some(0x40_116c), Some(4))
        );
        let line = b"traps: a.out[12] general protection fault ip:401136 sp:7ffd error:0 in a.out[401000+1000]";
        assert_eq!(segfault(line).map(|found| (found.pid, found.address, found.ip)), Some((12, None, Some(0x40_1136))));
        for before in ["Jun 15 05:58:24 box kernel: ", "kern  :info  : [lun may  5 10:11:12 2025] ", "[  1.5] traps: "]
        {
            let line = format!("{before}tmux: server[12]: segfault at 10 ip 40 sp 7f error 4 in tmux[400000+1000]");
            assert_eq!(segfault(line.as_bytes()).map(|found| found.comm), Some(&b"tmux: server"[..]));
        }
    }
}
