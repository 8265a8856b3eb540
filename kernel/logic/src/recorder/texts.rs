//! What a thread's last system calls pointed at: strings as far as [`KEPT_BYTES`], and structures in pieces of as many.
//!
//! Only the thread itself writes, while it is in the call; any processor may read at any moment. An entry is found by
//! its call and its user address, so recording one needs no knowledge of the argument it belongs to. A structure of
//! more bytes has an entry for each piece, at the piece's address and with the length from there on; readers join
//! them, up to [`JOINED_BYTES`].

use alloc::boxed::Box;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes kept of a string.
pub const KEPT_BYTES: usize = 48;
/// Bytes kept of a structure, in two entries.
pub const JOINED_BYTES: usize = 2 * KEPT_BYTES;
const WORDS: usize = KEPT_BYTES / 8;
/// Entries of a ring. One is always being written, so it keeps one less.
const TEXTS: usize = 32;

/// The last strings, newest over oldest. All bytes zero: empty.
pub struct TextRing {
    /// How many strings were put, modulo 2^32.
    next: AtomicU32,
    slots: [TextSlot; TEXTS],
}

#[repr(align(64))]
struct TextSlot {
    /// The call's number in the upper half, the string's length in the lower.
    call_and_len: AtomicU64,
    /// Where the string was; 0 in a slot that was never written.
    addr: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// A string as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallText {
    /// Its user address.
    pub addr: u64,
    /// Its whole length, modulo 2^32.
    pub len: u32,
    /// How many bytes of it an entry holds, or two.
    held: usize,
    bytes: [u8; JOINED_BYTES],
}

impl CallText {
    /// What was kept of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..(self.len as usize).min(self.held)]
    }

    /// Whether the string goes on behind what was kept.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.len as usize > self.held
    }

    /// Adds the second piece, if this is it.
    pub(super) fn join(&mut self, piece: &Self) {
        let behind = self.addr.checked_add(KEPT_BYTES as u64) == Some(piece.addr);
        if behind && self.held == KEPT_BYTES && self.len.checked_sub(KEPT_BYTES as u32) == Some(piece.len) {
            self.bytes[KEPT_BYTES..].copy_from_slice(&piece.bytes[..KEPT_BYTES]);
            self.held = JOINED_BYTES;
        }
    }
}

/// Words that are always copied: most paths have no more.
const FIRST: usize = 2;

#[inline(always)]
fn copy(to: &[AtomicU64], from: &[[u8; 8]]) {
    for (to, from) in to.iter().zip(from) {
        to.store(u64::from_le_bytes(*from), Ordering::Relaxed);
    }
}

impl TextRing {
    /// Where a reader of memory finds what, by name: of the ring, of a slot from `texts.call` on.
    pub const LAYOUT: [(&'static str, usize); 8] = [
        ("texts.next", offset_of!(Self, next)),
        ("texts.slots", offset_of!(Self, slots)),
        ("texts.count", TEXTS),
        ("texts.slot", size_of::<TextSlot>()),
        ("texts.kept", KEPT_BYTES),
        ("texts.call", offset_of!(TextSlot, call_and_len)),
        ("texts.addr", offset_of!(TextSlot, addr)),
        ("texts.words", offset_of!(TextSlot, words)),
    ];

    /// An empty one, on the heap.
    #[must_use]
    #[inline(never)]
    pub fn boxed() -> Box<Self> {
        Box::new(Self::new())
    }

    const fn new() -> Self {
        let slots = [const {
            TextSlot {
                call_and_len: AtomicU64::new(0),
                addr: AtomicU64::new(0),
                words: [const { AtomicU64::new(0) }; WORDS],
            }
        }; TEXTS];
        Self { next: AtomicU32::new(0), slots }
    }

    #[inline(always)]
    pub(super) fn put(&self, call: u32, addr: u64, start: &[u8; KEPT_BYTES], len: usize) {
        let next = self.next.load(Ordering::Relaxed);
        // A reader that sees a word stored from here on also sees the last entry published, and discards the old one.
        fence(Ordering::Release);
        let slot = &self.slots[next as usize % TEXTS];
        slot.call_and_len.store(u64::from(call) << 32 | u64::from(len as u32), Ordering::Relaxed);
        slot.addr.store(addr, Ordering::Relaxed);
        let (first, second) = start.as_chunks::<8>().0.split_at(FIRST);
        let (to_first, to_second) = slot.words.split_at(FIRST);
        copy(to_first, first);
        if len > 8 * FIRST {
            copy(to_second, second);
        }
        self.next.store(next.wrapping_add(1), Ordering::Release);
    }

    /// The strings of a call, newest first.
    pub(super) fn for_each(&self, call: u32, mut visit: impl FnMut(&CallText)) {
        let end = self.next.load(Ordering::Acquire);
        for back in 1..TEXTS as u32 {
            let number = end.wrapping_sub(back);
            let slot = &self.slots[number as usize % TEXTS];
            let (call_and_len, addr) = (slot.call_and_len.load(Ordering::Relaxed), slot.addr.load(Ordering::Relaxed));
            if (call_and_len >> 32) as u32 != call || addr == 0 {
                continue;
            }
            let mut bytes = [0; JOINED_BYTES];
            for (to, from) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(&slot.words) {
                *to = from.load(Ordering::Relaxed).to_le_bytes();
            }
            fence(Ordering::Acquire);
            if self.next.load(Ordering::Relaxed).wrapping_sub(number) < TEXTS as u32 {
                visit(&CallText { addr, len: call_and_len as u32, held: KEPT_BYTES, bytes });
            }
        }
    }
}
