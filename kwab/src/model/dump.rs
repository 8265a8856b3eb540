//! A dump as a program sees it: the records that a [`Depth`] asks for, in memory and bounded by its budget.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

use kwab_format::record::{Cause, Identity, Source};
use kwab_format::wire::RecordType;
use kwab_format::{AnyRecord, Defect, RawRecord, Records, SectionKind};

use super::case::Case;
use super::file::{DumpFile, OpenError};
use super::keep::{Keeper, LoadedSection};
use super::record_ref::{Located, RecordRef};
use super::section_info::SectionInfo;

/// How much of a dump is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Identity and cause: enough for a catalogue.
    Catalogue,
    /// What inspection shows: everything but the middle of long recordings, of which the last sections suffice.
    Digest,
    /// What analyses rest on: everything but the middle of long recordings of events and console text.
    Analysis,
    /// All sections, and of them the records that the rules of triage, audit and page verification look at; of system
    /// calls and page faults of each process the last few. The sections are read one by one, so the memory is bounded
    /// by what is kept.
    Rules,
    /// All records of all sections but bulk memory, which is read by address ([`crate::memory::Ram`]).
    All,
    /// The same for exports and single analyses: no part of the memory budget is kept for a report.
    Export,
}

/// Sections at the end of a long recording that [`Depth::Digest`] loads.
const TAIL_SECTIONS: usize = 3;

/// A dump and the records that were loaded of it.
#[derive(Debug)]
pub struct Dump {
    /// The file: its sections, its defects, whether it is whole.
    pub file: DumpFile,
    /// What was loaded, in the order of the dump; with [`Depth::Rules`] the last calls of processes follow.
    pub loaded: Vec<LoadedSection>,
    /// Sections that the depth leaves out.
    pub left_out: usize,
    /// Returns of system calls that were read and not kept.
    returns_dropped: usize,
    /// What is left of the budget that is kept for analyses while a report is made.
    reserve: Option<u64>,
}

impl Dump {
    /// Opens and loads a dump.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error, see [`DumpFile::defects`].
    pub fn open(path: &Path, depth: Depth) -> Result<Self, OpenError> {
        Ok(Self::load(DumpFile::open(path)?, depth))
    }

