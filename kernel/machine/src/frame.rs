//! Physical frames as owned, counted references.
//!
//! Every RAM frame has an entry in a table only this module writes: a reference count, and whether the frame is part of a
//! larger block. A [`Frame`] is one reference: cloning adds one, dropping takes one away, and the last drop gives the
//! frame back to the kernel's allocator. That allocator (the *policy*) is ordinary safe code and not trusted: what it hands
//! out becomes a `Frame` only by moving the count from 0 to 1 atomically, so a frame has never two owners.
//!
//! *Blocks*: a block of `2^order` frames has one count, on its first frame. [`Frame::sub`] makes a reference to a single
//! frame inside it, counted on the block; so a 2 MiB page that was partly unmapped is freed when its last piece goes.
//!
//! Single frames pass through a small magazine per processor; the policy is asked for and given batches.
//!
//! Contents are shared with programs that may write at any time, so there is no `&[u8]` of a frame, only copies.

use crate::addr::{FrameNumber, PhysAddr};

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
        todo!()
    }

    /// A frame of zeros.
    #[inline]
    pub fn alloc_zeroed() -> Result<Self, OutOfFrames> {
        todo!()
    }

    /// A block of `2^order` frames aligned to its size, contents undefined.
    pub fn alloc_block(order: u8) -> Result<Self, OutOfFrames> {
        let _ = order;
        todo!()
    }

    /// Fill `out` with frames (contents undefined); returns how many, fewer only when memory is out.
    pub fn alloc_batch(out: &mut [Option<Self>]) -> usize {
        let _ = out;
        todo!()
    }

    /// This reference's frame.
    #[inline]
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// Physical address of its first byte.
    pub fn addr(&self) -> PhysAddr {
        self.number.addr()
    }

    /// log2 of the frames in the block this is the head of; 0 for single frames and for pieces of a block.
    pub fn order(&self) -> u8 {
        todo!()
    }

    /// References to this frame (to its whole block) right now, this one included. 1 means nobody else can gain one.
    #[inline]
    pub fn references(&self) -> u32 {
        todo!()
    }

    /// A reference to the `index`th frame of this block, keeping the block alive. `None` past the end.
    pub fn sub(&self, index: usize) -> Option<Self> {
        let _ = index;
        todo!()
    }

    /// Copy bytes at `offset` out. Panics if the range leaves the block (a bug of the caller, never of a program).
    #[inline]
    pub fn read(&self, offset: usize, to: &mut [u8]) {
        let _ = (offset, to);
        todo!()
    }

    /// Copy bytes in at `offset`. Panics like [`read`](Self::read).
    #[inline]
    pub fn write(&self, offset: usize, from: &[u8]) {
        let _ = (offset, from);
        todo!()
    }

    /// Zero `[offset, offset + len)`. Panics like [`read`](Self::read).
    pub fn zero(&self, offset: usize, len: usize) {
        let _ = (offset, len);
        todo!()
    }

    /// Copy the whole of a single frame from another: what a write to a CoW page does.
    #[inline]
    pub fn copy_page_from(&self, from: &Self) {
        let _ = from;
        todo!()
    }

    /// Copy frame contents to user memory, without a buffer in between (reads from the page cache).
    pub fn copy_to_user(&self, offset: usize, to: crate::addr::UserAddr, len: usize) -> Result<(), crate::user::Fault> {
        let _ = (offset, to, len);
        todo!()
    }

    /// Copy from user memory into the frame (writes to the page cache).
    pub fn copy_from_user(
        &self,
        offset: usize,
        from: crate::addr::UserAddr,
        len: usize,
    ) -> Result<(), crate::user::Fault> {
        let _ = (offset, from, len);
        todo!()
    }

    /// Atomically load the aligned 32-bit word at `offset` (futexes of other address spaces, vvar sequence counts).
    pub fn load_u32(&self, offset: usize) -> u32 {
        let _ = offset;
        todo!()
    }

    /// Atomically store an aligned 32-bit word, with release ordering.
    pub fn store_u32(&self, offset: usize, value: u32) {
        let _ = (offset, value);
        todo!()
    }

    /// Atomically store an aligned 64-bit word, with release ordering.
    pub fn store_u64(&self, offset: usize, value: u64) {
        let _ = (offset, value);
        todo!()
    }
}

impl Clone for Frame {
    #[inline]
    fn clone(&self) -> Self {
        todo!()
    }
}

impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        todo!()
    }
}

/// What the table says about a frame, for audits and dumps; a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameState {
    /// Not RAM, or RAM that was never free (kernel image, initrd, this table).
    Reserved,
    /// Nobody references it: in the policy's hands or in a magazine.
    Free,
    /// Referenced: count of the frame or its block, and the block's order and first frame.
    Used {
        /// References.
        count: u32,
        /// log2 of the block's frames.
        order: u8,
        /// First frame of the block.
        head: FrameNumber,
    },
}

/// The state of any frame number. Never fails, takes no lock.
pub fn state(number: FrameNumber) -> FrameState {
    let _ = number;
    todo!()
}

/// Free single frames sitting in the magazines of all processors (count them as free in statistics).
pub fn in_magazines() -> usize {
    todo!()
}

/// Give every magazine's frames of this processor back to the policy (before an exact count, or under memory pressure).
pub fn drain_magazines() {
    todo!()
}
