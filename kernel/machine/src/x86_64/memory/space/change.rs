//! Mapping pages and changing what is mapped.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use super::remove::{Batch, ROOM};
use super::{End, Tables, UserSpace, decode, encode, needs_flush, span, table};
use crate::addr::{FrameNumber, PageRange, UserPage};
use crate::frame::{Frame, OutOfFrames};
use crate::inject;
use crate::mapping::{Leaf, MapError, NumberedFrame, Prot};
use crate::x86_64::interrupts::tlb;
use crate::x86_64::memory::table::{ACCESSED, DIRTY, HUGE};

impl UserSpace {
    /// Map `frame` at `page`. On error the frame is handed back.
    #[inline]
    pub fn map(&self, page: UserPage, frame: Frame, prot: Prot) -> Result<(), (MapError, Frame)> {
        let tables = self.tables();
        let slot = match tables.make_slot(page.addr(), 0) {
            Ok(slot) => slot,
            Err(OutOfFrames) => return Err((MapError::OutOfFrames, frame)),
        };
        if slot.get() != 0 {
            return Err((MapError::Occupied, frame));
        }
        slot.fill(encode(frame.into_number(), prot));
        if inject::is(inject::Fault::NoExecTables) && !prot.exec {
            tables.forbid_execution_above(page.addr());
        }
        Ok(())
    }

    /// Map a run of pages: `next(i)` gives the frame of the `i`th page of `range`; `None` skips that page, and pages
    /// already mapped are skipped without asking. Returns pages mapped; stops early without table frames. This is the
    /// fault-around and prefault path: the walk is done once per table.
    pub fn map_run(&self, range: PageRange, prot: Prot, next: &mut dyn FnMut(usize) -> Option<Frame>) -> usize {
        let tables = self.tables();
        let rights = encode(FrameNumber(0), prot);
        let mut mapped = 0;
        let mut at = range.start();
        while at < range.end() {
            let stop = (at | (super::HUGE_SPAN - 1)).wrapping_add(1).min(range.end());
            let Ok(first) = tables.make_slot(at, 0) else { return mapped };
            if first.huge {
                at = stop;
                continue;
            }
            // SAFETY: the table the slot was found in.
            let entries = unsafe { table::table(first.table.addr()) };
            let (low, mut high, mut count) = (first.index, first.index, 0);
            for (index, entry) in entries.iter().enumerate().take(table::index(stop - 1, 0) + 1).skip(low) {
                let page = ((at - range.start()) >> 12) as usize + index - low;
                if entry.load(Relaxed) == 0
                    && let Some(frame) = next(page)
                {
                    let number = frame.number();
                    if inject::is(inject::Fault::Uncounted) {
                        drop(frame);
                    } else {
                        frame.into_number();
                    }
                    entry.store(rights | number.addr().0, Release);
                    (high, count) = (index, count + 1);
                }
            }
            span::used_run(first.table, low, high, count);
            mapped += count;
            at = stop;
        }
        mapped
    }

