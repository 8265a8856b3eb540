//! The records of a dump sorted by kind, each with its position, and what damage took away.
//!
//! [`Case`] is an index over a [`Dump`](super::Dump), which holds the bytes: analyses and exports ask it for all
//! mappings or all tasks. A record in it passed its section's checksum. What is *not* here may have been lost;
//! [`Case::weakness`] says whether that is possible for the kinds of section a conclusion rests on.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::OnceLock;

use kwab_format::record::*;
use kwab_format::{DefectKind, Fields as _, RawRecord, RecordKind, RecordType, SectionKind};

use super::file::DumpFile;
use super::record_ref::Located;
use crate::intervals::{ByProcess, IntervalMap};
use crate::units;

/// Records of a kind that recordings are full of: where each lies, decoded when a rule looks at it.
///
/// A decoded record is many times as long as its bytes, and rules look at a few of thousands.
#[derive(Debug)]
pub struct Lazy<'a, T> {
    located: Vec<Located<&'a [u8]>>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Default for Lazy<'_, T> {
    fn default() -> Self {
        Self { located: Vec::new(), kind: PhantomData }
    }
}

impl<'a, T: RecordType<'a>> Lazy<'a, T> {
    /// Those that can be decoded, in the order of the dump.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Located<T>> + '_ {
        self.located.iter().filter_map(|found| Some(Located { at: found.at, record: T::decode(found.record).ok()?.0 }))
    }

    /// Records, with any that cannot be decoded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.located.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.located.is_empty()
    }
}

/// Maps from addresses to the records of a [`Case`], each built at its first use.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    pub(crate) memory: OnceLock<ByProcess>,
    pub(crate) vmas: OnceLock<ByProcess>,
    pub(crate) executable: OnceLock<ByProcess>,
    pub(crate) files: OnceLock<ByProcess>,
    pub(crate) kernel: OnceLock<IntervalMap>,
    pub(crate) stacks: OnceLock<IntervalMap>,
}

