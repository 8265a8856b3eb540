//! Follows the text around a death from line to line: which block a line belongs to, and what it adds to the crash.
//!
//! [`Watch::alarm`] says whether a line announces a death, before anything is recorded; [`Watch::learn`] then takes what
//! the line says. A line that fits no block ends the block; it is console text like any other.

use std::io::Write;

use base64::Engine as _;
use kwab_format::SectionKind;
use kwab_format::record::{
    CauseKind, FlightEvent, FlightKind, Frame, FrameTrust, NoteKind, Stamp, SyscallRecord, Task, TaskState, Text,
    TextKind,
};

use super::crash::{Crash, Victim};
use super::emit::DumpWriter;
use super::scan::Place;
use super::text::{kernel, linux};

/// The longest printed base64 dump that is decoded.
const LONGEST_DUMP: usize = 8 << 20;

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
    Flight(u64, Option<(u64, u32, Vec<u8>)>),
    /// The ring of system calls of a process.
    Ring(u32),
    /// A kernel log in base64.
    Base64(Vec<u8>),
    /// What Linux prints after an alarm; whether the registers are those of user code.
    Linux { user: bool },
    /// The state of a task that Linux lists.
    LinuxTask { pid: u32, trace: u32, index: u32 },
}

/// The state between lines.
#[derive(Debug, Default)]
pub struct Watch {
    block: Block,
    tasks: u32,
}

/// A death that a line announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmLine {
    /// Who dies.
    pub victim: Victim,
    /// What kind of death.
    pub kind: CauseKind,
}

impl Watch {
    /// Whether a line announces a death.
    pub fn alarm(&self, text: &[u8]) -> Option<AlarmLine> {
        let kernel = |kind| Some(AlarmLine { victim: Victim::Kernel, kind });
        match text.first()? {
            b'[' if kernel::panic_head(text).is_some() => kernel(CauseKind::PANIC),
            b'k' if is_register_head(text) => kernel(CauseKind::EXCEPTION),
            b'!' if text.starts_with(b"!!! double fault") => kernel(CauseKind::DOUBLE_FAULT),
            _ => match linux::alarm(text) {
                Some(linux::Alarm::Panic(_)) => kernel(CauseKind::PANIC),
                Some(linux::Alarm::Oops(_)) => kernel(CauseKind::OOPS),
                Some(linux::Alarm::Lockup(_)) => kernel(CauseKind::SOFT_LOCKUP),
                Some(linux::Alarm::HungTask(_)) => kernel(CauseKind::HUNG_TASK),
                None => linux::segfault(text)
                    .map(|fault| AlarmLine { victim: Victim::Process(fault.pid), kind: CauseKind::FATAL_SIGNAL }),
            },
        }
    }

    /// Takes what a line says; gives what kind of text it is.
    pub fn learn<W: Write>(
        &mut self,
        text: &[u8],
        ns: Option<u64>,
        place: Place,
        crash: Option<&mut Crash>,
        out: &mut DumpWriter<W>,
    ) -> TextKind {
        if let Some(kind) = self.open_block(text, place, out) {
            if let Some(crash) = crash {
                opening_line(text, ns, place, crash);
            }
            return kind;
        }
        let (kind, over) = match &mut self.block {
            Block::Console => return self.console(text, ns, place, crash),
            Block::Registers => (TextKind::REGISTERS, crash.is_none_or(|crash| !register_line(text, place, crash))),
            Block::Panic => (TextKind::PANIC, crash.is_none_or(|crash| !panic_line(text, place, crash))),
            Block::Flight(base, pending) => (TextKind::FLIGHT, !flight_line(text, place, base, pending, out)),
            Block::Ring(pid) => (TextKind::SYSCALLS, !ring_line(text, *pid, place, out)),
            Block::Base64(digits) => (TextKind::LOG_DUMP, !base64_line(text, digits, place, out)),
            Block::Linux { user } => (TextKind::PANIC, crash.is_none_or(|crash| !linux_line(text, user, place, crash))),
            Block::LinuxTask { pid, trace, index } => {
                (TextKind::CONSOLE, !task_frame(text, *pid, *trace, index, place, out))
            }
        };
        if over {
            self.block = Block::Console;
            return TextKind::CONSOLE;
        }
        kind
    }

