//! A thread's last system calls: number, arguments, result, processor, entry and exit time.
//!
//! Only the thread itself writes, so a call takes its slot without an atomic addition: [`CallRing::begin`] gives a
//! [`Draft`], which is filled and published on the way in; [`Open::end`] adds result and exit time on the way out. Any
//! processor may read at any moment: an entry is taken only if the writer has not come round to its slot again
//! meanwhile. A call between the two steps reads as in progress. Calls that have no arguments, cannot fail and cannot
//! sleep take no slot: [`CallRing::brief`] notes the last of them, and between which two others it was made.

use alloc::boxed::Box;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::texts::{CallText, KEPT_BYTES, TextRing};

/// Slots of a ring. One is always being written, so it keeps a call less.
pub const CALLS: usize = 64;
const KEPT: u32 = CALLS as u32 - 1;

/// Bytes of a slot.
const UNIT: u64 = size_of::<Slot>() as u64;
/// No system call has this number.
const NO_CALL: u32 = u32::MAX;

/// The last system calls of its present owner, newest over oldest: written by the owner alone, read by any processor.
pub struct CallRing {
    /// Calls published, times [`UNIT`]: finding the next slot is one instruction.
    next: AtomicU64,
    /// Number of its present owner's first call.
    first: AtomicU32,
    /// The last call without slot: the lower half of `next` at that time, and its system call number.
    brief_before: AtomicU32,
    /// See above; [`NO_CALL`] for none.
    brief_nr: AtomicU32,
    slots: [Slot; CALLS],
    /// Apart from the rest, so that making a ring needs no more of a kernel stack than its calls do.
    texts: Option<Box<TextRing>>,
}

/// Its size is a power of two, so that finding one takes a shift.
#[repr(align(128))]
struct Slot {
    nr: AtomicU32,
    entry: Moment,
    /// Before `entry`: the call is in progress, and this is of an older one. Stored last on the way out, high half
    /// last.
    exit: Moment,
    cpu: AtomicU32,
    result: AtomicU64,
    args: [AtomicU64; 6],
}

/// A cycle count in two halves, lower first: how the processor gives it.
pub type Cycles = [u32; 2];

struct Moment([AtomicU32; 2]);

impl Moment {
    #[inline(always)]
    fn set(&self, cycles: Cycles) {
        self.0[0].store(cycles[0], Ordering::Release);
        self.0[1].store(cycles[1], Ordering::Release);
    }

    fn get(&self) -> u64 {
        let high = self.0[1].load(Ordering::Acquire);
        u64::from(high) << 32 | u64::from(self.0[0].load(Ordering::Acquire))
    }
}

/// A call that is being filled in; readers do not see it yet.
pub struct Draft<'a> {
    ring: &'a CallRing,
    slot: &'a Slot,
}

/// A call whose result is still to come.
pub struct Open<'a>(&'a Slot);

/// A call as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counted from the owner's first.
    pub index: u32,
    /// System call number.
    pub nr: u32,
    /// Processor it began on.
    pub cpu: u32,
    /// Cycle count on the way in.
    pub entry: u64,
    /// Cycle count on the way out and result; `None` while it is in progress.
    pub done: Option<(u64, i64)>,
    /// Its arguments. Those that this call does not take may be of an older one.
    pub args: [u64; 6],
}

/// A call without slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// Index of the call it was made before.
    pub before: u32,
    /// System call number.
    pub nr: u32,
}

