//! Which entries of a table are in use: their number and the lowest and highest index ever used, kept in the frame
//! table's note beside the table. Searching a table means searching its span.

use core::sync::atomic::Ordering::Relaxed;

use crate::addr::FrameNumber;
use crate::frame;

/// Number in bits 0–15, lowest index in 16–31, highest in 32–47.
const EMPTY: u64 = 0x1ff << 16;

/// The note of a table this space owns.
fn note(table: FrameNumber) -> &'static core::sync::atomic::AtomicU64 {
    // SAFETY: callers pass the frames of tables their space owns.
    unsafe { frame::note(table) }
}

/// A fresh table.
pub(super) fn clear(table: FrameNumber) {
    note(table).store(EMPTY, Relaxed);
}

/// One more entry, at `index`.
#[inline]
pub(super) fn used(table: FrameNumber, index: usize) {
    used_run(table, index, index, 1);
}

/// `count` more entries between `first` and `last`.
#[inline]
pub(super) fn used_run(table: FrameNumber, first: usize, last: usize, count: usize) {
    let note = note(table);
    let (number, low, high) = split(note.load(Relaxed));
    note.store((number + count) as u64 | (low.min(first) as u64) << 16 | (high.max(last) as u64) << 32, Relaxed);
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
    split(note(table).load(Relaxed)).0
}

/// The indices between `first` and `last` worth looking at.
#[inline]
pub(super) fn within(table: FrameNumber, first: usize, last: usize) -> core::ops::Range<usize> {
    let (number, low, high) = split(note(table).load(Relaxed));
    if number == 0 { 0..0 } else { first.max(low)..(last.min(high) + 1) }
}

#[inline]
fn split(note: u64) -> (usize, usize, usize) {
    (note as usize & 0xffff, (note >> 16) as usize & 0xffff, (note >> 32) as usize & 0xffff)
}