    /// Begins a block, if the line is the head of one.
    fn open_block<W: Write>(&mut self, text: &[u8], place: Place, out: &mut DumpWriter<W>) -> Option<TextKind> {
        let (block, kind) = match text.first()? {
            b'[' if text.starts_with(b"[PANIC]") => (Block::Panic, TextKind::PANIC),
            b'[' if text.starts_with(b"[FLIGHT RECORDER") => (Block::Flight(0, None), TextKind::FLIGHT),
            b'k' if is_register_head(text) => (Block::Registers, TextKind::REGISTERS),
            b'p' if text.starts_with(b"panicked at ") => (Block::Panic, TextKind::PANIC),
            b'=' if text.ends_with(b"_CRASH_DUMP_BEGIN===") => (Block::Base64(Vec::new()), TextKind::LOG_DUMP),
            b'=' => (Block::Ring(kernel::ring_head(text)?), TextKind::SYSCALLS),
            b't' if text.starts_with(b"task:") => {
                let task = linux::task(text)?;
                write_task(&task, place, out);
                self.tasks += 1;
                (Block::LinuxTask { pid: task.pid, trace: self.tasks, index: 0 }, TextKind::CONSOLE)
            }
            _ if linux::alarm(text).is_some() => (Block::Linux { user: false }, TextKind::PANIC),
            _ => return None,
        };
        self.block = block;
        Some(kind)
    }

    /// Lines outside of blocks that tell something about a death all the same.
    fn console(&mut self, text: &[u8], ns: Option<u64>, place: Place, crash: Option<&mut Crash>) -> TextKind {
        let Some(crash) = crash else { return TextKind::CONSOLE };
        if let Some(fault) = linux::segfault(text) {
            if crash.victim == Victim::Process(fault.pid) {
                crash.ns = crash.ns.or(ns);
                Crash::say(&mut crash.comm, fault.comm, false);
                crash.signal.get_or_insert((11, b"SIGSEGV".to_vec()));
                crash.fault_addr = crash.fault_addr.or(fault.address);
                crash.ip = crash.ip.or(Some(fault.ip));
                crash.sp = crash.sp.or(Some(fault.sp));
                crash.error_code = crash.error_code.or(Some(fault.error));
                Crash::say(&mut crash.message, text, false);
            }
        } else if crash.victim == Victim::Kernel && crash.kind != CauseKind::PANIC {
            let mut user = false;
            linux_line(text, &mut user, place, crash);
        }
        TextKind::CONSOLE
    }
}

fn is_register_head(text: &[u8]) -> bool {
    text.starts_with(b"kernel ") && memchr::memmem::find(text, b"register dump:").is_some()
}

