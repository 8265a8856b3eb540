//! The kernel heap: magazines per processor in front of talc, whole blocks of frames behind.
//!
//! | size | served by |
//! |---|---|
//! | up to 2 KiB, alignment up to 16 | this processor's magazine of the size class: some twenty instructions, no lock |
//! | up to 16 KiB | talc, under a lock with interrupts off |
//! | more | a block of frames of its own, or a span of scattered ones; given back when freed |
//!
//! A magazine is touched only by its own processor outside interrupt context (interrupt handlers go to talc), so it
//! needs no lock. Talc is fed arenas, blocks of `ARENA_ORDER`; one that is empty again is given back.

use alloc::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use talc::DefaultBinning;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

use crate::addr::PAGE_SIZE;
use crate::frame::{Frame, MAX_ORDER};
use crate::inject;
use crate::percpu::PerCpu;
use crate::processor::{CpuId, MAX_CPUS};
use crate::sync::SpinLock;
use crate::x86_64::cpu::local;
use crate::x86_64::layout::{DIRECT_LIMIT, direct, direct_map};
use crate::x86_64::memory::spans;

mod guard;

#[cfg(feature = "fortress")]
pub use guard::{Misuse, misuse};

/// Feed talc 256 KiB at a time.
const ARENA_ORDER: u8 = 6;
/// Allocations from here on get frames of their own.
const BLOCK_SIZE: usize = 16 * 1024;
/// Largest size with magazines.
const SMALL: usize = 2048;
/// Size classes: steps of 16 to 128, then four per doubling.
const SIZES: [u16; 24] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792,
    2048,
];
/// Class of each multiple of 16.
static CLASS: [u8; SMALL / 16 + 1] = classes();

const fn classes() -> [u8; SMALL / 16 + 1] {
    let mut table = [0; SMALL / 16 + 1];
    let (mut units, mut class) = (0, 0);
    while units < table.len() {
        if units * 16 > SIZES[class] as usize {
            class += 1;
        }
        table[units] = class as u8;
        units += 1;
    }
    table
}

/// Free objects of one class on one processor, linked through their first word.
struct Magazine {
    head: AtomicPtr<u8>,
    count: AtomicU32,
}

type Rack = [Magazine; SIZES.len()];

static RACKS: PerCpu<Rack> = PerCpu::new(
    [const { [const { Magazine { head: AtomicPtr::new(null_mut()), count: AtomicU32::new(0) } }; SIZES.len()] };
        MAX_CPUS],
);

static TALC: SpinLock<Talc<Arenas, DefaultBinning>> = SpinLock::new(Talc::new(Arenas { empty: None }));

/// Bytes of frames the heap holds, arenas and blocks.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes in blocks and spans.
static LARGE: AtomicUsize = AtomicUsize::new(0);

/// What the heap's memory is used for, in bytes; a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Frames the heap holds.
    pub held: usize,
    /// Of that, bytes in allocated objects.
    pub used: usize,
}

/// What the heap holds and uses, for `/proc/meminfo`.
pub fn usage() -> Usage {
    let small = TALC.lock_irq().counters().allocated_bytes;
    let ready: usize = (0..MAX_CPUS)
        .flat_map(|cpu| RACKS.of(CpuId(cpu as u32)).iter().zip(SIZES))
        .map(|(magazine, size)| magazine.count.load(Ordering::Relaxed) as usize * usize::from(size))
        .sum();
    let used = small.saturating_sub(ready) + LARGE.load(Ordering::Relaxed);
    Usage { held: HELD.load(Ordering::Relaxed).max(used), used }
}

/// Talc's view of its arenas. It is never asked for one ([`from_talc`] feeds talc from outside its lock), and keeps the
/// one that became empty for [`free_to_talc`] to release, outside the lock too.
#[derive(Debug)]
struct Arenas {
    /// Address of an arena that talc knows no more.
    empty: Option<usize>,
}

// SAFETY: `acquire` touches no allocator. `resize` only ever says "as it was" or "nothing": the memory it takes from
// talc is a whole arena that `from_talc` claimed, as nothing else lies in the direct map, and talc forgets it.
unsafe impl Source for Arenas {
    const TRACK_HEAP_END: bool = true;

    fn acquire<B: Binning>(_: &mut Talc<Self, B>, _: Layout) -> Result<(), ()> {
        Err(())
    }

    unsafe fn resize(&mut self, chunk_base: *mut u8, heap_end: *mut u8, is_heap_base: bool) -> *mut u8 {
        let start = (heap_end as usize).wrapping_sub(ARENA_SIZE);
        let in_direct_map = (direct_map()..direct_map() + DIRECT_LIMIT).contains(&(start as u64));
        if !is_heap_base || !in_direct_map || self.empty.is_some() {
            return heap_end;
        }
        self.empty = Some(start);
        chunk_base
    }
}

/// Bytes of an arena.
const ARENA_SIZE: usize = PAGE_SIZE << ARENA_ORDER;

/// Memory for the kernel's first allocations, before its frame allocator works.
const FIRST_ARENA: usize = 256 * 1024;