macro_rules! buckets {
    (decoded { $($field:ident: $kind:ident,)* } lazy { $($late:ident: $late_kind:ident,)* }) => {
        /// The records of a dump that conclusions are drawn from, and what is known to be missing.
        #[derive(Debug, Default)]
        pub struct Case<'a> {
            $(#[doc = concat!("All [`", stringify!($kind), "`] records.")] pub $field: Vec<Located<$kind<'a>>>,)*
            $(#[doc = concat!("All [`", stringify!($late_kind), "`] records.")] pub $late: Lazy<'a, $late_kind<'a>>,)*
            /// The [`CanaryCheck`] records that tell of a broken canary; nearly all others say that nothing is wrong.
            pub canaries: Vec<Located<CanaryCheck<'a>>>,
            /// The first [`Source`] record: what the dump was made from, unless the kernel wrote it.
            pub source: Option<Located<Source<'a>>>,
            /// Returns of system calls that the dump holds, also those that were not loaded.
            pub returns: usize,
            pub(crate) lookup: Lookup,
            losses: BTreeMap<SectionKind, String>,
            cut: bool,
            unknown_losses: u32,
        }

        /// What a decoded record takes in a [`Case`], bytes; `None` for records that no rule looks at.
        pub(super) fn decoded_size(kind: RecordKind) -> Option<usize> {
            match kind {
                CanaryCheck::KIND => Some(size_of::<Located<CanaryCheck<'_>>>()),
                $($kind::KIND => Some(size_of::<Located<$kind<'_>>>()),)*
                $($late_kind::KIND => Some(size_of::<Located<&[u8]>>()),)*
                _ => None,
            }
        }

        impl<'a> Case<'a> {
            fn reserve(&mut self, counts: &[usize; 256]) {
                let of = |kind: RecordKind| counts[usize::from(kind.0)];
                $(self.$field.reserve_exact(of($kind::KIND));)*
                $(self.$late.located.reserve_exact(of($late_kind::KIND));)*
            }

            fn take(&mut self, found: Located<RawRecord<'a>>) {
                let at = found.at;
                let body = found.record.body;
                match found.record.kind {
                    Source::KIND if self.source.is_none() => {
                        self.source = Source::decode(body).ok().map(|(record, _)| Located { at, record });
                    }
                    CanaryCheck::KIND => {
                        let check = CanaryCheck::decode(body).ok().filter(|(check, _)| check.corrupted == Some(true));
                        self.canaries.extend(check.map(|(record, _)| Located { at, record }));
                    }
                    $($kind::KIND => {
                        self.$field.extend($kind::decode(body).ok().map(|(record, _)| Located { at, record }));
                    })*
                    $($late_kind::KIND => self.$late.located.push(Located { at, record: body }),)*
                    _ => {}
                }
            }
        }
    };
}

/// The dialect of a dump that was made of QEMU's log of exceptions; nothing else writes it.
pub(crate) const QEMU_TRACE: &[u8] = b"qemu-int";

/// Whether a dump's source is text, not a dump that travelled as text.
pub(crate) fn is_text(source: &Source<'_>) -> bool {
    !matches!(source.dialect, Some(b"armour" | b"kwab"))
}

buckets! {
    decoded {
        identities: Identity,
        cpus: Cpu,
        images: Image,
        image_files: ImageFile,
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
        spans: SpanProfile,
        fault_times: PageFaults,
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
    /// Sorts the records that `records` yields; it is called twice, so that no list grows while it is filled.
    pub(super) fn of<I: Iterator<Item = Located<RawRecord<'a>>>>(records: impl Fn() -> I) -> Self {
        let mut counts = [0; 256];
        records().for_each(|found| counts[usize::from(found.record.kind.0)] += 1);
        let mut case = Self { cut: true, returns: counts[usize::from(SyscallExit::KIND.0)], ..Self::default() };
        case.reserve(&counts);
        records().for_each(|found| case.take(found));
        case.spread_reports();
        case
    }

    /// Whether it was made from the text of a log, not from a dump that the kernel wrote.
    #[must_use]
    pub fn is_of_log(&self) -> bool {
        self.source.as_ref().is_some_and(|source| is_text(source))
    }

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
                self.vmas.extend(vmas.map(|record| Located { at, record }));
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
                self.syscalls.extend(calls.map(|record| Located { at, record }));
            }
        }
    }
}

impl Case<'_> {
    /// Notes what is lost: `present` are the sound sections by kind.
    pub(super) fn count_losses(&mut self, file: &DumpFile, present: &BTreeMap<SectionKind, u32>) {
        let was_cut = |dropped: &Located<DroppedSection<'_>>| dropped.reason == Some(DropReason::CUT);
        self.cut = self.ends.is_empty() && !file.ended || self.left_out.iter().any(was_cut);
        for defect in &file.defects {
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
        for total in &self.totals {
            let (Some(kind), Some(written)) = (total.kind.map(SectionKind), total.sections) else { continue };
            let found = present.get(&kind).copied().unwrap_or(0);
            if found < written {
                let text = format!("{} sections lost: {} of {written}", name(kind), written - found);
                self.losses.insert(kind, text);
                self.unknown_losses = self.unknown_losses.saturating_sub(written - found);
            }
        }
        for drop in &self.left_out {
            let is_damage = drop.reason == Some(DropReason::DAMAGED);
            let Some(kind) = drop.kind.map(SectionKind) else {
                let unknown = drop.sections.filter(|_| is_damage).unwrap_or(0);
                self.unknown_losses = self.unknown_losses.saturating_add(unknown);
                continue;
            };
            let text = match drop.sections.filter(|_| is_damage) {
                Some(sections) => {
                    let sections = units::count(sections.into(), "section", "sections");
                    format!("{sections} of {} lost before the dump was copied", name(kind))
                }
                None => {
                    let why = drop.reason.and_then(DropReason::name).unwrap_or("unknown reason");
                    format!("the writer left out part of {}: {why}", name(kind))
                }
            };
            self.losses.entry(kind).or_insert(text);
        }
        self.bound_images(file.len);
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

    /// Leaves out the images that a dump of `length` bytes carries when they unpack to far more than it has: reading an
    /// image costs many times its bytes.
    fn bound_images(&mut self, length: u64) {
        let carried: u64 =
            self.image_files.iter().filter_map(|piece| piece.bytes).map(|bytes| bytes.len() as u64).sum();
        if carried > length.saturating_mul(4).saturating_add(1 << 20) {
            self.image_files.clear();
            let text = format!("the images in the dump unpack to {}, too many for its length", units::bytes(carried));
            self.losses.entry(SectionKind::IMAGE_FILES).or_insert(text);
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
            all.push(self.unknown_kinds());
        }
        all
    }

    fn unknown_kinds(&self) -> String {
        let be = if self.unknown_losses == 1 { "is" } else { "are" };
        let sections = units::count(self.unknown_losses.into(), "section", "sections");
        format!("{sections} {be} too damaged to tell the kind")
    }

    /// Why a conclusion that rests on these kinds of section is weaker than it looks; empty when nothing of them is
    /// lost.
    #[must_use]
    pub fn weakness(&self, rests_on: &[SectionKind]) -> Vec<String> {
        let mut why: Vec<String> = rests_on.iter().filter_map(|kind| self.losses.get(kind).cloned()).collect();
        if why.is_empty() && self.unknown_losses > 0 {
            why.push(self.unknown_kinds());
        }
        why
    }
}

fn name(kind: SectionKind) -> String {
    kind.name().map_or_else(|| format!("kind {}", kind.0), str::to_owned)
}
