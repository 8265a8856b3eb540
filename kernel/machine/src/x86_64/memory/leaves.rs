//! Reads page tables for dumps: takes no lock and does not fault, whatever the tables hold.
//!
//! Tables are read through the direct map, word by word, and only where there is RAM; an entry that points elsewhere
//! ends the walk. Other processors may change them meanwhile: each entry is then read before or after its change.

use core::sync::atomic::Ordering::Relaxed;

use super::table::{self, HUGE, PRESENT, Table};
use crate::addr::PhysAddr;
use crate::mapping::Walk;
use crate::x86_64::layout::DIRECT_LIMIT;

/// A leaf entry as it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawLeaf {
    /// The first address it maps.
    pub at: u64,
    /// The raw entry, flags included.
    pub entry: u64,
    /// Bytes it maps.
    pub size: u64,
}

/// What is at `at`, as a table, if that is RAM.
fn table_at(at: u64) -> Option<&'static Table> {
    if at >= DIRECT_LIMIT || !super::probe::backed(at) {
        return None;
    }
    // SAFETY: RAM, shown by the direct map for ever; whatever it holds is only read as words.
    Some(unsafe { table::table(PhysAddr(at)) })
}

/// The entries on the way to `addr` below the root table `root`, the leaf last.
pub fn walk(root: PhysAddr, addr: u64) -> Walk {
    let mut walk = Walk::default();
    let mut at = root.0 & table::ADDRESS;
    for level in (0..4).rev() {
        let index = table::index(addr, level);
        let Some(found) = table_at(at).map(|table| table[index].load(Relaxed)) else { break };
        walk.entries[walk.depth] = found;
        walk.entry_addresses[walk.depth] = at + 8 * index as u64;
        walk.depth += 1;
        if found & PRESENT == 0 || (found & HUGE != 0 && level > 0) {
            break;
        }
        at = found & table::ADDRESS;
    }
    walk
}

/// Visit the leaves in `start..end` below the root table `root`, those that are not present but not empty too, in
/// order, until `visit` says `false`.
pub fn leaves(root: PhysAddr, start: u64, end: u64, visit: &mut dyn FnMut(RawLeaf) -> bool) {
    below(root.0 & table::ADDRESS, 3, start, end, visit);
}

/// The leaves below one table, whose first address is that of `start` rounded down; `false` when told to stop.
fn below(root: u64, level: u32, start: u64, end: u64, visit: &mut dyn FnMut(RawLeaf) -> bool) -> bool {
    let Some(entries) = table_at(root) else { return true };
    let size = 1u64 << (12 + 9 * level);
    let mut at = start & !(size - 1);
    while at < end {
        let found = entries[table::index(at, level)].load(Relaxed);
        let leaf = level == 0 || found & HUGE != 0;
        let goes_on = match found {
            0 => true,
            _ if leaf => visit(RawLeaf { at, entry: found, size }),
            _ if found & PRESENT == 0 => true,
            _ => below(found & table::ADDRESS, level - 1, at.max(start), end.min(at.saturating_add(size)), visit),
        };
        if !goes_on {
            return false;
        }
        let Some(next) = at.checked_add(size) else { return true };
        if table::index(next, level) == 0 {
            return true;
        }
        at = next;
    }
    true
}

/// Visit the tables that the range `start..end` is mapped by, the root among them, until `visit` says `false`.
pub fn tables(root: PhysAddr, start: u64, end: u64, visit: &mut dyn FnMut(PhysAddr) -> bool) {
    let root = root.0 & table::ADDRESS;
    if table_at(root).is_some() && visit(PhysAddr(root)) {
        tables_below(root, 3, start, end, visit);
    }
}

/// The tables below one that was visited, as [`below`]; `false` when told to stop.
fn tables_below(root: u64, level: u32, start: u64, end: u64, visit: &mut dyn FnMut(PhysAddr) -> bool) -> bool {
    let Some(entries) = table_at(root) else { return true };
    let size = 1u64 << (12 + 9 * level);
    let mut at = start & !(size - 1);
    while level > 0 && at < end {
        let found = entries[table::index(at, level)].load(Relaxed);
        let next = found & table::ADDRESS;
        if found & PRESENT != 0 && found & HUGE == 0 && table_at(next).is_some() {
            let goes_on = visit(PhysAddr(next))
                && tables_below(next, level - 1, at.max(start), end.min(at.saturating_add(size)), visit);
            if !goes_on {
                return false;
            }
        }
        match at.checked_add(size) {
            Some(next) if table::index(next, level) != 0 => at = next,
            _ => return true,
        }
    }
    true
}
