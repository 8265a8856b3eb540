//! Reads what QEMU writes with `-d int,cpu_reset`: each exception with the registers at it, and each reset.
//!
//! `check_exception old: 0xe new 0xe` says that exception 14 came while exception 14 was being delivered. A chain of
//! such lines that ends in `Triple fault` is a death: its first exception is the cause, and the address that CR2 holds
//! at the next one says what the delivery needed and could not reach. An exception that finds no gate becomes a general
//! protection fault of which QEMU says no `old`: its error code names the gate, and so the exception before it.
//! Every triple fault becomes a dump; without one the log becomes a recording of its last exceptions. QEMU does not say
//! which processor an exception is of: it is known only where the resets before it are all of one processor. A reset
//! behind a triple fault is of all processors.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read};

use kwab_format::record::{
    Arch, CauseKind, Cpu, CpuState, FlightEvent, FlightKind, Identity, Note, NoteKind, Reason, Reg, RegId,
    RegisterRole, Registers, Source, Stamp, Text, TextKind,
};
use kwab_format::{List, SectionKind};

use super::text_lines::for_each_line;
use crate::capture::registers::{Processor, take};
use crate::decode::exception_name;
use crate::import::emit::DumpWriter;
use crate::import::made::{Maker, Told};
use crate::import::segment::Out;
use crate::import::{ImportError, ImportReport, Options, PendingDump};
use crate::model::Death;
use crate::model::case::QEMU_TRACE;

/// Exceptions before a death that are kept.
const MOST_EVENTS: usize = 1024;
/// Links of a chain: the processor gives up at the third.
const MOST_LINKS: usize = 8;
/// Processors that are told apart.
const MOST_CPUS: usize = 2;
/// Registers of a link.
const MOST_REGISTERS: usize = 64;
/// Triple faults that become dumps: a machine that cannot boot resets for ever.
const MOST_DEATHS: u64 = 256;
/// Bytes of other lines that are kept for each death.
const MOST_TEXT: usize = 64 << 10;
/// Lines at the beginning of a text that decide whether it is QEMU's.
const LOOKED_AT: usize = 64;
/// No exception was being delivered.
const NONE: u64 = 0xffff_ffff;
/// The stack that an exception is delivered on takes so many bytes below the pointer.
const PUSHED: u64 = 256;
const PAGE_FAULT: u64 = 14;
const DOUBLE_FAULT: u64 = 8;
/// Exceptions that say of which gate they are: segment not present, general protection.
const OF_GATES: [u64; 2] = [11, 13];
/// Their error code is of a gate of the interrupt table, by its number in the bits from 3 on (SDM volume 3, 6.13).
const IN_IDT: u64 = 1 << 1;

/// Whether a text is QEMU's: its first lines are exceptions, resets and registers.
pub(super) fn is_trace(head: &[u8]) -> bool {
    let lines = head.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    let lines: Vec<_> = lines.filter(|line| !line.trim().is_empty()).take(LOOKED_AT).collect();
    let telling = |line: &str| !matches!(TraceLine::of(line), TraceLine::Registers | TraceLine::Other);
    let known = lines.iter().filter(|line| !matches!(TraceLine::of(line), TraceLine::Other)).count();
    lines.iter().any(|line| telling(line)) && known * 10 >= lines.len() * 8
}

/// A line by what it tells.
#[derive(Debug, PartialEq, Eq)]
enum TraceLine {
    /// An exception, and the one that was being delivered.
    Check {
        old: u64,
        new: u64,
    },
    /// An exception or interrupt is delivered.
    Exception(Delivered),
    TripleFault,
    /// A processor starts again.
    Reset(u32),
    /// An interrupt of a device, and what firmware does in system management mode.
    Interrupt,
    Registers,
    Other,
}

/// What the line of an exception says.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Delivered {
    vector: u64,
    error: u64,
    in_user: bool,
    ip: u64,
    sp: u64,
    cr2: Option<u64>,
}

