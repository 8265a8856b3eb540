//! Which entries of a table are in use: their number and the groups of entries ever used, kept in the frame table's
//! note beside the table. Searching a table means searching those groups.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::Table;
use crate::addr::FrameNumber;
use crate::frame;

/// Entries that share a bit of the note.
pub(super) const GROUP: usize = 16;
/// Entries looked at with one branch: most are empty.
const FEW: usize = 4;
/// Of the note: the number is in the bits below, a bit per group is from here on.
const GROUPS_SHIFT: u32 = 32;

/// Entries of a table worth looking at. All others are zero: an entry is stored after its group is noted, and a group
/// stays noted while the table is one.
#[derive(Clone, Copy)]
pub(super) struct Used {
    /// A bit for each group that has some.
    groups: u32,
    first: usize,
    last: usize,
}

impl Used {
    /// No entry is.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.groups == 0
    }

    /// The first index whose entry is in use and for which `wanted(index, entry)` holds.
    #[inline]
    pub(super) fn find(self, entries: &Table, mut wanted: impl FnMut(usize, u64) -> bool) -> Option<usize> {
        let mut groups = self.groups;
        while groups != 0 {
            let start = groups.trailing_zeros() as usize * GROUP;
            groups &= groups - 1;
            for few in (start..start + GROUP).step_by(FEW) {
                if is_empty(&entries[few..few + FEW]) {
                    continue;
                }
                #[expect(clippy::needless_range_loop, reason = "a slice and an index cost more instructions")]
                for index in few..few + FEW {
                    let entry = entries[index].load(Relaxed);
                    if entry != 0 && (self.first..=self.last).contains(&index) && wanted(index, entry) {
                        return Some(index);
                    }
                }
            }
        }
        None
    }

    /// Takes every entry in use out of a table that no processor can reach, calling `visit(entry)` with each, in order.
    /// The entries looked at are zero afterwards.
    #[inline]
    pub(super) fn take_each(self, entries: &Table, mut visit: impl FnMut(u64)) {
        let mut groups = self.groups;
        while groups != 0 {
            let start = groups.trailing_zeros() as usize * GROUP;
            groups &= groups - 1;
            for few in entries[start..start + GROUP].chunks_exact(FEW) {
                if is_empty(few) {
                    continue;
                }
                for entry in few {
                    let owned = entry.load(Relaxed);
                    if owned != 0 {
                        entry.store(0, Relaxed);
                        visit(owned);
                    }
                }
            }
        }
    }

    /// Calls `visit(index, entry)` for each entry in use, in order.
    #[inline]
    pub(super) fn for_each(self, entries: &Table, mut visit: impl FnMut(usize, u64)) {
        self.find(entries, |index, entry| {
            visit(index, entry);
            false
        });
    }
}

/// Whether none of these entries is in use.
#[inline(always)]
fn is_empty(entries: &[AtomicU64]) -> bool {
    entries.iter().fold(0, |any, entry| any | entry.load(Relaxed)) == 0
}

/// The note of a table this space owns.
fn note(table: FrameNumber) -> &'static AtomicU64 {
    // SAFETY: callers pass the frames of tables their space owns.
    unsafe { frame::note(table) }
}

/// A fresh table.
pub(super) fn clear(table: FrameNumber) {
    note(table).store(0, Relaxed);
}

/// One more entry, at `index`.
#[inline]
pub(super) fn used(table: FrameNumber, index: usize) {
    used_run(table, index, index, 1);
}

/// `count` more entries between `first` and `last`.
#[inline]
pub(super) fn used_run(table: FrameNumber, first: usize, last: usize, count: usize) {
    used_among(table, Used { groups: groups(first, last), first, last }, count);
}

/// `count` more entries among `used`.
#[inline]
pub(super) fn used_among(table: FrameNumber, used: Used, count: usize) {
    let note = note(table);
    note.store((note.load(Relaxed) + count as u64) | u64::from(used.groups) << GROUPS_SHIFT, Relaxed);
}

/// The group of an entry, for [`used_groups`].
#[inline]
pub(super) fn group(index: usize) -> u32 {
    1 << (index / GROUP)
}

/// `count` more entries, in these groups.
#[inline]
pub(super) fn used_groups(table: FrameNumber, groups: u32, count: usize) {
    used_among(table, Used { groups, first: 0, last: 0 }, count);
}

/// One entry less. The bounds stay.
#[inline]
pub(super) fn unused(table: FrameNumber) {
    let note = note(table);
    note.store(note.load(Relaxed) - 1, Relaxed);
}

/// Entries in use.
#[inline]
pub(super) fn count(table: FrameNumber) -> usize {
    usize::from(note(table).load(Relaxed) as u16)
}

/// The entries between `first` and `last` worth looking at.
#[inline]
pub(super) fn within(table: FrameNumber, first: usize, last: usize) -> Used {
    let note = note(table).load(Relaxed);
    let used = if note as u16 == 0 { 0 } else { (note >> GROUPS_SHIFT) as u32 };
    Used { groups: used & groups(first, last), first, last }
}

/// The groups of the entries from `first` to `last`; none if there are no such entries.
#[inline]
fn groups(first: usize, last: usize) -> u32 {
    if first > last { 0 } else { (u32::MAX << (first / GROUP)) & (u32::MAX >> (31 - last / GROUP)) }
}