/// The head of a block says something about the death itself.
fn opening_line(text: &[u8], ns: Option<u64>, place: Place, crash: &mut Crash) {
    if let Some((cpu, file, line)) = kernel::panic_place(text) {
        crash.cpu = crash.cpu.or(Some(cpu));
        crash.source.get_or_insert((file.to_vec(), line));
        if crash.kind == CauseKind::EXCEPTION || crash.kind == CauseKind::OOPS {
            return;
        }
        crash.kind = CauseKind::PANIC;
        return;
    }
    if let Some(cpu) = kernel::panic_head(text) {
        crash.cpu = crash.cpu.or(Some(cpu));
        return;
    }
    if is_register_head(text) {
        // "kernel page fault — register dump:" names the exception.
        let end = [&b" \xe2\x80\x94"[..], b" - ", b": "].iter().find_map(|mark| memchr::memmem::find(text, mark));
        Crash::say(&mut crash.exception, &text[b"kernel ".len()..end.unwrap_or(text.len())], false);
    }
    match linux::alarm(text) {
        Some(linux::Alarm::Panic(message)) if matches!(crash.victim, Victim::Process(_)) => {
            crash.remark(NoteKind::INFERRED, [&b"the kernel panicked because of it: "[..], message].concat());
        }
        Some(linux::Alarm::Panic(message)) => {
            crash.ns = crash.ns.or(ns);
            if crash.message.is_none() {
                Crash::say(&mut crash.message, message, false);
            } else {
                crash.remark(NoteKind::INFERRED, [&b"then the kernel panicked: "[..], message].concat());
            }
        }
        Some(linux::Alarm::Oops(message) | linux::Alarm::Lockup(message) | linux::Alarm::HungTask(message)) => {
            crash.ns = crash.ns.or(ns);
            if crash.message.is_some() && crash.message.as_deref() != Some(message) {
                crash.remark(NoteKind::REMARK, message);
            }
            Crash::say(&mut crash.message, message, false);
            let address = memchr::memmem::find(message, b"address: ").map(|at| &message[at + 9..]);
            if let Some((_, address)) = address.and_then(|text| super::text::hex(text).ok()) {
                crash.fault_addr = crash.fault_addr.or(Some(address));
            }
        }
        None => {}
    }
    let _ = place;
}

fn register_line(text: &[u8], place: Place, crash: &mut Crash) -> bool {
    if let Some(pairs) = kernel::registers(text) {
        crash.registers(&pairs, false);
    } else if let Some(address) = kernel::fault_address(text) {
        crash.fault_addr = crash.fault_addr.or(Some(address));
        crash.registers(&[(b"CR2", address)], false);
    } else if let Some((offset, word)) = kernel::stack_word(text) {
        crash.stack_word(offset, word);
    } else if let Some((address, at)) = kernel::interrupted_at(text) {
        crash.ip = crash.ip.or(Some(address));
        Crash::say(&mut crash.location, at, false);
    } else if let Some((_, address, at)) = kernel::frame(text) {
        crash.frame(0, Some(address), at, FrameTrust::PRINTED, place);
    } else {
        let trimmed = text.trim_ascii();
        return trimmed.starts_with(b"kernel stack at ") || trimmed.starts_with(b"backtrace from ");
    }
    true
}

fn panic_line(text: &[u8], place: Place, crash: &mut Crash) -> bool {
    if let Some(offset) = linux::kernel_offset(text) {
        crash.kernel_offset = Some(offset);
        crash.kernel_build_id = kernel::build_id(text);
        return true;
    }
    if let Some((pid, tid, comm)) = kernel::running(text).filter(|_| crash.message.is_some()) {
        (crash.pid, crash.tid) = (crash.pid.or(Some(pid)), crash.tid.or(Some(tid)));
        Crash::say(&mut crash.comm, comm, false);
        return true;
    }
    // Some kernels print them between the message and the frames.
    if crash.message.is_some() && (kernel::registers(text).is_some() || kernel::fault_address(text).is_some()) {
        return register_line(text, place, crash);
    }
    if let Some((index, address, at)) = kernel::frame(text) {
        // A second list that counts from 0 is another form of the same backtrace.
        let traces = crash.traces();
        let trace = if index == 0 { traces } else { traces.saturating_sub(1) };
        crash.frame(trace, Some(address), at, FrameTrust::PRINTED, place);
        return true;
    }
    let trimmed = text.trim_ascii();
    if trimmed.is_empty() || text.starts_with(b"[") {
        return false;
    }
    if crash.traces() == 0 || crash.message.is_none() {
        Crash::say(&mut crash.message, trimmed, false);
        return true;
    }
    false
}

fn flight_line<W: Write>(
    text: &[u8],
    place: Place,
    base: &mut u64,
    pending: &mut Option<(u64, u32, Vec<u8>)>,
    out: &mut DumpWriter<W>,
) -> bool {
    if let Some(value) = kernel::flight_base(text) {
        *base = value;
        return true;
    }
    if let Some((ticks, cpu, name)) = kernel::flight_event(text) {
        if let Some(event) = pending.replace((ticks, cpu, name.to_vec())) {
            write_flight(*base, &event, None, place, out);
        }
        return true;
    }
    let Some(event) = pending.take() else { return false };
    let detail = kernel::flight_detail(text, &event.2);
    write_flight(*base, &event, detail, place, out);
    detail.is_some()
}