impl Delivered {
    /// The gate of the interrupt table that could not be used.
    fn gate(&self) -> Option<u64> {
        (OF_GATES.contains(&self.vector) && self.error & IN_IDT != 0).then_some(self.error >> 3)
    }
}

impl TraceLine {
    fn of(line: &str) -> Self {
        let line = line.trim();
        let hex = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok();
        if let Some((old, new)) = line.strip_prefix("check_exception old: ").and_then(|rest| rest.split_once(" new ")) {
            return hex(old).zip(hex(new)).map_or(Self::Other, |(old, new)| Self::Check { old, new });
        }
        if line == "Triple fault" {
            return Self::TripleFault;
        }
        if let Some(rest) = line.strip_prefix("CPU Reset (CPU ").and_then(|rest| rest.strip_suffix(')')) {
            return rest.parse().map_or(Self::Other, Self::Reset);
        }
        if line.starts_with("Servicing hardware INT=") || line == "SMM: enter" || line == "SMM: after RSM" {
            return Self::Interrupt;
        }
        if let Some((number, rest)) = line.split_once(": v=")
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            return delivered(rest).map_or(Self::Other, Self::Exception);
        }
        if is_registers(line) { Self::Registers } else { Self::Other }
    }
}

/// `0e e=0000 i=0 cpl=0 IP=0008:000000000010009c pc=000000000010009c SP=0010:0000000000104ff8 CR2=0000123456789000`
fn delivered(rest: &str) -> Option<Delivered> {
    let (vector, rest) = rest.split_once(' ')?;
    let mut found = Delivered { vector: u64::from_str_radix(vector, 16).ok()?, ..Delivered::default() };
    for word in rest.split_ascii_whitespace() {
        let Some((name, value)) = word.split_once('=') else { continue };
        let value = value.split_once(':').map_or(value, |(_, value)| value);
        let Ok(value) = u64::from_str_radix(value, 16) else { continue };
        match name {
            "e" => found.error = value,
            "cpl" => found.in_user = value == 3,
            "pc" => found.ip = value,
            "SP" => found.sp = value,
            "CR2" => found.cr2 = Some(value),
            _ => {}
        }
    }
    Some(found)
}

/// Lines of QEMU's register dump begin with one of these names.
fn is_registers(line: &str) -> bool {
    const NAMES: &[&str] = &[
        "RAX", "RSI", "R8", "R12", "RIP", "EAX", "ESI", "EIP", "ES", "CS", "SS", "DS", "FS", "GS", "LDT", "TR", "GDT",
        "IDT", "CR0", "DR0", "DR6", "CCS", "EFER", "FCW",
    ];
    let Some((name, _)) = line.split_once('=') else { return false };
    let name = name.trim_end();
    NAMES.contains(&name) || name.starts_with("FPR") || name.starts_with("XMM") || name.starts_with("YMM")
}

/// An exception with the registers at it.
#[derive(Debug, Default, Clone)]
struct Link {
    told: Delivered,
    line: u64,
    /// What came while the exception before was being delivered; a double fault stands for it.
    raised: Option<u64>,
    processor: Processor,
    /// Where the table of handlers is.
    idt: Option<(u64, u64)>,
}

impl Link {
    fn name(&self) -> String {
        name_of(self.told.vector)
    }

    /// The registers, with what the exception's own line says in front where the block has no names for them.
    fn registers(&self) -> Vec<(RegId, u64)> {
        let mut all = self.processor.registers.clone();
        for (id, value) in [(RegId::RIP, self.told.ip), (RegId::RSP, self.told.sp)] {
            if all.iter().all(|(known, _)| *known != id) {
                all.push((id, value));
            }
        }
        all
    }

