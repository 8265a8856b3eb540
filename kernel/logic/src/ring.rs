//! A byte ring of fixed capacity that hands out its contents as at most two slices, so that bytes are copied once.

use alloc::boxed::Box;

/// Bytes in first-in first-out order.
#[derive(Debug)]
pub struct Ring {
    bytes: Box<[u8]>,
    head: usize,
    len: usize,
}

impl Ring {
    /// An empty ring for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        Self { bytes: alloc::vec![0; capacity].into_boxed_slice(), head: 0, len: 0 }
    }

    /// A ring without memory: it can hold nothing until [`Self::resize`].
    pub fn unallocated() -> Self {
        Self { bytes: Box::default(), head: 0, len: 0 }
    }

    /// Number of bytes that are held and not yet consumed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that still fit.
    pub fn room(&self) -> usize {
        self.bytes.len() - self.len
    }

    /// Bytes that fit in all.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// The longest run of held bytes that lies in one piece, oldest first.
    #[inline]
    pub fn front(&self) -> &[u8] {
        let end = (self.head + self.len).min(self.bytes.len());
        &self.bytes[self.head..end]
    }

    /// Forgets the `count` oldest bytes.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.len);
        self.len -= count;
        self.head = if self.len == 0 { 0 } else { wrap(self.head + count, self.bytes.len()) };
    }

    /// The longest free run behind the newest byte; what is written there counts after [`Self::produce`].
    #[inline]
    pub fn back(&mut self) -> &mut [u8] {
        let capacity = self.bytes.len();
        let tail = self.head + self.len;
        if tail < capacity { &mut self.bytes[tail..] } else { &mut self.bytes[tail - capacity..self.head] }
    }

    /// Counts `count` bytes written to [`Self::back`] as held.
    #[inline]
    pub fn produce(&mut self, count: usize) {
        self.len = (self.len + count).min(self.bytes.len());
    }

    /// Appends what fits of `bytes` and returns how many did.
    pub fn push(&mut self, mut bytes: &[u8]) -> usize {
        let before = self.len;
        while !bytes.is_empty() && self.room() > 0 {
            let back = self.back();
            let count = back.len().min(bytes.len());
            back[..count].copy_from_slice(&bytes[..count]);
            self.produce(count);
            bytes = &bytes[count..];
        }
        self.len - before
    }

    /// Removes what fits into `into` and returns how many bytes that was.
    pub fn pop(&mut self, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() && !self.is_empty() {
            let front = self.front();
            let count = front.len().min(into.len() - done);
            into[done..done + count].copy_from_slice(&front[..count]);
            self.consume(count);
            done += count;
        }
        done
    }

    /// Changes the capacity; refuses (returns false) when the held bytes would not fit.
    pub fn resize(&mut self, capacity: usize) -> bool {
        if capacity < self.len {
            return false;
        }
        let mut fresh = Self::new(capacity);
        while !self.is_empty() {
            let count = fresh.push(self.front());
            self.consume(count);
        }
        *self = fresh;
        true
    }
}

#[inline]
fn wrap(at: usize, capacity: usize) -> usize {
    if at >= capacity { at - capacity } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn a_wrapped_ring_keeps_its_order_when_it_grows() {
        let mut ring = Ring::new(8);
        ring.push(b"abcdef");
        ring.consume(4);
        ring.push(b"ghijk");
        assert!(!ring.resize(6));
        assert!(ring.resize(16));
        let mut out = [0; 16];
        assert_eq!(ring.pop(&mut out), 7);
        assert_eq!(&out[..7], b"efghijk");
    }

    #[test]
    fn an_unallocated_ring_has_no_room() {
        let mut ring = Ring::unallocated();
        assert_eq!((ring.push(b"x"), ring.back().len(), ring.front().len()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn it_is_a_queue(steps in proptest::collection::vec((any::<bool>(), 0_usize..20), 0..200)) {
            let mut ring = Ring::new(16);
            let mut model = VecDeque::new();
            let mut next = 0_u8;
            for (push, count) in steps {
                if push {
                    let bytes: Vec<u8> = (0..count).map(|_| { next = next.wrapping_add(1); next }).collect();
                    let fit = count.min(16 - model.len());
                    prop_assert_eq!(ring.push(&bytes), fit);
                    model.extend(&bytes[..fit]);
                } else {
                    let mut out = alloc::vec![0; count];
                    let got = ring.pop(&mut out);
                    prop_assert_eq!(got, count.min(model.len()));
                    prop_assert_eq!(&out[..got], &model.drain(..got).collect::<Vec<u8>>()[..]);
                }
                prop_assert_eq!(ring.len(), model.len());
            }
        }
    }
}
