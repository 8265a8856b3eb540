//! Decides which records of a dump stay in memory, and stops where the dump's budget ends.
//!
//! Sections come one by one. What no rule looks at is dropped with its section; of system calls, returns and page
//! faults the rules want the last of the dead process, which may not be known yet, so the last few of every process are
//! kept. Each record is charged with its bytes and with what it takes when it is decoded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kwab_format::record::*;
use kwab_format::{Defect, Fields as _, RawRecord, RecordKind, RecordType as _, Records, SectionKind};

use super::case::decoded_size;
use super::file::DumpFile;
use super::memory::{Budget, Payload, not_read};
use super::record_ref::{Located, RecordRef};
use super::section_info::SectionInfo;

/// Calls, returns and faults of a process that are kept: more than any rule quotes.
const LAST: usize = 8;
/// Lines of the log that stay, and bytes of a record that holds one.
const LAST_LINES: usize = 32;
const LOG_LINE: usize = 1024;
/// What remembering one of them costs beyond its bytes.
const REMEMBERED: usize = 160;
/// What a report takes of a record while it sorts: a reference to it.
const REPORTED: u64 = 64;
/// What the analyses derive from a decoded record: an entry of an index, a row of a list.
const DERIVED: usize = 64;
/// What a failed check of a page becomes: a row with its texts.
const WRONG_PAGE: usize = 512;

/// A record of a kind of which only the last are kept.
struct Recent {
    section: u32,
    kind: SectionKind,
    record: u32,
    body: Vec<u8>,
}

/// The records of one section that were loaded.
#[derive(Debug)]
pub struct LoadedSection {
    /// Sequence number of the section in the dump.
    pub number: u32,
    /// Kind of the section.
    pub kind: SectionKind,
    /// The records, in their order.
    pub payload: Payload,
    /// The number in its section of each record; `None` when they are the section's first ones, without a gap.
    pub numbers: Option<Vec<u32>>,
}

impl LoadedSection {
    /// The records with their positions.
    pub(super) fn located(&self) -> impl Iterator<Item = Located<RawRecord<'_>>> {
        let numbers = self.numbers.as_deref();
        Records::new(&self.payload).zip(0_u32..).map(move |(raw, index)| {
            let record = numbers.map_or(index, |known| known.get(index as usize).copied().unwrap_or(index));
            Located { at: RecordRef { section: self.number, kind: self.kind, record }, record: raw }
        })
    }
}

/// Chooses the records of a [`Dump`](super::Dump), section by section.
pub(super) struct Keeper {
    budget: Arc<Budget>,
    /// Whether only the records stay that the rules of triage look at.
    for_rules: bool,
    /// What is left of the half of the budget that analyses get when a report is made of the records too; `None` when
    /// the records are only analysed, which may then take the whole budget.
    reserve: Option<u64>,
    recent: BTreeMap<(RecordKind, Option<u32>), VecDeque<Recent>>,
    /// Returns of system calls that were read and not kept.
    returns_dropped: usize,
}

/// What becomes of a record.
enum Fate {
    Kept,
    Dropped,
    Recent(Option<u32>),
}

impl Keeper {
    pub(super) fn new(budget: &Arc<Budget>, for_rules: bool, reserve: Option<u64>) -> Self {
        Self { budget: Arc::clone(budget), for_rules, reserve, recent: BTreeMap::new(), returns_dropped: 0 }
    }

    /// What is left of the reserve, for the next one who loads sections of the same dump.
    pub(super) const fn reserve(&self) -> Option<u64> {
        self.reserve
    }

    /// Reads section `index` and notes in the file whether it is sound and where the budget ended. `None` when nothing
    /// of it is kept.
    pub(super) fn load(&mut self, file: &mut DumpFile, index: usize) -> Option<LoadedSection> {
        let payload = file.payload(index);
        file.note(index, payload.as_ref().map(|_| ()).map_err(Clone::clone));
        let info = file.sections[index];
        let (section, defect) = self.choose(&info, payload.ok()?);
        if let Some(defect) = defect {
            file.add_defect(defect);
        }
        section
    }

