//! Physical frames as owned, counted references.
//!
//! Every RAM frame has an entry in a table only this module writes: a reference count, and whether the frame is part of
//! a larger block. A [`Frame`] is one reference: cloning adds one, dropping takes one away, and the last drop gives the
//! frame back to the kernel's allocator. That allocator (the *policy*) is ordinary safe code and not trusted: what it
//! hands out becomes a `Frame` only by moving the count from 0 to 1 atomically, so a frame has never two owners.
//!
//! *Blocks*: a block of `2^order` frames has one count, on its first frame. [`Frame::sub`] makes a reference to a
//! single frame inside it, counted on the block; so a 2 MiB page that was partly unmapped is freed when its last piece
//! goes.
//!
//! Single frames pass through a small magazine per processor; the policy is asked for and given batches.
//!
//! Contents are shared with programs that may write at any time, so there is no `&[u8]` of a frame, only copies.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::addr::{FrameNumber, PAGE_SIZE, PhysAddr, UserAddr};
use crate::hooks::hooks;
use crate::user::{self, Fault};
use crate::x86_64::cpu::memory;
use crate::x86_64::layout::direct;

mod magazine;
mod meta;
mod poison;

pub use magazine::{drain_magazines, in_magazines, prepare_cleared, prepared};
pub(crate) use meta::{ENTRY_SIZE, init, note, set_tag};
pub use meta::{FrameState, MOST_TAG, make_ready, state, tag};

/// The largest block: 2^10 frames, 4 MiB.
pub const MAX_ORDER: u8 = 10;

/// One reference to a frame, or to a block of frames. `clone` is one atomic increment.
#[derive(PartialEq, Eq, Debug)]
pub struct Frame {
    number: FrameNumber,
}

/// No memory could be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfFrames;

impl Frame {
    /// A frame with whatever bytes it last held. Never show it to a program before overwriting it.
    #[inline]
    pub fn alloc() -> Result<Self, OutOfFrames> {
        let number = magazine::take().ok_or(OutOfFrames)?;
        // SAFETY: just taken: the note is this reference's.
        poison::verify(number, || unsafe { note(number) });
        Ok(Self { number })
    }

    /// A frame of zeros.
    #[inline]
    pub fn alloc_zeroed() -> Result<Self, OutOfFrames> {
        let frame = Self::alloc()?;
        // SAFETY: the frame is ours alone, and RAM in the direct map.
        unsafe { memory::zero_page(frame.base()) };
        Ok(frame)
    }

    /// A frame of zeros for a page table: one that [`drop_cleared`](Self::drop_cleared) gave back or an idle processor
    /// cleared, or a fresh one.
    #[inline]
    pub(crate) fn alloc_cleared() -> Result<Self, OutOfFrames> {
        let Some(number) = magazine::take_cleared() else { return Self::alloc_zeroed() };
        poison::verify_cleared(number);
        Ok(Self { number })
    }

    /// Gives back a frame of zeros, for [`alloc_cleared`](Self::alloc_cleared) if this is the only reference.
    ///
    /// # Safety
    /// Every byte of the frame is 0, and nothing writes to it any more.
    #[inline]
    pub(crate) unsafe fn drop_cleared(self) {
        poison::verify_cleared(self.number);
        let number = self.into_number();
        // SAFETY: the reference that was `self`, gone after one of these.
        unsafe {
            if meta::release_only(number) {
                magazine::put_cleared(number);
            } else {
                release_last(number);
            }
        }
    }

    /// A block of `2^order` frames aligned to its size, contents undefined.
    pub fn alloc_block(order: u8) -> Result<Self, OutOfFrames> {
        if order == 0 {
            return Self::alloc();
        }
        let number = (hooks().take_block)(order).ok_or(OutOfFrames)?;
        if !meta::claim_block(number, order) {
            return Err(OutOfFrames);
        }
        for piece in (number.0..number.0 + (1 << order)).map(FrameNumber) {
            // SAFETY: a frame of the block just claimed.
            poison::verify(piece, || unsafe { note(piece) });
        }
        Ok(Self { number })
    }

    /// A block of `2^order` frames of zeros, aligned to its size.
    pub fn alloc_zeroed_block(order: u8) -> Result<Self, OutOfFrames> {
        let block = Self::alloc_block(order)?;
        for index in 0..1 << order {
            // SAFETY: a page of the block, which is ours alone, and RAM in the direct map.
            unsafe { memory::zero_page(block.base().add(index * PAGE_SIZE)) };
        }
        Ok(block)
    }

