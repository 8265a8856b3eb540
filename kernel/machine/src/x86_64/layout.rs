//! Where everything is in the kernel's half of the address space.
//!
//! | addresses | what |
//! |---|---|
//! | `0xffff_8000_0000_0000`… | *direct map*: physical address + [`DIRECT`], RAM write-back, device registers uncached |
//! | `0xffff_c000_0000_0000`… | kernel stacks, one slot of 64 KiB each: 32 KiB unmapped, 32 KiB stack |
//! | `0xffff_c020_0000_0000`… | the heap's spans, see [`spans`](super::spans) |
//! | `0xffff_ffff_8000_0000`… | the kernel image, physical address + [`IMAGE`] |
//!
//! The root entries of these are made at boot and never change, so every address space copies them once.

use crate::addr::PhysAddr;

/// Start of the direct map.
pub(crate) const DIRECT: u64 = 0xffff_8000_0000_0000;
/// Start of the stack slots.
pub(crate) const STACKS: u64 = 0xffff_c000_0000_0000;
/// Start of the heap's spans; the stacks' root entry covers them too.
pub(crate) const SPANS: u64 = 0xffff_c020_0000_0000;
/// Image virtual address minus physical address; the linker script agrees.
pub(crate) const IMAGE: u64 = 0xffff_ffff_8000_0000;
/// Root-table indices in use by the kernel's half.
pub(crate) const KERNEL_ROOT_SLOTS: [usize; 3] = [256, 384, 511];
/// End of physical memory the direct map can reach (the room of one root entry).
pub(crate) const DIRECT_LIMIT: u64 = 1 << 39;

unsafe extern "C" {
    static __kernel_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __kernel_end: u8;
    static __build_id_start: u8;
    static __build_id_end: u8;
    static __fixups_start: u8;
    static __fixups_end: u8;
}

/// The image's bounds, virtual: start, end of text, end of read-only data, end.
pub(crate) fn image() -> [u64; 4] {
    [
        (&raw const __kernel_start) as u64,
        (&raw const __text_end) as u64,
        (&raw const __rodata_end) as u64,
        (&raw const __kernel_end) as u64,
    ]
}

/// The build-id note as linked (header included).
pub(crate) fn build_id_note() -> &'static [u8] {
    let (start, end) = ((&raw const __build_id_start), (&raw const __build_id_end));
    // SAFETY: the linker script puts both symbols around one read-only section.
    unsafe { core::slice::from_raw_parts(start, end as usize - start as usize) }
}

/// The exception table: pairs of (faulting instruction, where to continue).
pub(crate) fn fixups() -> &'static [[u64; 2]] {
    let (start, end) = ((&raw const __fixups_start), (&raw const __fixups_end));
    // SAFETY: the linker script aligns the section to 8, and only `fixup!` fills it, with pairs of quads.
    unsafe { core::slice::from_raw_parts(start.cast(), (end as usize - start as usize) / 16) }
}

/// Where the direct map shows `addr`. Dereferencing it is the caller's responsibility.
#[inline]
pub(crate) fn direct(addr: PhysAddr) -> *mut u8 {
    (DIRECT + addr.0) as *mut u8
}