    fn event(&self) -> FlightEvent<'static> {
        let told = &self.told;
        let stamp = Stamp { line: Some(self.line), ..Stamp::default() };
        match told.vector {
            PAGE_FAULT => FlightEvent {
                kind: Some(FlightKind::PAGE_FAULT),
                a: told.cr2,
                b: Some(told.ip),
                c: Some(told.error),
                stamp,
                ..FlightEvent::default()
            },
            vector => FlightEvent {
                name: u32::try_from(vector).ok().and_then(exception_name).map(|(_, name)| name.as_bytes()),
                a: Some(vector),
                b: Some(told.ip),
                c: Some(told.error),
                stamp,
                ..FlightEvent::default()
            },
        }
    }
}

pub(super) fn name_of(vector: u64) -> String {
    let known = u32::try_from(vector).ok().and_then(exception_name);
    known.map_or_else(|| format!("interrupt {vector:#x}"), |(_, name)| name.to_owned())
}

/// A log that is being read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    lines: u64,
    events: u64,
    deaths: u64,
    recent: VecDeque<Link>,
    /// The exceptions of the delivery that goes on.
    chain: Vec<Link>,
    /// The end of the chain before, which may have found no gate.
    before: Option<Link>,
    /// What came last, when nothing could be delivered any more.
    last: Option<u64>,
    /// Whether the registers that follow belong to the last exception.
    is_open: bool,
    /// Processors that were reset: all are at the beginning.
    cpus: BTreeSet<u32>,
    text: Vec<u8>,
}

/// Makes a dump of every triple fault of the text, or one recording.
///
/// # Errors
/// [`ImportError`].
pub(super) fn import(
    input: impl Read,
    head: &[u8],
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let mut maker = Maker::new(options, head, 0);
    let mut reading = Reading::default();
    let end = for_each_line(input, progress, |line, at| {
        reading.lines = at.lines;
        let Some(death) = reading.take(line) else { return Ok(()) };
        maker.add(|out| death.write(&options.source, out))
    })?;
    if reading.deaths == 0 {
        let recording = TripleFault { events: reading.recent.into(), text: reading.text, ..TripleFault::default() };
        maker.add(|out| recording.write(&options.source, out))?;
    }
    let more = reading.deaths.saturating_sub(MOST_DEATHS);
    let cut = (more > 0).then(|| format!("{more} more triple faults were left out; the first {MOST_DEATHS} are dumps"));
    let (mut report, dumps) = maker.finish(reading.lines, cut);
    (report.bytes, report.events) = (end.bytes, reading.events);
    Ok((report, dumps))
}

impl Reading {
    /// Takes a line; the death that it tells of.
    pub(super) fn take(&mut self, line: &str) -> Option<TripleFault> {
        let told = TraceLine::of(line);
        if told == TraceLine::Registers {
            self.registers(line);
            return None;
        }
        self.is_open = false;
        match told {
            TraceLine::Check { old, new } => {
                if old == NONE {
                    self.before = self.chain.drain(..).next_back();
                }
                self.last = Some(new);
            }
            TraceLine::Exception(told) => {
                let raised = self.last.take();
                if raised.is_none() {
                    // An interrupt: what was delivered before has arrived.
                    self.chain.clear();
                }
                self.exception(told, raised);
            }
            TraceLine::TripleFault => return self.died(),
            TraceLine::Interrupt => self.chain.clear(),
            TraceLine::Reset(cpu) => {
                if self.cpus.len() < MOST_CPUS {
                    self.cpus.insert(cpu);
                }
            }
            TraceLine::Registers => {}
            TraceLine::Other => {
                let line = line.as_bytes();
                if self.text.len() + line.len() <= MOST_TEXT {
                    self.text.extend_from_slice(line);
                }
            }
        }
        None
    }

    fn exception(&mut self, told: Delivered, raised: Option<u64>) {
        self.events += 1;
        let undelivered = |before: &Link| told.gate() == Some(before.told.vector) && told.ip == before.told.ip;
        if self.chain.is_empty() {
            self.chain.extend(self.before.take().filter(undelivered));
        }
        self.is_open = self.chain.len() < MOST_LINKS;
        let link = Link { told, line: self.lines, raised, ..Link::default() };
        if self.recent.len() == MOST_EVENTS {
            self.recent.pop_front();
        }
        // The ring needs no registers, which follow.
        self.recent.push_back(link.clone());
        if self.is_open {
            self.chain.push(link);
        }
    }

