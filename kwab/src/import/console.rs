//! Reads the text around a death line by line: which block a line belongs to, and what it adds to the crash.
//!
//! [`ConsoleParser::announces`] says whether a line announces a death, before anything is recorded;
//! [`ConsoleParser::line`] then takes what the line says about it and gives the record that the line is, if it is one.
//! A line that fits no block ends the block; it is console text like any other.

use kwab_format::record::{CauseKind, FrameTrust, NoteKind, TextKind};

use super::crash::{Crash, Victim};
use super::lines::LogPosition;
use super::printed::{FlightHead, PrintedRecord};
use super::text::{kernel, linux};

/// Texts of which every line outside of blocks holds one that announces a death or begins a block.
pub const NEEDLES: &[&[u8]] = &[
    b"[PANIC]",
    b"[FLIGHT RECORDER",
    b"register dump:",
    b"panicked at ",
    b"_CRASH_DUMP_BEGIN===",
    b"=== PID ",
    b"task:",
];

/// The longest printed base64 dump that is decoded.
const LONGEST_DUMP: usize = 8 << 20;
/// The signal by which the kernel kills for memory (signal(7)).
const SIGKILL: u32 = 9;

/// The block of text that the last line belonged to.
#[derive(Debug, Default)]
enum Block {
    /// None: console output.
    #[default]
    Console,
    /// A register block of a kernel fault.
    Registers,
    /// The message and frames below a `[PANIC]` line.
    Panic,
    /// The flight recorder; the base, and the event whose detail line comes next.
    Flight(u64, Option<FlightHead>),
    /// The ring of system calls of a process.
    Ring(u32),
    /// A kernel log in base64.
    Base64(Vec<u8>),
    /// What Linux prints after an alarm; whether the registers are those of user code.
    Linux { user: bool },
    /// The state of a task that is listed, as Linux does.
    LinuxTask { pid: u32, tid: Option<u32>, trace: u32, index: u32 },
}

/// The state between lines.
#[derive(Debug, Default)]
pub struct ConsoleParser {
    block: Block,
    tasks: u32,
}

/// A death that a line announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// What the line says is dying.
    pub victim: Victim,
    /// What kind of death.
    pub kind: CauseKind,
}

/// What a line of console text is.
#[derive(Debug)]
pub struct ConsoleLine<'a> {
    /// What kind of text.
    pub kind: TextKind,
    /// The record that a kernel would have written instead of printing the line.
    pub record: Option<PrintedRecord<'a>>,
}

impl From<TextKind> for ConsoleLine<'_> {
    fn from(kind: TextKind) -> Self {
        Self { kind, record: None }
    }
}

impl ConsoleParser {
    /// Whether the last line belonged to no block.
    pub fn is_idle(&self) -> bool {
        matches!(self.block, Block::Console)
    }

    /// Whether a block of a kernel whose reports are read here goes on; Linux's have readers that know their end.
    pub fn is_in_own_block(&self) -> bool {
        !matches!(self.block, Block::Console | Block::Linux { .. } | Block::LinuxTask { .. })
    }

    /// Whether a line announces a death.
    pub fn announces(&self, text: &[u8]) -> Option<Announced> {
        let kernel = |kind| Some(Announced { victim: Victim::Kernel, kind });
        match text.first()? {
            b'[' if kernel::panic_head(text).is_some() => kernel(CauseKind::PANIC),
            b'k' if is_register_head(text) => kernel(CauseKind::EXCEPTION),
            b'!' if text.starts_with(b"!!! double fault") => kernel(CauseKind::DOUBLE_FAULT),
            _ => match linux::alarm(text) {
                Some(linux::Alarm::Panic(_)) => kernel(CauseKind::PANIC),
                Some(linux::Alarm::Oops(_)) => kernel(CauseKind::OOPS),
                Some(linux::Alarm::Lockup(_)) => kernel(CauseKind::SOFT_LOCKUP),
                Some(linux::Alarm::HungTask(_)) => kernel(CauseKind::HUNG_TASK),
                None => {
                    let pid = linux::segfault(text).map(|fault| fault.pid);
                    let pid = pid.or_else(|| kernel::killed_for_memory(text).map(|(pid, _)| pid));
                    pid.map(|pid| Announced { victim: Victim::Process(pid), kind: CauseKind::FATAL_SIGNAL })
                }
            },
        }
    }

