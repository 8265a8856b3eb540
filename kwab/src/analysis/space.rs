//! Mappings, page-table entries and frames of a dump, indexed so that they can be compared by address.

use std::collections::BTreeMap;

use kwab_format::record::{FrameInfo, Pte, Vma};

use crate::decode::Paging;
use crate::intervals::{IntervalMap, Range};
use crate::memory::levels;
use crate::model::{Case, Located};

/// Bytes of the smallest page.
pub(super) const PAGE: u64 = 4096;
/// Where the frame stands in a raw entry (SDM volume 3A, table 4-20).
const FRAME_BITS: u64 = 0x000f_ffff_ffff_f000;
/// The most pages that a run of entries is believed to hold: 2^48 bytes of address space.
const MAX_RUN: u64 = 1 << 36;

/// Which addresses the machine of a dump can map.
#[must_use]
pub fn paging(case: &Case<'_>) -> Paging {
    Paging {
        arch: case.identities.first().and_then(|identity| identity.arch),
        five_levels: levels(case.registers.iter().map(|set| set.record)) == 5,
    }
}

/// What an entry allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// Whether writing is allowed.
    pub(super) write: bool,
    /// Whether execution is allowed.
    pub(super) execute: bool,
    /// Access from user mode.
    pub(super) user: bool,
    /// Marked as copy-on-write.
    pub(super) cow: bool,
}

/// A run of present entries.
#[derive(Clone, Debug)]
pub(super) struct Mapping<'c, 'a> {
    /// Process whose page table it is; `None` for the kernel's.
    pub(super) pid: Option<u32>,
    /// First virtual address of the run.
    pub(super) start: u64,
    /// Address behind the last.
    pub(super) end: u64,
    /// Bytes that one entry maps.
    pub(super) size: u64,
    /// Physical address of the first frame.
    pub(super) frame: u64,
    /// Rights of the leaf alone.
    pub(super) leaf: Rights,
    /// Rights of leaf and all entries above it together.
    pub(super) rights: Rights,
    /// Entries above the leaf: level and raw value.
    pub(super) levels: Vec<(u8, u64)>,
    /// References to the frame, as the entry's record has it.
    pub(super) refcount: Option<u64>,
    /// The page-table record that says so.
    pub(super) source: &'c Located<Pte<'a>>,
}

impl Mapping<'_, '_> {
    /// Which level denies a right: `bit` of the raw entry, denying when it is set or when it is clear.
    pub(super) fn denied_at(&self, bit: u64, when_set: bool) -> String {
        match self.levels.iter().find(|(_, raw)| (raw & bit != 0) == when_set) {
            Some((level, raw)) => format!(": denied by level {level} ({raw:#x})"),
            None => ": denied by the leaf".to_owned(),
        }
    }

    fn of<'c, 'a>(source: &'c Located<Pte<'a>>) -> Option<Mapping<'c, 'a>> {
        if !is_present(source) {
            return None;
        }
        let start = source.vaddr?;
        let size = source.size.filter(|size| size.is_power_of_two() && *size >= PAGE).unwrap_or(PAGE);
        let length = source.count.unwrap_or(1).clamp(1, MAX_RUN).saturating_mul(size);
        let raw = source.raw.unwrap_or(0);
        let leaf = match source.rights {
            Some(bits) => {
                Rights { write: bits & 2 != 0, execute: bits & 4 != 0, user: bits & 8 != 0, cow: bits & 0x80 != 0 }
            }
            None => Rights { write: raw & 2 != 0, execute: raw >> 63 == 0, user: raw & 4 != 0, cow: false },
        };
        let above = source.levels.iter().flat_map(kwab_format::List::iter);
        let levels: Vec<(u8, u64)> = above.filter_map(|level| Some((level.level?, level.raw?))).collect();
        let mut rights = leaf;
        for (_, raw) in &levels {
            rights.write &= raw & 2 != 0;
            rights.execute &= raw >> 63 == 0;
            rights.user &= raw & 4 != 0;
        }
        let frame = source.paddr.unwrap_or(raw & FRAME_BITS);
        let (pid, refcount, end) = (source.pid, source.refcount, start.saturating_add(length));
        Some(Mapping { pid, start, end, size, frame, leaf, rights, levels, refcount, source })
    }
}

/// Ranges that overlap a place and are looked at: mappings that overlap each other are few, or a finding of their own.
const MOST_OVER: usize = 1024;
/// Pairs of a run of entries and a mapping that are compared at least.
const LEAST_PAIRS: usize = 4096;

