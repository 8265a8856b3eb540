//! Collects what a log tells about one death, and writes it as the records a kernel would have written itself.
//!
//! # What one crash is
//! * **The kernel gives up** (a `panic` event, `[PANIC]`, a register block of a kernel fault, Linux's `Kernel panic`,
//!   `BUG:`, `Oops:`, a lockup): one crash until the boot ends. What the dying kernel prints in several forms, and the
//!   panic that follows an oops, is the same crash.
//! * **A program dies** (a `crash_report`, or a signal whose default action is a core dump, acted on): one crash per
//!   process, until its `process_exit`. Signals that ask a program to end (SIGTERM, SIGKILL, SIGPIPE …) are no
//!   crash: they are remarks in the dump of their boot.
//! * A panic because init died belongs to the death of init.
//!
//! Everything is bounded: a log that prints a million frames gives the first `MOST_FRAMES` and a remark.

mod adopt;

use std::io::Write;

use kwab_format::record::{
    Arch, Cause, CauseKind, Frame, FrameTrust, Memory, MemoryKind, Note, NoteKind, Reg, RegId, RegisterRole, Registers,
    Stamp,
};
use kwab_format::{List, SectionKind};
use linux_abi::Signal;
use linux_abi::signals::DefaultAction;

use super::emit::DumpWriter;
use super::event::register;
use super::lines::LogPosition;
use super::text::{Location, location};
use crate::decode::{has_address, vector_of};
use crate::model::Death;
use crate::report::signature::Parts;
use crate::units;

pub use adopt::cause_kind;

/// Frames that are kept of one crash.
const MOST_FRAMES: usize = 512;
/// Register sets that are kept of one crash.
const MOST_REGISTER_SETS: usize = 16;
/// Remarks that are kept of one crash.
const MOST_REMARKS: usize = 64;
/// Bytes that are kept of a message.
const LONGEST_MESSAGE: usize = 16 << 10;

/// What a crash is about: the kernel, or one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The kernel gave up.
    Kernel,
    /// The process with this pid died, 0 where no number is known.
    Process(u32),
}

/// One printed frame.
#[derive(Debug, Clone)]
struct OwnedFrame {
    trace: u32,
    index: u32,
    addr: Option<u64>,
    symbol: Option<Vec<u8>>,
    offset: Option<u64>,
    size: Option<u64>,
    module: Option<Vec<u8>>,
    trust: FrameTrust,
    position: LogPosition,
}

/// One printed set of registers.
#[derive(Debug, Clone, Default)]
struct OwnedRegisters {
    user: bool,
    error_code: Option<u64>,
    regs: Vec<(Vec<u8>, u64)>,
}

/// A death in the making.
#[derive(Debug, Clone)]
pub struct Crash {
    /// What the crash is about.
    pub victim: Victim,
    /// What is known of the death.
    pub death: Death,
    /// Where in the log it was first seen.
    pub position: LogPosition,
    /// Nothing more can belong to it: its process has exited.
    pub closed: bool,
    /// Whether the kernel reported it in full (`crash_report`).
    pub reported: bool,
    frames: Vec<OwnedFrame>,
    frames_left_out: u64,
    registers: Vec<OwnedRegisters>,
    stack: Vec<(u64, u64)>,
    /// Bytes around an instruction, the index of its first one, its address.
    code: Option<(Vec<u8>, Option<u64>, Option<u64>)>,
    /// What the kernel is called whose report this is; of a log that does not show its start.
    pub kernel_name: Option<String>,
    /// The kernel's words name the address whose access failed, whatever the exception.
    pub is_address_told: bool,
    /// The instruction set that a report shows, unless its registers do.
    arch: Option<Arch>,
    /// Run-time minus link-time address of the kernel.
    pub kernel_offset: Option<u64>,
    /// GNU build-id of the kernel.
    pub kernel_build_id: Option<Vec<u8>>,
    remarks: Vec<(NoteKind, Vec<u8>)>,
}

