//! The records of a dump for the analyses: sound ones by kind, each with its place, and what damage took away.
//!
//! A record that is here passed its section's checksum. What is *not* here may have been lost; [`Case::weakness`] says
//! whether that is possible for the kinds of section a conclusion rests on.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::OnceLock;

use kwab_format::record::*;
use kwab_format::{
    AnyRecord, Defect, DefectKind, Fields as _, RawRecord, RecordKind, RecordType, Records, SectionKind,
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

use crate::intervals::{ByProcess, IntervalMap};
use crate::model::memory::Payload;

/// The records of a dump that were asked for, in memory.
#[derive(Debug)]
pub struct Dump {
    pub(super) sections: Vec<Part>,
    /// Records of each kind in them, so that nothing grows while it is filled.
    pub(super) counts: BTreeMap<RecordKind, usize>,
    /// Returns of system calls in the dump, also those that were not kept.
    pub(super) returns: usize,
    pub(super) defects: Vec<Defect>,
    /// Sound sections by kind.
    pub(super) present: BTreeMap<SectionKind, u32>,
    /// Whether the dump has its end, for dumps whose end section is not among the parts.
    pub(super) ended: bool,
}

/// Records of one section.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) kind: SectionKind,
    pub(super) payload: Payload,
    /// The number in its section of each record; `None` when all of the section's records are here.
    pub(super) numbers: Option<Vec<u32>>,
}

/// Which records of a dump are kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// All.
    Everything,
    /// Those that the rules of triage, audit and page verification look at; of system calls and page faults of each
    /// process the last few.
    Rules,
}

/// Where a record stands: which section and which record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordRef {
    /// Sequence number of the section.
    pub section: u32,
    /// Kind of the section.
    pub kind: SectionKind,
    /// Number of the record in it, from 0.
    pub record: u32,
}

impl fmt::Display for RecordRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.name() {
            Some(name) => write!(f, "{name}[{}].{}", self.section, self.record),
            None => write!(f, "kind {}[{}].{}", self.kind.0, self.section, self.record),
        }
    }
}

impl Serialize for RecordRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for RecordRef {
    fn schema_name() -> Cow<'static, str> {
        "RecordRef".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// A record and where it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found<T> {
    /// Its place.
    pub at: RecordRef,
    /// What it says.
    pub record: T,
}

impl<T> Deref for Found<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.record
    }
}

impl Dump {
    /// Every record that can be decoded, in the order of the dump.
    pub fn records(&self) -> impl Iterator<Item = Found<AnyRecord<'_>>> {
        self.raw_records().filter_map(|found| Some(Found { at: found.at, record: found.record.decode().ok()? }))
    }

    /// Every record, in the order of the dump.
    fn raw_records(&self) -> impl Iterator<Item = Found<RawRecord<'_>>> {
        self.sections.iter().flat_map(|part| {
            let numbered = part.numbers.as_deref();
            Records::new(&part.payload).zip(0_u32..).map(move |(raw, place)| {
                let record = numbered.map_or(place, |known| known.get(place as usize).copied().unwrap_or(place));
                Found { at: RecordRef { section: part.number, kind: part.kind, record }, record: raw }
            })
        })
    }

    /// What is wrong with it.
    #[must_use]
    pub fn defects(&self) -> &[Defect] {
        &self.defects
    }

    /// The records by kind.
    #[must_use]
    pub fn case(&self) -> Case<'_> {
        let mut case = Case { losses: BTreeMap::new(), cut: true, unknown_losses: 0, ..Case::default() };
        case.reserve(&self.counts);
        case.returns = self.returns;
        for found in self.raw_records() {
            case.take(found);
        }
        case.spread_reports();
        case.count_losses(self);
        case
    }
}

/// Records of a kind that recordings are full of: where each lies, decoded when a rule looks at it.
///
/// A decoded record is many times as long as its bytes, and rules look at a few of thousands.
#[derive(Debug)]
pub struct Lazy<'a, T> {
    found: Vec<Found<&'a [u8]>>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Default for Lazy<'_, T> {
    fn default() -> Self {
        Self { found: Vec::new(), kind: PhantomData }
    }
}

impl<'a, T: RecordType<'a>> Lazy<'a, T> {
    /// Those that can be decoded, in the order of the dump.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Found<T>> + '_ {
        self.found.iter().filter_map(|found| Some(Found { at: found.at, record: T::decode(found.record).ok()?.0 }))
    }

    /// Records, with any that cannot be decoded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// Maps from addresses to the records of a [`Case`], each built when it is asked for the first time.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    pub(super) memory: OnceLock<ByProcess>,
    pub(super) vmas: OnceLock<ByProcess>,
    pub(super) executable: OnceLock<ByProcess>,
    pub(super) files: OnceLock<ByProcess>,
    pub(super) kernel: OnceLock<IntervalMap>,
}

