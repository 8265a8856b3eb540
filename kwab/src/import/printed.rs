//! The records that a kernel printed as text instead of writing them, and how they are written into a dump.

use std::io::Write;

use base64::Engine as _;
use kwab_format::SectionKind;
use kwab_format::record::{
    FlightEvent, FlightKind, Frame, FrameTrust, Stamp, SyscallRecord, Task, TaskState, Text, TextKind,
};

use super::emit::DumpWriter;
use super::lines::LogPosition;
use super::text::{Location, kernel, linux};

/// The first line of a flight-recorder event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlightHead {
    /// Ticks since the recorder's base.
    pub ticks: u64,
    /// Processor that recorded the event.
    pub cpu: u32,
    /// Name of the event.
    pub name: Vec<u8>,
}

/// A record that one line, or a line and the ones before it, stands for.
#[derive(Debug)]
pub enum PrintedRecord<'a> {
    /// An event of the flight recorder.
    Flight {
        /// Time-stamp counter at tick 0; 0 when it was not printed.
        base: u64,
        /// Its first line.
        head: FlightHead,
        /// What its second line says.
        detail: Option<&'a [u8]>,
    },
    /// A call in the ring of a process.
    Syscall {
        /// Process whose ring holds the call.
        pid: u32,
        /// The call as the kernel printed it.
        entry: kernel::RingEntry<'a>,
    },
    /// A task that is listed.
    Task(linux::TaskLine<'a>),
    /// A frame of a task that is listed.
    TaskFrame {
        /// Process id of the task.
        pid: u32,
        /// Its thread id, where it is said.
        tid: Option<u32>,
        /// Number of its backtrace.
        trace: u32,
        /// Position in the backtrace.
        index: u32,
        /// Whether the kernel trusts the frame.
        reliable: bool,
        /// Its address, where it is printed.
        addr: Option<u64>,
        /// Symbol and offset of the frame.
        at: Option<Location<'a>>,
    },
    /// A kernel log in base64.
    LogDump {
        /// Hexadecimal digits collected so far.
        digits: Vec<u8>,
    },
}

impl PrintedRecord<'_> {
    /// Writes it into `out`; `position` is its last line.
    pub fn write<W: Write>(&self, position: LogPosition, out: &mut DumpWriter<W>) {
        let stamp = Stamp { line: Some(position.line), ..Stamp::default() };
        match self {
            Self::Flight { base, head, detail } => write_flight(*base, head, *detail, stamp, out),
            Self::Syscall { pid, entry } => write_syscall(*pid, entry, stamp, out),
            Self::Task(task) => write_task(task, stamp, out),
            Self::TaskFrame { pid, tid, trace, index, reliable, addr, at } => {
                let record = Frame {
                    trace: Some(*trace),
                    index: Some(*index),
                    addr: *addr,
                    symbol: at.map(|at| at.symbol),
                    symbol_offset: at.map(|at| at.offset),
                    symbol_size: at.and_then(|at| at.size),
                    module: at.and_then(|at| at.module),
                    trust: Some(if *reliable { FrameTrust::PRINTED } else { FrameTrust::SCAN }),
                    pid: Some(*pid),
                    tid: *tid,
                    stamp,
                    ..Frame::default()
                };
                out.put(SectionKind::TASKS, &record);
            }
            Self::LogDump { digits } => {
                write_log_dump(digits, Stamp { offset: Some(position.offset), ..stamp }, out);
            }
        }
    }
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
    head: &FlightHead,
    detail: Option<&[u8]>,
    stamp: Stamp<'_>,
    out: &mut DumpWriter<W>,
) {
    let number = |wanted: &[u8]| detail.and_then(|detail| kernel::detail_number(detail, wanted));
    let kind = FLIGHT_NAMES.iter().find(|(known, _)| *known == head.name).map(|(_, kind)| *kind);
    let record = FlightEvent {
        kind,
        name: Some(&head.name),
        pid: number(b"pid").and_then(|pid| u32::try_from(pid).ok()),
        a: number(b"from_pid"),
        b: number(b"to_pid"),
        detail,
        delta_ticks: Some(head.ticks),
        stamp: Stamp { cpu: Some(head.cpu), tsc: base.checked_add(head.ticks).filter(|_| base != 0), ..stamp },
        ..FlightEvent::default()
    };
    out.put(SectionKind::FLIGHT, &record);
}

fn write_syscall<W: Write>(pid: u32, entry: &kernel::RingEntry<'_>, stamp: Stamp<'_>, out: &mut DumpWriter<W>) {
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
        stamp,
        ..SyscallRecord::default()
    };
    out.put(SectionKind::SYSCALLS, &record.with_args(args));
}

fn write_task<W: Write>(task: &linux::TaskLine<'_>, stamp: Stamp<'_>, out: &mut DumpWriter<W>) {
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
        tid: task.tid,
        ppid: task.ppid,
        state_ns: task.asleep_ns,
        wait_reason: task.call,
        wait_object_name: task.waits,
        comm: Some(task.comm),
        state,
        state_text: Some(task.state),
        stamp,
        ..Task::default()
    };
    out.put(SectionKind::TASKS, &record);
}

/// The magic number of the base64 kernel-log dump.
const LOG_DUMP_MAGIC: u32 = 0xdead_beee;

/// Decodes {u32 magic, u32 length, log bytes}.
fn write_log_dump<W: Write>(digits: &[u8], stamp: Stamp<'_>, out: &mut DumpWriter<W>) {
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
    let record = Text { kind: Some(TextKind::LOG_DUMP), bytes: Some(log), problem, stamp, ..Text::default() };
    out.put(SectionKind::KEPT, &record);
}