impl Crash {
    /// A death first seen at `position`.
    pub fn new(victim: Victim, kind: CauseKind, position: LogPosition) -> Self {
        let pid = match victim {
            Victim::Kernel => None,
            Victim::Process(pid) => Some(pid),
        };
        Self {
            victim,
            death: Death { kind: Some(kind), pid, in_kernel: Some(victim == Victim::Kernel), ..Death::default() },
            position,
            closed: false,
            reported: false,
            frames: Vec::new(),
            frames_left_out: 0,
            registers: Vec::new(),
            stack: Vec::new(),
            code: None,
            kernel_name: None,
            is_address_told: false,
            arch: None,
            kernel_offset: None,
            kernel_build_id: None,
            remarks: Vec::new(),
        }
    }

    /// The death that a kernel's own dump tells about.
    pub fn from_cause(cause: &Cause<'_>, position: LogPosition) -> Self {
        let death = Death::from(cause);
        let victim = match death.pid {
            Some(pid) if !death.is_of_kernel() => Victim::Process(pid),
            // A text that names no process is of one.
            None if death.kind == Some(CauseKind::FATAL_SIGNAL) && death.in_kernel == Some(false) => Victim::Process(0),
            _ => Victim::Kernel,
        };
        Self { death, ..Self::new(victim, CauseKind::default(), position) }
    }

    /// Whether a new alarm about `victim` tells about this death rather than another one.
    pub fn is_same(&self, victim: Victim) -> bool {
        match (self.victim, victim) {
            (Victim::Kernel, Victim::Kernel) => true,
            (Victim::Process(mine), Victim::Process(other)) => mine == other && !self.closed,
            _ => false,
        }
    }

    /// Whether a fatal signal means that a program broke, rather than that it was asked to end.
    pub fn is_fatal_signal(signal: i64) -> bool {
        let signal = u64::try_from(signal).ok().and_then(Signal::new);
        signal.is_some_and(|signal| signal.default_action() == DefaultAction::CoreDump)
    }

    /// Keeps a text, the first or, when `better`, the latest.
    pub fn say(field: &mut Option<Vec<u8>>, text: &[u8], better: bool) {
        let text = text.trim_ascii();
        if (field.is_none() || better) && !text.is_empty() {
            *field = Some(text[..text.len().min(LONGEST_MESSAGE)].to_vec());
        }
    }

    /// Adds something a person should know.
    pub fn remark(&mut self, kind: NoteKind, text: impl Into<Vec<u8>>) {
        if self.remarks.len() < MOST_REMARKS {
            self.remarks.push((kind, text.into()));
        }
    }

    /// Adds a frame to backtrace `trace`.
    pub fn frame(
        &mut self,
        trace: u32,
        addr: Option<u64>,
        at: Option<Location<'_>>,
        trust: FrameTrust,
        position: LogPosition,
    ) {
        if self.frames.len() >= MOST_FRAMES {
            self.frames_left_out += 1;
            return;
        }
        let index = self.frames.iter().filter(|frame| frame.trace == trace).count() as u32;
        self.frames.push(OwnedFrame {
            trace,
            index,
            addr,
            symbol: at.map(|at| at.symbol.to_vec()),
            offset: at.map(|at| at.offset),
            size: at.and_then(|at| at.size),
            module: at.and_then(|at| at.module).map(<[u8]>::to_vec),
            trust,
            position,
        });
    }

    /// How many backtraces there are.
    pub fn traces(&self) -> u32 {
        self.frames.iter().map(|frame| frame.trace + 1).max().unwrap_or(0)
    }

    /// Takes printed registers; a name that the current set already has begins a new set.
    pub fn registers(&mut self, pairs: &[(&[u8], u64)], user: bool) {
        for (name, value) in pairs {
            let has = |set: &OwnedRegisters| set.regs.iter().any(|(known, _)| known == name);
            if self.registers.last().is_none_or(|set| has(set) || set.user != user) {
                if self.registers.len() >= MOST_REGISTER_SETS {
                    return;
                }
                self.registers.push(OwnedRegisters { user, ..OwnedRegisters::default() });
            }
            let Some(set) = self.registers.last_mut() else { return };
            match *name {
                b"ERR" => set.error_code = Some(*value),
                name => set.regs.push((name.to_vec(), *value)),
            }
        }
    }

    /// Takes a word of the stack.
    pub fn stack_word(&mut self, offset: u64, word: u64) {
        if self.stack.len() < 1024 {
            self.stack.push((offset, word));
        }
    }

