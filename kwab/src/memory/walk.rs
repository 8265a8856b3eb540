//! Follows the page tables of an x86-64 processor from a root to a page, with every level told.
//!
//! The rules are those of the SDM, volume 3A, chapter 4: four levels, five when CR4.LA57 is set; a leaf may stand in
//! the third level from the bottom (1 GiB), the second (2 MiB) or the last. A walk has at most five steps, whatever
//! the tables say.

use std::fmt;

/// Where an entry holds the address of the next table (bits 12 to 51).
pub(super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PRESENT: u64 = 1;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
/// Entries of a table.
pub(super) const ENTRIES: u64 = 512;

/// The page tables of an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tables {
    /// Physical address of the root: CR3 without its flags.
    pub root: u64,
    /// 4, or 5 with CR4.LA57.
    pub levels: u8,
}

impl Tables {
    /// The tables that control registers name.
    #[must_use]
    pub const fn of(cr3: u64, cr4: u64) -> Self {
        Self { root: cr3 & ADDRESS, levels: if cr4 >> 12 & 1 == 1 { 5 } else { 4 } }
    }

    /// Whether the upper bits of an address repeat its highest used one, without which no tables map it.
    #[must_use]
    pub const fn is_canonical(&self, addr: u64) -> bool {
        let unused = 64 - (12 + 9 * self.levels as u32);
        ((addr << unused) as i64 >> unused) as u64 == addr
    }
}

/// What an entry, or all entries of a walk together, allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Whether writing is allowed.
    pub write: bool,
    /// Access from user mode.
    pub user: bool,
    /// Whether fetching instructions is allowed.
    pub execute: bool,
}

impl Rights {
    /// The rights of one entry.
    #[must_use]
    pub const fn of(raw: u64) -> Self {
        Self { write: raw & WRITE != 0, user: raw & USER != 0, execute: raw & NO_EXECUTE == 0 }
    }

    /// What both allow.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self { write: self.write && other.write, user: self.user && other.user, execute: self.execute && other.execute }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (write, execute) = (if self.write { 'w' } else { '-' }, if self.execute { 'x' } else { '-' });
        write!(f, "r{write}{execute} {}", if self.user { "user" } else { "kernel" })
    }
}

/// An entry that a walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// 5 or 4 for the root, 1 for the last level.
    pub level: u8,
    /// Index in its table.
    pub index: u16,
    /// Physical address of the entry.
    pub at: u64,
    /// The entry; `None` when it was not captured.
    pub raw: Option<u64>,
}

/// The names of an entry's flags, in the order of their bits.
#[must_use]
pub fn flags(raw: u64, level: u8) -> Vec<&'static str> {
    const NAMES: [(u64, &str); 7] = [
        (PRESENT, "present"),
        (WRITE, "write"),
        (USER, "user"),
        (1 << 3, "write-through"),
        (1 << 4, "no-cache"),
        (1 << 5, "accessed"),
        (NO_EXECUTE, "no-execute"),
    ];
    let leaf = is_leaf(raw, level);
    let mut names: Vec<&str> = NAMES.iter().filter(|(bit, _)| raw & bit != 0).map(|(_, name)| *name).collect();
    let own = [(1 << 6, "dirty"), (1 << 8, "global")];
    names.extend(own.iter().filter(|(bit, _)| leaf && raw & bit != 0).map(|(_, name)| *name));
    if leaf && level > 1 {
        names.push("large");
    }
    names
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// At a page.
    Page {
        /// Physical address of the byte that was asked for.
        paddr: u64,
        /// Bytes that the leaf maps.
        size: u64,
        /// What all levels together allow.
        rights: Rights,
    },
    /// The entry of this level is not present.
    NotPresent(u8),
    /// The entry of this level was not captured.
    NotCaptured(u8),
    /// The entry of this level cannot be a leaf and says it is one.
    Reserved(u8),
    /// The address is not canonical.
    NotCanonical,
}

/// The steps of a walk and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Every entry that was looked at, the root's first.
    pub steps: Vec<Step>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Walk {
    /// The physical address, when there is one.
    #[must_use]
    pub const fn paddr(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Page { paddr, .. } => Some(paddr),
            _ => None,
        }
    }
}

/// Whether a present entry of a level maps a page.
pub(super) const fn is_leaf(raw: u64, level: u8) -> bool {
    level == 1 || (raw & LARGE != 0 && level <= 3)
}

/// Whether an entry is present.
pub(super) const fn is_present(raw: u64) -> bool {
    raw & PRESENT != 0
}

/// Bytes that an entry of a level covers.
pub(super) const fn reach(level: u8) -> u64 {
    1 << (12 + 9 * (level - 1) as u32)
}

/// Where an address leads; `read` gives words of physical memory.
pub fn walk(tables: Tables, addr: u64, read: &dyn Fn(u64) -> Option<u64>) -> Walk {
    let mut steps = Vec::with_capacity(usize::from(tables.levels));
    if !tables.is_canonical(addr) {
        return Walk { steps, outcome: Outcome::NotCanonical };
    }
    let mut table = tables.root & ADDRESS;
    let mut rights = Rights { write: true, user: true, execute: true };
    for level in (1..=tables.levels).rev() {
        let index = addr / reach(level) % ENTRIES;
        let at = table + index * 8;
        let raw = read(at);
        steps.push(Step { level, index: index as u16, at, raw });
        let Some(raw) = raw else { return Walk { steps, outcome: Outcome::NotCaptured(level) } };
        if !is_present(raw) {
            return Walk { steps, outcome: Outcome::NotPresent(level) };
        }
        if level > 3 && raw & LARGE != 0 {
            return Walk { steps, outcome: Outcome::Reserved(level) };
        }
        rights = rights.and(Rights::of(raw));
        if is_leaf(raw, level) {
            let size = reach(level);
            let paddr = (raw & ADDRESS & !(size - 1)) | (addr & (size - 1));
            return Walk { steps, outcome: Outcome::Page { paddr, size, rights } };
        }
        table = raw & ADDRESS;
    }
    // The last level is always a leaf; tables without levels lead nowhere.
    Walk { steps, outcome: Outcome::NotCaptured(0) }
}
