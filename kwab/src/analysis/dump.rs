//! Opens a dump for the analyses: its sound records by kind, each with its place, and what damage took away.
//!
//! A record that is here passed its section's checksum. What is *not* here may have been lost; [`Case::weakness`] says
//! whether that is possible for the kinds of section a conclusion rests on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use kwab_format::reader::OpenError;
use kwab_format::record::*;
use kwab_format::section::SECTION_HEADER_LEN;
use kwab_format::{AnyRecord, Defect, Fields as _, Flags, Item, RawRecord, Reader, RecordType, Records, SectionKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;

/// A dump in memory, with compressed sections unpacked.
#[derive(Debug)]
pub struct Dump {
    bytes: Vec<u8>,
    sections: Vec<Part>,
    defects: Vec<Defect>,
    /// Sound sections that are not here because the question did not need them.
    elsewhere: BTreeMap<SectionKind, u32>,
    /// Whether the dump has its end, for dumps whose end section is not among the parts.
    ended: bool,
}

#[derive(Debug)]
struct Part {
    number: u32,
    kind: SectionKind,
    start: usize,
    length: usize,
    unpacked: Option<Vec<u8>>,
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
    /// Reads all sections, keeping the sound ones and noting what is wrong with the others.
    ///
    /// # Errors
    /// [`OpenError`] when the bytes are no dump.
    pub fn open(bytes: Vec<u8>) -> Result<Self, OpenError> {
        let mut sections = Vec::new();
        let mut defects = Vec::new();
        for item in Reader::new(&bytes)?.sections() {
            let section = match item {
                Item::Section(section) => section,
                Item::Defect(defect) => {
                    defects.push(defect);
                    continue;
                }
            };
            let mut unpacked = None;
            if section.header.flags.contains(Flags::COMPRESSED) {
                let mut room = vec![0; section.unpacked_len()];
                if let Err(defect) = section.unpack(&mut room) {
                    defects.push(defect);
                    continue;
                }
                unpacked = Some(room);
            }
            if section.header.version != 0 {
                // The payload's rules are not known: it holds no records to us.
                unpacked = Some(Vec::new());
            }
            let (number, kind) = (section.header.seq, section.header.kind);
            let start = section.offset.saturating_add(SECTION_HEADER_LEN);
            sections.push(Part { number, kind, start, length: section.payload.len(), unpacked });
        }
        Ok(Self { bytes, sections, defects, elsewhere: BTreeMap::new(), ended: false })
    }

    /// Takes the sections that were loaded of a dump, for dumps too long to hold whole; those that were left out count
    /// as sound, and conclusions rest on what was loaded.
    #[must_use]
    pub fn of_loaded(dump: crate::model::Dump) -> Self {
        let mut elsewhere: BTreeMap<SectionKind, u32> = BTreeMap::new();
        for section in &dump.file.sections {
            *elsewhere.entry(section.header.kind).or_default() += 1;
        }
        for section in &dump.loaded {
            elsewhere.entry(section.kind).and_modify(|count| *count = count.saturating_sub(1));
        }
        let ended = dump.file.ended;
        let parts = dump.loaded.into_iter().map(|section| Part {
            number: section.number,
            kind: section.kind,
            start: 0,
            length: section.payload.len(),
            unpacked: Some(section.payload),
        });
        Self { bytes: Vec::new(), sections: parts.collect(), defects: dump.file.defects, elsewhere, ended }
    }

    /// Every record that can be decoded, in the order of the dump.
    pub fn records(&self) -> impl Iterator<Item = Found<AnyRecord<'_>>> {
        self.raw_records().filter_map(|found| Some(Found { at: found.at, record: found.record.decode().ok()? }))
    }

    /// Every record, in the order of the dump.
    fn raw_records(&self) -> impl Iterator<Item = Found<RawRecord<'_>>> {
        self.sections.iter().flat_map(|part| {
            let stored = || self.bytes.get(part.start..part.start.saturating_add(part.length)).unwrap_or_default();
            let payload = part.unpacked.as_deref().unwrap_or_else(stored);
            Records::new(payload).zip(0..).map(|(raw, record)| Found {
                at: RecordRef { section: part.number, kind: part.kind, record },
                record: raw,
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

macro_rules! buckets {
    (decoded { $($field:ident: $kind:ident,)* } lazy { $($late:ident: $late_kind:ident,)* }) => {
        /// The records of a dump that conclusions are drawn from, and what is known to be missing.
        #[derive(Debug, Default)]
        pub struct Case<'a> {
            $(#[doc = concat!("All [`", stringify!($kind), "`] records.")] pub $field: Vec<Found<$kind<'a>>>,)*
            $(#[doc = concat!("All [`", stringify!($late_kind), "`] records.")] pub $late: Lazy<'a, $late_kind<'a>>,)*
            /// The [`CanaryCheck`] records that tell of a broken canary; nearly all others say that nothing is wrong.
            pub canaries: Vec<Found<CanaryCheck<'a>>>,
            losses: BTreeMap<SectionKind, String>,
            cut: bool,
            unknown_losses: u32,
        }

        impl<'a> Case<'a> {
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
        for report in self.crash_reports.clone() {
            let at = report.at;
            if !self.vmas.iter().any(|vma| vma.pid == report.pid) {
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
            if !self.syscalls.iter().any(|call| call.pid == report.pid) {
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
                    self.losses.entry(kind).or_insert_with(|| format!("section {first} ({}) is damaged", name(kind)));
                }
                None => self.unknown_losses += last.saturating_sub(first).saturating_add(1),
            }
        }
        let mut present = dump.elsewhere.clone();
        for part in &dump.sections {
            *present.entry(part.kind).or_default() += 1;
        }
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
            let why = drop.reason.and_then(kwab_format::DropReason::name).unwrap_or("unknown reason");
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
        let mut all: Vec<String> = if self.cut {
            vec!["the dump is cut: it has no end section, and what came last is missing".to_owned()]
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

/// Bytes of a record as text.
#[must_use]
pub fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

fn name(kind: SectionKind) -> String {
    kind.name().map_or_else(|| format!("kind {}", kind.0), str::to_owned)
}