/// Names of flight-recorder events as kernels print them.
const FLIGHT_NAMES: &[(&[u8], FlightKind)] = &[
    (b"CTX_SWITCH", FlightKind::CONTEXT_SWITCH),
    (b"IPI_SEND", FlightKind::IPI_SEND),
    (b"IPI_RECV", FlightKind::IPI_RECEIVE),
    (b"TLB_SEND", FlightKind::TLB_SEND),
    (b"TLB_RECV", FlightKind::TLB_RECEIVE),
    (b"PAGE_FAULT", FlightKind::PAGE_FAULT),
    (b"MMAP", FlightKind::MMAP),
    (b"MUNMAP", FlightKind::MUNMAP),
    (b"MPROTECT", FlightKind::MPROTECT),
    (b"SIGNAL_SEND", FlightKind::SIGNAL_SEND),
    (b"SIGNAL_DELIVER", FlightKind::SIGNAL_DELIVER),
    (b"FORK", FlightKind::FORK),
    (b"EXEC", FlightKind::EXEC),
    (b"EXIT", FlightKind::EXIT),
    (b"IRQ", FlightKind::IRQ),
    (b"LOCK_CONTENDED", FlightKind::LOCK_CONTENDED),
    (b"IDLE_ENTER", FlightKind::IDLE_ENTER),
    (b"IDLE_EXIT", FlightKind::IDLE_EXIT),
];

fn write_flight<W: Write>(
    base: u64,
    (ticks, cpu, name): &(u64, u32, Vec<u8>),
    detail: Option<&[u8]>,
    place: Place,
    out: &mut DumpWriter<W>,
) {
    let number = |wanted: &[u8]| detail.and_then(|detail| kernel::detail_number(detail, wanted));
    let kind = FLIGHT_NAMES.iter().find(|(known, _)| known == name).map(|(_, kind)| *kind);
    let record = FlightEvent {
        kind,
        name: Some(name),
        pid: number(b"pid").and_then(|pid| u32::try_from(pid).ok()),
        a: number(b"from_pid"),
        b: number(b"to_pid"),
        detail,
        delta_ticks: Some(*ticks),
        stamp: Stamp {
            cpu: Some(*cpu),
            tsc: base.checked_add(*ticks).filter(|_| base != 0),
            line: Some(place.line),
            ..Stamp::default()
        },
        ..FlightEvent::default()
    };
    out.put(SectionKind::FLIGHT, &record);
}

fn ring_line<W: Write>(text: &[u8], pid: u32, place: Place, out: &mut DumpWriter<W>) -> bool {
    let Some(entry) = kernel::ring_entry(text) else { return false };
    let mut args = [None; 6];
    for (to, from) in args.iter_mut().zip(&entry.args) {
        *to = Some(*from);
    }
    let record = SyscallRecord {
        pid: Some(pid),
        nr: Some(entry.nr),
        name: Some(entry.name),
        result: entry.result,
        index: Some(entry.index),
        in_progress: entry.result.is_none().then_some(true),
        stamp: Stamp { line: Some(place.line), ..Stamp::default() },
        ..SyscallRecord::default()
    };
    out.put(SectionKind::SYSCALLS, &record.with_args(args));
    true
}

fn base64_line<W: Write>(text: &[u8], digits: &mut Vec<u8>, place: Place, out: &mut DumpWriter<W>) -> bool {
    let trimmed = text.trim_ascii();
    if trimmed.starts_with(b"===") {
        write_log_dump(digits, place, out);
        return false;
    }
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    if trimmed.iter().all(is_base64) && digits.len() + trimmed.len() <= LONGEST_DUMP {
        digits.extend_from_slice(trimmed);
    }
    true
}

/// The magic number of the base64 kernel-log dump.
const LOG_DUMP_MAGIC: u32 = 0xdead_beee;

