//! Unmapping: frames wait in a batch until every processor has flushed their translations.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;

use super::{End, HUGE_SPAN, Tables, UserSpace, decode, span, table};
use crate::addr::{FrameNumber, HUGE_PAGES, PageRange, UserPage};
use crate::frame::{Frame, OutOfFrames};
use crate::mapping::{Leaf, Removed};

/// Frames released per flush.
const BATCH: usize = 128;

/// Memory for a batch, kept apart from its other fields: as one of them the compiler clears it along with the next.
pub(super) type Room = [MaybeUninit<FrameNumber>; BATCH];

/// [`Room`] with nothing in it.
pub(super) const ROOM: Room = [MaybeUninit::uninit(); BATCH];

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
        if removed.pages != 0 && range.end() - range.start() >= HUGE_SPAN {
            tables.drop_empty_tables(range, &mut batch);
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
    /// Let go of leaf tables that `range` covers whole and that are empty now.
    fn drop_empty_tables(&self, range: PageRange, batch: &mut Batch<'_>) {
        let mut at = range.start().next_multiple_of(HUGE_SPAN);
        while at + HUGE_SPAN <= range.end() {
            match self.end_of_walk(at) {
                End::Leaves(leaf_table, _) if span::count(leaf_table) == 0 => {
                    if let Some((parent, entries)) = self.parent_of_leaves(at) {
                        span::unused(parent);
                        self.space.tables.fetch_sub(1, Relaxed);
                        batch.push(entries[table::index(at, 1)].swap(0, Relaxed));
                    }
                    at += HUGE_SPAN;
                }
                End::Nothing { next } => at = next.next_multiple_of(HUGE_SPAN),
                _ => at += HUGE_SPAN,
            }
        }
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