    /// A frame of zeros for the kernel itself, from what is kept back from programs if need be.
    pub(crate) fn alloc_zeroed_for_kernel() -> Result<Self, OutOfFrames> {
        let frame = Self::alloc().or_else(|_| Self::alloc_for_kernel())?;
        // SAFETY: the frame is ours alone, and RAM in the direct map.
        unsafe { memory::zero_page(frame.base()) };
        Ok(frame)
    }

    /// A single frame for the kernel itself, from what is kept back from programs if need be. Contents undefined.
    pub(crate) fn alloc_for_kernel() -> Result<Self, OutOfFrames> {
        let number = (hooks().take_block)(0).ok_or(OutOfFrames)?;
        if meta::claim(number) { Ok(Self { number }) } else { Err(OutOfFrames) }
    }

    /// Fill `out` with frames (contents undefined); returns how many, fewer only when memory is out.
    pub fn alloc_batch(out: &mut [Option<Self>]) -> usize {
        for (index, slot) in out.iter_mut().enumerate() {
            match Self::alloc() {
                Ok(frame) => *slot = Some(frame),
                Err(OutOfFrames) => return index,
            }
        }
        out.len()
    }

    /// This reference's frame.
    #[inline]
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// Physical address of its first byte.
    #[inline]
    pub fn addr(&self) -> PhysAddr {
        self.number.addr()
    }

    /// log2 of the frames in the block this is the head of; 0 for single frames and for pieces of a block.
    #[inline]
    pub fn order(&self) -> u8 {
        // SAFETY: `self` is a reference.
        unsafe { meta::order(self.number) }
    }

    /// References to this frame (to its whole block) right now, this one included. 1 means that no other owner can gain
    /// one.
    #[inline]
    pub fn references(&self) -> u32 {
        // SAFETY: `self` is a reference.
        unsafe { meta::references(self.number) }
    }

    /// References to the frame of that number (or to its block): 0 for a free one, `None` for one that is not handed
    /// out.
    pub fn references_to(number: FrameNumber) -> Option<u32> {
        meta::count(number)
    }

    /// A reference to the `index`th frame of this block, keeping the block alive. `None` past the end.
    pub fn sub(&self, index: usize) -> Option<Self> {
        if index >= 1 << self.order() {
            return None;
        }
        // SAFETY: `self` is a reference; the new one counts on the same block.
        unsafe { meta::retain(self.number) };
        Some(Self { number: FrameNumber(self.number.0 + index as u32) })
    }

    /// Where the direct map shows it.
    #[inline]
    fn base(&self) -> *mut u8 {
        direct(self.addr())
    }

    /// The address of `[offset, offset + len)`, which must lie in the block.
    #[inline]
    #[track_caller]
    fn span(&self, offset: usize, len: usize) -> *mut u8 {
        let size = if offset + len <= PAGE_SIZE { PAGE_SIZE } else { PAGE_SIZE << self.order() };
        assert!(offset <= size && len <= size - offset, "{offset}+{len} is outside a frame of {size} bytes");
        // SAFETY: within the block.
        unsafe { self.base().add(offset) }
    }

