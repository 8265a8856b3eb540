//! The last system calls and the last events, a call and its return on one row.

use std::collections::{HashMap, VecDeque};

use kwab_format::record::{
    Cause, CrashReport, FlightEvent, Frame, Htrace, HugePageVerifyFail, Identity, PageVerifyFail, SyscallEntry,
    SyscallExit, SyscallRecord, Text, UnimplementedSyscall,
};
use kwab_format::{AnyRecord, RawRecord, RecordKind, RecordType, Records, SectionKind};

use super::EventRow;
use crate::model::call::{Call, arguments, result};
use crate::model::{Dump, LoadedSection, line};

/// Whose calls the list of system calls shows: of the process that died when one did, else of the one that was running
/// if the dump has calls of it, else of all.
struct Caller {
    /// The program that died.
    died: Option<u32>,
    /// The process whose recorded calls are shown; absent for all.
    shown: Option<u32>,
}

impl Caller {
    fn of(dump: &Dump) -> Self {
        let cause = dump.records::<Cause<'_>>().next();
        let running = cause.as_ref().and_then(|cause| cause.pid);
        let running = running.filter(|pid| dump.records::<SyscallRecord<'_>>().any(|call| call.pid == Some(*pid)));
        let died = cause.filter(|cause| cause.in_kernel != Some(true)).and_then(|cause| cause.pid);
        Self { died, shown: died.or(running) }
    }
}

/// The last system calls.
pub(super) fn syscalls(dump: &Dump, rows: usize) -> Vec<EventRow> {
    let Caller { died: pid, shown: own } = Caller::of(dump);
    if let Some(report) = dump.records::<CrashReport<'_>>().find(|report| pid.is_none() || report.pid == pid) {
        let count = report.syscalls.map_or(0, |calls| calls.len());
        if count > 0 {
            let calls = report.syscalls.iter().flat_map(kwab_format::List::iter);
            let shown = calls.skip(count.saturating_sub(rows)).map(|call| {
                let args = [call.arg0, call.arg1, call.arg2, call.arg3, call.arg4, call.arg5];
                let text = arguments(&Call { nr: call.nr, name: call.name, args, ..Call::default() });
                let value = call.result.map_or("?".to_string(), |value| result(call.nr, value));
                EventRow { line: None, ns: None, cpu: call.cpu, pid: report.pid, text: format!("{text} = {value}") }
            });
            return shown.collect();
        }
    }
    let mut ring: VecDeque<SyscallRecord<'_>> = VecDeque::new();
    for call in dump.records::<SyscallRecord<'_>>().filter(|call| own.is_none() || call.pid == own) {
        if ring.len() == rows {
            ring.pop_front();
        }
        ring.push_back(call);
    }
    if !ring.is_empty() {
        return ring.into_iter().map(|call| row(&AnyRecord::SyscallRecord(call), None)).collect();
    }
    let telling = |kind| matches!(kind, SyscallEntry::KIND | SyscallExit::KIND | UnimplementedSyscall::KIND);
    let wanted = |record: &AnyRecord<'_>| pid.is_none() || line::pid(record) == pid;
    tail(paired(dump, rows, telling, wanted), rows)
}

/// The last events until the death, but for calls that [`syscalls`] shows; checks that found nothing wrong and
/// recorders that lost nothing are left out.
pub(super) fn timeline(dump: &Dump, rows: usize) -> Vec<EventRow> {
    let shown = Caller::of(dump).shown;
    let death = dump.records::<Cause<'_>>().next().and_then(|cause| cause.stamp.line);
    let telling = |kind| {
        !matches!(kind, Htrace::KIND | FlightEvent::KIND | Text::KIND | Frame::KIND | Cause::KIND | Identity::KIND)
    };
    let wanted = |record: &AnyRecord<'_>| {
        let quiet = match record {
            AnyRecord::CanaryCheck(check) => check.corrupted != Some(true),
            AnyRecord::Drops(drops) => drops.overwritten.unwrap_or(0) == 0 && drops.dropped.unwrap_or(0) == 0,
            AnyRecord::SyscallRecord(call) => shown.is_none() || call.pid == shown,
            _ => false,
        };
        // What follows within a few lines belongs to the death.
        !quiet && death.is_none_or(|death| record.stamp().line.is_none_or(|line| line <= death + 8))
    };
    tail(paired(dump, rows, telling, wanted), rows)
}

