//! Drops an address space: frees tables and drops frame references. No processor has it loaded, so no TLB is flushed.

use super::{HUGE, UserSpace, span, table};
use crate::addr::FrameNumber;
use crate::frame::Frame;
use crate::inject;

impl Drop for UserSpace {
    fn drop(&mut self) {
        release(self.root, 3);
    }
}

/// Release what `table` owns, then the table.
fn release(table: FrameNumber, level: u32) {
    // SAFETY: the space owns its tables, and is being dropped.
    let entries = unsafe { table::table(table.addr()) };
    // The upper half of a root is the kernel's; its notes never reach there.
    let used = span::within(table, 0, 511);
    if level > 0 {
        used.for_each(entries, |_, entry| {
            if entry & HUGE == 0 {
                return release(table::frame(entry), level - 1);
            }
            super::huge::forgotten();
            release_leaf(entry);
        });
    } else if inject::is(inject::Fault::KeepReferences) || inject::is(inject::Fault::DropTwice) {
        used.for_each(entries, |_, entry| release_leaf(entry));
    } else {
        // SAFETY: a leaf owns one reference, given up here.
        used.for_each(entries, |_, entry| drop(unsafe { Frame::from_number(table::frame(entry)) }));
    }
    // SAFETY: the entry above, or the space, owned the table.
    drop(unsafe { Frame::from_number(table) });
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
