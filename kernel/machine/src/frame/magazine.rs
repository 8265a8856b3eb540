//! Per-processor magazines of free frames: the allocator policy is called per batch, not per frame.
//!
//! A magazine holds numbers only, in atomics, and is used by its own processor outside interrupt context; in interrupt
//! context the policy is asked directly. A number in a magazine has count 0: taking it out still means claiming it.
//!
//! A second magazine holds frames of zeros, which were page tables and become page tables again. An idle processor adds
//! to it ([`prepare_cleared`]). Pages of programs are not taken from it: to look there first took 27 instructions more
//! for each page of zeros, and a processor that programs keep busy finds nothing.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Frame, meta};
use crate::addr::FrameNumber;
use crate::hooks::hooks;
use crate::percpu::PerCpu;
use crate::processor::{CpuId, MAX_CPUS};
use crate::x86_64::cpu::local;

/// Frames moved between a magazine and the policy at once.
const BATCH: usize = 32;

struct Magazine<const ROOM: usize> {
    len: AtomicU32,
    numbers: [AtomicU32; ROOM],
}

/// Room for what a small program takes and gives back: a frame that goes through the policy comes out on another
/// processor, which then fetches every line of it from the cache of the first.
static MAGAZINES: PerCpu<Magazine<{ 4 * BATCH }>> = PerCpu::new([const { Magazine::new() }; MAX_CPUS]);

/// Frames of zeros; nothing writes to a frame while its number is here.
static CLEARED: PerCpu<Magazine<{ 2 * BATCH }>> = PerCpu::new([const { Magazine::new() }; MAX_CPUS]);

/// Frames cleared by idle processors, since boot.
static PREPARED: AtomicU64 = AtomicU64::new(0);

impl<const ROOM: usize> Magazine<ROOM> {
    const fn new() -> Self {
        Self { len: AtomicU32::new(0), numbers: [const { AtomicU32::new(0) }; ROOM] }
    }

    fn count(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Take the top number out and claim it; `None` leaves the policy to be asked.
    #[inline]
    fn pop(&self) -> Option<FrameNumber> {
        let len = self.len.load(Ordering::Relaxed) as usize;
        let last = self.numbers.get(len.checked_sub(1)?)?;
        let number = FrameNumber(last.load(Ordering::Relaxed));
        self.len.store(len as u32 - 1, Ordering::Relaxed);
        meta::claim(number).then_some(number)
    }

    /// Put a free frame's number on top, if there is room.
    #[inline]
    fn push(&self, number: FrameNumber) -> bool {
        let len = self.len.load(Ordering::Relaxed) as usize;
        let Some(slot) = self.numbers.get(len) else { return false };
        slot.store(number.0, Ordering::Relaxed);
        self.len.store(len as u32 + 1, Ordering::Relaxed);
        true
    }
}

#[inline]
fn in_interrupt() -> bool {
    local::here().irq_depth.load(Ordering::Relaxed) != 0
}

/// A claimed frame, or `None` when memory is out.
#[inline]
pub(super) fn take() -> Option<FrameNumber> {
    let quick = if in_interrupt() { None } else { MAGAZINES.here().pop() };
    quick.or_else(take_slow)
}

/// A claimed frame of zeros, if one waits here.
#[inline]
pub(super) fn take_cleared() -> Option<FrameNumber> {
    if in_interrupt() { None } else { CLEARED.here().pop() }
}

/// Clears one more frame for page tables to come, if fewer than `most` (64 at most) wait here. `false` when there is
/// nothing to do. For a processor that is idle, outside interrupt context.
#[cold]
#[inline(never)]
pub fn prepare_cleared(most: usize) -> bool {
    let cleared = CLEARED.here();
    let waiting = cleared.len.load(Ordering::Relaxed) as usize;
    if waiting >= most.min(cleared.numbers.len()) || in_interrupt() {
        return false;
    }
    let Ok(frame) = Frame::alloc_zeroed() else { return false };
    PREPARED.fetch_add(1, Ordering::Relaxed);
    let number = frame.into_number();
    // SAFETY: the reference that was `frame`, the only one to a fresh frame, gone after this.
    unsafe { meta::release_only(number) && cleared.push(number) }
}

/// Frames that idle processors cleared since boot, and frames of zeros that wait.
pub fn prepared() -> (u64, usize) {
    let waiting = |cpu| CLEARED.of(CpuId(cpu as u32)).count();
    (PREPARED.load(Ordering::Relaxed), (0..MAX_CPUS).map(waiting).sum())
}

#[cold]
#[inline(never)]
fn take_slow() -> Option<FrameNumber> {
    loop {
        let mut batch = [FrameNumber(0); BATCH];
        let wanted = if in_interrupt() { 1 } else { BATCH };
        let got = (hooks().take_frames)(&mut batch[..wanted]).min(wanted);
        let (first, rest) = batch[..got].split_first()?;
        rest.iter().for_each(|n| put(*n));
        // A number that cannot be claimed is a mistake of the policy's; it loses the frame, and is asked again.
        if meta::claim(*first) {
            return Some(*first);
        }
    }
}

/// Put a free frame back.
#[inline]
pub(super) fn put(number: FrameNumber) {
    if in_interrupt() {
        return (hooks().give_frames)(&[number]);
    }
    let magazine = MAGAZINES.here();
    if !magazine.push(number) {
        give(magazine, BATCH);
        magazine.push(number);
    }
}

/// Put a free frame of zeros back.
#[inline]
pub(super) fn put_cleared(number: FrameNumber) {
    if in_interrupt() || !CLEARED.here().push(number) {
        put(number);
    }
}

/// Give the top `count` numbers back to the policy.
#[cold]
#[inline(never)]
fn give<const ROOM: usize>(magazine: &Magazine<ROOM>, count: usize) -> usize {
    let len = magazine.len.load(Ordering::Relaxed) as usize;
    let count = count.min(len).min(BATCH);
    let mut batch = [FrameNumber(0); BATCH];
    for (to, from) in batch.iter_mut().zip(&magazine.numbers[len - count..len]) {
        *to = FrameNumber(from.load(Ordering::Relaxed));
    }
    magazine.len.store((len - count) as u32, Ordering::Relaxed);
    (hooks().give_frames)(&batch[..count]);
    count
}

/// Free single frames sitting in the magazines of all processors (count them as free in statistics).
pub fn in_magazines() -> usize {
    let of = |cpu| MAGAZINES.of(cpu).count() + CLEARED.of(cpu).count();
    (0..MAX_CPUS).map(|cpu| of(CpuId(cpu as u32))).sum()
}

/// Give every frame in this processor's magazines back to the policy (under memory pressure). Not in interrupt context.
pub fn drain_magazines() {
    if !in_interrupt() {
        while give(MAGAZINES.here(), BATCH) > 0 {}
        while give(CLEARED.here(), BATCH) > 0 {}
    }
}