    /// Takes the records of a section that are needed, and gives the defect that says where the budget ended.
    fn choose(&mut self, info: &SectionInfo, payload: Payload) -> (Option<LoadedSection>, Option<Defect>) {
        let (number, kind) = (info.header.seq, info.header.kind);
        // One section leaves at least half of what is left to those behind it.
        let mut room = self.budget.left().saturating_sub(self.reserve.unwrap_or(0)) / 2;
        let mut later = self.reserve.unwrap_or(0) / 2;
        let mut kept: Vec<u8> = Vec::new();
        let mut numbers: Vec<u32> = Vec::new();
        let mut dropped = false;
        let (mut records, mut end, mut cost) = (0, 0, 0);
        let mut walk = Records::new(&payload);
        while let Some(raw) = walk.next() {
            let fate = self.fate(raw);
            let price = price(raw, &fate);
            let (now, then) = if self.reserve.is_some() { (REPORTED, price) } else { (price, 0) };
            if now > room || then > later {
                break;
            }
            (room, later) = (room - now, later - then);
            cost += now + then;
            self.reserve = self.reserve.map(|left| left.saturating_sub(then));
            match fate {
                Fate::Kept => {
                    if dropped {
                        copy_record(&mut kept, raw);
                    }
                    if self.for_rules {
                        numbers.push(records);
                    }
                }
                Fate::Dropped | Fate::Recent(_) => {
                    if !dropped {
                        // Until now everything was kept, and lies at the front of the payload.
                        kept.extend_from_slice(&payload[..end]);
                        dropped = true;
                    }
                    self.returns_dropped += usize::from(raw.kind == SyscallExit::KIND);
                    if let Fate::Recent(pid) = fate {
                        let body = raw.body.to_vec();
                        self.remember(raw, pid, Recent { section: number, kind, record: records, body });
                    }
                }
            }
            records += 1;
            end = payload.len() - walk.rest().len();
        }
        let left_out = walk_left(&payload, end);
        let _ = self.budget.take(cost);
        let defect = (left_out > 0).then(|| not_read(info, records, left_out as u64));
        (kept_of(number, kind, payload, end, dropped.then_some((kept, numbers))), defect)
    }

    fn fate(&self, raw: RawRecord<'_>) -> Fate {
        if !self.for_rules {
            return Fate::Kept;
        }
        let recent = |pid: Option<Option<u32>>| pid.map_or(Fate::Dropped, Fate::Recent);
        match raw.kind {
            SyscallEntry::KIND => recent(SyscallEntry::decode(raw.body).ok().map(|(call, _)| call.pid)),
            SyscallExit::KIND => recent(SyscallExit::decode(raw.body).ok().map(|(call, _)| call.pid)),
            PageFault::KIND => {
                let fault = PageFault::decode(raw.body).ok().filter(|(fault, _)| fault.resolved == Some(false));
                recent(fault.map(|(fault, _)| fault.pid))
            }
            CanaryCheck::KIND => match CanaryCheck::decode(raw.body) {
                Ok((check, _)) if check.corrupted == Some(true) => Fate::Kept,
                _ => Fate::Dropped,
            },
            // Of a log the last lines: rules look there for what the kernel said before it died.
            LogChunk::KIND if raw.body.len() <= LOG_LINE => Fate::Recent(None),
            ProcessFork::KIND | ProcessExec::KIND | LogChunk::KIND => Fate::Dropped,
            // Says whether the kernel wrote the dump or a log became it.
            Source::KIND => Fate::Kept,
            kind if decoded_size(kind).is_some() => Fate::Kept,
            _ => Fate::Dropped,
        }
    }

    fn remember(&mut self, raw: RawRecord<'_>, pid: Option<u32>, recent: Recent) {
        let last = self.recent.entry((raw.kind, pid)).or_default();
        let most = if raw.kind == LogChunk::KIND { LAST_LINES } else { LAST };
        if last.len() >= most
            && let Some(oldest) = last.pop_front()
        {
            self.budget.give((REMEMBERED + oldest.body.len()) as u64);
        }
        last.push_back(recent);
    }