    /// Copy bytes at `offset` out. Panics if the range leaves the block (a bug of the caller, never of a program).
    #[inline]
    #[track_caller]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let from = self.span(offset, to.len());
        // SAFETY: RAM that this reference keeps. A program may write meanwhile, so it is copied by code the compiler
        // cannot see into, never through a reference.
        unsafe { memory::copy(to.as_mut_ptr(), from, to.len()) };
    }

    /// Copy bytes in at `offset`. Panics like [`read`](Self::read).
    #[inline]
    #[track_caller]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let to = self.span(offset, from.len());
        // SAFETY: as for `read`.
        unsafe { memory::copy(to, from.as_ptr(), from.len()) };
    }

    /// Zero `[offset, offset + len)`. Panics like [`read`](Self::read).
    #[track_caller]
    pub fn zero(&self, offset: usize, len: usize) {
        let to = self.span(offset, len);
        // SAFETY: as for `read`.
        unsafe { memory::zero(to, len) };
    }

    /// Copy the whole of a single frame from another: what a write to a CoW page does.
    #[inline]
    pub fn copy_page_from(&self, from: &Self) {
        // SAFETY: as for `read`; both are a page long and aligned.
        unsafe { memory::copy_page(self.base(), from.base()) };
    }

    /// Fill page `index` of this block from a single frame, or with zeros. Panics past the end of the block.
    pub(crate) fn fill_page(&self, index: usize, from: Option<&Self>) {
        let to = self.span(index * PAGE_SIZE, PAGE_SIZE);
        match from {
            // SAFETY: as for `read`; both are a page long and aligned.
            Some(from) => unsafe { memory::copy_page(to, from.base()) },
            // SAFETY: as for `read`; a page long and aligned.
            None => unsafe { memory::zero_page(to) },
        }
    }

    /// Copy frame contents to user memory, without a buffer in between (reads from the page cache).
    #[track_caller]
    pub fn copy_to_user(&self, offset: usize, to: UserAddr, len: usize) -> Result<(), Fault> {
        let from = self.span(offset, len);
        // SAFETY: `len` bytes of RAM that this reference keeps.
        unsafe { user::copy_raw(from, to, len, true) }
    }

    /// Copy from user memory into the frame (writes to the page cache).
    #[track_caller]
    pub fn copy_from_user(&self, offset: usize, from: UserAddr, len: usize) -> Result<(), Fault> {
        let to = self.span(offset, len);
        // SAFETY: `len` bytes of RAM that this reference keeps.
        unsafe { user::copy_raw(to, from, len, false) }
    }

    /// The word at an aligned offset.
    #[track_caller]
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4), "word at {offset} is not aligned");
        // SAFETY: aligned, in the block, and shared with programs only as an atomic.
        unsafe { &*self.span(offset, 4).cast::<AtomicU32>() }
    }

    /// Atomically load the aligned 32-bit word at `offset` (futexes of other address spaces, vvar sequence counts).
    #[track_caller]
    pub fn load_u32(&self, offset: usize) -> u32 {
        self.word(offset).load(Ordering::SeqCst)
    }

    /// Atomically store an aligned 32-bit word, with release ordering.
    #[track_caller]
    pub fn store_u32(&self, offset: usize, value: u32) {
        self.word(offset).store(value, Ordering::Release);
    }

    /// Atomically store an aligned 64-bit word, with release ordering.
    #[track_caller]
    pub fn store_u64(&self, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8), "word at {offset} is not aligned");
        // SAFETY: aligned, in the block, and shared with programs only as an atomic.
        unsafe { &*self.span(offset, 8).cast::<AtomicU64>() }.store(value, Ordering::Release);
    }

    /// Turn the reference into its number, for a page-table entry to keep.
    #[inline]
    pub(crate) fn into_number(self) -> FrameNumber {
        core::mem::ManuallyDrop::new(self).number
    }

    /// Turn the only reference to a block into one to each of its frames, which count as those that
    /// [`into_number`](Self::into_number) gives: for the page-table entries that take the place of a larger one. A
    /// block with further references comes back.
    pub(crate) fn break_up(self) -> Result<(), Self> {
        // SAFETY: `self` is a reference, given up for one to each frame.
        if unsafe { meta::break_up(self.number, self.order()) } {
            self.into_number();
            return Ok(());
        }
        Err(self)
    }

    /// The reference a number stands for.
    ///
    /// # Safety
    /// `number` came from [`into_number`](Self::into_number) (or counts as such) and is turned back once.
    #[inline]
    pub(crate) unsafe fn from_number(number: FrameNumber) -> Self {
        Self { number }
    }

    /// One more reference to the frame a page-table entry keeps.
    ///
    /// # Safety
    /// `number` has at least one reference for the whole call.
    #[inline]
    pub(crate) unsafe fn retain(number: FrameNumber) -> Self {
        // SAFETY: the caller's.
        unsafe { meta::retain(number) };
        Self { number }
    }

    /// The reference behind a direct-map address; for the heap's blocks.
    ///
    /// # Safety
    /// As for [`from_number`](Self::from_number).
    pub(crate) unsafe fn from_direct(at: NonNull<u8>) -> Self {
        Self { number: FrameNumber(((at.as_ptr() as u64 - crate::x86_64::layout::direct_map()) >> 12) as u32) }
    }
}

impl Clone for Frame {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: `self` is a reference.
        unsafe { meta::retain(self.number) };
        Self { number: self.number }
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `self` is a reference, and is gone after one of these.
        unsafe {
            if !meta::release_shared(self.number) {
                release_last(self.number);
            }
        }
    }
}

/// The rest of a drop: usually the last reference.
///
/// # Safety
/// `number` is a live reference, gone afterwards.
#[inline(never)]
unsafe fn release_last(number: FrameNumber) {
    // SAFETY: the caller's.
    match unsafe { meta::release(number) } {
        None => {}
        Some((number, 0)) => magazine::put(number),
        Some((head, order)) => (hooks().give_block)(head, order),
    }
}
