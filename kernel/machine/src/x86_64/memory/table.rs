//! Page-table entries and tables, as the processor reads them.
//!
//! Every entry is an atomic word: processors walk tables, and set accessed and dirty marks, while the kernel changes
//! them.

use core::sync::atomic::AtomicU64;

use crate::addr::{FrameNumber, PhysAddr};
use crate::x86_64::layout::{self, direct};

pub(crate) const PRESENT: u64 = 1;
pub(crate) const WRITE: u64 = 1 << 1;
pub(crate) const USER: u64 = 1 << 2;
pub(crate) const UNCACHED: u64 = 1 << 3 | 1 << 4;
pub(crate) const ACCESSED: u64 = 1 << 5;
pub(crate) const DIRTY: u64 = 1 << 6;
pub(crate) const HUGE: u64 = 1 << 7;
pub(crate) const GLOBAL: u64 = 1 << 8;
/// The kernel's mark on a user page lives in two of the bits the processor ignores.
pub(crate) const TAG_SHIFT: u32 = 9;

/// The tag of a leaf.
#[inline]
pub(crate) fn tag(entry: u64) -> u8 {
    (entry >> TAG_SHIFT & 3) as u8
}
pub(crate) const NO_EXEC: u64 = 1 << 63;
/// The address bits of an entry.
pub(crate) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// 512 entries in one frame.
pub(crate) type Table = [AtomicU64; 512];

/// The table in frame `at`.
///
/// # Safety
/// The frame must be a page table (or zeroed to become one) that stays one for `'a`.
#[inline]
pub(crate) unsafe fn table<'a>(at: PhysAddr) -> &'a Table {
    // SAFETY: the caller answers for the frame; the direct map shows all RAM, aligned.
    unsafe { &*direct(at).cast::<Table>() }
}

/// The address in an entry.
#[inline]
pub(crate) fn target(entry: u64) -> PhysAddr {
    PhysAddr(entry & ADDRESS)
}

/// The frame in an entry.
#[inline]
pub(crate) fn frame(entry: u64) -> FrameNumber {
    FrameNumber(((entry & ADDRESS) >> 12) as u32)
}

/// Index of `addr` in a table of `level` (0 holds 4 KiB leaves, 3 is the root).
#[inline]
pub(crate) fn index(addr: u64, level: u32) -> usize {
    (addr >> (12 + 9 * level)) as usize & 511
}

/// The kernel's root table, by its address in the image. User spaces copy its upper half.
pub(crate) fn root() -> *mut Table {
    unsafe extern "C" {
        static mut boot_root: Table;
    }
    &raw mut boot_root
}

/// Physical address of [`root`]'s table.
pub(crate) fn root_address() -> PhysAddr {
    PhysAddr(root() as u64 - layout::image_base())
}

/// Physical address of the boot tables' third level, which shows the first GiB at its own address.
pub(crate) fn low_table() -> u64 {
    unsafe extern "C" {
        static boot_low: u8;
    }
    (&raw const boot_low) as u64 - layout::image_base()
}
