//! Rings that record what happens, overwrite the oldest, and can be read at any moment: the shape of the flight
//! recorder.
//!
//! Writers of one ring are one thread of execution and whatever interrupts it (a processor and its interrupt handlers):
//! each takes a number by one atomic addition, fills the slot of that number, and seals it by storing the number last.
//! A reader on any processor, even in the middle of a write it interrupted, takes an entry only if it was sealed with
//! the expected number, and drops it again if the slot was handed out again meanwhile. Nothing waits, nothing
//! allocates, nothing fails.
//!
//! [`calls`] is the ring of a thread's system calls, which is written in two steps; [`texts`] has their strings.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering, fence};

pub mod calls;
pub mod texts;

/// Adding this takes a number: the counter's lowest bits are left to tags.
const STEP: u64 = 1 << TAG_BITS;
/// Bits of a tag.
pub const TAG_BITS: u32 = 6;

/// A ring of `SLOTS` entries (a power of two) of `WORDS` words each.
pub struct Recorder<const WORDS: usize, const SLOTS: usize> {
    /// Entries begun, times [`STEP`].
    next: AtomicU64,
    slots: [Slot<WORDS>; SLOTS],
}

struct Slot<const WORDS: usize> {
    /// Number times [`STEP`], and the tag; stored last.
    seal: AtomicU64,
    words: [AtomicU64; WORDS],
}

/// What was read of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<const WORDS: usize> {
    /// Its number, counted from the ring's first.
    pub number: u64,
    /// What its writer called it; never 0.
    pub tag: u8,
    /// Words beyond those its writer gave are of an older entry: the tag tells how many count.
    pub words: [u64; WORDS],
}

/// What a ring has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Entries begun since boot, overwritten ones included.
    pub total: u64,
    /// Those that newer ones have replaced.
    pub overwritten: u64,
    /// Entries the ring holds at most.
    pub capacity: u32,
}

impl<const WORDS: usize, const SLOTS: usize> Recorder<WORDS, SLOTS> {
    /// Where a reader of memory finds what: of the ring its count and first slot, the size of a slot, and of a slot its
    /// seal and words.
    pub const LAYOUT: [usize; 5] = [
        offset_of!(Self, next),
        offset_of!(Self, slots),
        size_of::<Slot<WORDS>>(),
        offset_of!(Slot<WORDS>, seal),
        offset_of!(Slot<WORDS>, words),
    ];

    /// Empty; all bytes zero.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "meant for statics; a default would be built on the stack")]
    pub const fn new() -> Self {
        const { assert!(SLOTS.is_power_of_two() && SLOTS <= 1 << 31, "numbers are taken modulo the size") };
        Self {
            next: AtomicU64::new(0),
            slots: [const { Slot { seal: AtomicU64::new(0), words: [const { AtomicU64::new(0) }; WORDS] } }; SLOTS],
        }
    }

    /// Records an entry. `tag` is not 0 and has [`TAG_BITS`] bits; the first `GIVEN` words are set.
    #[inline(always)]
    pub fn put<const GIVEN: usize>(&self, tag: u8, words: [u64; GIVEN]) {
        const { assert!(GIVEN <= WORDS, "more words than a slot has") };
        let ticket = self.next.fetch_add(STEP, Ordering::Relaxed);
        // A reader that sees a word stored below also sees the number taken, and discards the old entry.
        fence(Ordering::Release);
        let slot = &self.slots[(ticket >> TAG_BITS) as usize % SLOTS];
        for (to, from) in slot.words.iter().zip(words) {
            to.store(from, Ordering::Relaxed);
        }
        slot.seal.store(ticket | u64::from(tag) & (STEP - 1), Ordering::Release);
    }

    /// Counts a repeat of the newest entry instead of recording another one; whether the newest entry is of this tag
    /// and its words behind the first are `same`. The two words behind those become the number of repeats, from what
    /// the entry was put with, and `at`. A reader may see one of the two a repeat earlier than the other.
    #[inline]
    pub fn repeat<const SAME: usize>(&self, tag: u8, same: [u64; SAME], at: u64) -> bool {
        const { assert!(SAME + 3 <= WORDS, "a slot has no words for repeats") };
        let Some(slot) = self.newest(tag, same) else { return false };
        let [count, last] = [&slot.words[SAME + 1], &slot.words[SAME + 2]];
        count.store(count.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        last.store(at, Ordering::Relaxed);
        true
    }

    /// Whether the newest entry is of this tag and its words behind the first are `same`.
    #[inline]
    pub fn is_newest<const SAME: usize>(&self, tag: u8, same: [u64; SAME]) -> bool {
        self.newest(tag, same).is_some()
    }

    #[inline]
    fn newest<const SAME: usize>(&self, tag: u8, same: [u64; SAME]) -> Option<&Slot<WORDS>> {
        let ticket = self.next.load(Ordering::Relaxed).wrapping_sub(STEP);
        let slot = &self.slots[(ticket >> TAG_BITS) as usize % SLOTS];
        let sealed = slot.seal.load(Ordering::Relaxed) == ticket | u64::from(tag) & (STEP - 1);
        let mut words = slot.words[1..].iter().zip(same);
        (sealed && words.all(|(word, same)| word.load(Ordering::Relaxed) == same)).then_some(slot)
    }

    /// The entry of this number, unless it is gone or not yet whole.
    pub fn get(&self, number: u64) -> Option<Entry<WORDS>> {
        let slot = &self.slots[number as usize % SLOTS];
        let seal = slot.seal.load(Ordering::Acquire);
        let tag = (seal & (STEP - 1)) as u8;
        if seal >> TAG_BITS != number || tag == 0 {
            return None;
        }
        let mut words = [0; WORDS];
        for (to, from) in words.iter_mut().zip(&slot.words) {
            *to = from.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        let distance = self.taken().wrapping_sub(number);
        (distance <= SLOTS as u64).then_some(Entry { number, tag, words })
    }

    /// Every entry that can be had, oldest first. Entries recorded meanwhile are left out. How many could not be had
    /// although they should: overwritten while being read, or not finished.
    pub fn for_each(&self, mut visit: impl FnMut(Entry<WORDS>)) -> u32 {
        let end = self.taken();
        let mut missing = 0;
        for number in end.saturating_sub(SLOTS as u64)..end {
            match self.get(number) {
                Some(entry) => visit(entry),
                None => missing += 1,
            }
        }
        missing
    }

    /// What the ring has seen.
    pub fn counts(&self) -> Counts {
        let total = self.taken();
        Counts { total, overwritten: total.saturating_sub(SLOTS as u64), capacity: SLOTS as u32 }
    }

    fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed) >> TAG_BITS
    }
}

impl Counts {
    /// Entries there are to read.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.total - self.overwritten
    }
}

#[cfg(test)]
mod tests;
