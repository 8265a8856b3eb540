//! Memory before there is an allocator: frames taken one after another from behind the kernel image.

use core::sync::atomic::{AtomicU64, Ordering};

use super::layout::{self, direct};
use super::pvh::StartInfo;
use crate::addr::{PAGE_SIZE, PhysAddr};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// Begin behind the image, and behind the initrd if a loader put that there.
pub(crate) fn init(info: &StartInfo) {
    let mut next = layout::image()[3] - layout::IMAGE;
    if (next..next + (64 << 20)).contains(&info.initrd.0) {
        next = info.initrd.1.next_multiple_of(PAGE_SIZE as u64);
    }
    NEXT.store(next, Ordering::Relaxed);
}

/// `bytes` of zeros, page-aligned, for ever.
pub(crate) fn take(bytes: usize) -> PhysAddr {
    let at = NEXT.fetch_add(bytes.next_multiple_of(PAGE_SIZE) as u64, Ordering::Relaxed);
    assert!(at < u64::MAX / 2, "early memory taken after the frame table was made");
    // SAFETY: RAM behind the image that nobody else was given; boot has checked that it is mapped.
    unsafe { direct(PhysAddr(at)).write_bytes(0, bytes.next_multiple_of(PAGE_SIZE)) };
    PhysAddr(at)
}

/// First address not taken; nothing can be taken after this.
pub(crate) fn close() -> PhysAddr {
    PhysAddr(NEXT.swap(u64::MAX, Ordering::Relaxed))
}