    /// Takes what a line says about `crash`, the death that the text around it is about.
    pub fn line<'a>(
        &mut self,
        text: &'a [u8],
        ns: Option<u64>,
        position: LogPosition,
        crash: Option<&mut Crash>,
    ) -> ConsoleLine<'a> {
        if let Some(line) = self.open_block(text) {
            if let Some(crash) = crash {
                opening_line(text, ns, crash);
            }
            return line;
        }
        let mut record = None;
        let (kind, over) = match &mut self.block {
            Block::Console => return console_line(text, ns, position, crash),
            Block::Registers => (TextKind::REGISTERS, crash.is_none_or(|crash| !register_line(text, position, crash))),
            Block::Panic => (TextKind::PANIC, crash.is_none_or(|crash| !panic_line(text, position, crash))),
            Block::Flight(base, head) => (TextKind::FLIGHT, !flight_line(text, base, head, &mut record)),
            Block::Ring(pid) => {
                record = kernel::ring_entry(text).map(|entry| PrintedRecord::Syscall { pid: *pid, entry });
                (TextKind::SYSCALLS, record.is_none())
            }
            Block::Base64(digits) => (TextKind::LOG_DUMP, !base64_line(text, digits, &mut record)),
            Block::Linux { user } => {
                (TextKind::PANIC, crash.is_none_or(|crash| !linux_line(text, user, position, crash)))
            }
            Block::LinuxTask { pid, tid, trace, index } => {
                let named = linux::frame(text).map(|(reliable, at)| (reliable, None, Some(at)));
                let frame = named.or_else(|| kernel::frame(text).map(|(_, addr, at)| (true, Some(addr), at)));
                if let Some((reliable, addr, at)) = frame {
                    let (pid, tid, trace, index) = (*pid, *tid, *trace, *index);
                    record = Some(PrintedRecord::TaskFrame { pid, tid, trace, index, reliable, addr, at });
                }
                *index += u32::from(record.is_some());
                (TextKind::CONSOLE, record.is_none() && !is_linux_block(text))
            }
        };
        if over {
            self.block = Block::Console;
            return ConsoleLine { kind: TextKind::CONSOLE, record };
        }
        ConsoleLine { kind, record }
    }

    /// Begins a block, if the line is the head of one.
    fn open_block<'a>(&mut self, text: &'a [u8]) -> Option<ConsoleLine<'a>> {
        let mut record = None;
        let (block, kind) = match text.first()? {
            b'[' if text.starts_with(b"[PANIC]") => (Block::Panic, TextKind::PANIC),
            b'[' if text.starts_with(b"[FLIGHT RECORDER") => (Block::Flight(0, None), TextKind::FLIGHT),
            b'k' if is_register_head(text) => (Block::Registers, TextKind::REGISTERS),
            b'p' if text.starts_with(b"panicked at ") => (Block::Panic, TextKind::PANIC),
            b'=' if text.ends_with(b"_CRASH_DUMP_BEGIN===") => (Block::Base64(Vec::new()), TextKind::LOG_DUMP),
            b'=' => (Block::Ring(kernel::ring_head(text)?), TextKind::SYSCALLS),
            b't' if text.starts_with(b"task:") => {
                let task = linux::task(text)?;
                record = Some(PrintedRecord::Task(task));
                self.tasks += 1;
                let (pid, tid, trace) = (task.pid, task.tid, self.tasks);
                (Block::LinuxTask { pid, tid, trace, index: 0 }, TextKind::CONSOLE)
            }
            _ if linux::alarm(text).is_some() => (Block::Linux { user: false }, TextKind::PANIC),
            _ => return None,
        };
        self.block = block;
        Some(ConsoleLine { kind, record })
    }
}