impl CallRing {
    /// Where a reader of memory finds what, by name: of the ring, of a slot from `calls.nr` on.
    pub const LAYOUT: [(&'static str, usize); 14] = [
        ("calls.next", offset_of!(Self, next)),
        ("calls.first", offset_of!(Self, first)),
        ("calls.brief_before", offset_of!(Self, brief_before)),
        ("calls.brief_nr", offset_of!(Self, brief_nr)),
        ("calls.texts", offset_of!(Self, texts)),
        ("calls.slots", offset_of!(Self, slots)),
        ("calls.count", CALLS),
        ("calls.slot", size_of::<Slot>()),
        ("calls.nr", offset_of!(Slot, nr)),
        ("calls.cpu", offset_of!(Slot, cpu)),
        ("calls.entry", offset_of!(Slot, entry)),
        ("calls.exit", offset_of!(Slot, exit)),
        ("calls.result", offset_of!(Slot, result)),
        ("calls.args", offset_of!(Slot, args)),
    ];

    /// A ring without calls, which keeps their strings in `texts` or not at all.
    #[must_use]
    pub const fn new(texts: Option<Box<TextRing>>) -> Self {
        let slots = [const {
            Slot {
                nr: AtomicU32::new(0),
                cpu: AtomicU32::new(0),
                entry: Moment([const { AtomicU32::new(0) }; 2]),
                exit: Moment([const { AtomicU32::new(0) }; 2]),
                result: AtomicU64::new(0),
                args: [const { AtomicU64::new(0) }; 6],
            }
        }; CALLS];
        Self {
            next: AtomicU64::new(0),
            first: AtomicU32::new(0),
            brief_before: AtomicU32::new(0),
            brief_nr: AtomicU32::new(NO_CALL),
            slots,
            texts,
        }
    }

    /// Hides what was recorded so far: the ring gets another owner.
    pub fn hand_over(&self) {
        self.brief_nr.store(NO_CALL, Ordering::Relaxed);
        self.first.store(self.published(), Ordering::Relaxed);
    }

    /// A call begins. Called by the owner alone.
    #[inline(always)]
    pub fn begin(&self) -> Draft<'_> {
        let number = self.next.load(Ordering::Relaxed) / UNIT;
        // A reader that sees a word stored from here on also sees the last call published, and discards the old entry.
        fence(Ordering::Release);
        Draft { ring: self, slot: &self.slots[number as usize % CALLS] }
    }

    /// Notes a call that takes no slot. Called by the owner alone. Two stores: a reader between them may order the one
    /// before here.
    #[inline(always)]
    pub fn brief(&self, nr: u32) {
        self.brief_before.store(self.next.load(Ordering::Relaxed) as u32, Ordering::Relaxed);
        self.brief_nr.store(nr, Ordering::Relaxed);
    }

    /// Records a string that the call in progress was given: its address, how it begins, its length. What lies in
    /// `start` behind the length is not read. Called by the owner alone.
    #[inline(always)]
    pub fn text(&self, addr: u64, start: &[u8; KEPT_BYTES], len: usize) {
        if let Some(texts) = &self.texts {
            let call = (self.next.load(Ordering::Relaxed) / UNIT) as u32;
            texts.put(call.wrapping_sub(1), addr, start, len);
        }
    }

    /// [`Self::text`] of the call that begins next.
    pub fn text_ahead(&self, addr: u64, start: &[u8; KEPT_BYTES], len: usize) {
        if let Some(texts) = &self.texts {
            texts.put((self.next.load(Ordering::Relaxed) / UNIT) as u32, addr, start, len);
        }
    }

    /// The string at each of the addresses that the call of this index was given, as far as it is kept. Of two reads of
    /// one address the later counts; arguments with the same address have the same string.
    pub fn texts_at(&self, index: u32, addrs: [Option<u64>; 6]) -> [Option<CallText>; 6] {
        let mut found = [None; 6];
        let Some(texts) = &self.texts else { return found };
        let call = index.wrapping_add(self.first.load(Ordering::Relaxed));
        // Newest first: what is found already is the later read.
        texts.for_each(call, |text| {
            for (found, addr) in found.iter_mut().zip(addrs) {
                if found.is_none() && addr == Some(text.addr) {
                    *found = Some(*text);
                }
            }
        });
        if found.iter().flatten().any(CallText::is_cut) {
            texts.for_each(call, |piece| found.iter_mut().flatten().for_each(|text| text.join(piece)));
        }
        found
    }

