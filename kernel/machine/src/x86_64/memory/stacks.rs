//! Kernel stacks: slots of 64 KiB whose lower half is never mapped, so that running out of stack faults at once.
//!
//! Mapping and unmapping cost table writes and, for unmapping, an interrupt to every processor; so freed stacks stay
//! mapped, and only an excess over a few is unmapped, many in one go, when the next stack is asked for.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::table::{self, GLOBAL, PRESENT, WRITE};
use crate::addr::PAGE_SIZE;
use crate::frame::{Frame, OutOfFrames};
use crate::sync::SpinLock;
use crate::x86_64::cpu::features;
use crate::x86_64::interrupts::tlb;
use crate::x86_64::layout::stacks;

/// Bytes of the boot stack; the kernel's `main` runs on it until [`crate::Start::enter`].
pub(crate) const BOOT_STACK: usize = 64 * 1024;
/// Bytes of a kernel stack; below it lies as much unmapped.
pub const KERNEL_STACK_SIZE: usize = 32 * 1024;
/// Bytes below a stack that are never mapped.
pub(crate) const GUARD: u64 = KERNEL_STACK_SIZE as u64;
const SLOT: u64 = 2 * KERNEL_STACK_SIZE as u64;
/// Most stacks at a time.
const SLOTS: usize = 16 * 1024;
/// Free stacks kept mapped.
const CACHED: usize = 32;
/// Stacks unmapped per flush.
const BATCH: usize = 64;
/// [`Pool::mapped`], to be looked at without the lock.
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// An owned, mapped stack.
pub(crate) struct Stack(u32);

struct Pool {
    /// The freed stack on top, or [`NONE`]; the last word of each holds the next.
    free: u32,
    /// How many are free and mapped.
    mapped: usize,
    /// Bit set: in use, or free and mapped.
    taken: [u64; SLOTS / 64],
}

const NONE: u32 = u32::MAX;

static POOL: SpinLock<Pool> = SpinLock::new(Pool { free: NONE, mapped: 0, taken: [0; SLOTS / 64] });

impl Stack {
    /// A stack with whatever the last user left on it.
    pub(crate) fn new() -> Result<Self, OutOfFrames> {
        let mut pool = POOL.lock_irq();
        if let Some(slot) = pool.pop() {
            return Ok(Self(slot).guarded());
        }
        let slot = pool.take_slot()?;
        drop(pool);
        if let Err(OutOfFrames) = map(slot) {
            unmap(slot);
            POOL.lock_irq().give_slot(slot);
            return Err(OutOfFrames);
        }
        Ok(Self(slot).guarded())
    }

    /// In the fortress profile: write the canary at its end.
    #[inline(always)]
    fn guarded(self) -> Self {
        #[cfg(feature = "fortress")]
        // SAFETY: the lowest word of a mapped stack that is not in use yet.
        unsafe {
            (self.bottom() as *mut u64).write_volatile(CANARY);
        }
        self
    }

    /// First address past it.
    pub(crate) fn top(&self) -> u64 {
        stacks() + (u64::from(self.0) + 1) * SLOT
    }

    /// Lowest usable address.
    pub(crate) fn bottom(&self) -> u64 {
        self.top() - KERNEL_STACK_SIZE as u64
    }
}

/// Stacks that are free and still mapped.
pub(crate) fn idle() -> usize {
    MAPPED.load(Relaxed)
}

/// In the fortress profile: panics when the stack with this lowest address was used to its last word.
#[inline(always)]
pub(crate) fn check_canary(bottom: u64) {
    #[cfg(feature = "fortress")]
    {
        // SAFETY: the lowest word of a mapped stack; its owner calls.
        let found = unsafe { (bottom as *const u64).read_volatile() };
        assert!(found == CANARY, "kernel stack at {bottom:#x} overflowed: its canary is {found:#x}");
    }
    #[cfg(not(feature = "fortress"))]
    let _ = bottom;
}

/// The word at the end of each stack in the fortress profile.
#[cfg(feature = "fortress")]
const CANARY: u64 = 0x5afe_57ac_0e4d_0bad;

impl Drop for Stack {
    fn drop(&mut self) {
        check_canary(self.bottom());
        POOL.lock_irq().push(self.0);
    }
}

/// [`trim`], if there is enough for a batch: for threads that end, many of which may end before one begins.
#[inline]
pub(crate) fn trim_batch() {
    if MAPPED.load(Relaxed) >= CACHED + BATCH {
        trim_now();
    }
}

/// Unmap what is kept beyond need. Thread context.
#[inline]
pub(crate) fn trim() {
    if MAPPED.load(Relaxed) > CACHED {
        trim_now();
    }
}

