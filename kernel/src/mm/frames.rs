//! The frame allocator's policy: free frames, reserves, and low memory.
//!
//! One buddy allocator under one lock, entered in batches only: the machine keeps a magazine of single frames per
//! processor. A part of memory is kept back from programs, so that the kernel itself can go on when programs have used
//! the rest up.
//!
//! What is kept about a frame is written when the frame may be needed, not at boot: first for [`FIRST`] frames, then
//! for [`STEP`] more whenever those before run out. So the boot of a large machine costs what that of a small one does.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kernel_logic::buddy::{Buddy, MAX_ORDER};
use linux_abi::Errno;
use machine::addr::FrameNumber;
use machine::boot::{BootInfo, FrameRange};
use machine::describe::Entry;
use machine::sync::{Holder, SpinLock};

use super::Owner as _;
use crate::inject::{self, Fault};
use crate::upper::try_current;

static POLICY: Apart<SpinLock<Option<Policy>>> = Apart(SpinLock::new(None));
/// The allocator's lock in [`machine::describe`].
pub static FIELDS: [Entry; 1] = [Entry::address("held.frame allocator", &POLICY.0)];
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static RESERVE: AtomicUsize = AtomicUsize::new(0);
/// Free frames that the buddy has, as its lock was last dropped.
static READY: Apart<AtomicUsize> = Apart(AtomicUsize::new(0));
/// Free frames that are not ready.
static WAITING: AtomicUsize = AtomicUsize::new(0);
static LOW: AtomicBool = AtomicBool::new(false);

/// Frames made ready at boot: 1 GiB.
const FIRST: usize = 1 << 18;
/// Frames made ready at once later, with the allocator locked: 128 MiB.
const STEP: usize = 1 << 15;

/// Keeps what is written all the time off the cache lines of what is only read.
#[repr(align(64))]
struct Apart<T>(T);

struct Policy {
    buddy: Buddy<'static>,
    /// What boot found free.
    free: &'static [FrameRange],
    /// First number past the highest frame.
    end: usize,
}

impl Policy {
    /// Makes `count` more frames ready; `false` when all are.
    #[cold]
    fn grow(&mut self, count: usize) -> bool {
        let from = self.buddy.ready();
        let to = from.saturating_add(count).min(self.end);
        if from == to {
            return false;
        }
        machine::frame::make_ready(FrameNumber(to as u32));
        self.buddy.grow(to);
        for range in self.free {
            let (start, end) = ((range.start.0 as usize).max(from), (range.end.0 as usize).min(to));
            if start < end {
                self.buddy.add(start, end - start);
                WAITING.fetch_sub(end - start, Ordering::Relaxed);
            }
        }
        true
    }

    /// Gives a block back to the buddy.
    #[inline]
    fn release(&mut self, first: FrameNumber, order: u8) -> bool {
        if inject::is(Fault::NoCoalescing) {
            return self.buddy.release_alone(first.0 as usize, order);
        }
        self.buddy.release(first.0 as usize, order)
    }

    /// Tells the others how many frames are free.
    #[inline]
    fn tell(&self) {
        READY.0.store(self.buddy.free_frames(), Ordering::Relaxed);
    }

    /// Makes frames ready until more than `least` are free; `false` when there are not so many.
    #[cold]
    fn refill(&mut self, least: usize) -> bool {
        while self.buddy.free_frames() <= least {
            if !self.grow(STEP) {
                return false;
            }
        }
        true
    }
}

/// Takes charge of the free memory boot found. The heap works from here on.
pub fn start(boot: &BootInfo) {
    let Some(records) = machine::boot::take_records() else { return };
    let free = boot.free.iter().map(FrameRange::frames).sum();
    let end = boot.frame_limit as usize;
    WAITING.store(free, Ordering::Relaxed);
    let mut policy = Policy { buddy: Buddy::new(records), free: boot.free, end };
    policy.grow(FIRST);
    policy.tell();
    GIVEN.store(free, Ordering::Relaxed);
    TOTAL.store(boot.ram.iter().map(FrameRange::frames).sum(), Ordering::Relaxed);
    RESERVE.store((free / 24).clamp(256, 4096).min(free / 4), Ordering::Relaxed);
    *POLICY.0.lock_irq() = Some(policy);
}

/// RAM in frames.
pub fn total() -> usize {
    TOTAL.load(Ordering::Relaxed)
}

/// Frames that were free when the allocator took over.
pub fn given() -> usize {
    GIVEN.load(Ordering::Relaxed)
}

/// Free frames, magazines included.
pub fn free() -> usize {
    READY.0.load(Ordering::Relaxed) + waiting() + machine::frame::in_magazines()
}

/// Free frames of which nothing is kept yet: they are in no block of [`try_blocks`].
pub fn waiting() -> usize {
    WAITING.load(Ordering::Relaxed)
}

/// Whether the kernel lives on what is kept back from programs.
#[inline]
pub fn is_low() -> bool {
    LOW.load(Ordering::Relaxed)
}

