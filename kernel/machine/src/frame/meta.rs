//! The table of reference counts: who may make a [`Frame`](super::Frame), and when its memory is free.
//!
//! Entries become ready in steps, from the lowest frame on ([`make_ready`]); a number beyond them is of no frame.
//!
//! Per frame four words. *count*: 0 free, [`RESERVED`] never to be handed out (not RAM, the kernel, the inside of a
//! block), else references; from [`IMMORTAL`] on it only saturates, so that it can never wrap to free. *info*: the
//! order of the block this frame heads, or [`TAIL`] and the number of its head; three bits of it are the crash path's
//! ([`set_tag`]). *note*: 64 bits for the owner of a frame that is a page table.
//!
//! Invariant: a count moves from 0 only by [`claim`], and back to 0 only in [`release`] by the thread that drops the
//! last reference; so between the two the memory belongs to the references, whatever the allocator policy does.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::{MAX_ORDER, poison};
use crate::addr::{FrameNumber, FrameRange};
use crate::sync::SpinLock;

const RESERVED: u32 = u32::MAX;
const IMMORTAL: u32 = 1 << 31;
const TAIL: u32 = 1 << 31;
/// Where the crash path's tag stands in *info*.
const TAG_SHIFT: u32 = 28;
/// The number of a tail's head. It fits: the direct map shows at most 2^27 frames.
const HEAD: u32 = (1 << TAG_SHIFT) - 1;
/// Largest value of a tag.
pub const MOST_TAG: u8 = 7;

/// One frame's entry.
pub(super) struct Meta {
    count: AtomicU32,
    info: AtomicU32,
    note: AtomicU64,
}

static TABLE: AtomicPtr<Meta> = AtomicPtr::new(core::ptr::null_mut());
/// Entries that are ready; the numbers from here on are of no frame yet.
static LIMIT: AtomicU32 = AtomicU32::new(0);

/// Bytes of table per frame.
pub(crate) const ENTRY_SIZE: usize = size_of::<Meta>();

/// Where the table ends, and which of its frames are free at boot.
struct Extent {
    end: u32,
    free: &'static [FrameRange],
}

static EXTENT: SpinLock<Extent> = SpinLock::new(Extent { end: 0, free: &[] });

/// Take `table`, whatever it holds, for the frames below `end`; none is ready.
///
/// # Safety
/// Once, with otherwise unused memory, large enough for `end` entries; `free` holds unused RAM, ascending.
pub(crate) unsafe fn init(table: *mut u8, end: u32, free: &'static [FrameRange]) {
    TABLE.store(table.cast(), Ordering::Relaxed);
    *EXTENT.lock_irq() = Extent { end, free };
}

/// Let the frames below `to` be handed out: their entries are written now, and those that boot did not find free are
/// reserved. A kernel calls it before it hands them out, in as many steps as it likes: in a large machine the table is
/// too large to be written at boot. Any context.
pub fn make_ready(to: FrameNumber) {
    let extent = EXTENT.lock_irq();
    let from = LIMIT.load(Ordering::Relaxed);
    let to = to.0.min(extent.end);
    if to <= from {
        return;
    }
    let entry = |number: u32| TABLE.load(Ordering::Relaxed).wrapping_add(number as usize);
    // SAFETY: entries of the table that are not ready, so no reference to them exists; zeros are a valid entry.
    unsafe { entry(from).write_bytes(0, (to - from) as usize) };
    let reserve = |from: u32, to: u32| {
        for number in from..to {
            // SAFETY: an entry of the table, written above.
            unsafe { &*entry(number) }.count.store(RESERVED, Ordering::Relaxed);
        }
    };
    let mut next = from;
    for range in extent.free {
        let (start, end) = (range.start.0.clamp(next, to), range.end.0.clamp(next, to));
        reserve(next, start);
        next = end;
    }
    reserve(next, to);
    LIMIT.store(to, Ordering::Release);
}

/// The entry of a number that may be anything.
pub(super) fn get(number: FrameNumber) -> Option<&'static Meta> {
    // SAFETY: `LIMIT` entries of the table are written, and it lives for ever; it is 0 before `init`.
    (number.0 < LIMIT.load(Ordering::Relaxed))
        .then(|| unsafe { &*TABLE.load(Ordering::Relaxed).add(number.0 as usize) })
}

/// The entry of a frame that has at least one reference.
///
/// # Safety
/// `number` is that of a live reference.
#[inline]
unsafe fn held(number: FrameNumber) -> &'static Meta {
    // SAFETY: references are only made for numbers within the table.
    unsafe { &*TABLE.load(Ordering::Relaxed).add(number.0 as usize) }
}

