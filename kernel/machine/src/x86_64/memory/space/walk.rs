//! Walking the tables of a space whose lock is held.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use super::{HUGE, HUGE_SPAN, INNER, LEAF_SPAN, NO_EXEC, Table, UserSpace, decode, new_table, span, table};
use crate::addr::{FrameNumber, PageRange};
use crate::frame::OutOfFrames;
use crate::mapping::Leaf;
use crate::sync::SpinGuard;

/// The locked tables of a space.
pub(super) struct Tables<'a> {
    pub(super) space: &'a UserSpace,
    _held: SpinGuard<'a, ()>,
}

/// An entry that may be or is a leaf, in the table of `frame`.
pub(super) struct Slot<'a> {
    pub(super) entry: &'a AtomicU64,
    pub(super) table: FrameNumber,
    pub(super) index: usize,
    /// A 2 MiB entry.
    pub(super) huge: bool,
}

impl Slot<'_> {
    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.entry.load(Relaxed)
    }

    /// Fill an empty entry.
    #[inline]
    pub(super) fn fill(&self, entry: u64) {
        span::used(self.table, self.index);
        self.entry.store(entry, Release);
    }

    /// Empty it, returning what was there, marks included.
    #[inline]
    pub(super) fn take(&self) -> u64 {
        span::unused(self.table);
        self.entry.swap(0, Relaxed)
    }

    /// Decoded for the page at `at`, which may lie inside a 2 MiB leaf.
    pub(super) fn leaf(&self, at: u64) -> Leaf {
        decode(self.get(), at)
    }
}

impl<'a> Tables<'a> {
    #[inline]
    #[track_caller]
    pub(super) fn lock(space: &'a UserSpace) -> Self {
        Self { space, _held: space.lock.lock() }
    }

    fn root(&self) -> &'a Table {
        // SAFETY: the space owns its root while it lives.
        unsafe { table::table(self.space.root.addr()) }
    }

    /// The occupied leaf that covers `at`.
    #[inline]
    pub(super) fn find(&self, at: u64) -> Option<Slot<'a>> {
        let slot = self.slot(at)?;
        (slot.get() != 0).then_some(slot)
    }

    /// The entry that is or would be the leaf for `at`, if its tables exist.
    #[inline]
    pub(super) fn slot(&self, at: u64) -> Option<Slot<'a>> {
        let mut current = self.space.root;
        let mut entries = self.root();
        for level in (1..4).rev() {
            let index = table::index(at, level);
            let entry = entries[index].load(Relaxed);
            if level == 1 && entry & HUGE != 0 {
                return Some(Slot { entry: &entries[index], table: current, index, huge: true });
            }
            if entry == 0 {
                return None;
            }
            current = table::frame(entry);
            // SAFETY: a non-zero intermediate entry owns its table, and changes only under the lock.
            entries = unsafe { table::table(current.addr()) };
        }
        let index = table::index(at, 0);
        Some(Slot { entry: &entries[index], table: current, index, huge: false })
    }

    /// The same, with missing tables made down to `level` (0: a 4 KiB slot, 1: a 2 MiB one).
    #[inline]
    pub(super) fn make_slot(&self, at: u64, level: u32) -> Result<Slot<'a>, OutOfFrames> {
        let mut current = self.space.root;
        let mut entries = self.root();
        for above in (level + 1..4).rev() {
            let index = table::index(at, above);
            let mut entry = entries[index].load(Relaxed);
            if above == 1 && entry & HUGE != 0 {
                return Ok(Slot { entry: &entries[index], table: current, index, huge: true });
            }
            if entry == 0 {
                entry = self.add_table(current, index, &entries[index])?;
            }
            current = table::frame(entry);
            // SAFETY: as in `slot`.
            entries = unsafe { table::table(current.addr()) };
        }
        let index = table::index(at, level);
        Ok(Slot { entry: &entries[index], table: current, index, huge: level == 1 })
    }

    /// The planted bug of the tables: what a leaf may not, the entry above it forbids to all its neighbours.
    #[cold]
    pub(super) fn forbid_execution_above(&self, at: u64) {
        let mut entries = self.root();
        for level in [3, 2] {
            let entry = entries[table::index(at, level)].load(Relaxed);
            if entry == 0 {
                return;
            }
            // SAFETY: as in `slot`.
            entries = unsafe { table::table(table::frame(entry).addr()) };
        }
        entries[table::index(at, 1)].fetch_or(NO_EXEC, Release);
    }

    #[cold]
    fn add_table(&self, parent: FrameNumber, index: usize, entry: &AtomicU64) -> Result<u64, OutOfFrames> {
        let made = new_table()?.addr().0 | INNER;
        span::used(parent, index);
        self.space.tables.fetch_add(1, Relaxed);
        entry.store(made, Release);
        Ok(made)
    }

    /// Visit the occupied leaves in `range`, in order.
    #[inline]
    pub(super) fn for_each_slot(&self, range: PageRange, visit: &mut dyn FnMut(u64, &Slot<'a>)) {
        let mut at = range.start();
        while at < range.end() {
            let stop = (at | (HUGE_SPAN - 1)).wrapping_add(1).min(range.end());
            match self.end_of_walk(at) {
                End::Leaves(table, entries) => {
                    let (first, last) = (table::index(at, 0), table::index(stop - 1, 0));
                    let base = at & !(HUGE_SPAN - 1);
                    // Few entries are looked at sooner than the table's note.
                    if last - first >= span::GROUP {
                        for_each_leaf(table, entries, base, span::within(table, first, last), visit);
                        at = stop;
                        continue;
                    }
                    #[expect(clippy::needless_range_loop, reason = "a slice and an index cost more instructions")]
                    for index in first..last + 1 {
                        if entries[index].load(Relaxed) != 0 {
                            let slot = Slot { entry: &entries[index], table, index, huge: false };
                            visit(base + index as u64 * LEAF_SPAN, &slot);
                        }
                    }
                    at = stop;
                }
                End::Huge(table, entries) => {
                    let index = table::index(at, 1);
                    visit(at & !(HUGE_SPAN - 1), &Slot { entry: &entries[index], table, index, huge: true });
                    at = stop;
                }
                End::Nothing { next } => at = next,
            }
        }
    }

    /// See [`UserSpace::reach`].
    fn reach(&self, range: PageRange, most: usize) -> u64 {
        let (mut at, mut found) = (range.start(), 0);
        while at < range.end() && found < most {
            found += 1;
            let next = (at | (HUGE_SPAN - 1)).wrapping_add(1);
            at = match self.end_of_walk(at) {
                End::Leaves(table, _) => {
                    found += span::count(table);
                    next
                }
                End::Huge(..) => {
                    found += HUGE_WEIGHT;
                    next
                }
                End::Nothing { next } => next,
            };
        }
        at.min(range.end())
    }

    /// Where the walk to `at` ends.
    #[inline]
    pub(super) fn end_of_walk(&self, at: u64) -> End<'a> {
        let mut current = self.space.root;
        let mut entries = self.root();
        for level in (1..4).rev() {
            let index = table::index(at, level);
            let entry = entries[index].load(Relaxed);
            if entry == 0 {
                return End::Nothing { next: next_used(at, current, entries, level) };
            }
            if level == 1 && entry & HUGE != 0 {
                return End::Huge(current, entries);
            }
            current = table::frame(entry);
            // SAFETY: as in `slot`.
            entries = unsafe { table::table(current.addr()) };
        }
        End::Leaves(current, entries)
    }
}