#[cold]
fn trim_now() {
    loop {
        let mut batch = [0; BATCH];
        let mut count = 0;
        {
            let mut pool = POOL.lock_irq();
            while pool.mapped > CACHED && count < BATCH {
                let Some(slot) = pool.pop() else { break };
                batch[count] = slot;
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        release(&batch[..count]);
    }
}

/// Unmap unused stacks, flush every processor's translations, and only then free frames and slots.
fn release(slots: &[u32]) {
    for slot in slots {
        for_each_leaf(*slot, |leaf| leaf.store(leaf.load(Relaxed) & !PRESENT, Relaxed));
    }
    tlb::flush_kernel();
    for slot in slots {
        unmap(*slot);
        POOL.lock_irq().give_slot(*slot);
    }
}

/// Where a free stack holds the number of the next one.
fn link(slot: u32) -> *mut u64 {
    (stacks() + (u64::from(slot) + 1) * SLOT - 8) as *mut u64
}

impl Pool {
    fn push(&mut self, slot: u32) {
        // SAFETY: the stack is mapped and free.
        unsafe { link(slot).write(u64::from(self.free)) };
        self.free = slot;
        self.mapped += 1;
        MAPPED.store(self.mapped, Relaxed);
    }

    fn pop(&mut self) -> Option<u32> {
        let slot = self.free;
        if slot == NONE {
            return None;
        }
        // SAFETY: a free stack is mapped, and `push` wrote its link.
        self.free = unsafe { link(slot).read() } as u32;
        self.mapped -= 1;
        MAPPED.store(self.mapped, Relaxed);
        Some(slot)
    }

    fn take_slot(&mut self) -> Result<u32, OutOfFrames> {
        let word = self.taken.iter().position(|w| *w != u64::MAX).ok_or(OutOfFrames)?;
        let bit = self.taken[word].trailing_ones();
        self.taken[word] |= 1 << bit;
        Ok(word as u32 * 64 + bit)
    }

    fn give_slot(&mut self, slot: u32) {
        self.taken[slot as usize / 64] &= !(1 << (slot % 64));
    }
}

/// Map fresh frames under a slot that is the caller's alone.
fn map(slot: u32) -> Result<(), OutOfFrames> {
    let no_exec = if features::has(features::Feature::Nx) { table::NO_EXEC } else { 0 };
    let top = stacks() + (u64::from(slot) + 1) * SLOT;
    for page in 1..=(KERNEL_STACK_SIZE / PAGE_SIZE) as u64 {
        let at = top - page * PAGE_SIZE as u64;
        let leaf = leaf(at)?;
        let frame = Frame::alloc()?;
        leaf.store(frame.into_number().addr().0 | PRESENT | WRITE | GLOBAL | no_exec, Relaxed);
    }
    Ok(())
}

/// Release the frames under a slot.
fn unmap(slot: u32) {
    for_each_leaf(slot, |leaf| {
        let entry = leaf.swap(0, Relaxed);
        if entry != 0 {
            // SAFETY: `map` put the reference there, and the swap takes it out once.
            drop(unsafe { Frame::from_number(table::frame(entry)) });
        }
    });
}

fn for_each_leaf(slot: u32, visit: impl Fn(&AtomicU64)) {
    let top = stacks() + (u64::from(slot) + 1) * SLOT;
    for page in 1..=(KERNEL_STACK_SIZE / PAGE_SIZE) as u64 {
        if let Ok(leaf) = leaf(top - page * PAGE_SIZE as u64) {
            visit(leaf);
        }
    }
}

/// The leaf entry for `at`, a stack's or a span's; its tables are made when missing and stay.
pub(crate) fn leaf(at: u64) -> Result<&'static AtomicU64, OutOfFrames> {
    // SAFETY: the kernel's root, whose entry for this region boot filled in; tables below are made here, never freed.
    let mut current = unsafe { table::table(table::root_address()) };
    for level in (1..=3).rev() {
        let entry = &current[table::index(at, level)];
        if entry.load(Relaxed) == 0 {
            let made = Frame::alloc_zeroed()?.into_number().addr().0 | PRESENT | WRITE;
            if entry.compare_exchange(0, made, Relaxed, Relaxed).is_err() {
                // SAFETY: the table was not published; take the reference back.
                drop(unsafe { Frame::from_number(table::frame(made)) });
            }
        }
        // SAFETY: as above.
        current = unsafe { table::table(table::target(entry.load(Relaxed))) };
    }
    Ok(&current[table::index(at, 0)])
}

/// Bounds of the boot stack.
pub(crate) fn boot_bounds() -> (u64, u64) {
    unsafe extern "C" {
        static boot_stack: u8;
        static boot_stack_top: u8;
    }
    ((&raw const boot_stack) as u64, (&raw const boot_stack_top) as u64)
}

/// Whether an address lies in the unmapped half of a slot.
pub(crate) fn is_guard(at: u64) -> bool {
    (stacks()..stacks() + SLOTS as u64 * SLOT).contains(&at) && (at - stacks()) % SLOT < SLOT / 2
}

/// Bounds of the stack an address lies in.
pub(crate) fn bounds(at: u64) -> Option<(u64, u64)> {
    if !(stacks()..stacks() + SLOTS as u64 * SLOT).contains(&at) {
        return None;
    }
    let top = at - (at - stacks()) % SLOT + SLOT;
    Some((top - KERNEL_STACK_SIZE as u64, top))
}