    /// Takes the bytes around the instruction.
    pub fn code(&mut self, bytes: Vec<u8>, marked: Option<u64>) {
        let last = self.registers.last().and_then(|set| set.regs.iter().find(|(name, _)| name == b"RIP"));
        let ip = last.map(|(_, value)| *value).or(self.death.ip);
        self.code.get_or_insert((bytes, marked, ip));
    }

    /// The value of a register of the first set that has it.
    fn register(&self, name: &[u8]) -> Option<u64> {
        let sets = self.registers.iter().filter(|set| !set.user || self.victim != Victim::Kernel);
        sets.flat_map(|set| &set.regs).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// The exception that the kernel names, in its report or in its message.
    fn vector(&self) -> Option<u32> {
        let named = |text: &Option<Vec<u8>>| vector_of(&String::from_utf8_lossy(text.as_deref()?));
        named(&self.death.exception).or_else(|| named(&self.death.message))
    }

    /// Concludes what the pieces say together.
    pub fn conclude(&mut self) {
        self.death.ip = self.death.ip.or_else(|| self.register(b"RIP"));
        self.death.sp = self.death.sp.or_else(|| self.register(b"RSP"));
        let in_fault =
            self.death.exception.is_some() || matches!(self.death.kind, Some(CauseKind::EXCEPTION | CauseKind::OOPS));
        match self.vector() {
            // CR2 keeps the address of an earlier page fault, and a report without an address prints zero.
            Some(vector) if !has_address(vector) && !self.is_address_told => self.death.fault_addr = None,
            None if self.death.kind == Some(CauseKind::OOPS) => {}
            _ if in_fault => self.death.fault_addr = self.death.fault_addr.or_else(|| self.register(b"CR2")),
            _ => {}
        }
        self.death.error_code = self.death.error_code.or_else(|| self.registers.iter().find_map(|set| set.error_code));
        if self.death.kind == Some(CauseKind::PANIC) {
            let told = self.death.message.as_deref().and_then(told_by_message);
            self.death.kind = told.or(self.death.kind);
        }
        if self.frames_left_out > 0 {
            let text = format!(
                "{} beyond the limit left out",
                units::count(self.frames_left_out, "printed frame", "printed frames")
            );
            self.remark(NoteKind::MISSING, text);
        }
    }

    /// The instruction set, as registers or the report say.
    pub fn arch(&self) -> Option<Arch> {
        let is_x86 = self.registers.iter().any(|set| {
            set.regs.iter().any(|(name, _)| name.eq_ignore_ascii_case(b"rip") || name.eq_ignore_ascii_case(b"rax"))
        });
        if is_x86 { Some(Arch::X86_64) } else { self.arch }
    }

    /// What a signature is made of.
    pub fn signature_parts(&self) -> Parts<'_> {
        let program = self.death.cmdline.as_deref().or(self.death.comm.as_deref()).unwrap_or_default();
        let first = self.frames.iter().filter(|frame| frame.trace == 0 && frame.trust != FrameTrust::SCAN);
        let mut symbols: Vec<&[u8]> = first.filter_map(|frame| frame.symbol.as_deref()).collect();
        if let Some(location) = self.death.location.as_deref().and_then(location) {
            symbols.insert(0, location.symbol);
        }
        let kernel = self.victim == Victim::Kernel;
        Parts {
            kind: self.death.kind.and_then(CauseKind::name).unwrap_or_default(),
            signal: self.death.signal_name.as_deref().unwrap_or_default(),
            message: self.death.message.as_deref().filter(|_| kernel).unwrap_or_default(),
            symbols,
            ip: self.death.ip,
            program: if kernel { b"" } else { program },
            fault_addr: self.death.fault_addr,
        }
    }