    /// What was remembered of processes, one entry per section it came from, in the order of the dump; and how many
    /// returns of system calls are in neither that nor the loaded sections.
    pub(super) fn finish(mut self) -> (Vec<LoadedSection>, usize) {
        let mut recent: Vec<(RecordKind, Recent)> = Vec::new();
        for ((kind, _), last) in std::mem::take(&mut self.recent) {
            recent.extend(last.into_iter().map(|one| (kind, one)));
        }
        recent.sort_by_key(|(_, one)| (one.section, one.record));
        self.returns_dropped -= recent.iter().filter(|(kind, _)| *kind == SyscallExit::KIND).count();
        let mut sections = Vec::new();
        for of_section in recent.chunk_by(|(_, a), (_, b)| a.section == b.section) {
            let Some((_, first)) = of_section.first() else { continue };
            let mut bytes = Vec::new();
            for (kind, one) in of_section {
                copy_record(&mut bytes, RawRecord { kind: *kind, body: &one.body });
            }
            let numbers = Some(of_section.iter().map(|(_, one)| one.record).collect());
            let mut payload = Payload::default();
            payload.replace(bytes);
            sections.push(LoadedSection { number: first.section, kind: first.kind, payload, numbers });
        }
        (sections, self.returns_dropped)
    }
}

/// What stays of a section: its records up to `end`, or the chosen ones with their numbers; `None` when none is chosen.
fn kept_of(
    number: u32,
    kind: SectionKind,
    mut payload: Payload,
    end: usize,
    chosen: Option<(Vec<u8>, Vec<u32>)>,
) -> Option<LoadedSection> {
    let numbers = match chosen {
        None => {
            if end < payload.len() {
                payload.truncate(end);
            }
            None
        }
        Some((bytes, _)) if bytes.is_empty() => return None,
        Some((bytes, numbers)) => {
            payload.replace(bytes);
            Some(numbers)
        }
    };
    Some(LoadedSection { number, kind, payload, numbers })
}

/// Bytes of whole records behind `end`.
fn walk_left(payload: &[u8], end: usize) -> usize {
    let rest = &payload[end..];
    Records::new(rest).next().map_or(0, |_| rest.len())
}

fn copy_record(out: &mut Vec<u8>, raw: RawRecord<'_>) {
    let [l0, l1, l2, _] = u32::try_from(raw.body.len()).unwrap_or(0).to_le_bytes();
    out.extend_from_slice(&[raw.kind.0, l0, l1, l2]);
    out.extend_from_slice(raw.body);
}

/// What a record takes beyond the payload it lies in.
fn price(raw: RawRecord<'_>, fate: &Fate) -> u64 {
    let bytes = match fate {
        Fate::Dropped => return 0,
        Fate::Recent(_) => return (REMEMBERED + raw.body.len()) as u64,
        // A record that is kept of a section where others are not is copied; its number takes four bytes more.
        Fate::Kept => 8,
    };
    let derived = match raw.kind {
        PageCheck::KIND | PageVerifyFail::KIND | HugePageVerifyFail::KIND => WRONG_PAGE + raw.body.len(),
        Htrace::KIND => 4 * DERIVED,
        Memory::KIND => DERIVED + raw.body.len().min(4096),
        CrashReport::KIND => CrashReport::decode(raw.body).map_or(0, |(report, _)| {
            let vmas = report.vmas.map_or(0, |list| list.len()) * size_of::<Located<Vma<'_>>>();
            let calls = report.syscalls.map_or(0, |list| list.len()) * size_of::<Located<SyscallRecord<'_>>>();
            DERIVED + vmas + calls
        }),
        _ => DERIVED,
    };
    (bytes + derived + decoded_size(raw.kind).unwrap_or(0)) as u64
}