    /// Loads all records of a dump that is in memory.
    ///
    /// # Errors
    /// [`OpenError`] when the bytes are not a dump.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Ok(Self::load(DumpFile::from_bytes(bytes)?, Depth::Export))
    }

    /// Loads the sections of an open dump that `depth` asks for. What the budget has no room for is left out and listed
    /// among the defects; when every section was read, the file's bytes are released.
    pub fn load(file: DumpFile, depth: Depth) -> Self {
        match Self::load_watched(file, depth, &mut |_, _| ControlFlow::<Infallible>::Continue(())) {
            ControlFlow::Continue(dump) => dump,
            ControlFlow::Break(never) => match never {},
        }
    }

    /// As [`load`](Self::load); `progress` gets the sections done and their total, and can stop the loading.
    pub fn load_watched<B>(
        mut file: DumpFile,
        depth: Depth,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<B>,
    ) -> ControlFlow<B, Self> {
        let wanted = wanted(&file.sections, depth);
        let total = wanted.len();
        let reserve = (!matches!(depth, Depth::Rules | Depth::Export)).then(|| file.budget.total() / 2);
        let mut keeper = Keeper::new(&file.budget, depth == Depth::Rules, reserve);
        let (mut loaded, mut left_out) = (Vec::new(), 0);
        for (index, wanted) in wanted.into_iter().enumerate() {
            progress(index, total)?;
            if !wanted {
                left_out += 1;
                continue;
            }
            loaded.extend(keeper.load(&mut file, index));
        }
        let reserve = keeper.reserve();
        let (recent, returns_dropped) = keeper.finish();
        loaded.extend(recent);
        let mut dump = Self { file, loaded, left_out, returns_dropped, reserve };
        if matches!(depth, Depth::Digest | Depth::Analysis) && left_out > 0 {
            dump.load_around_the_death();
        }
        if dump.left_out == 0 {
            dump.file.release();
        }
        ControlFlow::Continue(dump)
    }

    /// Kinds of which sound sections were left out: how many, of how many.
    #[must_use]
    pub fn skipped(&self) -> Vec<(SectionKind, usize, usize)> {
        if self.left_out == 0 {
            return Vec::new();
        }
        let mut kinds: BTreeMap<SectionKind, (usize, usize)> = BTreeMap::new();
        for section in &self.file.sections {
            kinds.entry(section.header.kind).or_default().1 += 1;
        }
        for section in &self.loaded {
            kinds.entry(section.kind).or_default().0 += 1;
        }
        let left = kinds.into_iter().map(|(kind, (loaded, all))| (kind, all.saturating_sub(loaded), all));
        left.filter(|(_, left, _)| *left > 0).collect()
    }

    /// Loads the sections that were left out, but bulk memory.
    #[must_use]
    pub fn with_the_rest(self) -> Self {
        if self.left_out == 0 {
            return self;
        }
        let Self { mut file, loaded, reserve, .. } = self;
        let mut keeper = Keeper::new(&file.budget, false, reserve);
        let mut have: HashMap<u32, LoadedSection> =
            loaded.into_iter().map(|section| (section.number, section)).collect();
        let mut loaded = Vec::new();
        let mut left_out = 0;
        for index in 0..file.sections.len() {
            if file.sections[index].is_bulk() {
                left_out += 1;
                continue;
            }
            let section = have.remove(&file.sections[index].header.seq);
            loaded.extend(section.or_else(|| keeper.load(&mut file, index)));
        }
        if left_out == 0 {
            file.release();
        }
        Self { file, loaded, left_out, returns_dropped: 0, reserve: keeper.reserve() }
    }

    /// A death that lies far before the end of a long recording: what was recorded around it is loaded too.
    fn load_around_the_death(&mut self) {
        let Some(death) = self.records::<Cause<'_>>().next().and_then(|cause| cause.stamp.line) else { return };
        let mut keeper = Keeper::new(&self.file.budget, false, self.reserve);
        for kind in [SectionKind::EVENTS, SectionKind::LOG] {
            let all: Vec<usize> = self
                .file
                .sections
                .iter()
                .enumerate()
                .filter(|(_, section)| section.header.kind == kind)
                .map(|(index, _)| index)
                .collect();
            let Some(before_tail) = all.len().checked_sub(TAIL_SECTIONS).filter(|count| *count > 0) else { continue };
            let first_line = |index: usize| {
                let payload = self.file.payload(index).ok()?;
                Records::new(&payload).find_map(|record| record.decode().ok()?.stamp().line)
            };
            if all.get(before_tail).and_then(|index| first_line(*index)).is_none_or(|line| line <= death) {
                continue;
            }
            // Sections of one kind are in the order of the log.
            let after = all[..before_tail].partition_point(|index| first_line(*index).is_none_or(|line| line <= death));
            let around: Vec<usize> = all[after.saturating_sub(2)..(after + 1).min(before_tail)].to_vec();
            for index in around.into_iter().rev() {
                let number = self.file.sections[index].header.seq;
                if let Some(loaded) = keeper.load(&mut self.file, index) {
                    debug_assert_eq!(loaded.number, number);
                    self.left_out = self.left_out.saturating_sub(1);
                    let at = self.loaded.iter().position(|loaded| loaded.kind == kind).unwrap_or(self.loaded.len());
                    self.loaded.insert(at, loaded);
                }
            }
        }
    }

    /// All loaded records of one type.
    pub fn records<'d, T: RecordType<'d>>(&'d self) -> impl Iterator<Item = T> + 'd {
        let all = self.loaded.iter().flat_map(|section| Records::new(&section.payload));
        all.filter(|record| record.kind == T::KIND)
            .filter_map(|record| T::decode(record.body).ok().map(|found| found.0))
    }

    /// All loaded records of sections of one kind.
    pub fn section_records(&self, kind: SectionKind) -> impl Iterator<Item = AnyRecord<'_>> {
        let sections = self.loaded.iter().filter(move |section| section.kind == kind);
        sections.flat_map(|section| Records::new(&section.payload)).filter_map(|record| record.decode().ok())
    }

    /// All loaded records with their positions, then those of the end section.
    fn raw_records(&self) -> impl Iterator<Item = Located<RawRecord<'_>>> {
        let end = Records::new(&self.file.end).take(MOST_END_RECORDS).zip(0..).map(|(raw, record)| Located {
            at: RecordRef { section: u32::MAX, kind: SectionKind::END, record },
            record: raw,
        });
        self.loaded.iter().flat_map(LoadedSection::located).chain(end)
    }

    /// Every record that can be decoded with its position, in the order of the dump; those of the end section are last.
    pub fn located_records(&self) -> impl Iterator<Item = Located<AnyRecord<'_>>> {
        self.raw_records().filter_map(|found| Some(Located { at: found.at, record: found.record.decode().ok()? }))
    }

    /// The loaded records sorted by kind, for analyses. Sections that were left out count as sound.
    #[must_use]
    pub fn case(&self) -> Case<'_> {
        let mut case = Case::of(|| self.raw_records());
        case.returns += self.returns_dropped;
        let mut present: BTreeMap<SectionKind, u32> = BTreeMap::new();
        for section in self.file.sections.iter().chain(&self.file.tables) {
            *present.entry(section.header.kind).or_default() += 1;
        }
        case.count_losses(&self.file, &present);
        case
    }

    /// What is wrong with the dump: damage, and records that the memory budget had no room for.
    #[must_use]
    pub fn defects(&self) -> &[Defect] {
        &self.file.defects
    }

    /// All loaded records.
    pub fn all_records(&self) -> impl Iterator<Item = AnyRecord<'_>> {
        self.loaded.iter().flat_map(|section| Records::new(&section.payload)).filter_map(|record| record.decode().ok())
    }

    /// Who wrote the dump about what.
    pub fn identity(&self) -> Option<Identity<'_>> {
        self.records().next()
    }

    /// The input it was made from.
    pub fn source(&self) -> Option<Source<'_>> {
        self.records().next()
    }
}