/// Decodes {u32 magic, u32 length, log bytes}.
fn write_log_dump<W: Write>(digits: &[u8], place: Place, out: &mut DumpWriter<W>) {
    let whole = &digits[..digits.len() / 4 * 4];
    let decoded = base64::engine::general_purpose::STANDARD.decode(whole).unwrap_or_default();
    let word = |at: usize| decoded.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let (log, problem) = match (word(0), word(4)) {
        (Some(LOG_DUMP_MAGIC), Some(length)) => {
            let log = decoded.get(8..).unwrap_or_default();
            let cut = log.len() < length as usize;
            (&log[..log.len().min(length as usize)], cut.then_some(&b"shorter than it claims"[..]))
        }
        _ => (&decoded[..], Some(&b"no magic number at its front"[..])),
    };
    let stamp = Stamp { line: Some(place.line), offset: Some(place.offset), ..Stamp::default() };
    let record = Text { kind: Some(TextKind::LOG_DUMP), bytes: Some(log), problem, stamp, ..Text::default() };
    out.put(SectionKind::KEPT, &record);
}

/// A line below a Linux alarm.
fn linux_line(text: &[u8], user: &mut bool, place: Place, crash: &mut Crash) -> bool {
    if let Some(context) = linux::context(text) {
        crash.cpu = crash.cpu.or(Some(context.cpu));
        crash.pid = crash.pid.or(Some(context.pid));
        Crash::say(&mut crash.comm, context.comm, false);
        Crash::say(&mut crash.context, context.kernel, false);
    } else if let Some((selector, address, at)) = linux::instruction(text) {
        *user = selector & 3 == 3;
        if let Some(address) = address {
            crash.registers(&[(b"RIP", address)], *user);
        }
        if !*user {
            if let Some(at) = at {
                let location = format!("{}+{:#x}", String::from_utf8_lossy(at.symbol), at.offset);
                Crash::say(&mut crash.location, location.as_bytes(), false);
            }
            crash.ip = crash.ip.or(address);
        }
    } else if let Some((reliable, at)) = linux::frame(text) {
        let trust = if reliable { FrameTrust::PRINTED } else { FrameTrust::SCAN };
        crash.frame(0, None, Some(at), trust, place);
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

/// A frame of a task that Linux lists.
fn task_frame<W: Write>(
    text: &[u8],
    pid: u32,
    trace: u32,
    index: &mut u32,
    place: Place,
    out: &mut DumpWriter<W>,
) -> bool {
    let Some((reliable, at)) = linux::frame(text) else { return is_linux_block(text) };
    let record = Frame {
        trace: Some(trace),
        index: Some(*index),
        symbol: Some(at.symbol),
        symbol_offset: Some(at.offset),
        symbol_size: at.size,
        module: at.module,
        trust: Some(if reliable { FrameTrust::PRINTED } else { FrameTrust::SCAN }),
        pid: Some(pid),
        stamp: Stamp { line: Some(place.line), ..Stamp::default() },
        ..Frame::default()
    };
    *index += 1;
    out.put(SectionKind::TASKS, &record);
    true
}

fn write_task<W: Write>(task: &linux::TaskLine<'_>, place: Place, out: &mut DumpWriter<W>) {
    let state = match task.state.first() {
        Some(b'R') => Some(TaskState::RUNNING),
        Some(b'S') => Some(TaskState::SLEEPING),
        Some(b'D') => Some(TaskState::BLOCKED),
        Some(b'T' | b't') => Some(TaskState::STOPPED),
        Some(b'Z' | b'X') => Some(TaskState::ZOMBIE),
        Some(b'I') => Some(TaskState::IDLE),
        _ => None,
    };
    let record = Task {
        pid: Some(task.pid),
        ppid: task.ppid,
        comm: Some(task.comm),
        state,
        state_text: Some(task.state),
        stamp: Stamp { line: Some(place.line), ..Stamp::default() },
        ..Task::default()
    };
    out.put(SectionKind::TASKS, &record);
}
