//! A dump as a program sees it: typed records, loaded as far as they are needed.
//!
//! [`mod@file`] knows where the sections are and which are sound. [`Dump`] holds the payloads that were loaded and iterates
//! the records in them, which borrow from it. [`json`] turns any record into JSON, [`call`] writes system calls as
//! strace does, [`mod@line`] says any record in a line, and [`stream`] goes through all records of a dump of any size.
//! [`index`] orders millions of events in little memory, and [`payloads`] reads them back one section at a time.

pub mod call;
pub mod emit;
mod extents;
pub mod file;
pub mod index;
pub mod json;
pub mod line;
pub mod log;
pub mod memory;
pub mod payloads;
mod section_info;
mod several;
pub mod stream;

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::Path;

use kwab_format::record::{Cause, Identity, Source};
use kwab_format::wire::RecordType;
use kwab_format::{AnyRecord, Records, SectionKind};

pub use extents::extents;
pub use file::{DumpFile, OpenError};
use memory::{Payload, not_read};
pub use section_info::SectionInfo;
pub use several::DumpsOf;

/// How much of a dump is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Identity and cause: enough for a catalogue.
    Catalogue,
    /// What inspection shows: everything but the middle of long recordings, of which the last sections suffice.
    Digest,
    /// What analyses rest on: everything but the middle of long recordings of events and console text.
    Analysis,
    /// Everything.
    All,
}

/// Sections at the end of a long recording that [`Depth::Digest`] loads.
const TAIL_SECTIONS: usize = 3;

/// A loaded section.
#[derive(Debug)]
pub struct Loaded {
    /// Its number in the dump.
    pub number: u32,
    /// What it is about.
    pub kind: SectionKind,
    /// Its records.
    pub payload: Payload,
}

/// A dump with the sections that were asked for.
#[derive(Debug)]
pub struct Dump {
    /// The file behind it.
    pub file: DumpFile,
    /// The loaded sections, in order of place.
    pub loaded: Vec<Loaded>,
    /// Sections that were left out because the question does not need them.
    pub left_out: usize,
}

/// What a loaded record counts beyond its bytes: reports keep a reference to it while they sort.
const PER_RECORD: u64 = 64;

impl Loaded {
    /// Reads section `index`, and notes in the file whether it is sound. Half of the budget is kept for the analyses, and
    /// one section gets at most half of what is left of the other half.
    fn of(file: &mut DumpFile, index: usize) -> Option<Self> {
        let (number, kind) = (file.sections[index].header.seq, file.sections[index].header.kind);
        let payload = file.payload(index);
        file.note(index, payload.as_ref().map(|_| ()).map_err(Clone::clone));
        let mut payload = payload.ok()?;
        let mut room = file.budget.left().saturating_sub(file.budget.total() / 2) / 2;
        let (records, dropped) = payload.keep_while(|| match room.checked_sub(PER_RECORD) {
            Some(less) => {
                room = less;
                file.budget.take(PER_RECORD)
            }
            None => false,
        });
        if dropped > 0 {
            let defect = not_read(&file.sections[index], records, dropped as u64);
            file.add_defect(defect);
        }
        Some(Self { number, kind, payload })
    }
}

impl Dump {
    /// Opens and loads a dump.
    ///
    /// # Errors
    /// [`OpenError`]; damage is no error, see [`DumpFile::defects`].
    pub fn open(path: &Path, depth: Depth) -> Result<Self, OpenError> {
        Ok(Self::load(DumpFile::open(path)?, depth))
    }

    /// Loads the sections of an open dump.
    pub fn load(file: DumpFile, depth: Depth) -> Self {
        match Self::load_watched(file, depth, &mut |_, _| ControlFlow::<Infallible>::Continue(())) {
            ControlFlow::Continue(dump) => dump,
            ControlFlow::Break(never) => match never {},
        }
    }

    /// The same for somebody who waits: told how many sections of how many are loaded, and may have enough.
    pub fn load_watched<B>(
        mut file: DumpFile,
        depth: Depth,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<B>,
    ) -> ControlFlow<B, Self> {
        let wanted = wanted(&file.sections, depth);
        let total = wanted.len();
        let mut loaded = Vec::new();
        let mut left_out = 0;
        for (index, wanted) in wanted.into_iter().enumerate() {
            progress(index, total)?;
            if !wanted {
                left_out += 1;
                continue;
            }
            loaded.extend(Loaded::of(&mut file, index));
        }
        let mut dump = Self { file, loaded, left_out };
        if matches!(depth, Depth::Digest | Depth::Analysis) && left_out > 0 {
            dump.load_around_the_death();
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

    /// Loads the sections that were left out.
    #[must_use]
    pub fn with_the_rest(self) -> Self {
        let Self { mut file, loaded, .. } = self;
        let mut have: HashMap<u32, Loaded> = loaded.into_iter().map(|section| (section.number, section)).collect();
        let mut loaded = Vec::new();
        for index in 0..file.sections.len() {
            let section = have.remove(&file.sections[index].header.seq);
            loaded.extend(section.or_else(|| Loaded::of(&mut file, index)));
        }
        Self { file, loaded, left_out: 0 }
    }

    /// A death that lies far before the end of a long recording: what was recorded around it is loaded too.
    fn load_around_the_death(&mut self) {
        let Some(death) = self.records::<Cause<'_>>().next().and_then(|cause| cause.stamp.line) else { return };
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
                if let Some(loaded) = Loaded::of(&mut self.file, index) {
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

/// Which sections a depth asks for.
fn wanted(sections: &[SectionInfo], depth: Depth) -> Vec<bool> {
    let mut tails = HashMap::new();
    let mut wanted = vec![false; sections.len()];
    for (index, section) in sections.iter().enumerate().rev() {
        let kind = section.header.kind;
        let seen = tails.entry(kind).or_insert(0usize);
        *seen += 1;
        wanted[index] = match depth {
            Depth::All => true,
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
