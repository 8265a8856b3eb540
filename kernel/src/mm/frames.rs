//! Which frames are free: the policy behind the machine's frames.
//!
//! One buddy allocator under one lock, entered in batches only: the machine keeps a magazine of single frames per
//! processor. A part of memory is kept back from programs, so that the kernel itself can go on when programs have used
//! the rest up.

use alloc::vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use kernel_logic::buddy::{Buddy, FrameRecord, MAX_ORDER};
use machine::addr::FrameNumber;
use machine::boot::{BootInfo, FrameRange};
use machine::sync::SpinLock;

static POLICY: SpinLock<Policy> = SpinLock::new(Policy::Boot { ranges: [EMPTY; BOOT_RANGES], len: 0 });
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static RESERVE: AtomicUsize = AtomicUsize::new(0);

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
    TOTAL.store(boot.ram.iter().map(|r| (r.end.0 - r.start.0) as usize).sum(), Ordering::Relaxed);
    RESERVE.store((free / 24).clamp(256, 4096).min(free / 4), Ordering::Relaxed);
    *policy = Policy::Buddy(buddy);
}

/// RAM in frames.
pub fn total() -> usize {
    TOTAL.load(Ordering::Relaxed)
}

/// Free frames, magazines included.
pub fn free() -> usize {
    let in_policy = match &*POLICY.lock_irq() {
        Policy::Boot { .. } => 0,
        Policy::Buddy(buddy) => buddy.free_frames(),
    };
    in_policy + machine::frame::in_magazines()
}

/// Whether programs have used up what is theirs: what would take kernel memory on their behalf should fail now.
pub fn is_low() -> bool {
    free() <= RESERVE.load(Ordering::Relaxed)
}

/// Free blocks by order, if the allocator is not in use (the crash path asks).
#[expect(dead_code, reason = "the dump of a dying kernel reads through it")]
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
            buddy.release(frame.0 as usize, 0);
        }
    }
}

/// See [`machine::Kernel::take_block`]: also the heap's source, so the reserve is not kept from it.
pub fn take_block(order: u8) -> Option<FrameNumber> {
    match &mut *POLICY.lock_irq() {
        Policy::Buddy(buddy) => buddy.take(order).map(|frame| FrameNumber(frame as u32)),
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
        buddy.release(first.0 as usize, order);
    }
}