    fn registers(&mut self, line: &str) {
        let Some(link) = self.chain.last_mut().filter(|_| self.is_open) else { return };
        if link.processor.registers.len() < MOST_REGISTERS {
            take(&mut link.processor, line);
            link.processor.registers.truncate(MOST_REGISTERS);
        }
        if let Some(rest) = line.trim().strip_prefix("IDT=") {
            let mut words = rest.split_ascii_whitespace().map(|word| u64::from_str_radix(word, 16).ok());
            link.idt = words.next().flatten().zip(words.next().flatten());
        }
    }

    /// Registers of each link of the chain.
    #[cfg(test)]
    pub(super) fn chain_registers(&self) -> Vec<usize> {
        self.chain.iter().map(|link| link.processor.registers.len()).collect()
    }

    fn died(&mut self) -> Option<TripleFault> {
        self.deaths += 1;
        if self.deaths > MOST_DEATHS {
            return None;
        }
        Some(TripleFault {
            line: self.lines,
            cpu: self.cpus.first().copied().filter(|_| self.cpus.len() == 1),
            chain: std::mem::take(&mut self.chain),
            last: self.last.take(),
            events: std::mem::take(&mut self.recent).into(),
            text: std::mem::take(&mut self.text),
        })
    }
}

/// A processor that gave up; without a line a recording of what came before.
#[derive(Debug, Default)]
pub(super) struct TripleFault {
    line: u64,
    cpu: Option<u32>,
    chain: Vec<Link>,
    last: Option<u64>,
    events: Vec<Link>,
    text: Vec<u8>,
}

impl TripleFault {
    /// `triple fault: page fault at 0x10, while delivering it: page fault at …, while delivering …`.
    fn message(&self) -> String {
        let Some(first) = self.chain.first() else { return "triple fault".to_owned() };
        let at = |link: &Link| link.told.cr2.map(|addr| format!(" at {addr:#x}")).unwrap_or_default();
        let mut text = format!("triple fault: {}{}", first.name(), at(first));
        for (before, link) in self.chain.iter().zip(self.chain.iter().skip(1)) {
            // A double fault stands for the exception that came while the one before was being delivered.
            let needed = needed(before, link);
            let gate = link.told.gate().map(|gate| format!(", gate {gate} of the interrupt table")).unwrap_or_default();
            let what = match link.told.vector {
                DOUBLE_FAULT => needed,
                _ => format!("{}{}{gate}", link.name(), at(link)),
            };
            text.push_str(&format!(", while delivering the {}: {what}", before.name()));
        }
        if let (Some(last), Some(before)) = (self.last, self.chain.last()) {
            text.push_str(&format!(", while delivering the {}: {}", before.name(), name_of(last)));
        }
        text
    }

    fn death(&self) -> Death {
        let first = self.chain.first();
        // What a program did is not what the kernel did when it died: only the delivery is the kernel's.
        let told = first.map(|link| &link.told).filter(|told| !told.in_user);
        Death {
            kind: Some(CauseKind::EXCEPTION),
            message: Some(self.message().into_bytes()),
            ip: told.map(|told| told.ip),
            sp: told.map(|told| told.sp),
            vector: told.and_then(|told| u32::try_from(told.vector).ok()),
            error_code: told.map(|told| told.error),
            fault_addr: told.filter(|told| told.vector == PAGE_FAULT).and_then(|told| told.cr2),
            in_kernel: Some(true),
            cpu: self.cpu,
            line: Some(self.line),
            ..Death::default()
        }
    }

