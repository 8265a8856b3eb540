//! Unmapping: frames wait in a batch until every processor has flushed their translations.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;

use super::walk::next_used;
use super::{HUGE, HUGE_SPAN, Tables, UserSpace, decode, span, table};
use crate::addr::{FrameNumber, HUGE_PAGES, PageRange, UserPage};
use crate::frame::{Frame, OutOfFrames};
use crate::mapping::{Leaf, Removed};

/// Frames released per flush.
const BATCH: usize = 128;

/// Memory for a batch, kept apart from its other fields: as one of them the compiler clears it along with the next.
pub(super) type Room = [MaybeUninit<FrameNumber>; BATCH];

/// [`Room`] with nothing in it.
pub(super) const ROOM: Room = [MaybeUninit::uninit(); BATCH];

/// Tables of a space that is little, the root included: 128 KiB.
const FEW: usize = 32;

/// References taken out of the tables and not yet released.
pub(super) struct Batch<'a> {
    space: &'a UserSpace,
    range: PageRange,
    frames: &'a mut Room,
    len: usize,
    /// Something a processor may have cached is among them.
    stale: bool,
}

impl<'a> Batch<'a> {
    pub(super) fn new(space: &'a UserSpace, range: PageRange, frames: &'a mut Room) -> Self {
        Self { space, range, frames, len: 0, stale: false }
    }

    /// Add the frame an entry owned.
    #[inline]
    pub(super) fn push(&mut self, entry: u64) {
        if self.len == BATCH {
            self.release();
        }
        self.stale |= entry & table::PRESENT != 0;
        self.frames[self.len].write(table::frame(entry));
        self.len += 1;
    }

    /// Add a table that is out of the tree. Processors cache the entries of the levels above leaves for any address.
    #[cold]
    fn push_table(&mut self, entry: u64) {
        self.range = PageRange::ALL;
        self.push(entry);
    }

    /// Translations of the range are stale, whatever is added.
    pub(super) fn note_stale(&mut self) {
        self.stale = true;
    }

    /// Flush, then let go.
    pub(super) fn release(&mut self) {
        if self.stale {
            self.space.forget(self.range);
            self.stale = false;
        }
        for number in &self.frames[..core::mem::take(&mut self.len)] {
            // SAFETY: written by `push`, which was given entries that owned their frame and were taken out.
            drop(unsafe { Frame::from_number(number.assume_init()) });
        }
    }
}

impl UserSpace {
    /// Remove every mapping in `range`; frames are released after the flush. A 2 MiB leaf only partly inside is split
    /// first; if there is no frame for that, it is removed whole only where inside, never beyond `range`, and the rest
    /// is reported by `Err` with what was done so far.
    pub fn unmap(&self, range: PageRange) -> Result<Removed, (Removed, OutOfFrames)> {
        self.unmap_where(range, |_| true)
    }

    /// [`UserSpace::unmap`] of the pages with this tag only.
    pub fn unmap_tagged(&self, range: PageRange, tag: u8) -> Result<Removed, (Removed, OutOfFrames)> {
        self.unmap_where(range, |entry| table::tag(entry) == tag)
    }

    #[inline]
    fn unmap_where(&self, range: PageRange, wanted: impl Fn(u64) -> bool) -> Result<Removed, (Removed, OutOfFrames)> {
        let mut removed = Removed::default();
        let tables = self.tables();
        for edge in [range.start(), range.end()] {
            tables.split_huge(edge).map_err(|e| (removed, e))?;
        }
        let mut room = ROOM;
        let mut batch = Batch::new(self, range, &mut room);
        tables.for_each_slot(range, &mut |at, slot| {
            if !wanted(slot.get()) {
                return;
            }
            removed.add(decode(slot.get(), at).prot.tag, if slot.huge { HUGE_PAGES } else { 1 });
            if slot.huge {
                self.unmade(slot.get());
            }
            batch.push(slot.take());
        });
        if tables.may_leave_empty(range) {
            tables.drop_empty(range, &mut batch);
        }
        drop(tables);
        batch.release();
        Ok(removed)
    }

    /// Remove the mapping of one page and hand its frame over, after the flush. A page inside a 2 MiB leaf is not
    /// taken.
    pub fn take(&self, page: UserPage) -> Option<(Frame, Leaf)> {
        let tables = self.tables();
        let slot = tables.find(page.addr()).filter(|slot| !slot.huge)?;
        let entry = slot.take();
        drop(tables);
        self.forget(PageRange::one(page));
        // SAFETY: the entry owned the reference and was taken out.
        Some((unsafe { Frame::from_number(table::frame(entry)) }, decode(entry, page.addr())))
    }
}

impl Tables<'_> {
    /// Whether tables that a change of `range` left empty are given back at once. Of a small range that is not worth
    /// its instructions while there are few: the next mapping there needs them.
    #[inline]
    pub(super) fn may_leave_empty(&self, range: PageRange) -> bool {
        range.end() - range.start() >= HUGE_SPAN || self.space.tables.load(Relaxed) > FEW
    }

    /// Give back the tables for addresses in `range` that hold nothing now, of every level but the root. An empty one
    /// may cover more than the range: no mapping is lost with it.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_empty(&self, range: PageRange, batch: &mut Batch<'_>) {
        let mut at = range.start();
        while at < range.end() {
            at = self.drop_empty_at(at, batch);
        }
    }

    /// Give back the empty tables on the way to `at`, from the lowest up. Returns the next address that has others.
    fn drop_empty_at(&self, at: u64, batch: &mut Batch<'_>) -> u64 {
        // SAFETY: as in `slot`: the root, and what non-zero intermediate entries own, are tables under the lock.
        let entries = |number: FrameNumber| unsafe { table::table(number.addr()) };
        let entry = |number, level| &entries(number)[table::index(at, level)];
        let (mut way, mut level) = ([self.space.root; 4], 3);
        let lowest = loop {
            let found = entry(way[level], level as u32).load(Relaxed);
            if level == 0 || found == 0 || found & HUGE != 0 {
                break found;
            }
            level -= 1;
            way[level] = table::frame(found);
        };
        let reached = level;
        while level < 3 && span::count(way[level]) == 0 {
            level += 1;
            span::unused(way[level]);
            self.space.tables.fetch_sub(1, Relaxed);
            batch.push_table(entry(way[level], level as u32).swap(0, Relaxed));
        }
        if level == reached && (level == 0 || lowest != 0) {
            return (at | (HUGE_SPAN - 1)).wrapping_add(1);
        }
        next_used(at, way[level], entries(way[level]), level as u32)
    }

    /// The table whose entries point to tables of 4 KiB leaves, on the way to `at`.
    pub(super) fn parent_of_leaves(&self, at: u64) -> Option<(FrameNumber, &'static table::Table)> {
        let mut current = self.space.root;
        for level in [3, 2] {
            // SAFETY: as in `slot`: non-zero intermediate entries own their tables.
            let entry = unsafe { table::table(current.addr()) }[table::index(at, level)].load(Relaxed);
            if entry == 0 {
                return None;
            }
            current = table::frame(entry);
        }
        // SAFETY: as above.
        Some((current, unsafe { table::table(current.addr()) }))
    }
}
