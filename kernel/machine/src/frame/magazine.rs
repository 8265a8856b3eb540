//! Per-processor magazines of free frames: the allocator policy is called per batch, not per frame.
//!
//! A magazine holds numbers only, in atomics, and is used by its own processor outside interrupt context; in interrupt
//! context the policy is asked directly. A number in a magazine has count 0: taking it out still means claiming it.

use core::sync::atomic::{AtomicU32, Ordering};

use super::meta;
use crate::addr::FrameNumber;
use crate::hooks::hooks;
use crate::percpu::PerCpu;
use crate::processor::{CpuId, MAX_CPUS};
use crate::x86_64::cpu::local;

/// Frames moved between a magazine and the policy at once.
const BATCH: usize = 32;

struct Magazine {
    len: AtomicU32,
    numbers: [AtomicU32; 2 * BATCH],
}

static MAGAZINES: PerCpu<Magazine> = PerCpu::new(
    [const { Magazine { len: AtomicU32::new(0), numbers: [const { AtomicU32::new(0) }; 2 * BATCH] } }; MAX_CPUS],
);

#[inline]
fn in_interrupt() -> bool {
    local::here().irq_depth.load(Ordering::Relaxed) != 0
}

/// A claimed frame, or `None` when memory is out.
#[inline]
pub(super) fn take() -> Option<FrameNumber> {
    if !in_interrupt() {
        let magazine = MAGAZINES.here();
        let len = magazine.len.load(Ordering::Relaxed) as usize;
        if let Some(last) = len.checked_sub(1).and_then(|last| magazine.numbers.get(last)) {
            let number = FrameNumber(last.load(Ordering::Relaxed));
            magazine.len.store(len as u32 - 1, Ordering::Relaxed);
            if meta::claim(number) {
                return Some(number);
            }
        }
    }
    take_slow()
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
    let mut len = magazine.len.load(Ordering::Relaxed) as usize;
    if len >= 2 * BATCH {
        give(magazine, BATCH);
        len = magazine.len.load(Ordering::Relaxed) as usize;
    }
    if let Some(slot) = magazine.numbers.get(len) {
        slot.store(number.0, Ordering::Relaxed);
        magazine.len.store(len as u32 + 1, Ordering::Relaxed);
    }
}

/// Give the top `count` numbers back to the policy.
#[cold]
#[inline(never)]
fn give(magazine: &Magazine, count: usize) -> usize {
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
    (0..MAX_CPUS).map(|cpu| MAGAZINES.of(CpuId(cpu as u32)).len.load(Ordering::Relaxed) as usize).sum()
}

/// Give every frame in this processor's magazine back to the policy (under memory pressure). Not in interrupt context.
pub fn drain_magazines() {
    if !in_interrupt() {
        while give(MAGAZINES.here(), BATCH) > 0 {}
    }
}