macro_rules! buckets {
    (decoded { $($field:ident: $kind:ident,)* } lazy { $($late:ident: $late_kind:ident,)* }) => {
        /// The records of a dump that conclusions are drawn from, and what is known to be missing.
        #[derive(Debug, Default)]
        pub struct Case<'a> {
            $(#[doc = concat!("All [`", stringify!($kind), "`] records.")] pub $field: Vec<Found<$kind<'a>>>,)*
            $(#[doc = concat!("All [`", stringify!($late_kind), "`] records.")] pub $late: Lazy<'a, $late_kind<'a>>,)*
            /// The [`CanaryCheck`] records that tell of a broken canary; nearly all others say that nothing is wrong.
            pub canaries: Vec<Found<CanaryCheck<'a>>>,
            /// Returns of system calls that the dump holds, also those that were not loaded.
            pub returns: usize,
            pub(super) lookup: Lookup,
            losses: BTreeMap<SectionKind, String>,
            cut: bool,
            unknown_losses: u32,
        }

        /// What a decoded record takes in a [`Case`], bytes; `None` for records that no rule looks at.
        pub(super) fn decoded_size(kind: RecordKind) -> Option<usize> {
            match kind {
                CanaryCheck::KIND => Some(size_of::<Found<CanaryCheck<'_>>>()),
                $($kind::KIND => Some(size_of::<Found<$kind<'_>>>()),)*
                $($late_kind::KIND => Some(size_of::<Found<&[u8]>>()),)*
                _ => None,
            }
        }

        impl<'a> Case<'a> {
            fn reserve(&mut self, counts: &BTreeMap<RecordKind, usize>) {
                let of = |kind: RecordKind| counts.get(&kind).copied().unwrap_or(0);
                $(self.$field.reserve_exact(of($kind::KIND));)*
                $(self.$late.found.reserve_exact(of($late_kind::KIND));)*
            }

            fn take(&mut self, found: Found<RawRecord<'a>>) {
                let at = found.at;
                let body = found.record.body;
                match found.record.kind {
                    CanaryCheck::KIND => {
                        let check = CanaryCheck::decode(body).ok().filter(|(check, _)| check.corrupted == Some(true));
                        self.canaries.extend(check.map(|(record, _)| Found { at, record }));
                    }
                    $($kind::KIND => {
                        self.$field.extend($kind::decode(body).ok().map(|(record, _)| Found { at, record }));
                    })*
                    $($late_kind::KIND => self.$late.found.push(Found { at, record: body }),)*
                    _ => {}
                }
            }
        }
    };
}

buckets! {
    decoded {
        identities: Identity,
        cpus: Cpu,
        images: Image,
        causes: Cause,
        frames: Frame,
        registers: Registers,
        memory: Memory,
        stacks: StackBounds,
        syscalls: SyscallRecord,
        unimplemented: UnimplementedSyscall,
        signals: Signal,
        process_exits: ProcessExit,
        crash_reports: CrashReport,
        panics: Panic,
        verify_fails: PageVerifyFail,
        huge_fails: HugePageVerifyFail,
        verify_oks: PageVerifyOk,
        audits: VmAudit,
        flight: FlightEvent,
        vmas: Vma,
        ptes: Pte,
        checks: PageCheck,
        frame_infos: FrameInfo,
        tasks: Task,
        locks: Lock,
        waits: LockWait,
        logs: LogChunk,
        counters: Counter,
        totals: KindTotal,
        left_out: DroppedSection,
        ends: End,
    }
    lazy {
        entries: SyscallEntry,
        exits: SyscallExit,
        page_faults: PageFault,
        forks: ProcessFork,
        execs: ProcessExec,
    }
}

impl<'a> Case<'a> {
    /// The mappings and system calls inside crash reports, for processes that have none in records of their own.
    fn spread_reports(&mut self) {
        let mut mapped: BTreeSet<Option<u32>> = self.vmas.iter().map(|vma| vma.pid).collect();
        let mut called: BTreeSet<Option<u32>> = self.syscalls.iter().map(|call| call.pid).collect();
        for report in &self.crash_reports {
            let at = report.at;
            if mapped.insert(report.pid) {
                let vmas = report.vmas.iter().flat_map(kwab_format::List::iter).map(|vma| Vma {
                    pid: report.pid,
                    start: vma.start,
                    end: vma.end,
                    prot: vma.prot.and_then(|prot| u32::try_from(prot).ok()),
                    path: vma.file,
                    file_offset: vma.file_offset,
                    name: vma.kind,
                    ..Vma::default()
                });
                self.vmas.extend(vmas.map(|record| Found { at, record }));
            }
            if called.insert(report.pid) {
                let calls = report.syscalls.iter().flat_map(kwab_format::List::iter).map(|call| SyscallRecord {
                    pid: report.pid,
                    nr: call.nr,
                    name: call.name,
                    result: call.result,
                    duration_ns: call.duration_ns,
                    ..SyscallRecord::default()
                        .with_args([call.arg0, call.arg1, call.arg2, call.arg3, call.arg4, call.arg5])
                });
                self.syscalls.extend(calls.map(|record| Found { at, record }));
            }
        }
    }
}

impl Case<'_> {
    fn count_losses(&mut self, dump: &Dump) {
        self.cut = self.ends.is_empty() && !dump.ended;
        for defect in &dump.defects {
            let Some((first, last)) = defect.sections else { continue };
            match defect.section_kind {
                Some(kind) => {
                    let text = match defect.kind {
                        DefectKind::NotRead { records, claimed } => {
                            format!("section {first} ({}) was read in part, {records} of {claimed} records", name(kind))
                        }
                        _ => format!("section {first} ({}) is damaged", name(kind)),
                    };
                    self.losses.entry(kind).or_insert(text);
                }
                None => self.unknown_losses += last.saturating_sub(first).saturating_add(1),
            }
        }
        let present = &dump.present;
        for total in &self.totals {
            let (Some(kind), Some(written)) = (total.kind.map(SectionKind), total.sections) else { continue };
            let found = present.get(&kind).copied().unwrap_or(0);
            if found < written {
                let text = format!("{} of {written} {} sections are lost", written - found, name(kind));
                self.losses.insert(kind, text);
                self.unknown_losses = self.unknown_losses.saturating_sub(written - found);
            }
        }
        for drop in &self.left_out {
            let Some(kind) = drop.kind.map(SectionKind) else { continue };
            let why = drop.reason.and_then(DropReason::name).unwrap_or("unknown reason");
            let text = format!("the writer left out part of {}: {why}", name(kind));
            self.losses.entry(kind).or_insert(text);
        }
        // A writer that never began a kind of section leaves nothing to miss; one that is cut may have.
        if self.cut {
            let whole: Vec<SectionKind> = present.keys().copied().collect();
            for &(kind, text) in SectionKind::NAMES.iter().filter(|(kind, _)| *kind < SectionKind::INDEX.0) {
                let kind = SectionKind(kind);
                let text = format!(
                    "the dump is cut: {} may be missing{}",
                    text,
                    if whole.contains(&kind) { " in part" } else { "" }
                );
                self.losses.entry(kind).or_insert(text);
            }
        }
    }

    /// Whether the dump ends before its end section.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.cut
    }

    /// What is lost, one sentence per kind of section.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let in_part = |text: &&String| text.contains(" was read in part");
        let mut all: Vec<String> = if self.cut {
            let cut = "the dump is cut: it has no end section, and what came last is missing".to_owned();
            std::iter::once(cut).chain(self.losses.values().filter(in_part).cloned()).collect()
        } else {
            self.losses.values().cloned().collect()
        };
        if self.unknown_losses > 0 {
            all.push(format!("{} damaged sections do not say what they held", self.unknown_losses));
        }
        all
    }

    /// Why a conclusion that rests on these kinds of section is weaker than it looks; empty when nothing of them is lost.
    #[must_use]
    pub fn weakness(&self, rests_on: &[SectionKind]) -> Vec<String> {
        let mut why: Vec<String> = rests_on.iter().filter_map(|kind| self.losses.get(kind).cloned()).collect();
        if why.is_empty() && self.unknown_losses > 0 {
            why.push(format!("{} damaged sections do not say what they held", self.unknown_losses));
        }
        why
    }
}

/// Whether a task sleeps until its child executes or ends. Kernels of the clone family have three names for that.
pub(super) fn waits_in_vfork(task: &Task<'_>) -> bool {
    let asleep = matches!(task.state, Some(TaskState::BLOCKED | TaskState::SLEEPING));
    let reason = text(task.wait_reason);
    reason.contains("vfork") || (asleep && matches!(reason.as_str(), "clone" | "clone3"))
}

/// Bytes of a text that conclusions quote: one name of a megabyte may be quoted a thousand times.
const QUOTED: usize = 4096;

/// Bytes of a record as text, at most as many as a conclusion quotes (4096).
#[must_use]
pub fn text(bytes: Option<&[u8]>) -> String {
    let bytes = bytes.unwrap_or_default();
    let Some((quoted, _)) = bytes.split_at_checked(QUOTED).filter(|(_, rest)| !rest.is_empty()) else {
        return String::from_utf8_lossy(bytes).into_owned();
    };
    format!("{}…", String::from_utf8_lossy(quoted))
}

fn name(kind: SectionKind) -> String {
    kind.name().map_or_else(|| format!("kind {}", kind.0), str::to_owned)
}