/// Lines outside of blocks that tell something about a death all the same.
fn console_line<'a>(
    text: &'a [u8],
    ns: Option<u64>,
    position: LogPosition,
    crash: Option<&mut Crash>,
) -> ConsoleLine<'a> {
    let Some(crash) = crash else { return TextKind::CONSOLE.into() };
    if let Some(fault) = linux::segfault(text) {
        if crash.victim == Victim::Process(fault.pid) {
            crash.death.ns = crash.death.ns.or(ns);
            Crash::say(&mut crash.death.comm, fault.comm, false);
            let name = linux_abi::Signal::new(fault.signal.into()).and_then(linux_abi::Signal::name);
            crash.death.signalled(fault.signal, name.unwrap_or("a signal"));
            crash.death.fault_addr = crash.death.fault_addr.or(fault.address);
            crash.death.ip = crash.death.ip.or(fault.ip);
            crash.death.sp = crash.death.sp.or(fault.sp);
            crash.death.error_code = crash.death.error_code.or(fault.error);
            Crash::say(&mut crash.death.message, text, false);
        }
    } else if let Some((pid, comm)) = kernel::killed_for_memory(text) {
        if crash.victim == Victim::Process(pid) {
            crash.death.ns = crash.death.ns.or(ns);
            Crash::say(&mut crash.death.comm, comm, false);
            crash.death.signalled(SIGKILL, "SIGKILL");
            Crash::say(&mut crash.death.message, text, false);
        }
    } else if crash.victim == Victim::Kernel && crash.death.kind != Some(CauseKind::PANIC) {
        let mut user = false;
        linux_line(text, &mut user, position, crash);
    }
    TextKind::CONSOLE.into()
}

fn is_register_head(text: &[u8]) -> bool {
    text.starts_with(b"kernel ") && super::reports::words::find(text, b"register dump:").is_some()
}

/// The head of a block says something about the death itself.
fn opening_line(text: &[u8], ns: Option<u64>, crash: &mut Crash) {
    if let Some((cpu, file, line)) = kernel::panic_location(text) {
        crash.death.cpu = crash.death.cpu.or(Some(cpu));
        crash.death.raised_at(file, line);
        if matches!(crash.death.kind, Some(CauseKind::EXCEPTION | CauseKind::OOPS)) {
            return;
        }
        crash.death.kind = Some(CauseKind::PANIC);
        return;
    }
    if let Some(cpu) = kernel::panic_head(text) {
        crash.death.cpu = crash.death.cpu.or(Some(cpu));
        return;
    }
    if is_register_head(text) {
        // "kernel page fault — register dump:" names the exception.
        let end =
            [&b" \xe2\x80\x94"[..], b" - ", b": "].iter().find_map(|mark| super::reports::words::find(text, mark));
        Crash::say(&mut crash.death.exception, &text[b"kernel ".len()..end.unwrap_or(text.len())], false);
    }
    match linux::alarm(text) {
        Some(linux::Alarm::Panic(message)) if matches!(crash.victim, Victim::Process(_)) => {
            crash.remark(NoteKind::INFERRED, [&b"the kernel panicked because of it: "[..], message].concat());
        }
        Some(linux::Alarm::Panic(message)) => {
            crash.death.ns = crash.death.ns.or(ns);
            if crash.death.message.is_none() {
                Crash::say(&mut crash.death.message, message, false);
            } else {
                crash.remark(NoteKind::INFERRED, [&b"then the kernel panicked: "[..], message].concat());
            }
        }
        Some(linux::Alarm::Oops(message) | linux::Alarm::Lockup(message) | linux::Alarm::HungTask(message)) => {
            crash.death.ns = crash.death.ns.or(ns);
            if crash.death.message.is_some() && crash.death.message.as_deref() != Some(message) {
                crash.remark(NoteKind::REMARK, message);
            }
            Crash::say(&mut crash.death.message, message, false);
            let address = super::reports::words::find(message, b"address: ").map(|at| &message[at + 9..]);
            if let Some((_, address)) = address.and_then(|text| super::text::hex(text).ok()) {
                crash.death.fault_addr = crash.death.fault_addr.or(Some(address));
            }
        }
        None => {}
    }
}

fn register_line(text: &[u8], position: LogPosition, crash: &mut Crash) -> bool {
    if let Some(pairs) = kernel::registers(text) {
        crash.registers(&pairs, false);
    } else if let Some(address) = kernel::fault_address(text) {
        crash.death.fault_addr = crash.death.fault_addr.or(Some(address));
        crash.registers(&[(b"CR2", address)], false);
    } else if let Some((offset, word)) = kernel::stack_word(text) {
        crash.stack_word(offset, word);
    } else if let Some((address, at)) = kernel::interrupted_at(text) {
        crash.death.ip = crash.death.ip.or(Some(address));
        Crash::say(&mut crash.death.location, at, false);
    } else if let Some((_, address, at)) = kernel::frame(text) {
        crash.frame(0, Some(address), at, FrameTrust::PRINTED, position);
    } else {
        let trimmed = text.trim_ascii();
        return trimmed.starts_with(b"kernel stack at ") || trimmed.starts_with(b"backtrace from ");
    }
    true
}