/// Ranges of addresses in order of their start, with the greatest end so far: what can touch a range lies between two
/// places that are found by bisection.
#[derive(Debug, Default)]
struct Ranges {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Ranges {
    /// Takes ranges in order of start.
    fn of(sorted: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut ranges = Self::default();
        for (start, end) in sorted {
            let before = ranges.ends.last().copied().unwrap_or(0);
            ranges.starts.push(start);
            ranges.ends.push(before.max(end));
        }
        ranges
    }

    /// The places of the ranges that may touch `start..end`.
    fn near(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let behind = self.starts.partition_point(|first| *first < end);
        let first = self.ends.partition_point(|last| *last <= start).min(behind);
        first.max(behind.saturating_sub(MOST_OVER))..behind
    }
}

/// The address spaces of a dump.
#[derive(Debug)]
pub(super) struct Spaces<'c, 'a> {
    vmas: BTreeMap<Option<u32>, (Ranges, Vec<&'c Located<Vma<'a>>>)>,
    ptes: &'c [Located<Pte<'a>>],
    /// The present entries of each process in order of address.
    mapped: BTreeMap<Option<u32>, (Ranges, Vec<&'c Located<Pte<'a>>>)>,
    frames: BTreeMap<u64, &'c Located<FrameInfo<'a>>>,
}

impl<'c, 'a> Spaces<'c, 'a> {
    pub(super) fn of(case: &'c Case<'a>) -> Self {
        let mut by_pid: BTreeMap<Option<u32>, Vec<&Located<Vma<'_>>>> = BTreeMap::new();
        for vma in &case.vmas {
            by_pid.entry(vma.pid).or_default().push(vma);
        }
        let indexed = |(pid, mut list): (_, Vec<&'c Located<Vma<'a>>>)| {
            list.sort_by_key(|vma| (vma.start, vma.end));
            let ranges = Ranges::of(list.iter().map(|vma| (vma.start.unwrap_or(0), vma.end.unwrap_or(0))));
            (pid, (ranges, list))
        };
        let vmas = by_pid.into_iter().map(indexed).collect();
        /// First address, address behind the last, entry.
        type Entry<'c, 'a> = (u64, u64, &'c Located<Pte<'a>>);
        let mut entries: BTreeMap<Option<u32>, Vec<Entry<'_, '_>>> = BTreeMap::new();
        for mapping in case.ptes.iter().filter_map(Mapping::of) {
            entries.entry(mapping.pid).or_default().push((mapping.start, mapping.end, mapping.source));
        }
        let indexed = |(pid, mut list): (_, Vec<Entry<'c, 'a>>)| {
            list.sort_by_key(|(start, ..)| *start);
            let ranges = Ranges::of(list.iter().map(|(start, end, _)| (*start, *end)));
            (pid, (ranges, list.into_iter().map(|(.., source)| source).collect()))
        };
        let mapped = entries.into_iter().map(indexed).collect();
        let frames = case.frame_infos.iter().filter_map(|frame| Some((frame.frame?, frame))).collect();
        Self { vmas, ptes: &case.ptes, mapped, frames }
    }

    /// Every process with its mappings in order of address.
    pub(super) fn maps(&self) -> impl Iterator<Item = (Option<u32>, &[&'c Located<Vma<'a>>])> {
        self.vmas.iter().map(|(pid, (_, list))| (*pid, list.as_slice()))
    }

    /// Whether the mappings of a process are known.
    pub(super) fn has_map(&self, pid: Option<u32>) -> bool {
        self.vmas.contains_key(&pid)
    }

    /// All present entries.
    pub(super) fn mappings(&self) -> impl Iterator<Item = Mapping<'c, 'a>> {
        self.ptes.iter().filter_map(Mapping::of)
    }

    /// The entry that maps an address.
    pub(super) fn mapping_at(&self, pid: Option<u32>, addr: u64) -> Option<Mapping<'c, 'a>> {
        let (ranges, list) = self.mapped.get(&pid)?;
        let near = list.get(ranges.near(addr, addr.saturating_add(1)))?;
        near.iter().filter_map(|source| Mapping::of(source)).find(|m| (m.start..m.end).contains(&addr))
    }

    /// The mappings that a run of entries touches.
    pub(super) fn vmas_over(&self, mapping: &Mapping<'_, '_>) -> impl Iterator<Item = &'c Located<Vma<'a>>> {
        let (start, end) = (mapping.start, mapping.end);
        let list = self.vmas.get(&mapping.pid).and_then(|(ranges, list)| list.get(ranges.near(start, end)));
        list.unwrap_or_default()
            .iter()
            .copied()
            .filter(move |vma| vma.start.is_some_and(|s| s < end) && vma.end.is_some_and(|e| e > start))
    }

