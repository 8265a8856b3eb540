//! Decides which physical frames are free, in blocks of powers of two.
//!
//! A classic buddy allocator over one slice of per-frame records. Free blocks of an order form a doubly linked list
//! whose links are indices into that slice, so joining a freed block with its buddy takes constant time per order and
//! the allocator itself never allocates. The slice belongs to the caller; frame numbers are relative to its start.
//!
//! The records of a large memory are tens of megabytes, so they need not be ready at once: those from [`Buddy::ready`]
//! on are neither read nor written before [`Buddy::grow`] clears them.

/// Largest block: `2^MAX_ORDER` frames (4 MiB of 4 KiB frames), enough for a 2 MiB page with room to coalesce.
pub const MAX_ORDER: u8 = 10;

/// One frame's record, a plain array so that any memory can hold it: the next and the previous free block of the same
/// order, and `order + 1` when this frame heads a free block, else 0.
pub type FrameRecord = [u32; 3];

const NEXT: usize = 0;
const PREV: usize = 1;
const HEAD: usize = 2;

const NIL: u32 = u32::MAX;

/// The allocator. `'a` is the life of the caller's records.
pub struct Buddy<'a> {
    records: &'a mut [FrameRecord],
    ready: usize,
    heads: [u32; MAX_ORDER as usize + 1],
    free: usize,
}

impl<'a> Buddy<'a> {
    /// Takes charge of `records`, whatever they hold; none is ready.
    pub fn new(records: &'a mut [FrameRecord]) -> Self {
        Self { records, ready: 0, heads: [NIL; MAX_ORDER as usize + 1], free: 0 }
    }

    /// First frame whose record is not ready.
    pub fn ready(&self) -> usize {
        self.ready
    }

    /// Makes the records below `to` ready: their frames are not free until [`Buddy::add`] hands them over.
    pub fn grow(&mut self, to: usize) {
        let to = to.min(self.records.len());
        if let Some(fresh) = self.records.get_mut(self.ready..to) {
            fresh.fill(FrameRecord::default());
            self.ready = to;
        }
    }

    /// Frees the range `start..start + count` into the allocator; frames whose records are not ready are ignored.
    pub fn add(&mut self, start: usize, count: usize) {
        let end = start.saturating_add(count).min(self.ready);
        let mut at = start;
        while at < end {
            let mut order = MAX_ORDER.min(at.trailing_zeros().min(u32::from(MAX_ORDER)) as u8);
            while at + (1 << order) > end {
                order -= 1;
            }
            self.release(at, order);
            at += 1 << order;
        }
    }

    /// Number of free frames.
    pub fn free_frames(&self) -> usize {
        self.free
    }

    /// Takes a block of `2^order` frames; the lowest frame number, or `None` when no block is large enough.
    pub fn take(&mut self, order: u8) -> Option<usize> {
        let mut have = order;
        while have <= MAX_ORDER && self.heads[usize::from(have)] == NIL {
            have += 1;
        }
        if have > MAX_ORDER {
            return None;
        }
        let block = self.heads[usize::from(have)] as usize;
        self.unlink(block, have);
        while have > order {
            have -= 1;
            self.link(block + (1 << have), have);
        }
        self.free -= 1 << order;
        Some(block)
    }

    /// Takes single frames until `out` is full or memory is out; how many were taken.
    pub fn take_batch(&mut self, out: &mut [usize]) -> usize {
        for (n, slot) in out.iter_mut().enumerate() {
            match self.take(0) {
                Some(frame) => *slot = frame,
                None => return n,
            }
        }
        out.len()
    }

    /// Gives a block back and joins it with its free buddies. A block outside the ready records, misaligned, or already
    /// free is refused with `false`.
    pub fn release(&mut self, frame: usize, order: u8) -> bool {
        if order > MAX_ORDER || frame & ((1 << order) - 1) != 0 || frame + (1 << order) > self.ready {
            return false;
        }
        if self.records[frame][HEAD] != 0 {
            return false;
        }
        let (mut block, mut order) = (frame, order);
        self.free += 1 << order;
        while order < MAX_ORDER {
            let buddy = block ^ (1 << order);
            if buddy >= self.ready || self.records[buddy][HEAD] != u32::from(order) + 1 {
                break;
            }
            self.unlink(buddy, order);
            block &= !(1 << order);
            order += 1;
        }
        self.link(block, order);
        true
    }

    /// [`Buddy::release`] without joining: a bug that is planted to examine the tools.
    pub fn release_alone(&mut self, frame: usize, order: u8) -> bool {
        let fits = order <= MAX_ORDER && frame & ((1 << order) - 1) == 0 && frame + (1 << order) <= self.ready;
        if !fits || self.records[frame][HEAD] != 0 {
            return false;
        }
        self.free += 1 << order;
        self.link(frame, order);
        true
    }

    /// Pairs of free blocks that are each other's buddies: none, as long as each block that is given back is joined.
    /// Walks the lists, which may be damaged: no further than there are frames.
    pub fn unjoined(&self) -> usize {
        let (mut pairs, mut left) = (0, self.ready);
        for order in 0..MAX_ORDER {
            let mut at = self.heads[usize::from(order)] as usize;
            while let Some(record) = self.records.get(at).filter(|_| left > 0) {
                let buddy = at ^ (1 << order);
                let both = self.records.get(buddy).is_some_and(|other| other[HEAD] == u32::from(order) + 1);
                pairs += usize::from(at < buddy && buddy < self.ready && both);
                (at, left) = (record[NEXT] as usize, left - 1);
            }
        }
        pairs
    }