    /// Calls published, modulo 2^32.
    fn published(&self) -> u32 {
        (self.next.load(Ordering::Acquire) / UNIT) as u32
    }

    /// The published call of this number, unless it is gone.
    fn get(&self, number: u32) -> Option<Call> {
        let slot = &self.slots[number as usize % CALLS];
        let exit = slot.exit.get();
        let entry = slot.entry.get();
        let call = Call {
            index: number.wrapping_sub(self.first.load(Ordering::Relaxed)),
            nr: slot.nr.load(Ordering::Relaxed),
            cpu: slot.cpu.load(Ordering::Relaxed),
            entry,
            done: (exit >= entry).then(|| (exit, slot.result.load(Ordering::Relaxed) as i64)),
            args: core::array::from_fn(|n| slot.args[n].load(Ordering::Relaxed)),
        };
        fence(Ordering::Acquire);
        let distance = self.published().wrapping_sub(number);
        (distance <= KEPT).then_some(call)
    }

    /// The owner's calls that can be had, oldest first. How many could not although they should.
    pub fn for_each(&self, mut visit: impl FnMut(Call)) -> u32 {
        let end = self.published();
        let mine = end.wrapping_sub(self.first.load(Ordering::Relaxed));
        let mut missing = 0;
        for back in (1..=mine.min(KEPT)).rev() {
            match self.get(end.wrapping_sub(back)) {
                Some(call) => visit(call),
                None => missing += 1,
            }
        }
        missing
    }

    /// The owner's last call that took a slot.
    pub fn last(&self) -> Option<Call> {
        let end = self.published();
        (end != self.first.load(Ordering::Relaxed)).then(|| self.get(end.wrapping_sub(1))).flatten()
    }

    /// The last call without slot, if it is not older than everything else here.
    pub fn last_brief(&self) -> Option<Brief> {
        let nr = self.brief_nr.load(Ordering::Relaxed);
        let before = self.brief_before.load(Ordering::Relaxed);
        let next = self.next.load(Ordering::Relaxed);
        let age = (next as u32).wrapping_sub(before) / UNIT as u32;
        let before = ((next / UNIT) as u32).wrapping_sub(age);
        let first = self.first.load(Ordering::Relaxed);
        (nr != NO_CALL && age <= KEPT).then(|| Brief { before: before.wrapping_sub(first), nr })
    }

    /// What the ring has seen of its present owner.
    pub fn counts(&self) -> super::Counts {
        let total = self.published().wrapping_sub(self.first.load(Ordering::Relaxed));
        super::Counts { total: u64::from(total), overwritten: u64::from(total.saturating_sub(KEPT)), capacity: KEPT }
    }
}

impl<'a> Draft<'a> {
    /// What is called, and on which processor.
    #[inline(always)]
    pub fn call(&self, nr: u32, cpu: u32) {
        self.slot.nr.store(nr, Ordering::Relaxed);
        self.slot.cpu.store(cpu, Ordering::Relaxed);
    }

    /// Stores the time of entry, in cycles.
    #[inline(always)]
    pub fn entry(&self, now: Cycles) {
        self.slot.entry.set(now);
    }

    /// The arguments from the `FIRST`th on.
    #[inline(always)]
    pub fn args<const FIRST: usize, const COUNT: usize>(&self, args: [u64; COUNT]) {
        for (to, from) in self.slot.args[FIRST..].iter().zip(args) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// Publishes the entry: from here on readers see the call as in progress.
    #[inline(always)]
    pub fn publish(self) -> Open<'a> {
        self.ring.next.store(self.ring.next.load(Ordering::Relaxed).wrapping_add(UNIT), Ordering::Release);
        Open(self.slot)
    }
}

impl Open<'_> {
    /// The call ends.
    #[inline(always)]
    pub fn end(self, result: i64, now: Cycles) {
        self.0.result.store(result as u64, Ordering::Relaxed);
        self.0.exit.set(now);
    }
}
