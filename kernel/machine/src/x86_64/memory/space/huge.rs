//! 2 MiB leaves: made whole, and split into 4 KiB ones when a part of one changes or is shared.
//!
//! A 2 MiB leaf that may be written holds the only reference to its block: what needs a reference to one page of it (a
//! fork, a copy for another process) splits it first. So a split can give each of the 512 frames a count of its own,
//! the pieces are freed one by one, and a leaf never keeps memory that nothing maps.
//!
//! A block that a file keeps ([`UserSpace::map_block`]) is shown by any number of 2 MiB leaves, for reading, each with
//! a reference. It keeps its one count: those of the small leaves of a split count on it too.

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{End, HUGE_SPAN, INNER, LEAF_SPAN, NO_EXEC, Slot, Tables, UserSpace, encode, span, table};
use crate::addr::{HUGE_PAGES, PageRange, UserPage};
use crate::frame::{Frame, OutOfFrames};
use crate::inject;
use crate::mapping::{MapError, Prot, Removed};
use crate::x86_64::memory::table::{HUGE, WRITE};

/// 2 MiB leaves in all spaces, by their tag.
static LEAVES: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// 2 MiB leaves split since boot.
static SPLITS: AtomicUsize = AtomicUsize::new(0);

/// 2 MiB leaves of user spaces now by their tag, and those that were split since boot.
#[must_use]
pub fn huge_leaves() -> ([usize; 4], usize) {
    ([0, 1, 2, 3].map(|tag: usize| LEAVES[tag].load(Relaxed)), SPLITS.load(Relaxed))
}

/// A 2 MiB leaf is gone.
#[cold]
#[inline(never)]
pub(super) fn forgotten(entry: u64) {
    LEAVES[usize::from(table::tag(entry))].fetch_sub(1, Relaxed);
}

impl UserSpace {
    /// One more 2 MiB leaf.
    pub(super) fn made(&self, entry: u64) {
        self.huge.fetch_add(1, Relaxed);
        LEAVES[usize::from(table::tag(entry))].fetch_add(1, Relaxed);
    }

    /// One 2 MiB leaf less.
    #[cold]
    #[inline(never)]
    pub(super) fn unmade(&self, entry: u64) {
        self.huge.fetch_sub(1, Relaxed);
        forgotten(entry);
    }

    /// Map a block of at least 512 frames as one 2 MiB leaf at an aligned page; the leaf holds the only reference to
    /// it. On error the frame is handed back (a block too small, or one with other references, counts as occupied).
    pub fn map_huge(&self, page: UserPage, frame: Frame, prot: Prot) -> Result<(), (MapError, Frame)> {
        if !is_block(page, &frame) || frame.references() != 1 {
            return Err((MapError::Occupied, frame));
        }
        let tables = self.tables();
        match tables.make_slot(page.addr(), 1) {
            Ok(slot) if slot.get() == 0 => {
                let entry = encode(frame.into_number(), prot) | HUGE;
                self.made(entry);
                slot.fill(entry);
                Ok(())
            }
            Ok(_) => Err((MapError::Occupied, frame)),
            Err(OutOfFrames) => Err((MapError::OutOfFrames, frame)),
        }
    }

    /// Show a block of 512 frames that others keep and show too, for reading, as one 2 MiB leaf at an aligned page: the
    /// leaf gets a reference of its own. `false`, and nothing happens, where something is mapped, for another block,
    /// for rights to write, and without a frame for a table.
    pub fn map_block(&self, page: UserPage, block: &Frame, prot: Prot) -> bool {
        if prot.write || !is_block(page, block) {
            return false;
        }
        let tables = self.tables();
        let Some(slot) = tables.make_slot(page.addr(), 1).ok().filter(|slot| slot.get() == 0) else { return false };
        let entry = encode(block.clone().into_number(), prot) | HUGE;
        self.made(entry);
        slot.fill(entry);
        true
    }

    /// Whether neither a leaf nor a table stands where the 2 MiB leaf around `page` would.
    #[inline]
    pub fn is_vacant(&self, page: UserPage) -> bool {
        self.tables().slot(page.addr()).is_none()
    }

    /// Replace the 4 KiB leaves of the 2 MiB from an aligned `page` on by one 2 MiB leaf to `block`, which gets what
    /// they show; the rest of it reads as zeros. Returns the pages that were mapped. The block comes back if there are
    /// no such leaves, or a 2 MiB one.
    pub fn collapse(&self, page: UserPage, block: Frame, prot: Prot) -> Result<Removed, Frame> {
        let at = page.addr();
        let Some(range) = PageRange::new(at, at + HUGE_SPAN).filter(|_| is_block(page, &block)) else {
            return Err(block);
        };
        if block.references() != 1 {
            return Err(block);
        }
        let tables = self.tables();
        let End::Leaves(leaves, entries) = tables.end_of_walk(at) else { return Err(block) };
        let Some((_, above)) = tables.parent_of_leaves(at).filter(|_| span::count(leaves) > 0) else {
            return Err(block);
        };
        let entry = &above[table::index(at, 1)];
        // Out of reach of every processor before it is read: a write in between would be lost.
        entry.store(0, SeqCst);
        self.forget(range);
        let mut removed = Removed::default();
        for (index, leaf) in entries.iter().enumerate() {
            let old = leaf.load(Relaxed);
            if old == 0 {
                block.fill_page(index, None);
                continue;
            }
            removed.add(super::decode(old, at).prot.tag, 1);
            // SAFETY: the leaf owned the reference, and its table is dropped below.
            block.fill_page(index, Some(&unsafe { Frame::from_number(table::frame(old)) }));
        }
        let made = encode(block.into_number(), prot) | HUGE;
        self.made(made);
        entry.store(made, Ordering::Release);
        self.tables.fetch_sub(1, Relaxed);
        // SAFETY: the entry above owned the table, which no processor can reach since the flush.
        drop(unsafe { Frame::from_number(leaves) });
        Ok(removed)
    }