fn panic_line(text: &[u8], position: LogPosition, crash: &mut Crash) -> bool {
    if let Some(offset) = linux::kernel_offset(text) {
        crash.kernel_offset = Some(offset);
        crash.kernel_build_id = kernel::build_id(text);
        return true;
    }
    if let Some((pid, tid, comm)) = kernel::running(text).filter(|_| crash.death.message.is_some()) {
        (crash.death.pid, crash.death.tid) = (crash.death.pid.or(Some(pid)), crash.death.tid.or(Some(tid)));
        Crash::say(&mut crash.death.comm, comm, false);
        return true;
    }
    // Some kernels print them between the message and the frames.
    if crash.death.message.is_some() && (kernel::registers(text).is_some() || kernel::fault_address(text).is_some()) {
        return register_line(text, position, crash);
    }
    if let Some((index, address, at)) = kernel::frame(text) {
        // A second list that counts from 0 is another form of the same backtrace.
        let traces = crash.traces();
        let trace = if index == 0 { traces } else { traces.saturating_sub(1) };
        crash.frame(trace, Some(address), at, FrameTrust::PRINTED, position);
        return true;
    }
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() || text.starts_with(b"[") {
        return false;
    }
    if crash.traces() == 0 || crash.death.message.is_none() {
        Crash::say(&mut crash.death.message, trimmed, false);
        return true;
    }
    false
}

/// A line of the flight recorder: its base, the head of an event, or the detail of the event before it.
fn flight_line<'a>(
    text: &'a [u8],
    base: &mut u64,
    head: &mut Option<FlightHead>,
    record: &mut Option<PrintedRecord<'a>>,
) -> bool {
    if let Some(value) = kernel::flight_base(text) {
        *base = value;
        return true;
    }
    if let Some((ticks, cpu, name)) = kernel::flight_event(text) {
        let before = head.replace(FlightHead { ticks, cpu, name: name.to_vec() });
        *record = before.map(|head| PrintedRecord::Flight { base: *base, head, detail: None });
        return true;
    }
    let Some(head) = head.take() else { return false };
    let detail = kernel::flight_detail(text, &head.name);
    *record = Some(PrintedRecord::Flight { base: *base, head, detail });
    detail.is_some()
}

/// A line of a kernel log in base64: more digits, or its end.
fn base64_line(text: &[u8], digits: &mut Vec<u8>, record: &mut Option<PrintedRecord<'_>>) -> bool {
    let trimmed = text.trim_ascii();
    if trimmed.starts_with(b"===") {
        *record = Some(PrintedRecord::LogDump { digits: std::mem::take(digits) });
        return false;
    }
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if trimmed.iter().all(is_base64) && digits.len() + trimmed.len() <= LONGEST_DUMP {
        digits.extend_from_slice(trimmed);
    }
    true
}

/// A line below a Linux alarm.
fn linux_line(text: &[u8], user: &mut bool, position: LogPosition, crash: &mut Crash) -> bool {
    if let Some(context) = linux::context(text) {
        crash.death.cpu = crash.death.cpu.or(Some(context.cpu));
        crash.death.pid = crash.death.pid.or(Some(context.pid));
        Crash::say(&mut crash.death.comm, context.comm, false);
        Crash::say(&mut crash.death.context, context.kernel, false);
    } else if let Some((selector, address, at)) = linux::instruction(text) {
        *user = selector & 3 == 3;
        if let Some(address) = address {
            crash.registers(&[(b"RIP", address)], *user);
        }
        if !*user {
            if let Some(at) = at {
                let location = format!("{}+{:#x}", String::from_utf8_lossy(at.symbol), at.offset);
                Crash::say(&mut crash.death.location, location.as_bytes(), false);
            }
            crash.death.ip = crash.death.ip.or(address);
        }
    } else if let Some((reliable, at)) = linux::frame(text) {
        let trust = if reliable { FrameTrust::PRINTED } else { FrameTrust::SCAN };
        crash.frame(0, None, Some(at), trust, position);
    } else if let Some(pairs) = linux::registers(text) {
        crash.registers(&pairs, *user);
    } else if let Some((bytes, marked)) = linux::code(text) {
        crash.code(bytes, marked);
    } else if let Some(offset) = linux::kernel_offset(text) {
        crash.kernel_offset = Some(offset);
    } else {
        return is_linux_block(text);
    }
    true
}