    fn write(&self, source: &str, out: &mut DumpWriter<Out>) -> io::Result<Told> {
        let died = self.line > 0;
        let identity = Identity {
            arch: Some(Arch::X86_64),
            reason: Some(if died { Reason::KERNEL_CRASH } else { Reason::RECORDING }),
            producer: Some(concat!("kwab ", env!("CARGO_PKG_VERSION"), " import").as_bytes()),
            ..Identity::default()
        };
        out.put(SectionKind::IDENTITY, &identity);
        let (name, dialect) = (Some(source.as_bytes()), Some(QEMU_TRACE));
        out.put(SectionKind::IDENTITY, &Source { name, dialect, ..Source::default() });
        let death = died.then(|| self.death());
        if let Some(death) = &death {
            out.put(SectionKind::CAUSE, &death.record());
        }
        if let Some(first) = self.chain.first() {
            self.registers(first, out);
        }
        for event in &self.events {
            out.put(SectionKind::FLIGHT, &event.event());
        }
        if died && self.cpu.is_none() {
            let text = "QEMU's log does not say which processor the exceptions are of";
            let record = Note { kind: Some(NoteKind::REMARK), text: Some(text.as_bytes()), ..Note::default() };
            out.put(SectionKind::NOTES, &record);
        }
        if !self.text.is_empty() {
            let record = Text { kind: Some(TextKind::CONSOLE), bytes: Some(&self.text), ..Text::default() };
            out.put(SectionKind::KEPT, &record);
        }
        out.check()?;
        let line = died.then_some(self.line);
        Ok(Told { death, line, events: self.events.len() as u64, missing: Vec::new() })
    }

    fn registers(&self, link: &Link, out: &mut DumpWriter<Out>) {
        let in_user = link.told.in_user;
        let all = link.registers();
        let regs: Vec<Reg<'_>> = all.iter().map(|(id, value)| Reg::new(*id, *value)).collect();
        let stamp = Stamp { cpu: self.cpu, line: Some(link.line), ..Stamp::default() };
        let record = Registers {
            role: Some(if in_user { RegisterRole::USER } else { RegisterRole::FAULT }),
            arch: Some(Arch::X86_64),
            vector: u32::try_from(link.told.vector).ok().filter(|_| !in_user),
            error_code: Some(link.told.error).filter(|_| !in_user),
            regs: Some(List::new(&regs)),
            stamp,
            ..Registers::default()
        };
        out.put(SectionKind::REGISTERS, &record);
        let root = link.processor.get(RegId::CR3);
        let record = Cpu {
            number: self.cpu,
            state: Some(CpuState::STOPPED),
            interrupts_on: Some(link.processor.interrupts_on()),
            page_table_root: Some(root).filter(|root| *root != 0),
            ..Cpu::default()
        };
        out.put(SectionKind::REGISTERS, &record);
    }
}

/// What came while `before` was being delivered; of a page fault, by what CR2 held at the double fault, the address.
fn needed(before: &Link, double: &Link) -> String {
    match double.raised {
        Some(PAGE_FAULT) => {}
        // CR2 holds the address of an earlier page fault, or none.
        Some(vector) => return name_of(vector),
        None => return "another exception".to_owned(),
    }
    let addr = double.processor.get(RegId::CR2);
    let own = before.told.cr2 == Some(addr) || !double.processor.registers.iter().any(|(id, _)| *id == RegId::CR2);
    if own {
        return name_of(PAGE_FAULT);
    }
    match double.idt {
        // A gate takes 16 bytes in 64-bit mode (SDM volume 3, 7.14.1).
        Some((base, limit)) if (base..=base.saturating_add(limit)).contains(&addr) => {
            format!("page fault at {addr:#x}, gate {} of the IDT at {base:#x}", (addr - base) / 16)
        }
        _ if (double.told.sp.saturating_sub(PUSHED)..double.told.sp).contains(&addr) => {
            format!("page fault at {addr:#x}, the stack below {:#x}", double.told.sp)
        }
        _ => format!("page fault at {addr:#x}"),
    }
}
