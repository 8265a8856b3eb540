//! Copies a parent's mappings into a child's address space: shared or copy-on-write.

use core::sync::atomic::Ordering::Relaxed;

use super::{End, HUGE_SPAN, Tables, UserSpace, span, table};
use crate::addr::{HUGE_PAGES, PageRange};
use crate::frame::{Frame, OutOfFrames};
use crate::mapping::{ForkMode, Removed};
use crate::x86_64::memory::table::{ACCESSED, DIRTY, Table, WRITE};

impl UserSpace {
    /// Give `child` this space's pages in `range`, table by table. The child's range must be empty: a page it has
    /// already stays. With copy-on-write this side loses its write rights too; the caller calls [`flush`](Self::flush)
    /// once after the last range. Returns pages shared, by tag; without a frame for a table the child has part of them.
    pub fn fork_range(&self, child: &Self, range: PageRange, mode: ForkMode) -> Result<Removed, OutOfFrames> {
        let parent = self.tables();
        let child = child.tables();
        let mut shared = Removed::default();
        let mut at = range.start();
        while at < range.end() {
            let stop = (at | (HUGE_SPAN - 1)).wrapping_add(1).min(range.end());
            match parent.end_of_walk(at) {
                End::Leaves(from, entries) => {
                    let wanted = span::within(from, table::index(at, 0), table::index(stop - 1, 0));
                    if !wanted.is_empty() {
                        share_table(entries, &child, at, wanted, mode, &mut shared)?;
                    }
                }
                End::Huge(_, entries) => {
                    if share_block(entries, &child, (at, stop), &mut shared)? {
                        at = stop;
                        continue;
                    }
                    // Each side writes to pages of its own later: shared as 4 KiB ones, each with its count.
                    parent.split(at, range.end())?;
                    continue;
                }
                End::Nothing { next } => {
                    at = next;
                    continue;
                }
            }
            at = stop;
        }
        Ok(shared)
    }
}

/// Show the child the block of a 2 MiB leaf too, if others than the parent keep it for reading and all of it is to be
/// shared. `false`, and nothing happens, if it has to be split.
#[cold]
#[inline(never)]
fn share_block(
    entries: &Table,
    child: &Tables<'_>,
    (at, stop): (u64, u64),
    shared: &mut Removed,
) -> Result<bool, OutOfFrames> {
    let entry = entries[table::index(at, 1)].load(Relaxed);
    if entry & WRITE != 0 || stop - at != HUGE_SPAN {
        return Ok(false);
    }
    // SAFETY: the parent's leaf owns a reference, and stays while its lock is held.
    let block = unsafe { Frame::retain(table::frame(entry)) };
    // Two are the parent's and this one.
    if block.references() <= 2 {
        return Ok(false);
    }
    let slot = child.make_slot(at, 1)?;
    if slot.get() == 0 {
        block.into_number();
        let made = entry & !(ACCESSED | DIRTY);
        child.space.made(made);
        slot.fill(made);
        shared.add(table::tag(entry), HUGE_PAGES);
    }
    Ok(true)
}

/// Share the leaves `wanted` of the parent's table for the addresses around `at` with the child's table for the same.
fn share_table(
    from: &Table,
    child: &Tables<'_>,
    at: u64,
    wanted: span::Used,
    mode: ForkMode,
    shared: &mut Removed,
) -> Result<(), OutOfFrames> {
    let first = child.make_slot(at, 0)?;
    if first.huge {
        return Ok(());
    }
    // SAFETY: the child's table, just walked to under its lock.
    let to = unsafe { table::table(first.table.addr()) };
    let lost = if mode == ForkMode::CopyOnWrite { WRITE } else { 0 };
    let mut count = 0;
    wanted.for_each(from, |index, entry| {
        if to[index].load(Relaxed) != 0 {
            return;
        }
        if entry & lost != 0 {
            from[index].store(entry & !lost, Relaxed);
        }
        // SAFETY: the parent's leaf owns a reference, and stays while its lock is held; the child's leaf gets one of
        // its own.
        core::mem::forget(unsafe { Frame::retain(table::frame(entry)) });
        to[index].store(entry & !(lost | ACCESSED | DIRTY), Relaxed);
        shared.by_tag[usize::from(table::tag(entry))] += 1;
        count += 1;
    });
    shared.pages += count;
    span::used_among(first.table, wanted, count);
    Ok(())
}