#[repr(align(4096))]
struct Arena(UnsafeCell<[u8; FIRST_ARENA]>);

// SAFETY: handed to talc once and not accessed under this name afterwards.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; FIRST_ARENA]));

/// Give talc its first arena. Once, before [`crate::kernel::find_and_enter`].
pub(crate) fn init() {
    guard::start();
    // SAFETY: the arena is a static without other users.
    unsafe { TALC.lock_irq().claim(ARENA.0.get().cast(), FIRST_ARENA) };
}

#[inline]
fn class(layout: Layout) -> Option<usize> {
    if layout.size() > SMALL || layout.align() > 16 {
        return None;
    }
    Some(CLASS[layout.size().div_ceil(16)] as usize)
}

/// Whether the reallocation of `at` may stay where it is.
pub(crate) fn same_block(at: *mut u8, old: Layout, new: Layout) -> bool {
    if guard::zoned(old) || guard::zoned(new) {
        return false;
    }
    match (class(old), class(new)) {
        (Some(a), Some(b)) => a == b,
        (None, None) if spans::holds(at) => block_order(new).is_some() && pages(old) == pages(new),
        (None, None) => block_order(old).is_some_and(|order| block_order(new) == Some(order)),
        _ => false,
    }
}

fn pages(layout: Layout) -> usize {
    layout.size().div_ceil(PAGE_SIZE)
}

fn block_order(layout: Layout) -> Option<u8> {
    let size = layout.size().max(layout.align());
    (size >= BLOCK_SIZE).then(|| (size.div_ceil(PAGE_SIZE)).next_power_of_two().trailing_zeros() as u8)
}

