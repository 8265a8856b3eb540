//! Where every event of a dump stands and when it happened: 32 bytes each, so that millions can be scrolled and
//! searched.
//!
//! An index is built in one pass over the sections with events; the records themselves stay in the file and are read
//! through [`Payloads`] when a row of them is shown. Events are ordered by the best clock that nearly all of them have:
//! nanoseconds, lines of the log, ticks, or their order in the dump. A call and its return, and a fault that was not
//! resolved and the signal it became, know each other.

use std::collections::HashMap;
use std::ops::ControlFlow;

use kwab_format::record::{Cause, CrashReport, Identity, Panic, SyscallEntry, SyscallExit};
use kwab_format::{AnyRecord, Fields as _, RawRecord, RecordKind, RecordType, Records, SectionKind};

use super::memory::Budget;
use super::payloads::Payloads;
use super::{DumpFile, line};

/// An event's position and what can be told of it without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its time, in the unit of the index's [`Clock`].
    pub order: u64,
    /// Index of its section in [`DumpFile::sections`].
    pub section: u32,
    /// Where its record begins in the section's payload.
    pub offset: u32,
    /// Process, or [`Event::NO_PROCESS`].
    pub pid: u32,
    /// The event that ends or begins it, or [`Event::ALONE`].
    pub pair: u32,
    /// Number of the system call, or [`Event::NO_CALL`].
    pub nr: u16,
    /// Kind of record.
    pub kind: RecordKind,
    /// Processor, or [`Event::ANYWHERE`].
    pub cpu: u8,
    /// Whether it tells of something that went wrong.
    pub mood: Mood,
}

/// How an event went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mood {
    /// An event that is nothing special.
    Quiet,
    /// A call or a fault that failed, a signal.
    Failed,
    /// A cause record, a crash report or a panic.
    Death,
}

impl Event {
    /// No process is named.
    pub const NO_PROCESS: u32 = u32::MAX;
    /// No other event belongs to it.
    pub const ALONE: u32 = u32::MAX;
    /// It is not a system call.
    pub const NO_CALL: u16 = u16::MAX;
    /// No processor is named.
    pub const ANYWHERE: u8 = u8::MAX;
}

/// What orders the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Nanoseconds since boot.
    Nanoseconds,
    /// Ticks of a counter; hertz when the dump says.
    Ticks(Option<u64>),
    /// Lines of the imported log.
    Lines,
    /// Their order in the dump.
    Ordinal,
}

impl Clock {
    /// A span of this clock in nanoseconds, when it measures time.
    #[must_use]
    pub fn nanoseconds(self, span: u64) -> Option<u64> {
        match self {
            Self::Nanoseconds => Some(span),
            Self::Ticks(Some(hz)) if hz > 0 => u64::try_from(u128::from(span) * 1_000_000_000 / u128::from(hz)).ok(),
            _ => None,
        }
    }
}

/// All events of a dump.
#[derive(Debug, Clone)]
pub struct EventIndex {
    /// What orders them.
    pub clock: Clock,
    /// The events, earliest first.
    pub events: Vec<Event>,
    /// Processors that are named, ascending.
    pub cpus: Vec<u8>,
    /// Sections that could not be read.
    pub lost: usize,
    /// Events that the dump's memory limit left no room for.
    pub left_out: usize,
}

/// What an event takes of the dump's budget: its position, and room to grow and to sort.
const PRICE: u64 = 3 * size_of::<Event>() as u64;

/// Sections that hold events.
const SECTIONS: &[SectionKind] = &[SectionKind::EVENTS, SectionKind::FLIGHT, SectionKind::SYSCALLS, SectionKind::CAUSE];