/// Records of the end section that are looked at: totals, and what the writer left out.
const MOST_END_RECORDS: usize = 4096;

/// Which sections a depth asks for.
fn wanted(sections: &[SectionInfo], depth: Depth) -> Vec<bool> {
    let mut tails = HashMap::new();
    let mut wanted = vec![false; sections.len()];
    for (index, section) in sections.iter().enumerate().rev() {
        if section.is_bulk() {
            continue;
        }
        let kind = section.header.kind;
        let seen = tails.entry(kind).or_insert(0usize);
        *seen += 1;
        wanted[index] = match depth {
            Depth::All | Depth::Rules | Depth::Export => true,
            Depth::Catalogue => {
                let told = matches!(kind, SectionKind::IDENTITY | SectionKind::CAUSE | SectionKind::NOTES);
                told && (kind != SectionKind::CAUSE || *seen <= TAIL_SECTIONS)
            }
            Depth::Analysis => !is_told_in_order(kind) || *seen <= TAIL_SECTIONS,
            Depth::Digest if is_recording(kind) => *seen <= TAIL_SECTIONS,
            Depth::Digest => *seen <= 64,
        };
    }
    wanted
}

/// Kinds that grow for as long as a kernel runs.
fn is_told_in_order(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::EVENTS | SectionKind::LOG | SectionKind::KEPT)
}

/// Kinds that can be arbitrarily long and are read from the end.
fn is_recording(kind: SectionKind) -> bool {
    matches!(
        kind,
        SectionKind::EVENTS | SectionKind::LOG | SectionKind::KEPT | SectionKind::MEMORY | SectionKind::FLIGHT
    )
}