    /// Map pages of `range` that are scattered: each of `pages`, which ascend, gets a reference of its own and goes as
    /// far from the range's start as its number is from `first`. Pages already mapped stay, and what would lie outside
    /// the range is left out. Returns pages mapped; stops early without table frames.
    pub fn map_numbered(&self, range: PageRange, prot: Prot, first: u64, pages: &[NumberedFrame]) -> usize {
        // Where page 0 would be; a number below `first` is then far outside the range.
        let base = range.start().wrapping_sub(first.wrapping_mul(super::LEAF_SPAN));
        let address = |page: &NumberedFrame| base.wrapping_add(u64::from(page.number) * super::LEAF_SPAN);
        let inside = |page: &&NumberedFrame| (range.start()..range.end()).contains(&address(page));
        let tables = self.tables();
        let rights = encode(FrameNumber(0), prot);
        let (mut mapped, mut next) = (0, 0);
        while let Some(at) = pages.get(next).filter(inside).map(address) {
            let stop = (at | (super::HUGE_SPAN - 1)).wrapping_add(1).min(range.end());
            let Ok(slot) = tables.make_slot(at, 0) else { break };
            // SAFETY: the table the slot was found in, which a huge leaf's is not used as one of small leaves.
            let entries = unsafe { table::table(slot.table.addr()) };
            let (mut groups, mut count) = (0, 0);
            for page in &pages[next..] {
                let here = address(page);
                // In the same table, and after the first: the numbers ascend.
                if here.wrapping_sub(at) >= stop - at {
                    break;
                }
                next += 1;
                let index = table::index(here, 0);
                if !slot.huge && entries[index].load(Relaxed) == 0 {
                    entries[index].store(rights | page.frame.clone().into_number().addr().0, Release);
                    groups |= span::group(index);
                    count += 1;
                }
            }
            span::used_groups(slot.table, groups, count);
            mapped += count;
        }
        mapped
    }

    /// Replace what is mapped at `page` (CoW break, upgrade): the old frame is released after the flush. `expected`
    /// must still be mapped there as a small page, else nothing happens and the frame comes back: another thread
    /// resolved the same fault.
    pub fn replace(&self, page: UserPage, expected: FrameNumber, frame: Frame, prot: Prot) -> Result<(), Frame> {
        let tables = self.tables();
        let Some(slot) = tables.find(page.addr()).filter(|s| !s.huge && table::frame(s.get()) == expected) else {
            return Err(frame);
        };
        let old = slot.entry.swap(encode(frame.into_number(), prot), SeqCst);
        drop(tables);
        tlb::flush_user(self.active.load(SeqCst), PageRange::one(page));
        // SAFETY: the leaf owned the reference and was exchanged.
        drop(unsafe { Frame::from_number(table::frame(old)) });
        Ok(())
    }

    /// Break copy-on-write at `page`: if this space holds the frame's only reference the leaf just becomes `prot`,
    /// otherwise a copy is mapped. `Ok(false)`: nothing is mapped there (any more).
    pub fn make_private(&self, page: UserPage, prot: Prot) -> Result<bool, OutOfFrames> {
        let tables = self.tables();
        let Some(slot) = tables.find(page.addr()) else { return Ok(false) };
        let old = slot.get();
        if slot.huge {
            if table::tag(old) != prot.tag {
                // A block of others: this page of it is copied.
                tables.split(page.addr(), page.addr())?;
                drop(tables);
                return self.make_private(page, prot);
            }
            // Its block has no other owner: the leaf becomes `prot` whole.
            slot.entry.store(encode(table::frame(old), prot) | old & (HUGE | ACCESSED | DIRTY), SeqCst);
            drop(tables);
            tlb::flush_user(self.active.load(SeqCst) & 1 << crate::percpu::id().0, PageRange::one(page));
            return Ok(true);
        }
        // SAFETY: the leaf owns a reference; it stays in place, so this view of it is not dropped.
        let shared = core::mem::ManuallyDrop::new(unsafe { Frame::from_number(table::frame(old)) });
        if shared.references() == 1 {
            // More rights only: the stale translation costs one more fault at worst, except here, where it just
            // faulted.
            slot.entry.store(encode(shared.number(), prot) | old & (ACCESSED | DIRTY), SeqCst);
            drop(tables);
            tlb::flush_user(self.active.load(SeqCst) & 1 << crate::percpu::id().0, PageRange::one(page));
            return Ok(true);
        }
        let copy = Frame::alloc()?;
        copy.copy_page_from(&shared);
        slot.entry.store(encode(copy.into_number(), prot), SeqCst);
        drop(tables);
        tlb::flush_user(self.active.load(SeqCst), PageRange::one(page));
        drop(core::mem::ManuallyDrop::into_inner(shared));
        Ok(true)
    }