impl EventIndex {
    /// Reads all sections with events, as many as the dump's budget has room for. `progress` is told the sections done
    /// and all; breaking off gives `None`.
    pub fn build(payloads: &Payloads, progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Option<Self> {
        let file = payloads.file();
        let wanted: Vec<usize> =
            (0..file.sections.len()).filter(|index| SECTIONS.contains(&file.sections[*index].header.kind)).collect();
        let clock = choose_clock(file, &wanted);
        let mut index = Self { clock, events: Vec::new(), cpus: Vec::new(), lost: 0, left_out: 0 };
        for (done, section) in wanted.iter().enumerate() {
            if progress(done, wanted.len()).is_break() {
                return None;
            }
            match file.payload(*section) {
                Ok(payload) => index.add(*section, &payload, &file.budget),
                Err(_) => index.lost += 1,
            }
        }
        index.events.shrink_to_fit();
        index.events.sort_by_key(|event| event.order);
        index.pair();
        let mut seen = [false; 256];
        index.events.iter().for_each(|event| seen[usize::from(event.cpu)] = true);
        index.cpus = (0..Event::ANYWHERE).filter(|cpu| seen[usize::from(*cpu)]).collect();
        Some(index)
    }

    fn add(&mut self, section: usize, payload: &[u8], budget: &Budget) {
        let mut records = Records::new(payload);
        let mut at = 0;
        let mut order =
            self.events.last().map_or(0, |last| last.order).saturating_mul(u64::from(self.clock.continues()));
        while let Some(raw) = records.next() {
            let offset = at;
            at = payload.len() - records.rest().len();
            if !is_event(raw.kind) {
                continue;
            }
            let Ok(record) = raw.decode() else { continue };
            if !budget.take(PRICE) {
                self.left_out += 1;
                continue;
            }
            // An event without the clock belongs to the one before it.
            order = self.clock.of(&record).unwrap_or(order.saturating_add(u64::from(self.clock == Clock::Ordinal)));
            self.events.push(event(&record, raw, order, section, offset));
        }
    }

    /// Connects calls with their returns, and faults that were not resolved with the signal of the same process.
    fn pair(&mut self) {
        let mut calls: HashMap<u32, usize> = HashMap::new();
        let mut faults: HashMap<u32, usize> = HashMap::new();
        for at in 0..self.events.len() {
            let event = self.events[at];
            let opened = match event.kind {
                SyscallEntry::KIND => {
                    calls.insert(event.pid, at);
                    None
                }
                SyscallExit::KIND => calls.remove(&event.pid).filter(|open| self.events[*open].nr == event.nr),
                kwab_format::record::PageFault::KIND if event.mood == Mood::Failed => {
                    faults.insert(event.pid, at);
                    None
                }
                kwab_format::record::Signal::KIND => faults.remove(&event.pid),
                _ => None,
            };
            if let Some(open) = opened {
                self.events[open].pair = u32::try_from(at).unwrap_or(Event::ALONE);
                self.events[at].pair = u32::try_from(open).unwrap_or(Event::ALONE);
                if event.mood == Mood::Failed && event.kind == SyscallExit::KIND {
                    self.events[open].mood = Mood::Failed;
                }
            }
        }
    }

    /// The event at a position of the dump: section (by its number there) and record in it.
    #[must_use]
    pub fn at(&self, payloads: &Payloads, number: u32, record: u32) -> Option<usize> {
        let section = payloads.file().sections.iter().position(|info| info.header.seq == number)?;
        let payload = payloads.get(section).ok()?;
        let mut records = Records::new(&payload);
        for _ in 0..record {
            records.next()?;
        }
        let offset = payload.len() - records.rest().len();
        let here = |event: &Event| event.section as usize == section && event.offset as usize == offset;
        self.events.iter().position(here)
    }
}

impl Clock {
    fn of(self, record: &AnyRecord<'_>) -> Option<u64> {
        let stamp = record.stamp();
        match self {
            Self::Nanoseconds => stamp.ns,
            Self::Ticks(_) => stamp.tsc,
            Self::Lines => stamp.line,
            Self::Ordinal => None,
        }
    }

