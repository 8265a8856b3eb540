//! The kernel heap: magazines per processor in front of talc, whole blocks of frames behind.
//!
//! | size | served by |
//! |---|---|
//! | up to 2 KiB, alignment up to 16 | this processor's magazine of the size class: about twenty instructions, no lock |
//! | up to 16 KiB | talc, under a lock with interrupts off |
//! | more | a block of frames of its own, given back when freed |
//!
//! A magazine is touched only by its own processor outside interrupt context (interrupt handlers go to talc), so it needs no
//! lock. Talc is fed blocks of [`ARENA_ORDER`], which stay with it.

use alloc::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;

use crate::addr::PAGE_SIZE;
use crate::cpu::PerCpu;
use crate::frame::{Frame, MAX_ORDER};
use crate::sync::SpinLock;
use crate::x86_64::layout::direct;
use crate::x86_64::local;

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
        crate::cpu::MAX_CPUS],
);

static TALC: SpinLock<Talc<Manual, DefaultBinning>> = SpinLock::new(Talc::new(Manual));

/// Bytes of frames the heap holds, arenas and blocks.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes of frames the heap holds, for `/proc/meminfo`.
pub fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Memory for the kernel's first allocations, before its frame allocator works.
const FIRST_ARENA: usize = 256 * 1024;

#[repr(align(4096))]
struct Arena(UnsafeCell<[u8; FIRST_ARENA]>);

// SAFETY: handed to talc once; nobody uses it under this name.
unsafe impl Sync for Arena {}

static ARENA: Arena = Arena(UnsafeCell::new([0; FIRST_ARENA]));

/// Give talc its first arena. Once, before [`crate::kernel::find_and_enter`].
pub(crate) fn init() {
    // SAFETY: the arena is a static nobody else uses.
    unsafe { TALC.lock_irq().claim(ARENA.0.get().cast(), FIRST_ARENA) };
}

#[inline]
fn class(layout: Layout) -> Option<usize> {
    if layout.size() > SMALL || layout.align() > 16 {
        return None;
    }
    Some(CLASS[layout.size().div_ceil(16)] as usize)
}

/// Whether a reallocation may stay where it is.
pub(crate) fn same_place(old: Layout, new: Layout) -> bool {
    match (class(old), class(new)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => block_order(old).is_some_and(|order| block_order(new) == Some(order)),
        _ => false,
    }
}

fn block_order(layout: Layout) -> Option<u8> {
    let size = layout.size().max(layout.align());
    (size >= BLOCK_SIZE).then(|| (size.div_ceil(PAGE_SIZE)).next_power_of_two().trailing_zeros() as u8)
}

/// From this processor's magazine, if it has one of that size.
#[inline]
pub(crate) fn alloc_fast(layout: Layout) -> Option<*mut u8> {
    let class = class(layout)?;
    if in_interrupt() {
        return None;
    }
    let magazine = &RACKS.here()[class];
    let head = magazine.head.load(Ordering::Relaxed);
    if head.is_null() {
        return None;
    }
    // SAFETY: objects in a magazine are free memory of the class, whose first word links to the next; nobody but this
    // processor, outside interrupts, touches its magazines.
    let next = unsafe { *head.cast::<*mut u8>() };
    magazine.head.store(next, Ordering::Relaxed);
    magazine.count.store(magazine.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    Some(head)
}

/// Release.
///
/// # Safety
/// `at` came from this heap with this layout and is not used any more.
#[inline]
pub(crate) unsafe fn dealloc(at: *mut u8, layout: Layout) {
    let Some(class) = class(layout).filter(|_| !in_interrupt()) else {
        // SAFETY: the caller's.
        return unsafe { dealloc_slow(at, layout) };
    };
    let magazine = &RACKS.here()[class];
    // SAFETY: the object is free now and at least a pointer large.
    unsafe { *at.cast::<*mut u8>() = magazine.head.load(Ordering::Relaxed) };
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
        // SAFETY: as in `alloc_fast`: `head` is free memory that links to the next; every object of a class was allocated
        // from talc with the class's layout.
        unsafe {
            magazine.head.store(*head.cast::<*mut u8>(), Ordering::Relaxed);
            talc.deallocate(head, layout);
        }
        magazine.count.store(magazine.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

fn class_layout(class: usize) -> Layout {
    // SAFETY: 16 is a power of two and the sizes are small.
    unsafe { Layout::from_size_align_unchecked(SIZES[class] as usize, 16) }
}

/// Refill the magazine and serve, or serve what has no magazine. Null when memory is out.
pub(crate) fn alloc_slow(layout: Layout) -> *mut u8 {
    match (class(layout), block_order(layout)) {
        (Some(class), _) => alloc_small(class),
        (None, Some(order)) => alloc_block(order),
        (None, None) => from_talc(layout),
    }
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
            // SAFETY: a fresh object, put into this processor's magazine.
            unsafe { *at.cast::<*mut u8>() = magazine.head.load(Ordering::Relaxed) };
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
        let Ok(arena) = Frame::alloc_block(ARENA_ORDER) else { return null_mut() };
        let size = PAGE_SIZE << ARENA_ORDER;
        HELD.fetch_add(size, Ordering::Relaxed);
        // SAFETY: the block is ours, and never released: the reference is forgotten.
        unsafe { TALC.lock_irq().claim(direct(arena.addr()), size) };
        core::mem::forget(arena);
    }
}

fn alloc_block(order: u8) -> *mut u8 {
    if order > MAX_ORDER {
        return null_mut();
    }
    let Ok(block) = Frame::alloc_block(order) else { return null_mut() };
    HELD.fetch_add(PAGE_SIZE << order, Ordering::Relaxed);
    let at = direct(block.addr());
    // The allocation is the reference now.
    core::mem::forget(block);
    at
}

/// # Safety
/// As for [`dealloc`].
#[cold]
#[inline(never)]
unsafe fn dealloc_slow(at: *mut u8, layout: Layout) {
    if let Some(class) = class(layout) {
        // SAFETY: in interrupt context; the object came from talc with its class's layout.
        return unsafe { TALC.lock_irq().deallocate(at, class_layout(class)) };
    }
    match block_order(layout) {
        Some(order) => {
            HELD.fetch_sub(PAGE_SIZE << order, Ordering::Relaxed);
            // SAFETY: `alloc_block` turned a reference into this allocation; turn it back and drop it.
            drop(unsafe { Frame::from_direct(NonNull::new_unchecked(at)) });
        }
        // SAFETY: allocated from talc with this layout.
        None => unsafe { TALC.lock_irq().deallocate(at, layout) },
    }
}