    /// Change rights in `range`: `rule` maps each leaf's present state to its new [`Prot`]. Only leaves that exist are
    /// visited; the flush happens only if a right was taken away. 2 MiB leaves partly inside are split first.
    pub fn protect(&self, range: PageRange, rule: &mut dyn FnMut(&Leaf) -> Prot) -> Result<(), OutOfFrames> {
        let tables = self.tables();
        for edge in [range.start(), range.end()] {
            tables.split_huge(edge)?;
        }
        let mut stale = false;
        tables.for_each_slot(range, &mut |at, slot| {
            let old = slot.get();
            let kept = old & (HUGE | ACCESSED | DIRTY);
            let new = encode(table::frame(old), rule(&decode(old, at))) | kept;
            if new != old {
                // A swap in a loop would only save a mark set in between; marks are hints, rights are not.
                slot.entry.store(new, SeqCst);
                stale |= needs_flush(old, new);
            }
        });
        drop(tables);
        if stale {
            self.forget(range);
        }
        Ok(())
    }

    /// Move the mappings of `from` to the same-sized `to` (mremap), which must be empty and apart from it. On error
    /// nothing has moved.
    pub fn move_range(&self, from: PageRange, to: PageRange) -> Result<(), MapError> {
        let apart = from.end() <= to.start() || to.end() <= from.start();
        if from.pages() != to.pages() || !apart {
            return Err(MapError::Occupied);
        }
        let tables = self.tables();
        for edge in [from.start(), from.end()] {
            tables.split_huge(edge)?;
        }
        let mut room = ROOM;
        if let Err(error) = self.prepare_move(&tables, from, to) {
            let mut batch = Batch::new(self, to, &mut room);
            tables.drop_empty(to, &mut batch);
            drop(tables);
            batch.release();
            return Err(error);
        }
        let shift = to.start().wrapping_sub(from.start());
        tables.for_each_slot(from, &mut |at, slot| {
            // Small after `prepare_move`, whose tables exist: the slot is found.
            if let Some(target) = tables.slot(at.wrapping_add(shift)) {
                target.fill(slot.take());
            }
        });
        let mut batch = Batch::new(self, from, &mut room);
        batch.note_stale();
        if tables.may_leave_empty(from) {
            tables.drop_empty(from, &mut batch);
        }
        drop(tables);
        batch.release();
        Ok(())
    }

    /// Everything about a move that can fail: split 2 MiB leaves, see that the target is empty, make its tables.
    fn prepare_move(&self, tables: &Tables<'_>, from: PageRange, to: PageRange) -> Result<(), MapError> {
        let mut outcome = Ok(());
        tables.for_each_slot(to, &mut |_, _| outcome = Err(MapError::Occupied));
        outcome?;
        let shift = to.start().wrapping_sub(from.start());
        let mut at = from.start();
        while at < from.end() {
            let next = (at | (super::HUGE_SPAN - 1)).wrapping_add(1);
            // A mapping may be of terabytes and hold nothing.
            at = match tables.end_of_walk(at) {
                End::Huge(..) => {
                    tables.split(at, from.end())?;
                    next
                }
                End::Leaves(..) => next,
                End::Nothing { next } => next,
            };
        }
        let mut result = Ok(());
        tables.for_each_slot(from, &mut |at, _| {
            if result.is_ok() {
                result = tables.make_slot(at.wrapping_add(shift), 0).map(|_| ()).map_err(MapError::from);
            }
        });
        result
    }

    /// Read and clear the accessed and dirty marks of the leaf at `page`: `(accessed, dirty)`.
    pub fn test_and_clear_marks(&self, page: UserPage) -> Option<(bool, bool)> {
        let tables = self.tables();
        let slot = tables.find(page.addr())?;
        let old = slot.entry.fetch_and(!(ACCESSED | DIRTY), SeqCst);
        drop(tables);
        tlb::flush_user(self.active.load(SeqCst), PageRange::one(page));
        Some((old & ACCESSED != 0, old & DIRTY != 0))
    }
}