/// The entry that counts for a held frame, and the number of the block's head.
///
/// # Safety
/// As for [`held`].
#[inline]
unsafe fn counter(number: FrameNumber) -> (&'static Meta, FrameNumber) {
    // SAFETY: the caller's; a tail's head is in the table too.
    unsafe {
        let meta = held(number);
        let info = meta.info.load(Ordering::Relaxed);
        if info & TAIL == 0 { (meta, number) } else { (held(FrameNumber(info & HEAD)), FrameNumber(info & HEAD)) }
    }
}

/// What is counted for a number that may be anything; `None` for a frame that is never handed out.
pub(super) fn count(number: FrameNumber) -> Option<u32> {
    let meta = get(number)?;
    let info = meta.info.load(Ordering::Relaxed);
    let meta = if info & TAIL == 0 { meta } else { get(FrameNumber(info & HEAD))? };
    Some(meta.count.load(Ordering::Relaxed)).filter(|count| *count != RESERVED)
}

/// Move a free frame's count from 0 to 1; `true` makes the caller its owner.
///
/// In the ludicrous profile the policy's word is taken for it: then soundness rests on the kernel's buddy, which
/// refuses a frame that it holds already.
#[inline]
pub(super) fn claim(number: FrameNumber) -> bool {
    #[cfg(feature = "ludicrous")]
    let claimed = get(number).is_some_and(|meta| {
        meta.count.store(1, Ordering::Relaxed);
        true
    });
    #[cfg(not(feature = "ludicrous"))]
    let claimed =
        get(number).is_some_and(|m| m.count.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok());
    claimed
}

/// In the fortress profile: a count that a reference is added to or taken from belongs to a frame in use.
#[inline(always)]
fn check_in_use(number: FrameNumber, count: u32) {
    #[cfg(feature = "fortress")]
    assert!(
        count != 0 && count != RESERVED,
        "frame {:#x}: a reference was taken while its count was {count:#x}",
        number.0
    );
    #[cfg(not(feature = "fortress"))]
    let _ = (number, count);
}

/// Claim a whole block; all or nothing.
pub(super) fn claim_block(head: FrameNumber, order: u8) -> bool {
    if order > MAX_ORDER || !head.0.is_multiple_of(1 << order) || !claim(head) {
        return false;
    }
    for tail in head.0 + 1..head.0 + (1 << order) {
        if !claim(FrameNumber(tail)) {
            for taken in head.0..tail {
                if let Some(meta) = get(FrameNumber(taken)) {
                    meta.info.store(0, Ordering::Relaxed);
                    meta.count.store(0, Ordering::Release);
                }
            }
            return false;
        }
        if let Some(meta) = get(FrameNumber(tail)) {
            meta.info.store(TAIL | head.0, Ordering::Relaxed);
            meta.count.store(RESERVED, Ordering::Relaxed);
        }
    }
    if let Some(meta) = get(head) {
        meta.info.store(u32::from(order), Ordering::Relaxed);
    }
    true
}

/// One more reference.
///
/// # Safety
/// As for [`held`].
#[inline]
pub(super) unsafe fn retain(number: FrameNumber) {
    // SAFETY: the caller's.
    let (meta, _) = unsafe { counter(number) };
    let before = meta.count.fetch_add(1, Ordering::Relaxed);
    check_in_use(number, before);
    if before >= IMMORTAL {
        meta.count.store(IMMORTAL, Ordering::Relaxed);
    }
}

/// One reference less, if that is all there is to do: a single frame that others still reference. `false` leaves
/// everything to [`release`].
///
/// # Safety
/// As for [`release`], when this returns `true`.
#[inline(always)]
pub(super) unsafe fn release_shared(number: FrameNumber) -> bool {
    // SAFETY: the caller's.
    let meta = unsafe { held(number) };
    let mut count = meta.count.load(Ordering::Relaxed);
    if meta.info.load(Ordering::Relaxed) != 0 {
        return false;
    }
    while (2..IMMORTAL).contains(&count) {
        match meta.count.compare_exchange_weak(count, count - 1, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(now) => count = now,
        }
    }
    false
}

/// The reference of a single frame that has no other is gone: the frame is free, its bytes and its note stay. `false`
/// leaves everything to [`release`].
///
/// # Safety
/// As for [`release`], when this returns `true`.
#[inline(always)]
pub(super) unsafe fn release_only(number: FrameNumber) -> bool {
    // SAFETY: the caller's.
    let meta = unsafe { held(number) };
    let is_only = meta.info.load(Ordering::Relaxed) == 0 && meta.count.load(Ordering::Acquire) == 1;
    if is_only {
        meta.count.store(0, Ordering::Release);
    }
    is_only
}

