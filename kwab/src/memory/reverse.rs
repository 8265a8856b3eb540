//! From physical addresses back to virtual ones: every leaf of the page tables of a dump.
//!
//! Tables are gone through once each, however many entries lead to them: tables that point at themselves end there,
//! and what several processes share is told for the first of them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::ram::Ram;
use super::space::Space;
use super::walk::{ADDRESS, ENTRIES, Rights, Tables, is_leaf, is_present, reach};

/// Tables that are gone through.
const MOST_TABLES: usize = 1 << 18;
/// Runs of leaves that are kept.
const MOST_RUNS: usize = 1 << 20;

/// A run of physical memory that is mapped in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The physical addresses.
    pub physical: Range<u64>,
    /// The virtual address of the first.
    pub start: u64,
    /// What all levels together allow.
    pub rights: Rights,
    /// Which of the spaces maps it.
    pub space: usize,
}

/// The leaves of page tables.
#[derive(Debug, Default)]
pub struct Reverse {
    runs: Vec<Mapped>,
    tables: BTreeMap<u64, (u8, usize)>,
    seen: HashSet<(u8, u64)>,
    /// Whether a limit left something out.
    pub cut: bool,
    /// Tables that were not captured.
    pub missing: usize,
}

impl Reverse {
    /// Goes through the tables of these spaces, as far as `ram` holds them.
    #[must_use]
    pub fn of(ram: &Ram<'_>, spaces: &[Space]) -> Self {
        let mut reverse = Self::default();
        for (number, space) in spaces.iter().enumerate() {
            if let Some(Tables { root, levels }) = space.tables.filter(|_| !ram.is_empty()) {
                let all = Rights { write: true, user: true, execute: true };
                reverse.table(ram, number, (levels, levels), root, 0, all);
            }
        }
        reverse
    }

    /// All runs, in the order of the tables.
    #[must_use]
    pub fn runs(&self) -> &[Mapped] {
        &self.runs
    }

    /// Where a physical address is mapped, in the order of the spaces.
    pub fn mapped(&self, paddr: u64) -> impl Iterator<Item = (u64, &Mapped)> {
        let holds = move |run: &&Mapped| run.physical.contains(&paddr);
        self.runs.iter().filter(holds).map(move |run| (run.start.wrapping_add(paddr - run.physical.start), run))
    }

    /// The page table that a physical address lies in: its level, and the space that uses it.
    #[must_use]
    pub fn table_at(&self, paddr: u64) -> Option<(u8, usize)> {
        self.tables.get(&(paddr & !0xfff)).copied()
    }

    /// Goes through a table of `level` of a hierarchy of `levels`, which begins to map at `base`.
    fn table(&mut self, ram: &Ram<'_>, space: usize, (level, levels): (u8, u8), at: u64, base: u64, above: Rights) {
        if self.seen.len() >= MOST_TABLES {
            self.cut = true;
            return;
        }
        if !self.seen.insert((level, at)) {
            return;
        }
        let mut bytes = vec![0; 4096];
        if ram.read(at, &mut bytes) < bytes.len() {
            self.missing += 1;
            return;
        }
        self.tables.entry(at).or_insert((level, space));
        for (index, entry) in (0..ENTRIES).zip(bytes.chunks_exact(8)) {
            let raw = entry.try_into().map_or(0, u64::from_le_bytes);
            if !is_present(raw) {
                continue;
            }
            let mut addr = base.wrapping_add(index * reach(level));
            if level == levels && index >= ENTRIES / 2 {
                // The upper half of the root maps addresses whose upper bits are set.
                addr |= u64::MAX << (12 + 9 * u32::from(levels));
            }
            let rights = above.and(Rights::of(raw));
            if is_leaf(raw, level) {
                let physical = raw & ADDRESS & !(reach(level) - 1);
                self.leaf(Mapped { physical: physical..physical + reach(level), start: addr, rights, space });
            } else if level > 1 {
                self.table(ram, space, (level - 1, levels), raw & ADDRESS, addr, rights);
            }
        }
    }

    fn leaf(&mut self, leaf: Mapped) {
        if let Some(last) = self.runs.last_mut() {
            let length = last.physical.end - last.physical.start;
            let follows = last.physical.end == leaf.physical.start && last.start.wrapping_add(length) == leaf.start;
            if follows && (last.rights, last.space) == (leaf.rights, leaf.space) {
                last.physical.end = leaf.physical.end;
                return;
            }
        }
        if self.runs.len() < MOST_RUNS {
            self.runs.push(leaf);
        } else {
            self.cut = true;
        }
    }
}