    /// Gives single frames back; how many were accepted.
    pub fn release_batch(&mut self, frames: &[usize]) -> usize {
        frames.iter().filter(|&&frame| self.release(frame, 0)).count()
    }

    /// Free blocks of each order, for `/proc/buddyinfo` and dumps. Walks the lists.
    pub fn blocks(&self) -> [usize; MAX_ORDER as usize + 1] {
        let mut counts = [0; MAX_ORDER as usize + 1];
        for (order, count) in counts.iter_mut().enumerate() {
            let mut at = self.heads[order];
            while at != NIL {
                *count += 1;
                at = self.records[at as usize][NEXT];
            }
        }
        counts
    }

    fn link(&mut self, block: usize, order: u8) {
        let old = self.heads[usize::from(order)];
        self.records[block] = [old, NIL, u32::from(order) + 1];
        if old != NIL {
            self.records[old as usize][PREV] = block as u32;
        }
        self.heads[usize::from(order)] = block as u32;
    }

    fn unlink(&mut self, block: usize, order: u8) {
        let [next, prev, _] = self.records[block];
        if prev == NIL {
            self.heads[usize::from(order)] = next;
        } else {
            self.records[prev as usize][NEXT] = next;
        }
        if next != NIL {
            self.records[next as usize][PREV] = prev;
        }
        self.records[block][HEAD] = 0;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn blocks_that_were_not_joined_are_found_beside_their_buddies() {
        let mut records = vec![FrameRecord::default(); 64];
        let mut buddy = Buddy::new(&mut records);
        buddy.grow(usize::MAX);
        buddy.add(0, 64);
        let taken: Vec<usize> = core::iter::from_fn(|| buddy.take(0)).take(8).collect();
        assert_eq!((taken.len(), buddy.unjoined()), (8, 0));
        for frame in &taken[..4] {
            assert!(buddy.release_alone(*frame, 0) && !buddy.release_alone(*frame, 0));
        }
        assert_eq!((buddy.unjoined(), buddy.free_frames()), (2, 60));
        for frame in &taken[4..] {
            assert!(buddy.release(*frame, 0));
        }
        assert_eq!(buddy.unjoined(), 2, "what was not joined stays so, and all else is joined");
    }

    #[test]
    fn freeing_everything_leaves_the_largest_blocks_again() {
        let mut records = vec![FrameRecord::default(); 4096];
        let mut buddy = Buddy::new(&mut records);
        buddy.grow(usize::MAX);
        buddy.add(3, 4093);
        let start = buddy.blocks();
        let mut taken = Vec::new();
        let mut seed = 7u32;
        loop {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let order = (seed >> 28) as u8 % 5;
            match buddy.take(order) {
                Some(frame) => taken.push((frame, order)),
                None if order == 0 => break,
                None => {}
            }
        }
        assert_eq!(buddy.free_frames(), 0);
        let mut owner = vec![false; 4096];
        for &(frame, order) in &taken {
            for (at, owned) in owner.iter_mut().enumerate().skip(frame).take(1 << order) {
                assert!(!*owned, "frame {at} handed out twice");
                *owned = true;
            }
        }
        assert!(!owner[0] && !owner[2] && owner[3]);
        while !taken.is_empty() {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (frame, order) = taken.swap_remove(seed as usize % taken.len());
            assert!(buddy.release(frame, order));
        }
        assert_eq!(buddy.free_frames(), 4093);
        assert_eq!(buddy.blocks(), start);
    }

    #[test]
    fn a_double_free_or_a_misaligned_block_is_refused() {
        let mut records = vec![FrameRecord::default(); 64];
        let mut buddy = Buddy::new(&mut records);
        buddy.grow(usize::MAX);
        buddy.add(0, 64);
        let frame = buddy.take(1).unwrap();
        assert!(!buddy.release(frame + 1, 1));
        assert!(!buddy.release(64, 0));
        assert!(buddy.release(frame, 1));
        assert_eq!(buddy.free_frames(), 64);
    }

    #[test]
    fn records_that_are_not_ready_are_neither_believed_nor_written() {
        let junk = [1, 2, 3];
        let mut records = vec![junk; 4096];
        let mut buddy = Buddy::new(&mut records);
        buddy.grow(1000);
        buddy.add(0, 4096);
        assert_eq!(buddy.free_frames(), 1000);
        assert!(!buddy.release(1000, 0), "its record says that it heads a free block");
        while buddy.take(0).is_some() {}
        buddy.grow(2048);
        buddy.add(1000, 1048);
        assert_eq!((buddy.free_frames(), buddy.ready()), (1048, 2048));
        assert!(buddy.release(0, 3) && buddy.release(992, 3), "blocks join across what grew");
        assert_eq!(buddy.take(10), Some(1024));
        assert!(records[2048..].iter().all(|record| *record == junk));
    }

    #[test]
    fn a_batch_stops_where_memory_ends() {
        let mut records = vec![FrameRecord::default(); 8];
        let mut buddy = Buddy::new(&mut records);
        buddy.grow(usize::MAX);
        buddy.add(0, 8);
        let mut out = [0; 16];
        assert_eq!(buddy.take_batch(&mut out), 8);
        assert_eq!(buddy.release_batch(&out[..8]), 8);
        assert_eq!(buddy.take(3), Some(0));
    }
}