/// The flight recorder and the function trace by their clock.
pub(super) fn trace(dump: &Dump, rows: usize) -> Vec<EventRow> {
    let hz = dump.identity().and_then(|identity| identity.tsc_hz).filter(|hz| *hz > 0);
    let mut found: Vec<(u64, RawRecord<'_>)> = Vec::new();
    for section in
        dump.loaded.iter().filter(|section| matches!(section.kind, SectionKind::EVENTS | SectionKind::FLIGHT))
    {
        for raw in Records::new(&section.payload).filter(|raw| matches!(raw.kind, Htrace::KIND | FlightEvent::KIND)) {
            if let Ok(record) = raw.decode() {
                let stamp = record.stamp();
                found.push((stamp.tsc.or(stamp.ns).unwrap_or(u64::MAX), raw));
            }
        }
    }
    found.sort_by_key(|(clock, _)| *clock);
    let skip = found.len().saturating_sub(rows);
    let shown = found.get(skip..).unwrap_or_default();
    let base = shown.first().map_or(0, |(clock, _)| *clock);
    let timed = shown.iter().filter_map(|(clock, raw)| {
        let mut row = row(&raw.decode().ok()?, Some(*raw));
        if let (None, Some(hz)) = (row.ns, hz)
            && *clock != u64::MAX
        {
            row.ns = u64::try_from(u128::from(clock - base) * 1_000_000_000 / u128::from(hz)).ok();
        }
        Some(row)
    });
    timed.collect()
}

/// Pages whose contents are not what their files say.
pub(super) fn page_checks(dump: &Dump) -> Vec<EventRow> {
    let small = dump.records::<PageVerifyFail<'_>>().map(AnyRecord::PageVerifyFail);
    let huge = dump.records::<HugePageVerifyFail<'_>>().map(AnyRecord::HugePageVerifyFail);
    small.chain(huge).take(32).map(|record| row(&record, None)).collect()
}

/// Rows that are looked at for each row that is shown: a call and its return are two events and one row.
const LOOKED_AT: usize = 4;

/// Wanted events in the order of the log, each return on the row of its call. Only the last events are looked at,
/// enough for `rows` rows: a recording may hold millions.
fn paired<'d>(
    dump: &'d Dump,
    rows: usize,
    telling: impl Fn(RecordKind) -> bool,
    wanted: impl Fn(&AnyRecord<'_>) -> bool,
) -> Vec<EventRow> {
    let need = rows.saturating_mul(LOOKED_AT).saturating_add(64);
    let mut found: Vec<(u64, RawRecord<'d>)> = Vec::new();
    let mut take = |section: &'d LoadedSection| {
        let before = found.len();
        let mut line = 0;
        for raw in Records::new(&section.payload).filter(|raw| telling(raw.kind)) {
            let Ok(record) = raw.decode() else { continue };
            line = record.stamp().line.unwrap_or(line);
            if wanted(&record) {
                found.push((line, raw));
            }
        }
        found.len() - before
    };
    let rare = |kind| matches!(kind, SectionKind::CAUSE | SectionKind::SYSCALLS | SectionKind::PAGE_CHECKS);
    for section in dump.loaded.iter().filter(|section| rare(section.kind)) {
        take(section);
    }
    let mut events = 0;
    for section in dump.loaded.iter().rev().filter(|section| section.kind == SectionKind::EVENTS) {
        events += take(section);
        if events >= need {
            break;
        }
    }
    found.sort_by_key(|(line, _)| *line);
    found.drain(..found.len().saturating_sub(need));
    let mut rows: Vec<EventRow> = Vec::new();
    let mut open: HashMap<Option<u32>, (usize, SyscallEntry<'_>)> = HashMap::new();
    for (_, raw) in found {
        let Ok(record) = raw.decode() else { continue };
        match record {
            AnyRecord::SyscallEntry(entry) => {
                let text = arguments(&called(&entry, [None; 6]));
                open.insert(entry.tid.or(entry.pid), (rows.len(), entry));
                rows.push(EventRow { text: format!("{text} = ? (no return seen)"), ..row(&record, Some(raw)) });
            }
            AnyRecord::SyscallExit(exit) => {
                let value = exit.result.map_or("?".to_string(), |value| result(exit.nr, value));
                match open.remove(&exit.tid.or(exit.pid)).filter(|(_, entry)| entry.nr == exit.nr) {
                    Some((at, entry)) => {
                        rows[at].text = format!("{} = {value}", arguments(&called(&entry, exit.texts())));
                    }
                    None => rows.push(row(&record, Some(raw))),
                }
            }
            _ => rows.push(row(&record, Some(raw))),
        }
    }
    rows
}

/// The call that an entry tells of, with the strings that its exit names.
fn called<'a>(entry: &SyscallEntry<'a>, texts: [Option<(&'a [u8], bool)>; 6]) -> Call<'a> {
    Call { nr: entry.nr, name: entry.name, args: entry.args(), texts }
}

fn tail(mut rows: Vec<EventRow>, count: usize) -> Vec<EventRow> {
    rows.drain(..rows.len().saturating_sub(count));
    rows
}

fn row(record: &AnyRecord<'_>, raw: Option<RawRecord<'_>>) -> EventRow {
    let stamp = record.stamp();
    let raw = raw.unwrap_or(RawRecord { kind: record.kind(), body: &[] });
    EventRow {
        line: stamp.line,
        ns: stamp.ns,
        cpu: stamp.cpu,
        pid: line::pid(record),
        text: line::summary(record, raw),
    }
}
