//! The bytes of a pipe or a stream socket: a ring of frames that get memory when bytes reach them.
//!
//! Bytes go from the writer's buffer to a frame and from there to the reader's, nowhere else, and nothing is zeroed
//! first. An empty ring begins again at its first frame, so a pipe that carries little holds one.

use alloc::vec::Vec;

use linux_abi::Errno;
use machine::addr::PAGE_SIZE;
use machine::frame::Frame;

use crate::fs::io::{Sink, Source};

/// Bytes in order, in frames.
pub struct FrameRing {
    frames: Vec<Option<Frame>>,
    head: usize,
    len: usize,
}

impl FrameRing {
    /// Empty; no memory yet.
    pub const fn new() -> Self {
        Self { frames: Vec::new(), head: 0, len: 0 }
    }

    /// Bytes in the buffer.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Pages of memory it has.
    pub fn pages(&self) -> usize {
        self.frames.iter().flatten().count()
    }

    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts bytes of `source` in, up to a total of `capacity` (whole pages, never less than what is held).
    pub fn fill(&mut self, capacity: usize, source: &mut Source<'_>, most: usize) -> Result<(), Errno> {
        let pages = capacity / PAGE_SIZE;
        if self.frames.len() != pages {
            self.resize(pages)?;
        }
        let mut left = most.min(capacity - self.len);
        while left > 0 && source.left() > 0 {
            let tail = (self.head + self.len) % capacity;
            let (slot, offset) = (tail / PAGE_SIZE, tail % PAGE_SIZE);
            let count = (PAGE_SIZE - offset).min(left);
            let frame = match &self.frames[slot] {
                Some(frame) => frame,
                None => self.frames[slot].insert(Frame::alloc().map_err(|_| Errno::ENOMEM)?),
            };
            let before = source.done();
            let result = source.take_frame(frame, offset, count);
            let mut taken = source.done() - before;
            if result.is_err() {
                // A piece that cannot be read whole is not written in part.
                taken -= source.rewind(taken);
            }
            self.len += taken;
            left -= taken;
            result?;
        }
        Ok(())
    }

    /// Takes up to `most` of the oldest bytes out into `sink`, or leaves them in place if `peek`.
    pub fn drain(&mut self, sink: &mut Sink<'_>, most: usize, peek: bool) -> Result<(), Errno> {
        let capacity = self.frames.len() * PAGE_SIZE;
        let (mut at, mut left) = (self.head, self.len.min(most));
        let wanted = left;
        let mut result = Ok(());
        while left > 0 && sink.left() > 0 && result.is_ok() {
            let (slot, offset) = (at / PAGE_SIZE, at % PAGE_SIZE);
            let Some(frame) = &self.frames[slot] else { break };
            let before = sink.done();
            result = sink.put_frame(frame, offset, (PAGE_SIZE - offset).min(left)).map(|_| ());
            let moved = sink.done() - before;
            left -= moved;
            at += moved;
            if at == capacity {
                at = 0;
            }
        }
        if !peek {
            self.discard(wanted - left);
        }
        result
    }

    /// Forgets the `count` oldest bytes.
    pub fn discard(&mut self, count: usize) {
        self.len -= count.min(self.len);
        let capacity = self.frames.len() * PAGE_SIZE;
        self.head = if self.len == 0 || capacity == 0 { 0 } else { (self.head + count) % capacity };
        if self.len == 0 && self.frames.len() > 1 {
            self.frames[1..].fill(None);
        }
    }

    /// Discards all bytes and frees their frames.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Makes room for `pages` pages; what is held (which fits) moves to the front.
    fn resize(&mut self, pages: usize) -> Result<(), Errno> {
        let mut fresh: Vec<Option<Frame>> = alloc::vec![None; pages];
        let capacity = self.frames.len() * PAGE_SIZE;
        let mut piece = [0; 256];
        let mut done = 0;
        while done < self.len {
            let from = (self.head + done) % capacity;
            let (slot, offset) = (done / PAGE_SIZE, done % PAGE_SIZE);
            let in_page = (PAGE_SIZE - from % PAGE_SIZE).min(PAGE_SIZE - offset);
            let count = piece.len().min(self.len - done).min(in_page);
            if let Some(old) = &self.frames[from / PAGE_SIZE] {
                old.read(from % PAGE_SIZE, &mut piece[..count]);
            }
            if fresh[slot].is_none() {
                fresh[slot] = Some(Frame::alloc().map_err(|_| Errno::ENOMEM)?);
            }
            if let Some(new) = &fresh[slot] {
                new.write(offset, &piece[..count]);
            }
            done += count;
        }
        self.frames = fresh;
        self.head = 0;
        Ok(())
    }
}

impl Default for FrameRing {
    fn default() -> Self {
        Self::new()
    }
}