/// One reference less. `Some` if it was the last: the block is free now and the caller must give it to the policy.
///
/// # Safety
/// As for [`held`]; the caller's reference is gone afterwards.
#[inline]
pub(super) unsafe fn release(number: FrameNumber) -> Option<(FrameNumber, u8)> {
    // SAFETY: the caller's.
    let (meta, head) = unsafe { counter(number) };
    let count = meta.count.load(Ordering::Acquire);
    check_in_use(number, count);
    if count != 1 {
        // Not the only one, or not any more: let the decrement decide.
        if count >= IMMORTAL || meta.count.fetch_sub(1, Ordering::AcqRel) != 1 {
            return None;
        }
    }
    let order = meta.info.load(Ordering::Relaxed) as u8;
    for piece in (head.0..head.0 + (1 << order)).map(FrameNumber) {
        // SAFETY: a frame of the caller's block, whose note is unused while the frame is free.
        poison::fill(piece, || unsafe { note(piece) });
    }
    if order != 0 {
        free_tails(head, order);
        meta.info.store(0, Ordering::Relaxed);
    }
    meta.count.store(0, Ordering::Release);
    Some((head, order))
}

/// Make the block headed by `head` single frames with one reference each. `false`, and nothing happens, if its count is
/// not the one reference of the caller.
///
/// # Safety
/// As for [`held`]; when this returns `true` the caller has a reference to each of the frames instead of one to the
/// block.
#[cold]
pub(super) unsafe fn break_up(head: FrameNumber, order: u8) -> bool {
    // SAFETY: the caller's.
    let meta = unsafe { held(head) };
    if meta.count.load(Ordering::Acquire) != 1 {
        return false;
    }
    for tail in head.0 + 1..head.0 + (1 << order) {
        if let Some(meta) = get(FrameNumber(tail)) {
            // Never 0 in between: a frame with that count may be claimed.
            meta.count.store(1, Ordering::Relaxed);
            meta.info.store(0, Ordering::Relaxed);
        }
    }
    meta.info.store(0, Ordering::Release);
    true
}

#[cold]
fn free_tails(head: FrameNumber, order: u8) {
    for tail in head.0 + 1..head.0 + (1 << order) {
        if let Some(meta) = get(FrameNumber(tail)) {
            meta.info.store(0, Ordering::Relaxed);
            meta.count.store(0, Ordering::Release);
        }
    }
}

/// The word a page table's owner keeps beside it. It holds whatever the last owner left.
///
/// # Safety
/// As for [`held`].
#[inline]
pub(crate) unsafe fn note(number: FrameNumber) -> &'static AtomicU64 {
    // SAFETY: the caller's.
    unsafe { &held(number).note }
}

/// References to the block `number` is in.
///
/// # Safety
/// As for [`held`].
#[inline]
pub(super) unsafe fn references(number: FrameNumber) -> u32 {
    // SAFETY: the caller's.
    unsafe { counter(number) }.0.count.load(Ordering::Acquire)
}

/// Order of the block headed by `number`; 0 for a tail.
///
/// # Safety
/// As for [`held`].
#[inline]
pub(super) unsafe fn order(number: FrameNumber) -> u8 {
    // SAFETY: the caller's.
    let info = unsafe { held(number) }.info.load(Ordering::Relaxed);
    if info & TAIL == 0 { info as u8 } else { 0 }
}

/// What the table says about a frame, for audits and dumps; a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameState {
    /// Not RAM, RAM that was never free (kernel image, initrd, this table), or not ready yet.
    Reserved,
    /// Without references: held by the allocator policy or in a magazine.
    Free,
    /// Allocated, with at least one reference.
    Used {
        /// References to the frame or its block.
        count: u32,
        /// log2 of the block's frames.
        order: u8,
        /// First frame of the block.
        head: FrameNumber,
    },
}

/// The state of any frame number. Never fails, takes no lock.
pub fn state(number: FrameNumber) -> FrameState {
    let Some(meta) = get(number) else { return FrameState::Reserved };
    let info = meta.info.load(Ordering::Relaxed);
    let head = if info & TAIL == 0 { number } else { FrameNumber(info & HEAD) };
    let Some(counter) = get(head) else { return FrameState::Reserved };
    match counter.count.load(Ordering::Relaxed) {
        0 => FrameState::Free,
        RESERVED => FrameState::Reserved,
        count => FrameState::Used { count, order: counter.info.load(Ordering::Relaxed) as u8, head },
    }
}

/// What the crash path has noted of a frame: 0 until `set_tag`, `None` for a number that is of no frame yet.
pub fn tag(number: FrameNumber) -> Option<u8> {
    Some((get(number)?.info.load(Ordering::Relaxed) >> TAG_SHIFT) as u8 & MOST_TAG)
}

/// Notes something of a frame, at most [`MOST_TAG`]. A frame that is handed out or released loses its tag.
pub(crate) fn set_tag(number: FrameNumber, tag: u8) {
    let Some(meta) = get(number) else { return };
    let info = meta.info.load(Ordering::Relaxed) & !(u32::from(MOST_TAG) << TAG_SHIFT);
    meta.info.store(info | u32::from(tag & MOST_TAG) << TAG_SHIFT, Ordering::Relaxed);
}