/// Lines that belong to an alarm without telling anything that has a field.
fn is_linux_block(text: &[u8]) -> bool {
    const STARTS: &[&[u8]] = &[
        b"Hardware name:",
        b"Call Trace:",
        b"Modules linked in:",
        b"#PF: ",
        b"PGD ",
        b"Stack:",
        b"Workqueue: ",
        b"Rebooting in ",
        b"Tainted: ",
        b"Dumping ftrace",
        b"Sending NMI",
    ];
    let trimmed = text.trim_ascii();
    STARTS.iter().any(|start| trimmed.starts_with(start))
        || trimmed.starts_with(b"---[ ")
        || matches!(trimmed, [b'<', .., b'>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kinds of all lines, and how many records they are.
    fn all(lines: &[&str], crash: &mut Option<Crash>) -> (Vec<TextKind>, usize) {
        let mut parser = ConsoleParser::default();
        let mut records = 0;
        let mut kinds = Vec::new();
        for (number, text) in lines.iter().enumerate() {
            let position = LogPosition { offset: 0, line: number as u64 + 1 };
            if let Some(announced) = parser.announces(text.as_bytes()) {
                crash.get_or_insert_with(|| Crash::new(announced.victim, announced.kind, position));
            }
            let line = parser.line(text.as_bytes(), None, position, crash.as_mut());
            records += usize::from(line.record.is_some());
            kinds.push(line.kind);
        }
        (kinds, records)
    }

    #[test]
    fn an_oops_is_announced_by_its_first_line_and_ends_at_foreign_text() {
        let lines = [
            "hello",
            "BUG: kernel NULL pointer dereference, address: 0000000000000010",
            "CPU: 1 PID: 7 Comm: sh Not tainted 6.1.0 #1",
            "RIP: 0010:oops_init+0x16/0x20",
            "login:",
        ];
        let mut crash = None;
        let (kinds, records) = all(&lines, &mut crash);
        use TextKind as Kind;
        assert_eq!(kinds, [Kind::CONSOLE, Kind::PANIC, Kind::PANIC, Kind::PANIC, Kind::CONSOLE]);
        assert_eq!(records, 0);
        let crash = crash.expect("an oops");
        assert_eq!(
            (crash.death.kind, crash.position.line, crash.death.cpu, crash.death.pid),
            (Some(CauseKind::OOPS), 2, Some(1), Some(7))
        );
        assert_eq!(
            (crash.death.fault_addr, crash.death.location.as_deref()),
            (Some(0x10), Some(&b"oops_init+0x16"[..]))
        );
    }

    #[test]
    fn rings_flight_events_and_tasks_are_records() {
        let ring = ["=== PID 1 last 32 syscalls ===", "[ 12] writev(n=20) args=(0x1,0x9ffffea30,0x2) -> 17", "other"];
        assert_eq!(all(&ring, &mut None), (vec![TextKind::SYSCALLS, TextKind::SYSCALLS, TextKind::CONSOLE], 1));
        let flight = [
            "[FLIGHT RECORDER] 2 events",
            "  (base TSC=0x1ad2cd8a, showing 2 events)",
            "  +52922766 ticks  CPU=0  EXIT ",
            "  +52922770 ticks  CPU=0  CTX_SWITCH ",
            "  CPU=0 CTX_SWITCH  from_pid=0 to_pid=1",
        ];
        assert_eq!(all(&flight, &mut None), (vec![TextKind::FLIGHT; 5], 2));
        let task = [
            "task:init            state:R  running task     stack:0     pid:1     ppid:0      flags:0x00000008",
            " schedule+0x68/0x83",
        ];
        assert_eq!(all(&task, &mut None), (vec![TextKind::CONSOLE; 2], 2));
    }
}