    /// What a reader of the dump will miss.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        let mut need = |there: bool, what: &str| {
            if !there {
                missing.push(what.to_string());
            }
        };
        need(!self.registers.is_empty() || self.reported, "registers");
        need(!self.frames.is_empty() || self.reported, "backtrace");
        if let Victim::Process(_) = self.victim {
            need(self.reported, "memory map");
        } else if self.stack.is_empty() {
            need(false, "stack");
        } else {
            need(self.stack.len() >= 64, &format!("stack beyond {} words", self.stack.len()));
        }
        missing
    }

    /// Writes everything into `out`.
    pub fn write<W: Write>(&self, out: &mut DumpWriter<W>) {
        let mut cause = self.death.record();
        (cause.stamp.line, cause.stamp.offset) = (Some(self.position.line), Some(self.position.offset));
        out.put(SectionKind::CAUSE, &cause);
        self.write_frames(out);
        self.write_registers(out);
        self.write_memory(out);
        for (kind, text) in &self.remarks {
            out.put(SectionKind::NOTES, &Note { kind: Some(*kind), text: Some(text), ..Note::default() });
        }
    }

    fn write_frames<W: Write>(&self, out: &mut DumpWriter<W>) {
        for frame in &self.frames {
            let record = Frame {
                trace: Some(frame.trace),
                index: Some(frame.index),
                addr: frame.addr,
                symbol: frame.symbol.as_deref(),
                symbol_offset: frame.offset,
                symbol_size: frame.size,
                module: frame.module.as_deref(),
                trust: Some(frame.trust),
                pid: self.death.pid,
                stamp: Stamp { line: Some(frame.position.line), ..Stamp::default() },
                ..Frame::default()
            };
            out.put(SectionKind::CAUSE, &record);
        }
    }

    fn write_registers<W: Write>(&self, out: &mut DumpWriter<W>) {
        for set in &self.registers {
            let regs: Vec<Reg<'_>> = set.regs.iter().map(|(name, value)| register(canonical(name), *value)).collect();
            let record = Registers {
                role: Some(if set.user { RegisterRole::USER } else { RegisterRole::FAULT }),
                pid: self.death.pid,
                error_code: set.error_code,
                regs: Some(List::new(&regs)),
                ..Registers::default()
            };
            out.put(SectionKind::REGISTERS, &record);
        }
    }

    fn write_memory<W: Write>(&self, out: &mut DumpWriter<W>) {
        if let Some(sp) = self.register(b"RSP").filter(|_| !self.stack.is_empty()) {
            // Only a run without gaps has an address of its own.
            let run = self.stack.iter().enumerate().take_while(|(index, word)| word.0 == 8 * *index as u64);
            let bytes: Vec<u8> = run.flat_map(|(_, word)| word.1.to_le_bytes()).collect();
            let record = Memory {
                kind: Some(MemoryKind::KERNEL_STACK),
                vaddr: Some(sp),
                bytes: Some(&bytes),
                label: Some(b"printed words at the stack pointer"),
                ..Memory::default()
            };
            out.put(SectionKind::STACKS, &record);
        }
        if let Some((bytes, marked, ip)) = &self.code {
            let record = Memory {
                kind: Some(MemoryKind::CODE),
                vaddr: ip.and_then(|ip| ip.checked_sub((*marked)?)),
                bytes: Some(bytes),
                marked: *marked,
                label: Some(b"printed code bytes"),
                ..Memory::default()
            };
            out.put(SectionKind::STACKS, &record);
        }
    }
}

/// How this workspace's kernel begins the message of a death that is not a panic, and what that is.
const TOLD: &[(&[u8], CauseKind)] = &[
    (b"sysrq triggered", CauseKind::SYSRQ),
    (b"non-maskable interrupt", CauseKind::NMI),
    (b"soft lockup: CPU ", CauseKind::SOFT_LOCKUP),
    (b"hard lockup: CPU ", CauseKind::SOFT_LOCKUP),
    (b"hung task: thread ", CauseKind::HUNG_TASK),
    (b"stall: no program has run for ", CauseKind::STALL),
    (b"page fault loop: thread ", CauseKind::FAULT_LOOP),
];

/// The kind of death that a kernel without a word for it in its report tells by the message.
fn told_by_message(message: &[u8]) -> Option<CauseKind> {
    TOLD.iter().find(|(begin, _)| message.starts_with(begin)).map(|(_, kind)| *kind)
}

/// The format's name of a register that is printed differently.
fn canonical(name: &[u8]) -> &[u8] {
    const NAMES: &[(&[u8], RegId)] = &[(b"EFLAGS", RegId::RFLAGS), (b"R08", RegId::R8), (b"R09", RegId::R9)];
    let known = NAMES.iter().find(|(printed, _)| *printed == name).and_then(|(_, id)| id.name());
    known.map_or(name, str::as_bytes)
}
