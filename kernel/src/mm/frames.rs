//! Which frames are free: the policy behind the machine's frames.
//!
//! One buddy allocator under one lock, entered in batches only: the machine keeps a magazine of single frames per
//! processor. A part of memory is kept back from programs, so that the kernel itself can go on when programs have used
//! the rest up.

use alloc::vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kernel_logic::buddy::{Buddy, FrameRecord, MAX_ORDER};
use linux_abi::Errno;
use machine::addr::FrameNumber;
use machine::boot::{BootInfo, FrameRange};
use machine::sync::{Holder, SpinLock};

static POLICY: SpinLock<Policy> = SpinLock::new(Policy::Boot { ranges: [EMPTY; BOOT_RANGES], len: 0 });
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static RESERVE: AtomicUsize = AtomicUsize::new(0);
static LOW: AtomicBool = AtomicBool::new(false);

const EMPTY: FrameRange = FrameRange { start: FrameNumber(0), end: FrameNumber(0) };
/// Free ranges considered before the allocator's records exist; firmware reports a handful.
const BOOT_RANGES: usize = 16;

enum Policy {
    /// Before the records exist: blocks are cut from the end of the largest range.
    Boot {
        ranges: [FrameRange; BOOT_RANGES],
        len: usize,
    },
    Buddy(Buddy<'static>),
}

/// Takes charge of the free memory boot found. The heap works from here on.
pub fn start(boot: &BootInfo) {
    {
        let mut ranges = [EMPTY; BOOT_RANGES];
        let len = boot.free.len().min(BOOT_RANGES);
        ranges[..len].copy_from_slice(&boot.free[..len]);
        *POLICY.lock_irq() = Policy::Boot { ranges, len };
    }
    let records = vec![FrameRecord::default(); boot.frame_limit as usize].leak();
    let mut buddy = Buddy::new(records);
    let mut policy = POLICY.lock_irq();
    let Policy::Boot { ranges, len } = &*policy else { return };
    for range in &ranges[..*len] {
        buddy.add(range.start.0 as usize, (range.end.0 - range.start.0) as usize);
    }
    for range in boot.free.iter().skip(BOOT_RANGES) {
        buddy.add(range.start.0 as usize, (range.end.0 - range.start.0) as usize);
    }
    let free = buddy.free_frames();
    GIVEN.store(free, Ordering::Relaxed);
    TOTAL.store(boot.ram.iter().map(|r| (r.end.0 - r.start.0) as usize).sum(), Ordering::Relaxed);
    RESERVE.store((free / 24).clamp(256, 4096).min(free / 4), Ordering::Relaxed);
    *policy = Policy::Buddy(buddy);
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
    let in_policy = match &*POLICY.lock_irq() {
        Policy::Boot { .. } => 0,
        Policy::Buddy(buddy) => buddy.free_frames(),
    };
    in_policy + machine::frame::in_magazines()
}

/// Whether the kernel lives on what is kept back from programs.
#[inline]
pub fn is_low() -> bool {
    LOW.load(Ordering::Relaxed)
}

/// `ENOMEM` when [`is_low`]: asked before a program is given something that takes the kernel's own memory, and stays. So the
/// kernel's small allocations, which cannot fail, never meet the end of memory.
#[inline]
pub fn spare() -> Result<(), Errno> {
    if is_low() { Err(Errno::ENOMEM) } else { Ok(()) }
}

/// Notes whether memory is low. Pages of programs stop at the reserve, so being well below it is the kernel's own doing.
#[inline]
fn note_level(buddy: &Buddy<'static>) {
    let reserve = RESERVE.load(Ordering::Relaxed);
    let free = buddy.free_frames();
    if free < reserve - reserve / 4 {
        LOW.store(true, Ordering::Relaxed);
    } else if free >= reserve - reserve / 8 && LOW.load(Ordering::Relaxed) {
        LOW.store(false, Ordering::Relaxed);
    }
}

/// Who holds the allocator, for dumps.
pub fn holder() -> Option<Holder> {
    POLICY.holder()
}

/// Free blocks by order, if the allocator is not in use (the crash path asks).
pub fn try_blocks() -> Option<[usize; MAX_ORDER as usize + 1]> {
    match &*POLICY.try_lock()? {
        Policy::Boot { .. } => None,
        Policy::Buddy(buddy) => Some(buddy.blocks()),
    }
}

/// See [`machine::Kernel::take_frames`].
pub fn take(out: &mut [FrameNumber]) -> usize {
    let mut policy = POLICY.lock_irq();
    let Policy::Buddy(buddy) = &mut *policy else { return 0 };
    let reserve = RESERVE.load(Ordering::Relaxed);
    let mut taken = 0;
    for slot in out.iter_mut() {
        if buddy.free_frames() <= reserve {
            break;
        }
        let Some(frame) = buddy.take(0) else { break };
        *slot = FrameNumber(frame as u32);
        taken += 1;
    }
    taken
}

/// See [`machine::Kernel::give_frames`].
pub fn give(frames: &[FrameNumber]) {
    if let Policy::Buddy(buddy) = &mut *POLICY.lock_irq() {
        for frame in frames {
            released(*frame, buddy.release(frame.0 as usize, 0));
        }
        note_level(buddy);
    }
}

/// See [`machine::Kernel::take_block`]: also the heap's source, so the reserve is not kept from it.
pub fn take_block(order: u8) -> Option<FrameNumber> {
    match &mut *POLICY.lock_irq() {
        Policy::Buddy(buddy) => {
            let taken = buddy.take(order).map(|frame| FrameNumber(frame as u32));
            note_level(buddy);
            taken
        }
        Policy::Boot { ranges, len } => {
            let size = 1u32 << order;
            let fits = |range: &&mut FrameRange| {
                let start = range.end.0.checked_sub(size).map(|start| start & !(size - 1));
                start.is_some_and(|start| start >= range.start.0)
            };
            let range = ranges[..*len].iter_mut().filter(fits).max_by_key(|range| range.end.0 - range.start.0)?;
            let start = (range.end.0 - size) & !(size - 1);
            range.end = FrameNumber(start);
            Some(FrameNumber(start))
        }
    }
}

/// See [`machine::Kernel::give_block`].
pub fn give_block(first: FrameNumber, order: u8) {
    if let Policy::Buddy(buddy) = &mut *POLICY.lock_irq() {
        released(first, buddy.release(first.0 as usize, order));
        note_level(buddy);
    }
}

/// What the buddy said to a frame given back. It keeps a frame that it holds already from being free twice; the fortress
/// profile stops there, and does not believe a frame to be free that still has references.
fn released(frame: FrameNumber, accepted: bool) {
    if cfg!(feature = "fortress") {
        assert!(accepted, "frame {:#x} was given back twice", frame.0);
        let state = machine::frame::state(frame);
        assert!(state == machine::frame::FrameState::Free, "frame {:#x} given back in state {state:?}", frame.0);
    }
}
