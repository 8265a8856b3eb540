//! The last system calls and the last events, a call and its return on one row.

use std::collections::{HashMap, VecDeque};

use kwab_format::record::{
    Cause, CrashReport, FlightEvent, Frame, Htrace, HugePageVerifyFail, Identity, PageVerifyFail, SyscallEntry,
    SyscallExit, SyscallRecord, Text, UnimplementedSyscall,
};
use kwab_format::{AnyRecord, RawRecord, RecordKind, RecordType, Records, SectionKind};

use super::EventRow;
use super::pointed::RecordedCall;
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
                let (text, cpu, pid) = (format!("{text} = {value}"), call.cpu, report.pid);
                let recorded = RecordedCall { nr: call.nr, name: call.name.map(<[u8]>::to_vec), args };
                let call = Some(Box::new(recorded));
                EventRow { line: None, ns: None, cpu, pid, text, at: None, took_ns: None, call }
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
        let rows = ring.into_iter().map(|call| {
            let (nr, name, args) = (call.nr, call.name.map(<[u8]>::to_vec), call.args());
            let told = call.texts().iter().any(Option::is_some);
            let call = AnyRecord::SyscallRecord(call);
            EventRow { call: (!told).then(|| Box::new(RecordedCall { nr, name, args })), ..row(&call, None) }
        });
        return rows.collect();
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
    let mut found: Vec<(u64, At)> = Vec::new();
    for (index, section) in (0..).zip(&dump.loaded) {
        if !matches!(section.kind, SectionKind::EVENTS | SectionKind::FLIGHT) {
            continue;
        }
        for (raw, at) in located(index, section) {
            if matches!(raw.kind, Htrace::KIND | FlightEvent::KIND)
                && let Ok(record) = raw.decode()
            {
                let stamp = record.stamp();
                found.push((stamp.tsc.or(stamp.ns).unwrap_or(u64::MAX), at));
            }
        }
    }
    found.sort_by_key(|(clock, _)| *clock);
    let skip = found.len().saturating_sub(rows);
    let shown = found.get(skip..).unwrap_or_default();
    let base = shown.first().map_or(0, |(clock, _)| *clock);
    let timed = shown.iter().filter_map(|(clock, at)| {
        let raw = record_at(dump, *at)?;
        let mut row = EventRow { at: Some(*at), ..row(&raw.decode().ok()?, Some(raw)) };
        if let (None, Some(hz)) = (row.ns, hz)
            && *clock != u64::MAX
        {
            row.ns = u64::try_from(u128::from(clock - base) * 1_000_000_000 / u128::from(hz)).ok();
        }
        Some(row)
    });
    timed.collect()
}

/// Index of a loaded section, and where a record begins in its payload.
type At = (u32, u32);

/// The records of a section with their positions, as far as 32 bits hold them.
fn located(index: u32, section: &LoadedSection) -> impl Iterator<Item = (RawRecord<'_>, At)> {
    let (mut records, length) = (Records::new(&section.payload), section.payload.len());
    std::iter::from_fn(move || {
        let offset = u32::try_from(length - records.rest().len()).ok()?;
        Some((records.next()?, (index, offset)))
    })
}

/// The record at a position.
fn record_at(dump: &Dump, (section, offset): At) -> Option<RawRecord<'_>> {
    Records::new(dump.loaded.get(section as usize)?.payload.get(offset as usize..)?).next()
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
fn paired(
    dump: &Dump,
    rows: usize,
    telling: impl Fn(RecordKind) -> bool,
    wanted: impl Fn(&AnyRecord<'_>) -> bool,
) -> Vec<EventRow> {
    let need = rows.saturating_mul(LOOKED_AT).saturating_add(64);
    let mut found: Vec<(u64, At)> = Vec::new();
    let mut take = |(index, section): (u32, &LoadedSection)| {
        let before = found.len();
        let mut line = 0;
        for (raw, at) in located(index, section).filter(|(raw, _)| telling(raw.kind)) {
            let Ok(record) = raw.decode() else { continue };
            line = record.stamp().line.unwrap_or(line);
            if wanted(&record) {
                found.push((line, at));
            }
        }
        found.len() - before
    };
    let sections = || (0..).zip(&dump.loaded);
    let rare = |kind| matches!(kind, SectionKind::CAUSE | SectionKind::SYSCALLS | SectionKind::PAGE_CHECKS);
    for section in sections().filter(|(_, section)| rare(section.kind)) {
        take(section);
    }
    let mut events = 0;
    let all: Vec<_> = sections().filter(|(_, section)| section.kind == SectionKind::EVENTS).collect();
    for section in all.into_iter().rev() {
        events += take(section);
        if events >= need {
            break;
        }
    }
    found.sort_by_key(|(line, _)| *line);
    found.drain(..found.len().saturating_sub(need));
    let mut rows: Vec<EventRow> = Vec::new();
    let mut open: HashMap<Option<u32>, (usize, SyscallEntry<'_>)> = HashMap::new();
    for (_, at) in found {
        let Some(raw) = record_at(dump, at) else { continue };
        let Ok(record) = raw.decode() else { continue };
        let row = |record: &AnyRecord<'_>| EventRow { at: Some(at), ..row(record, Some(raw)) };
        match record {
            AnyRecord::SyscallEntry(entry) => {
                let text = arguments(&called(&entry, None));
                open.insert(entry.tid.or(entry.pid), (rows.len(), entry));
                rows.push(EventRow { text: format!("{text} = ? (no return seen)"), ..row(&record) });
            }
            AnyRecord::SyscallExit(exit) => {
                let value = exit.result.map_or("?".to_string(), |value| result(exit.nr, value));
                match open.remove(&exit.tid.or(exit.pid)).filter(|(_, entry)| entry.nr == exit.nr) {
                    Some((at, entry)) => {
                        rows[at].text = format!("{} = {value}", arguments(&called(&entry, Some(&exit))));
                        let ends = exit.stamp.ns.zip(entry.stamp.ns);
                        rows[at].took_ns = ends.and_then(|(end, begin)| end.checked_sub(begin));
                    }
                    None => rows.push(row(&record)),
                }
            }
            _ => rows.push(row(&record)),
        }
    }
    rows
}

/// The call that an entry tells of, with what its exit names.
fn called<'a>(entry: &SyscallEntry<'a>, exit: Option<&SyscallExit<'a>>) -> Call<'a> {
    let (texts, result) = exit.map_or(([None; 6], None), |exit| (exit.texts(), exit.result));
    Call { nr: entry.nr, name: entry.name, args: entry.args(), texts, result }
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
        at: None,
        took_ns: match record {
            AnyRecord::SyscallRecord(call) => call.duration_ns,
            _ => None,
        },
        call: None,
    }
}
