//! Memory before there is an allocator: frames taken one after another from behind the kernel image.

use core::sync::atomic::{AtomicU64, Ordering};

use super::pvh::{RAM, StartInfo};
use crate::addr::{PAGE_SIZE, PhysAddr};
use crate::x86_64::layout::{self, direct};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Begin behind the image, or behind the initrd if a loader put that so close that it would be in the way. (In a small
/// machine the initrd lies at the end of memory: near, but not in the way, and nothing is left behind it.)
pub(crate) fn init(info: &StartInfo) {
    let mut next = layout::image()[3] - layout::image_base();
    let ram = info.regions[..info.count].iter().filter(|r| r.kind == RAM && r.end <= layout::DIRECT_LIMIT);
    let ram_end = ram.map(|region| region.end).max();
    // The direct map's tables, and what else boot takes.
    let needed = ram_end.unwrap_or(0) / PAGE_SIZE as u64 + (1 << 20);
    if (next..next + needed).contains(&info.initrd.0) {
        next = info.initrd.1.next_multiple_of(PAGE_SIZE as u64);
    }
    NEXT.store(next, Ordering::Relaxed);
}

/// `bytes` of zeros, page-aligned, for ever.
pub(crate) fn take(bytes: usize) -> PhysAddr {
    let at = NEXT.fetch_add(bytes.next_multiple_of(PAGE_SIZE) as u64, Ordering::Relaxed);
    assert!(at < u64::MAX / 2, "early memory allocated after the frame table was built");
    // SAFETY: RAM behind the image that was not given out before; boot has checked that it is mapped.
    unsafe { direct(PhysAddr(at)).write_bytes(0, bytes.next_multiple_of(PAGE_SIZE)) };
    PhysAddr(at)
}

/// First address not taken; nothing can be taken after this.
pub(crate) fn close() -> PhysAddr {
    PhysAddr(NEXT.swap(u64::MAX, Ordering::Relaxed))
}