/// `ENOMEM` when [`is_low`]: asked before a program is given something that takes the kernel's own memory, and stays.
/// So the kernel's small allocations, which cannot fail, never meet the end of memory. Who has `CAP_SYS_RESOURCE` may
/// use up half of what is kept back.
#[inline]
pub fn spare() -> Result<(), Errno> {
    if is_low() { spare_of_reserve() } else { Ok(()) }
}

#[cold]
fn spare_of_reserve() -> Result<(), Errno> {
    let privileged = is_privileged() && free() > RESERVE.load(Ordering::Relaxed) / 2;
    if privileged { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// `ENOSPC` when files that stay may take no more memory: a sixteenth is kept for programs, unless the caller has
/// `CAP_SYS_RESOURCE`. Ending programs would not bring the memory of a file with a name back.
pub fn room_for_files() -> Result<(), Errno> {
    let least = RESERVE.load(Ordering::Relaxed) + given() / 16;
    if free() > least || is_privileged() { Ok(()) } else { Err(Errno::ENOSPC) }
}

/// Whether `count` frames may go to a program that could do with fewer: what stays free is more than a sixteenth and
/// the reserve. Large pages end long before small ones do. What is in magazines is not looked for: their owners write
/// there all the time.
#[inline]
pub fn is_plentiful(count: usize) -> bool {
    READY.0.load(Ordering::Relaxed) + waiting() > RESERVE.load(Ordering::Relaxed) + given() / 16 + count
}

/// Whether programs may have as many frames as the resolution of a page fault takes: the page, its neighbours in the
/// file, and page tables.
pub fn can_resolve_a_fault() -> bool {
    const MOST: usize = 64;
    free() > RESERVE.load(Ordering::Relaxed) + MOST
}

fn is_privileged() -> bool {
    try_current().is_none_or(|task| task.exceeds_limits())
}

/// Notes whether memory is low. Pages of programs stop at the reserve, so being well below it is the kernel's own
/// doing.
#[inline]
fn note_level(policy: &mut Policy) {
    let reserve = RESERVE.load(Ordering::Relaxed);
    let free = policy.buddy.free_frames();
    policy.tell();
    if free < reserve - reserve / 4 {
        if !policy.refill(reserve) {
            LOW.store(true, Ordering::Relaxed);
        }
        policy.tell();
    } else if free >= reserve - reserve / 8 && LOW.load(Ordering::Relaxed) {
        LOW.store(false, Ordering::Relaxed);
    }
}

/// The holder of the allocator's lock, for dumps.
pub fn holder() -> Option<Holder> {
    POLICY.0.holder()
}

/// Free blocks by order, if the allocator is not in use (the crash path asks).
pub fn try_blocks() -> Option<[usize; MAX_ORDER as usize + 1]> {
    POLICY.0.try_lock()?.as_ref().map(|policy| policy.buddy.blocks())
}

/// Pairs of free blocks that should be one, if the allocator is not in use (the crash path asks).
pub fn try_unjoined() -> Option<usize> {
    POLICY.0.try_lock()?.as_ref().map(|policy| policy.buddy.unjoined())
}

/// Takes frames for the machine: see [`machine::Kernel::take_frames`].
pub fn take(out: &mut [FrameNumber]) -> usize {
    let mut held = POLICY.0.lock_irq();
    let Some(policy) = &mut *held else { return 0 };
    let reserve = RESERVE.load(Ordering::Relaxed);
    let mut taken = 0;
    for slot in out.iter_mut() {
        if policy.buddy.free_frames() <= reserve && !policy.refill(reserve) {
            break;
        }
        let Some(frame) = policy.buddy.take(0) else { break };
        *slot = FrameNumber(frame as u32);
        taken += 1;
    }
    policy.tell();
    taken
}

/// Gives frames back: see [`machine::Kernel::give_frames`].
pub fn give(frames: &[FrameNumber]) {
    if let Some(policy) = &mut *POLICY.0.lock_irq() {
        for frame in frames {
            released(*frame, policy.release(*frame, 0));
        }
        note_level(policy);
    }
}

/// See [`machine::Kernel::take_block`]: also the heap's source, so the reserve is not kept from it.
pub fn take_block(order: u8) -> Option<FrameNumber> {
    let mut held = POLICY.0.lock_irq();
    let policy = held.as_mut()?;
    let mut taken = policy.buddy.take(order);
    while taken.is_none() && policy.grow(STEP) {
        taken = policy.buddy.take(order);
    }
    note_level(policy);
    taken.map(|frame| FrameNumber(frame as u32))
}

/// Gives a block of frames back: see [`machine::Kernel::give_block`].
pub fn give_block(first: FrameNumber, order: u8) {
    if let Some(policy) = &mut *POLICY.0.lock_irq() {
        released(first, policy.release(first, order));
        note_level(policy);
    }
}

/// What the buddy said to a frame given back. It keeps a frame that it holds already from being free twice; the
/// fortress profile stops there, and does not believe a frame to be free that still has references.
fn released(frame: FrameNumber, accepted: bool) {
    if cfg!(feature = "fortress") {
        assert!(accepted, "frame {:#x} was freed twice", frame.0);
        let state = machine::frame::state(frame);
        assert!(state == machine::frame::FrameState::Free, "frame {:#x} was freed in state {state:?}", frame.0);
    }
}