    /// Whether there are 2 MiB leaves.
    #[inline]
    pub fn has_huge(&self) -> bool {
        self.huge.load(Relaxed) != 0
    }

    /// Split the 2 MiB leaves that `range` begins or ends inside of: a change of the range that follows cannot fail for
    /// want of a table.
    pub fn split_edges(&self, range: PageRange) -> Result<(), OutOfFrames> {
        let tables = self.tables();
        tables.split_huge(range.start())?;
        tables.split_huge(range.end())
    }
}

/// 2 MiB leaves split with one flush.
const BATCH: usize = 32;

/// A 2 MiB leaf taken out of the tables to be split, and the table that replaces it.
struct Taken<'a> {
    table: Frame,
    entry: &'a AtomicU64,
    whole: u64,
}

/// Whether a 2 MiB leaf at `page` can show `frame`.
fn is_block(page: UserPage, frame: &Frame) -> bool {
    let aligned = page.addr().is_multiple_of(HUGE_SPAN) && frame.number().0.is_multiple_of(HUGE_PAGES as u32);
    aligned && usize::from(frame.order()) == HUGE_PAGES.ilog2() as usize
}

impl<'a> Tables<'a> {
    /// Split the 2 MiB leaf that `at` lies inside of (not at its start).
    pub(super) fn split_huge(&self, at: u64) -> Result<(), OutOfFrames> {
        if self.space.huge.load(Relaxed) == 0 || at.is_multiple_of(HUGE_SPAN) {
            return Ok(());
        }
        self.find_small(at).map(drop)
    }

    /// The occupied 4 KiB leaf at `at`; a 2 MiB one there is split.
    pub(super) fn find_small(&self, at: u64) -> Result<Option<Slot<'a>>, OutOfFrames> {
        match self.find(at) {
            Some(slot) if slot.huge => {
                self.split(at, at)?;
                Ok(self.find(at))
            }
            found => Ok(found),
        }
    }

    /// Split the 2 MiB leaves that follow each other from `at` on and begin before `end`, the one around `at` in any
    /// case: at most [`BATCH`], so callers come again for the rest. Each is out of reach of every processor before its
    /// table is stored: one that caches both sizes of a translation may raise a machine check (CVE-2018-12207, AMD
    /// erratum 383). A processor that misses the leaf meanwhile takes a fault, waits for the lock of these tables, and
    /// finds the page.
    ///
    /// The tables may come from what is kept back from programs: a split is how memory is given back. Without one for
    /// each, those before it are split.
    #[cold]
    pub(super) fn split(&self, at: u64, end: u64) -> Result<(), OutOfFrames> {
        let first = at & !(HUGE_SPAN - 1);
        let mut taken: [Option<Taken<'_>>; BATCH] = [const { None }; BATCH];
        let mut outcome = Ok(());
        let mut last = first;
        for room in &mut taken {
            let Some(slot) = self.find(last).filter(|slot| slot.huge && (last == first || last < end)) else { break };
            match Frame::alloc_zeroed_for_kernel() {
                Ok(table) => *room = Some(Taken { table, entry: slot.entry, whole: slot.entry.swap(0, SeqCst) }),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            last += HUGE_SPAN;
        }
        if let Some(range) = PageRange::new(first, last).filter(|range| range.pages() > 0) {
            self.space.forget(range);
        }
        taken.into_iter().flatten().for_each(|leaf| self.restore(leaf));
        outcome
    }

    /// Map 512 small leaves in place of a 2 MiB one that no processor caches any more: same rights and marks, each with
    /// a reference to its frame.
    fn restore(&self, leaf: Taken<'_>) {
        let made = leaf.table.into_number();
        span::clear(made);
        self.break_up(leaf.whole);
        let lost = if inject::is(inject::Fault::SplitExecutable) { NO_EXEC } else { 0 };
        // SAFETY: fresh and ours.
        let entries = unsafe { table::table(made.addr()) };
        for (index, entry) in entries.iter().enumerate() {
            entry.store((leaf.whole & !HUGE & !lost) + index as u64 * LEAF_SPAN, Relaxed);
        }
        span::used_run(made, 0, HUGE_PAGES - 1, HUGE_PAGES);
        self.space.tables.fetch_add(1, Relaxed);
        self.space.unmade(leaf.whole);
        SPLITS.fetch_add(1, Relaxed);
        leaf.entry.store(made.addr().0 | INNER, SeqCst);
    }

    /// Give each frame of a 2 MiB leaf's block a reference of its own.
    fn break_up(&self, leaf: u64) {
        if inject::is(inject::Fault::SplitUncounted) {
            return;
        }
        // SAFETY: the leaf owns the reference, which becomes those of the small leaves.
        if let Err(block) = unsafe { Frame::from_number(table::frame(leaf)) }.break_up() {
            // Others show it too: every small leaf keeps the whole block.
            debug_assert!(leaf & WRITE == 0, "a 2 MiB leaf that may be written shares its block");
            (1..HUGE_PAGES).for_each(|_| core::mem::forget(block.clone()));
            block.into_number();
        }
    }
}
