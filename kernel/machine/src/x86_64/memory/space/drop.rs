//! Drops an address space: frees tables and drops frame references. No processor has it loaded, so no TLB is flushed.
//!
//! What a table owned is taken out entry by entry, so that the table is all zeros again when it is given back: the next
//! one is made of it without being cleared.

use core::sync::atomic::Ordering::Relaxed;

use super::{HUGE, UserSpace, span, table};
use crate::addr::FrameNumber;
use crate::frame::Frame;
use crate::inject;
use crate::x86_64::layout::kernel_root_slots;

impl Drop for UserSpace {
    fn drop(&mut self) {
        // SAFETY: the space owns its root, and is being dropped.
        let root = unsafe { table::table(self.root.addr()) };
        for slot in kernel_root_slots() {
            root[slot].store(0, Relaxed);
        }
        release(self.root, 3);
    }
}

/// Release what `table` owns, then the table.
fn release(table: FrameNumber, level: u32) {
    // SAFETY: the space owns its tables, and is being dropped.
    let entries = unsafe { table::table(table.addr()) };
    // Notes never reach the kernel's half of a root.
    let used = span::within(table, 0, 511);
    if level > 0 {
        used.take_each(entries, |entry| {
            if entry & HUGE == 0 {
                return release(table::frame(entry), level - 1);
            }
            super::huge::forgotten(entry);
            release_leaf(entry);
        });
    } else if inject::is(inject::Fault::KeepReferences) || inject::is(inject::Fault::DropTwice) {
        used.take_each(entries, release_leaf);
    } else {
        // SAFETY: a leaf owns one reference, given up here.
        used.take_each(entries, |entry| drop(unsafe { Frame::from_number(table::frame(entry)) }));
    }
    // SAFETY: the entry above, or the space, owned the table, which is all zeros: what was in use was taken out, and
    // the rest never was (see `span::Used`).
    unsafe { Frame::from_number(table).drop_cleared() };
}

/// Release what a leaf owns, as the planted bugs have it.
#[cold]
fn release_leaf(entry: u64) {
    if inject::is(inject::Fault::KeepReferences) {
        return;
    }
    if inject::is(inject::Fault::DropTwice) && table::tag(entry) == 1 {
        // SAFETY: none, on purpose: the planted bug, a reference dropped that another owner holds.
        drop(unsafe { Frame::from_number(table::frame(entry)) });
    }
    // SAFETY: a leaf owns one reference, given up here.
    drop(unsafe { Frame::from_number(table::frame(entry)) });
}