/// A 2 MiB leaf counts like so many small ones.
const HUGE_WEIGHT: usize = 64;

impl UserSpace {
    /// Where a part of `range` ends that has about `most` leaves and tables, so that work on it is bounded: at the end
    /// of a table or of the range.
    #[must_use]
    pub fn reach(&self, range: PageRange, most: usize) -> u64 {
        self.tables().reach(range, most)
    }
}

/// Visits the leaves `used` of a table for the addresses from `base` on. A call of its own: walks are mostly for a few
/// pages and stay small.
#[cold]
#[inline(never)]
fn for_each_leaf<'a>(
    table: FrameNumber,
    entries: &'a Table,
    base: u64,
    used: span::Used,
    visit: &mut dyn FnMut(u64, &Slot<'a>),
) {
    used.for_each(entries, |index, _| {
        let slot = Slot { entry: &entries[index], table, index, huge: false };
        visit(base + index as u64 * LEAF_SPAN, &slot);
    });
}

/// What a walk finds above the 4 KiB leaves.
pub(super) enum End<'a> {
    /// The table of 4 KiB leaves.
    Leaves(FrameNumber, &'a Table),
    /// A 2 MiB leaf, in this table.
    Huge(FrameNumber, &'a Table),
    /// Nothing before `next`.
    Nothing { next: u64 },
}

/// The first address after `at` that an entry in use of this table covers, or where the table ends. So a large empty
/// mapping costs a search of one table, not a walk for each 2 MiB.
#[cold]
pub(super) fn next_used(at: u64, table: FrameNumber, entries: &Table, level: u32) -> u64 {
    let shift = 12 + 9 * level;
    let base = at >> (shift + 9) << (shift + 9);
    let used = span::within(table, table::index(at, level) + 1, 511).find(entries, |_, _| true);
    base + ((used.unwrap_or(512) as u64) << shift)
}