    /// Every run of entries with every mapping that it touches. Runs and mappings that do not overlap each other have
    /// fewer pairs than there are of both; of those that do (which VM-OVERLAP reports) the first pairs are compared.
    pub(super) fn mapped_pairs(&self) -> impl Iterator<Item = (Mapping<'c, 'a>, &'c Located<Vma<'a>>)> {
        let mapped = self.vmas.values().map(|(_, list)| list.len()).sum::<usize>();
        let most = LEAST_PAIRS + 2 * (self.ptes.len() + mapped);
        let pairs = self.mappings().flat_map(|mapping| {
            let vmas: Vec<_> = self.vmas_over(&mapping).collect();
            vmas.into_iter().map(move |vma| (mapping.clone(), vma))
        });
        pairs.take(most)
    }

    /// The first page of a run that no mapping covers.
    pub(super) fn first_outside(&self, mapping: &Mapping<'_, '_>) -> Option<u64> {
        let mut at = mapping.start;
        for vma in self.vmas_over(mapping) {
            if at >= mapping.end {
                break;
            }
            // A mapping that does not end on a page boundary owns the whole page.
            if vma.start.is_some_and(|start| start / PAGE * PAGE > at) {
                return Some(at);
            }
            at = at.max(vma.end.unwrap_or(at).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX));
        }
        (at < mapping.end).then_some(at)
    }

    /// What the dump says of a frame, given its physical address.
    pub(super) fn frame(&self, paddr: u64) -> Option<&'c Located<FrameInfo<'a>>> {
        let number = paddr / PAGE;
        let (first, info) = self.frames.range(..=number).next_back()?;
        (number - first < info.count.unwrap_or(1)).then_some(*info)
    }

    /// The user frames that entries of one page map, in runs of frames with the same count and the same record.
    pub(super) fn counted_frames(&self) -> CountedFrames<'c, 'a> {
        let mut ranges: Vec<Range> = Vec::new();
        for (number, mapping) in (0_u32..).zip(self.ptes).filter_map(|(number, pte)| Some((number, Mapping::of(pte)?)))
        {
            if mapping.rights.user && mapping.size == PAGE && mapping.end > mapping.start {
                let first = mapping.frame / PAGE;
                ranges.push((
                    first,
                    first.saturating_add(((mapping.end - mapping.start) / PAGE).saturating_sub(1)),
                    number,
                ));
            }
        }
        // Where counts and records change: the number of mappings that begin or end there.
        let mut changes: Vec<(u64, i64)> = Vec::with_capacity(2 * (ranges.len() + self.frames.len()));
        for (first, last, _) in &ranges {
            changes.extend([(*first, 1), (last.saturating_add(1), -1)]);
        }
        for (first, info) in &self.frames {
            changes.extend([(*first, 0), (first.saturating_add(info.count.unwrap_or(1)), 0)]);
        }
        changes.sort_unstable();
        let mut runs = Vec::new();
        let mut count = 0_i64;
        for (at, change) in changes.iter().enumerate() {
            count += change.1;
            let next = changes.get(at + 1).map_or(change.0, |next| next.0);
            if count > 0 && next > change.0 {
                runs.push(FrameRun { first: change.0, frames: next - change.0, count: count.unsigned_abs() });
            }
        }
        CountedFrames { runs, first_mappings: IntervalMap::of(ranges), ptes: self.ptes }
    }
}

/// Frames behind each other that the same number of entries maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameRun {
    /// Number of the first frame.
    pub(super) first: u64,
    /// How many frames.
    pub(super) frames: u64,
    /// Entries that map each of them.
    pub(super) count: u64,
}

/// How often frames are mapped.
#[derive(Debug)]
pub(super) struct CountedFrames<'c, 'a> {
    /// Every frame that is mapped, in order.
    pub(super) runs: Vec<FrameRun>,
    first_mappings: IntervalMap,
    ptes: &'c [Located<Pte<'a>>],
}

impl<'c, 'a> CountedFrames<'c, 'a> {
    /// The first entry that maps a frame; `None` when none does.
    pub(super) fn mapping(&self, frame: u64) -> Option<Mapping<'c, 'a>> {
        Mapping::of(self.ptes.get(self.first_mappings.at(frame)? as usize)?)
    }
}

/// Whether a page-table entry is present: by its record, or by the raw entry.
#[must_use]
pub fn is_present(pte: &Pte<'_>) -> bool {
    pte.rights.map_or_else(|| pte.raw.is_none_or(|raw| raw & 1 == 1), |rights| rights & 1 == 1)
}