/// From this processor's magazine, if it has one of that size.
#[inline]
pub(crate) fn alloc_fast(layout: Layout) -> Option<*mut u8> {
    let class = class(guard::pad(layout))?;
    if in_interrupt() {
        return None;
    }
    let magazine = &RACKS.here()[class];
    let head = magazine.head.load(Ordering::Relaxed);
    if head.is_null() {
        return None;
    }
    // SAFETY: objects in a magazine are free memory of the class, whose first word links to the next; only this
    // processor, outside interrupts, touches its magazines.
    let next = unsafe { guard::follow(head) };
    magazine.head.store(next, Ordering::Relaxed);
    magazine.count.store(magazine.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    // SAFETY: an object of the class, which has room for the layout's zone.
    unsafe {
        guard::taken(head, SIZES[class]);
        guard::arm(head, layout);
    }
    Some(head)
}

/// Release.
///
/// # Safety
/// `at` came from this heap with this layout and is not used any more.
#[inline]
pub(crate) unsafe fn dealloc(at: *mut u8, layout: Layout) {
    // SAFETY: the caller's.
    unsafe { guard::check(at, layout) };
    let Some(class) = class(guard::pad(layout)).filter(|_| !in_interrupt()) else {
        // SAFETY: the caller's.
        return unsafe { dealloc_slow(at, guard::pad(layout)) };
    };
    if inject::is(inject::Fault::Poison) {
        // SAFETY: the object is free now, and as large as its layout says.
        unsafe { at.write_bytes(inject::POISON, layout.size()) };
    }
    let magazine = &RACKS.here()[class];
    // SAFETY: the object is free now and as large as its class says.
    unsafe {
        guard::freed(at, SIZES[class]);
        guard::link(at, magazine.head.load(Ordering::Relaxed));
    }
    magazine.head.store(at, Ordering::Relaxed);
    let count = magazine.count.load(Ordering::Relaxed) + 1;
    magazine.count.store(count, Ordering::Relaxed);
    if count > 2 * batch(class) {
        flush(class);
    }
}

/// Objects moved between a magazine and talc at once: up to 4 KiB of them.
const fn batch(class: usize) -> u32 {
    let n = 4096 / SIZES[class] as u32;
    if n > 32 { 32 } else { n }
}

#[inline]
fn in_interrupt() -> bool {
    local::here().irq_depth.load(Ordering::Relaxed) != 0
}

/// Move a batch from this processor's magazine back to talc.
#[cold]
#[inline(never)]
fn flush(class: usize) {
    let layout = class_layout(class);
    let magazine = &RACKS.here()[class];
    let mut talc = TALC.lock_irq();
    for _ in 0..batch(class) {
        let head = magazine.head.load(Ordering::Relaxed);
        // SAFETY: as in `alloc_fast`: `head` is free memory that links to the next; every object of a class was
        // allocated from talc with the class's layout.
        unsafe {
            magazine.head.store(guard::follow(head), Ordering::Relaxed);
            talc.deallocate(head, layout);
        }
        magazine.count.store(magazine.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        // Each object may be the last of an arena of its own.
        if let Some(empty) = talc.source.empty.take() {
            drop(talc);
            release_arena(Some(empty));
            talc = TALC.lock_irq();
        }
    }
}

/// Give an arena that talc has let go of back to the frame allocator; not under talc's lock.
fn release_arena(arena: Option<usize>) {
    if let Some(start) = arena {
        HELD.fetch_sub(ARENA_SIZE, Ordering::Relaxed);
        // SAFETY: `from_talc` turned a reference into this arena, and talc knows it no more; turn it back and drop it.
        drop(unsafe { Frame::from_direct(NonNull::new_unchecked(start as *mut u8)) });
    }
}

/// # Safety
/// `at` was allocated from talc with this layout and is not used any more.
unsafe fn free_to_talc(at: *mut u8, layout: Layout) {
    let empty = {
        let mut talc = TALC.lock_irq();
        // SAFETY: the caller's.
        unsafe { talc.deallocate(at, layout) };
        talc.source.empty.take()
    };
    release_arena(empty);
}

fn class_layout(class: usize) -> Layout {
    // SAFETY: 16 is a power of two and the sizes are small.
    unsafe { Layout::from_size_align_unchecked(SIZES[class] as usize, 16) }
}

/// Refill the magazine and serve, or serve what has no magazine. Null when memory is out.
pub(crate) fn alloc_slow(layout: Layout) -> *mut u8 {
    let padded = guard::pad(layout);
    let at = match (class(padded), block_order(padded)) {
        (Some(class), _) => alloc_small(class),
        (None, Some(order)) => alloc_block(padded, order),
        (None, None) => from_talc(padded),
    };
    // SAFETY: null, or allocated for the padded layout.
    unsafe { guard::arm(at, layout) };
    at
}

fn alloc_small(class: usize) -> *mut u8 {
    let layout = class_layout(class);
    if !in_interrupt() {
        let magazine = &RACKS.here()[class];
        for _ in 1..batch(class) {
            let at = from_talc(layout);
            if at.is_null() {
                break;
            }
            // SAFETY: a fresh object of the class, put into this processor's magazine.
            unsafe {
                guard::freed(at, SIZES[class]);
                guard::link(at, magazine.head.load(Ordering::Relaxed));
            }
            magazine.head.store(at, Ordering::Relaxed);
            magazine.count.store(magazine.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }
    from_talc(layout)
}

fn from_talc(layout: Layout) -> *mut u8 {
    loop {
        // SAFETY: the layout has a size.
        if let Some(at) = unsafe { TALC.lock_irq().try_allocate(layout) } {
            return at.as_ptr();
        }
        // Not under the lock: the kernel's allocator is asked, and is free to take its own locks.
        let arena = match Frame::alloc_block(ARENA_ORDER) {
            // The reference is forgotten: the block is talc's until it gives it up as empty.
            Ok(block) => direct(core::mem::ManuallyDrop::new(block).addr()),
            Err(_) => match spans::map(1 << ARENA_ORDER) {
                Some(at) => at,
                None => return null_mut(),
            },
        };
        HELD.fetch_add(ARENA_SIZE, Ordering::Relaxed);
        // SAFETY: the memory was allocated just now and has no other users. A span is never given up: talc keeps what
        // is not in the direct map.
        unsafe { TALC.lock_irq().claim(arena, ARENA_SIZE) };
    }
}

fn alloc_block(layout: Layout, order: u8) -> *mut u8 {
    let block = if order > MAX_ORDER { None } else { Frame::alloc_block(order).ok() };
    let Some(block) = block else { return span(layout) };
    HELD.fetch_add(PAGE_SIZE << order, Ordering::Relaxed);
    LARGE.fetch_add(PAGE_SIZE << order, Ordering::Relaxed);
    let at = direct(block.addr());
    // The allocation is the reference now.
    core::mem::forget(block);
    at
}

/// Scattered frames side by side, when no block is to be had or none is that large.
fn span(layout: Layout) -> *mut u8 {
    if layout.align() > PAGE_SIZE {
        return null_mut();
    }
    let Some(at) = spans::map(pages(layout)) else { return null_mut() };
    HELD.fetch_add(pages(layout) * PAGE_SIZE, Ordering::Relaxed);
    LARGE.fetch_add(pages(layout) * PAGE_SIZE, Ordering::Relaxed);
    at
}

/// # Safety
/// As for [`dealloc`].
#[cold]
#[inline(never)]
unsafe fn dealloc_slow(at: *mut u8, layout: Layout) {
    if let Some(class) = class(layout) {
        // SAFETY: in interrupt context; the object came from talc with its class's layout.
        return unsafe { free_to_talc(at, class_layout(class)) };
    }
    match block_order(layout) {
        Some(_) if spans::holds(at) => {
            HELD.fetch_sub(pages(layout) * PAGE_SIZE, Ordering::Relaxed);
            LARGE.fetch_sub(pages(layout) * PAGE_SIZE, Ordering::Relaxed);
            // SAFETY: `span` made it for a layout of as many pages.
            unsafe { spans::unmap(at, pages(layout)) };
        }
        Some(order) => {
            HELD.fetch_sub(PAGE_SIZE << order, Ordering::Relaxed);
            LARGE.fetch_sub(PAGE_SIZE << order, Ordering::Relaxed);
            // SAFETY: `alloc_block` turned a reference into this allocation; turn it back and drop it.
            drop(unsafe { Frame::from_direct(NonNull::new_unchecked(at)) });
        }
        // SAFETY: allocated from talc with this layout.
        None => unsafe { free_to_talc(at, layout) },
    }
}
