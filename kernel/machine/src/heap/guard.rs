//! Guards of the heap's objects, in the fortress profile: what writes beyond an object, to a freed one, or over the
//! links between free ones is caught when the object is next freed or taken.
//!
//! | guard | written | looked at |
//! |---|---|---|
//! | red zone: [`RED`] bytes behind each object below 16 KiB | when it is given out | when it is freed |
//! | poison of a free object of a magazine, from its third word on | when it is freed | when it is taken again |
//! | links of the magazines, mixed with a boot's key and their address, and repeated | with the link | with each use |
//!
//! In other profiles links are plain and everything else is empty. (Blocks and spans have no zone: their frames are
//! poisoned when freed, see [`crate::frame`], and the page behind a span is not mapped.)

use alloc::alloc::Layout;

/// Bytes of a red zone.
#[cfg(feature = "fortress")]
const RED: usize = 16;

#[cfg(feature = "fortress")]
mod fortress {
    use alloc::alloc::Layout;
    use core::sync::atomic::{AtomicU64, Ordering};

    use crate::heap::guard::RED;

    const ZONE: u8 = 0xb5;
    const POISON: u8 = 0xd6;
    /// Bytes of a free object that are its link.
    const LINK: usize = 16;

    static KEY: AtomicU64 = AtomicU64::new(0);

    pub(in super::super) fn start() {
        let random = crate::random::hardware().unwrap_or(0);
        KEY.store(random ^ crate::time::cycles().rotate_left(32), Ordering::Relaxed);
    }

    pub(in super::super) unsafe fn arm(at: *mut u8, layout: Layout) {
        // SAFETY: the caller's: an object with its zone.
        unsafe { at.add(layout.size()).write_bytes(ZONE, RED) };
    }

    pub(in super::super) unsafe fn check(at: *const u8, layout: Layout) {
        // SAFETY: the caller's: an object with its zone.
        let zone = unsafe { &*at.add(layout.size()).cast::<[u8; RED]>() };
        let damaged = zone.iter().position(|byte| *byte != ZONE);
        assert!(
            damaged.is_none(),
            "heap: {} bytes at {at:?} were written beyond their end, at +{}",
            layout.size(),
            layout.size() + damaged.unwrap_or(0)
        );
    }

    pub(in super::super) unsafe fn freed(at: *mut u8, size: usize) {
        // SAFETY: the caller's: a free object of `size` bytes.
        unsafe { at.add(LINK).write_bytes(POISON, size - LINK) };
    }

    pub(in super::super) unsafe fn taken(at: *const u8, size: usize) {
        // SAFETY: the caller's: an object of `size` bytes that is not in use yet.
        let body = unsafe { core::slice::from_raw_parts(at.add(LINK), size - LINK) };
        let damaged = body.iter().position(|byte| *byte != POISON);
        assert!(damaged.is_none(), "heap: {at:?} was written at +{} after it was freed", LINK + damaged.unwrap_or(0));
    }

    pub(in super::super) unsafe fn link(at: *mut u8, next: *mut u8) {
        let key = KEY.load(Ordering::Relaxed);
        let hidden = next as u64 ^ key ^ at as u64;
        // SAFETY: the caller's: a free object, at least as large as a link.
        unsafe { at.cast::<[u64; 2]>().write([hidden, hidden.rotate_left(29) ^ key]) };
    }

    pub(in super::super) unsafe fn follow(at: *mut u8) -> *mut u8 {
        let key = KEY.load(Ordering::Relaxed);
        // SAFETY: the caller's: a free object that `link` was called for.
        let [hidden, again] = unsafe { at.cast::<[u64; 2]>().read() };
        assert!(again == hidden.rotate_left(29) ^ key, "heap: the link of the free object at {at:?} was overwritten");
        (hidden ^ key ^ at as u64) as *mut u8
    }
}

/// Whether an allocation of this layout is followed by a red zone.
#[inline(always)]
pub(super) fn zoned(layout: Layout) -> bool {
    #[cfg(feature = "fortress")]
    let zoned = layout.size() + RED < super::BLOCK_SIZE && layout.align() < super::BLOCK_SIZE;
    #[cfg(not(feature = "fortress"))]
    let zoned = false & (layout.size() == 0);
    zoned
}

