//! Kernel memory that is contiguous only in addresses: single frames mapped side by side.
//!
//! The heap comes here when no contiguous block of frames is to be had, or none is that large. Rare and slow by design:
//! every release interrupts all processors.
//!
//! The room is divided by size: a span of `2^order` pages begins at one of at most [`MOST`] slots that only spans of
//! its order use. Only the pages asked for are mapped, so what follows a span is unmapped unless it fills its slot.

use core::sync::atomic::Ordering::Relaxed;

use super::stacks;
use super::table::{self, GLOBAL, NO_EXEC, PRESENT, WRITE};
use crate::addr::PAGE_SIZE;
use crate::frame::{Frame, OutOfFrames};
use crate::sync::SpinLock;
use crate::x86_64::cpu::features;
use crate::x86_64::interrupts::tlb;
use crate::x86_64::layout::spans;

/// Largest span: 2^16 pages, 256 MiB.
pub(crate) const MAX_ORDER: u8 = 16;
/// Bytes of address space for each order.
const ROOM: u64 = 16 << 30;
/// Most spans of one order.
const MOST: u64 = 1024;

static TAKEN: SpinLock<[[u64; MOST as usize / 64]; MAX_ORDER as usize + 1]> =
    SpinLock::new([[0; MOST as usize / 64]; MAX_ORDER as usize + 1]);

/// A span of `pages` pages, zeroed nowhere. `None` when memory or room is out, or the span would be larger than
/// [`MAX_ORDER`] allows.
pub(crate) fn map(pages: usize) -> Option<*mut u8> {
    let order = order(pages)?;
    let slot = take_slot(order)?;
    let base = spans() + u64::from(order) * ROOM + (slot << order) * PAGE_SIZE as u64;
    let no_exec = if features::has(features::Feature::Nx) { NO_EXEC } else { 0 };
    for page in 0..pages {
        let mapped = stacks::leaf(base + (page * PAGE_SIZE) as u64).and_then(|leaf| {
            let frame = Frame::alloc_for_kernel()?;
            leaf.store(frame.into_number().addr().0 | PRESENT | WRITE | GLOBAL | no_exec, Relaxed);
            Ok(())
        });
        if let Err(OutOfFrames) = mapped {
            release(base, page);
            give_slot(order, slot);
            return None;
        }
    }
    Some(base as *mut u8)
}

/// Whether an address is in a span.
#[inline]
pub(crate) fn holds(at: *mut u8) -> bool {
    (spans()..spans() + (u64::from(MAX_ORDER) + 1) * ROOM).contains(&(at as u64))
}

/// Release a span.
///
/// # Safety
/// `at` came from [`map`] with as many pages, and the memory is no longer in use.
pub(crate) unsafe fn unmap(at: *mut u8, pages: usize) {
    let Some(order) = order(pages) else { return };
    release(at as u64, pages);
    let slot = ((at as u64 - spans() - u64::from(order) * ROOM) / PAGE_SIZE as u64) >> order;
    give_slot(order, slot);
}

fn order(pages: usize) -> Option<u8> {
    let order = pages.checked_next_power_of_two()?.trailing_zeros() as u8;
    (order <= MAX_ORDER).then_some(order)
}

fn slots(order: u8) -> u64 {
    ((ROOM / PAGE_SIZE as u64) >> order).min(MOST)
}

fn take_slot(order: u8) -> Option<u64> {
    let mut taken = TAKEN.lock_irq();
    let words = &mut taken[usize::from(order)];
    let word = words.iter().position(|word| *word != u64::MAX)?;
    let slot = word as u64 * 64 + u64::from(words[word].trailing_ones());
    if slot >= slots(order) {
        return None;
    }
    words[word] |= 1 << (slot % 64);
    Some(slot)
}

fn give_slot(order: u8, slot: u64) {
    TAKEN.lock_irq()[usize::from(order)][slot as usize / 64] &= !(1 << (slot % 64));
}

/// Unmap the first `pages` pages at `base`: no processor may know a translation any more when the frames are released.
fn release(base: u64, pages: usize) {
    let leaves = || (0..pages).filter_map(move |page| stacks::leaf(base + (page * PAGE_SIZE) as u64).ok());
    leaves().for_each(|leaf| leaf.store(leaf.load(Relaxed) & !PRESENT, Relaxed));
    tlb::flush_kernel();
    for leaf in leaves() {
        let entry = leaf.swap(0, Relaxed);
        if entry != 0 {
            // SAFETY: `map` put the reference there, and the swap takes it out once.
            drop(unsafe { Frame::from_number(table::frame(entry)) });
        }
    }
}