    /// Whether a section goes on where the one before it ended.
    fn continues(self) -> bool {
        matches!(self, Self::Lines | Self::Ordinal)
    }
}

/// Looks at the first events of every section: the clock that nine in ten of them have.
fn choose_clock(file: &DumpFile, wanted: &[usize]) -> Clock {
    const LOOKED_AT: usize = 64;
    const SECTIONS_LOOKED_AT: usize = 32;
    let (mut all, mut ns, mut lines, mut ticks) = (0, 0, 0, 0);
    let step = wanted.len().div_ceil(SECTIONS_LOOKED_AT).max(1);
    for section in wanted.iter().step_by(step) {
        let Ok(payload) = file.payload(*section) else { continue };
        for raw in Records::new(&payload).filter(|raw| is_event(raw.kind)).take(LOOKED_AT) {
            let Ok(record) = raw.decode() else { continue };
            let stamp = record.stamp();
            all += 1;
            ns += usize::from(stamp.ns.is_some());
            lines += usize::from(stamp.line.is_some());
            ticks += usize::from(stamp.tsc.is_some());
        }
    }
    let nearly_all = |count: usize| all > 0 && count * 10 >= all * 9;
    match () {
        () if nearly_all(ns) => Clock::Nanoseconds,
        () if nearly_all(lines) => Clock::Lines,
        () if nearly_all(ticks) => Clock::Ticks(hertz(file)),
        () => Clock::Ordinal,
    }
}

fn hertz(file: &DumpFile) -> Option<u64> {
    let identity = file.sections.iter().position(|section| section.header.kind == SectionKind::IDENTITY)?;
    let payload = file.payload(identity).ok()?;
    let mut records = Records::new(&payload).filter(|raw| raw.kind == Identity::KIND);
    records.find_map(|raw| Identity::decode(raw.body).ok()?.0.tsc_hz)
}

/// Kinds that happened at a moment: events 10 to 38 without the summaries among them, and the cause.
fn is_event(kind: RecordKind) -> bool {
    let summary = matches!(kind.0, 27..=29 | 31);
    kind == Cause::KIND || ((10..=38).contains(&kind.0) && !summary)
}

fn event(record: &AnyRecord<'_>, raw: RawRecord<'_>, order: u64, section: usize, offset: usize) -> Event {
    let nr = match record {
        AnyRecord::SyscallEntry(call) => call.nr,
        AnyRecord::SyscallExit(call) => call.nr,
        AnyRecord::SyscallRecord(call) => call.nr,
        AnyRecord::UnimplementedSyscall(call) => call.nr,
        _ => None,
    };
    Event {
        order,
        section: u32::try_from(section).unwrap_or(u32::MAX),
        offset: u32::try_from(offset).unwrap_or(u32::MAX),
        pid: line::pid(record).unwrap_or(Event::NO_PROCESS),
        pair: Event::ALONE,
        nr: nr.and_then(|nr| u16::try_from(nr).ok()).unwrap_or(Event::NO_CALL),
        kind: raw.kind,
        cpu: record.stamp().cpu.and_then(|cpu| u8::try_from(cpu).ok()).unwrap_or(Event::ANYWHERE),
        mood: mood(record),
    }
}

fn mood(record: &AnyRecord<'_>) -> Mood {
    // Results of -4095 to -1 are error numbers.
    let errs = |result: Option<i64>| result.is_some_and(|result| (-4095..0).contains(&result));
    let failed = match record {
        AnyRecord::SyscallExit(exit) => errs(exit.result),
        AnyRecord::SyscallRecord(call) => errs(call.result),
        AnyRecord::PageFault(fault) => fault.resolved == Some(false),
        AnyRecord::CanaryCheck(check) => check.corrupted == Some(true),
        AnyRecord::UnimplementedSyscall(_)
        | AnyRecord::UserFault(_)
        | AnyRecord::UsercopyFault(_)
        | AnyRecord::Signal(_)
        | AnyRecord::PageVerifyFail(_)
        | AnyRecord::HugePageVerifyFail(_) => true,
        AnyRecord::ProcessExit(exit) => exit.by_signal == Some(true),
        _ => false,
    };
    match record.kind() {
        Cause::KIND | CrashReport::KIND | Panic::KIND => Mood::Death,
        _ if failed => Mood::Failed,
        _ => Mood::Quiet,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kwab_format::record::{Signal, Stamp};
    use kwab_format::{BootId, DumpId, FileHeader};

    use super::*;
    use crate::model::emit::DumpWriter;

    fn payloads(clock: impl Fn(u64) -> Stamp<'static>) -> Payloads {
        let mut writer = DumpWriter::new(Vec::new(), FileHeader::new(DumpId(7), BootId([1; 16])));
        for number in 0..10 {
            let stamp = clock(number);
            let entry = SyscallEntry { pid: Some(3), nr: Some(2), stamp, ..SyscallEntry::default() };
            let exit = SyscallExit { pid: Some(3), nr: Some(2), result: Some(-2), stamp, ..SyscallExit::default() };
            writer.put(SectionKind::EVENTS, &entry);
            writer.put(SectionKind::EVENTS, &exit);
        }
        let fault = kwab_format::record::PageFault {
            pid: Some(3),
            resolved: Some(false),
            stamp: clock(10),
            ..Default::default()
        };
        writer.put(SectionKind::EVENTS, &fault);
        writer.put(SectionKind::EVENTS, &Signal { pid: Some(3), stamp: clock(11), ..Signal::default() });
        let bytes = writer.finish().unwrap();
        Payloads::new(Arc::new(DumpFile::from_bytes(bytes).unwrap()))
    }

    #[test]
    fn calls_know_their_returns_and_a_fault_its_signal() {
        let payloads = payloads(|number| Stamp { ns: Some(100 * number), cpu: Some(1), ..Stamp::default() });
        let index = EventIndex::build(&payloads, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!((index.clock, index.events.len(), index.cpus.as_slice()), (Clock::Nanoseconds, 22, &[1][..]));
        assert_eq!((index.events[0].pair, index.events[1].pair), (1, 0));
        assert_eq!(index.events[0].mood, Mood::Failed, "the call failed by its return");
        assert_eq!((index.events[20].pair, index.events[21].pair), (21, 20));
        let number = payloads.file().sections[0].header.seq;
        assert_eq!(index.at(&payloads, number, 5), Some(5));
    }

    #[test]
    fn events_are_charged_and_those_without_room_are_counted() {
        let payloads = payloads(|number| Stamp { ns: Some(number), ..Stamp::default() });
        let budget = &payloads.file().budget;
        // The payload takes some of the room while it is read.
        let length = payloads.file().payload(0).unwrap().len() as u64;
        assert!(budget.take(budget.left() - length - 5 * PRICE));
        let index = EventIndex::build(&payloads, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!((index.events.len(), index.left_out, index.lost), (5, 17, 0));
        assert_eq!(budget.left(), length);
    }

    #[test]
    fn a_log_without_clocks_is_ordered_by_its_lines_and_a_dump_without_either_by_itself() {
        let by_line = payloads(|number| Stamp { line: Some(100 - number), ..Stamp::default() });
        let index = EventIndex::build(&by_line, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(index.clock, Clock::Lines);
        assert!(index.events.is_sorted_by_key(|event| event.order));
        let by_position = payloads(|_| Stamp::default());
        let index = EventIndex::build(&by_position, &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(index.clock, Clock::Ordinal);
        assert!(index.events.windows(2).all(|pair| pair[0].order < pair[1].order));
        assert!(EventIndex::build(&by_position, &mut |_, _| ControlFlow::Break(())).is_none());
    }
}