/// The layout to allocate for `layout`: with its zone.
#[inline(always)]
pub(super) fn pad(layout: Layout) -> Layout {
    #[cfg(feature = "fortress")]
    if zoned(layout) {
        // SAFETY: the alignment is one, and the size is small.
        return unsafe { Layout::from_size_align_unchecked(layout.size() + RED, layout.align()) };
    }
    layout
}

/// Choose this boot's key. Before the first link.
pub(super) fn start() {
    #[cfg(feature = "fortress")]
    fortress::start();
}

/// Write the zone of an object that is given out.
///
/// # Safety
/// `at` is an allocation for [`pad`] of `layout`.
#[inline(always)]
pub(super) unsafe fn arm(at: *mut u8, layout: Layout) {
    #[cfg(feature = "fortress")]
    if zoned(layout) && !at.is_null() {
        // SAFETY: the caller's.
        unsafe { fortress::arm(at, layout) };
    }
    #[cfg(not(feature = "fortress"))]
    let _ = (at, layout);
}

/// Panics when the zone of an object that is freed was written to.
///
/// # Safety
/// As for [`arm`], which was called.
#[inline(always)]
pub(super) unsafe fn check(at: *mut u8, layout: Layout) {
    #[cfg(feature = "fortress")]
    if zoned(layout) {
        // SAFETY: the caller's.
        unsafe { fortress::check(at, layout) };
    }
    #[cfg(not(feature = "fortress"))]
    let _ = (at, layout);
}

/// Poison a free object, all but its link.
///
/// # Safety
/// `at` is a free object of `size` bytes, at least 16.
#[inline(always)]
pub(super) unsafe fn freed(at: *mut u8, size: u16) {
    #[cfg(feature = "fortress")]
    // SAFETY: the caller's.
    unsafe {
        fortress::freed(at, usize::from(size));
    }
    #[cfg(not(feature = "fortress"))]
    let _ = (at, size);
}

/// Panics when an object just taken from a magazine was written to while it was free.
///
/// # Safety
/// As for [`freed`], which was called.
#[inline(always)]
pub(super) unsafe fn taken(at: *mut u8, size: u16) {
    #[cfg(feature = "fortress")]
    // SAFETY: the caller's.
    unsafe {
        fortress::taken(at, usize::from(size));
    }
    #[cfg(not(feature = "fortress"))]
    let _ = (at, size);
}

/// Link a free object to the next.
///
/// # Safety
/// `at` is a free object of at least 16 bytes.
#[inline(always)]
pub(super) unsafe fn link(at: *mut u8, next: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        #[cfg(feature = "fortress")]
        fortress::link(at, next);
        #[cfg(not(feature = "fortress"))]
        at.cast::<*mut u8>().write(next);
    }
}

/// The object that a free one is linked to.
///
/// # Safety
/// [`link`] was called for `at`.
#[inline(always)]
pub(super) unsafe fn follow(at: *mut u8) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        #[cfg(feature = "fortress")]
        let next = fortress::follow(at);
        #[cfg(not(feature = "fortress"))]
        let next = at.cast::<*mut u8>().read();
        next
    }
}

/// A mistake with the heap's memory.
#[cfg(feature = "fortress")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misuse {
    /// A byte is written behind an object.
    Overrun,
    /// A freed object is written to.
    AfterFree,
    /// The link of a freed object is written over.
    Link,
}

/// Make the mistake, as a bug would: for tests. Panics, as the guards see it.
#[cfg(feature = "fortress")]
pub fn misuse(how: Misuse) {
    use core::hint::black_box;

    let layout = Layout::new::<[u64; 6]>();
    // SAFETY: none, on purpose: the object is used wrongly, within memory that is the heap's. The compiler must not see
    // that it is the same object, or that it is unused.
    unsafe {
        let at = black_box(alloc::alloc::alloc(layout));
        if how == Misuse::Overrun {
            at.add(layout.size()).write_volatile(1);
        }
        alloc::alloc::dealloc(black_box(at), layout);
        if how != Misuse::Overrun {
            let offset = if how == Misuse::Link { 0 } else { 40 };
            // Another byte than the one there, which is random in a link.
            let byte = black_box(at).add(offset);
            byte.write_volatile(!byte.read_volatile());
        }
        alloc::alloc::dealloc(black_box(alloc::alloc::alloc(layout)), layout);
    }
}
