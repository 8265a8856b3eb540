//! The simplest allocator policy: a stack of free frames, and blocks from the top of the largest range.

use machine::addr::FrameNumber;
use machine::boot::BootInfo;
use machine::sync::SpinLock;

const ROOM: usize = 64 * 1024;

struct Free {
    numbers: [u32; ROOM],
    len: usize,
    /// The part not handed out yet, `[next, end)`.
    next: u32,
    end: u32,
    /// Blocks given back, by order.
    blocks: [[u32; 128]; 11],
    block_len: [usize; 11],
}

static FREE: SpinLock<Free> =
    SpinLock::new(Free { numbers: [0; ROOM], len: 0, next: 0, end: 0, blocks: [[0; 128]; 11], block_len: [0; 11] });

/// Take over the largest free range.
pub(crate) fn init(boot: &BootInfo) {
    let largest = boot.free.iter().max_by_key(|r| r.frames()).copied().unwrap_or_default();
    machine::frame::make_ready(FrameNumber(boot.frame_limit));
    let mut free = FREE.lock_irq();
    (free.next, free.end) = (largest.start.0, largest.end.0);
}

pub(crate) fn take(out: &mut [FrameNumber]) -> usize {
    let mut free = FREE.lock_irq();
    let mut count = 0;
    for slot in out {
        if let Some(top) = free.len.checked_sub(1) {
            free.len = top;
            *slot = FrameNumber(free.numbers[top]);
        } else if free.next < free.end {
            *slot = FrameNumber(free.next);
            free.next += 1;
        } else {
            break;
        }
        count += 1;
    }
    count
}

pub(crate) fn give(frames: &[FrameNumber]) {
    let mut free = FREE.lock_irq();
    for frame in frames {
        let at = free.len;
        free.numbers[at] = frame.0;
        free.len = at + 1;
    }
}

pub(crate) fn take_block(order: u8) -> Option<FrameNumber> {
    let mut free = FREE.lock_irq();
    let order = usize::from(order);
    if let Some(top) = free.block_len[order].checked_sub(1) {
        free.block_len[order] = top;
        return Some(FrameNumber(free.blocks[order][top]));
    }
    let size = 1 << order;
    let start = free.end.checked_sub(size)? / size * size;
    if start < free.next {
        return None;
    }
    // What the alignment leaves out is handed out one by one.
    for left in start + size..free.end {
        let at = free.len;
        free.numbers[at] = left;
        free.len = at + 1;
    }
    free.end = start;
    Some(FrameNumber(start))
}

pub(crate) fn give_block(first: FrameNumber, order: u8) {
    let mut free = FREE.lock_irq();
    let order = usize::from(order);
    let at = free.block_len[order];
    free.blocks[order][at] = first.0;
    free.block_len[order] = at + 1;
}

/// Free frames, those of blocks and in magazines included.
pub(crate) fn count() -> usize {
    let free = FREE.lock_irq();
    let blocks: usize = free.block_len.iter().enumerate().map(|(order, count)| count << order).sum();
    free.len + blocks + (free.end - free.next) as usize + machine::frame::in_magazines()
}
