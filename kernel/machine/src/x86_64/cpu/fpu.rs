//! x87, SSE and AVX state of user threads: one area per thread, in the processor's standard (not compacted) XSAVE
//! format, which is also what signal frames hold.
//!
//! The kernel never uses these registers without putting them back, so a thread's state stays in them until another
//! user thread needs them; it is saved whenever its thread is switched from, and loaded only when the registers hold
//! another's.

use core::arch::asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::features::{self, Feature, cpuid};

mod user;

pub(crate) use user::{load_from_user, save_to_user};

/// FXSAVE area and XSAVE header: the least there is.
pub(crate) const LEGACY: usize = 512;
const HEADER: usize = 64;
/// An image that has both and no more.
pub(crate) const WITHOUT_PARTS: usize = LEGACY + HEADER;
/// Bytes from here on to the end of the FXSAVE area are reserved.
const RESERVED_OFFSET: usize = 416;
/// End of the AVX part, which lies right behind the header. Where the parts behind it lie is the processor's choice.
const PARTS_OFFSET: usize = LEGACY + HEADER + 256;
const MXCSR_OFFSET: usize = 24;
const MXCSR_MASK_OFFSET: usize = 28;
const MXCSR_DEFAULT: u32 = 0x1f80;
const FCW_DEFAULT: u16 = 0x37f;
/// Where Linux describes the area to programs: `struct _fpx_sw_bytes` in the unused end of the FXSAVE area.
pub(crate) const SOFTWARE_OFFSET: usize = 464;
pub(crate) const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
/// What a program expects behind the image.
pub(crate) const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
const FP_XSTATE_MAGIC2_SIZE: usize = 4;

static SIZE: AtomicU32 = AtomicU32::new(LEGACY as u32);
/// The features in an area, and the MXCSR bits that exist: asked once, since asking is slow.
static FEATURES: AtomicU64 = AtomicU64::new(0b11);
static MXCSR_MASK: AtomicU32 = AtomicU32::new(0xffbf);

/// Ask the processor how large an area is, after the features are on.
pub(crate) fn init() {
    let [_, size, ..] = cpuid(0xd, 0);
    FEATURES.store(features::xcr0(), Ordering::Relaxed);
    MXCSR_MASK.store(mxcsr_mask(), Ordering::Relaxed);
    if features::has(Feature::Xsave) {
        SIZE.store(size.max((LEGACY + HEADER) as u32), Ordering::Relaxed);
    }
}

/// The states an area holds, as bits of XCR0.
pub(crate) fn saved_states() -> u64 {
    FEATURES.load(Ordering::Relaxed)
}

/// Bytes of a signal frame's image, with what follows it.
#[inline]
pub(crate) fn size_for_user() -> usize {
    size() + FP_XSTATE_MAGIC2_SIZE
}

/// Bytes of an area.
#[inline]
pub(crate) fn size() -> usize {
    SIZE.load(Ordering::Relaxed) as usize
}

/// Write the initial state into a fresh area.
///
/// # Safety
/// `area` is 64-byte aligned and valid for [`size`] bytes.
pub(crate) unsafe fn fresh(area: *mut u8) {
    // SAFETY: the caller's; the fields lie in the first 512 bytes.
    unsafe {
        area.write_bytes(0, size());
        area.cast::<u16>().write(FCW_DEFAULT);
        area.add(MXCSR_OFFSET).cast::<u32>().write(MXCSR_DEFAULT);
    }
}

/// Clear what no save writes: the reserved end of the FXSAVE area, the header and what lies between the parts behind
/// it. A fresh area holds what its memory held before, and all of it goes to programs in signal frames.
///
/// # Safety
/// As for [`fresh`].
pub(crate) unsafe fn clear_gaps(area: *mut u8) {
    // SAFETY: the caller's; the last range is empty where there are no parts behind the AVX one.
    unsafe {
        area.add(RESERVED_OFFSET).write_bytes(0, LEGACY - RESERVED_OFFSET);
        clear_header(area);
        area.add(PARTS_OFFSET.min(size())).write_bytes(0, size().saturating_sub(PARTS_OFFSET));
    }
}

/// Clear the header, so that a first save finds nothing undefined in it.
///
/// # Safety
/// As for [`fresh`].
pub(crate) unsafe fn clear_header(area: *mut u8) {
    if features::has(Feature::Xsave) {
        // SAFETY: the caller's.
        unsafe { area.add(LEGACY).write_bytes(0, HEADER) };
    }
}

/// Save the registers.
///
/// # Safety
/// As for [`fresh`], and the header is defined.
#[inline]
pub(crate) unsafe fn save(area: *mut u8) {
    // SAFETY: the caller's; which instruction exists was asked.
    unsafe {
        if features::has(Feature::XsaveOpt) {
            asm!("xsaveopt64 [{}]", in(reg) area, in("eax") -1, in("edx") -1, options(nostack, preserves_flags));
        } else {
            save_whole(area);
        }
    }
}

/// Save the registers, unmodified parts too: for an area that was not loaded from before.
///
/// # Safety
/// As for [`save`].
pub(crate) unsafe fn save_whole(area: *mut u8) {
    // SAFETY: the caller's; which instruction exists was asked.
    unsafe {
        if features::has(Feature::Xsave) {
            asm!("xsave64 [{}]", in(reg) area, in("eax") -1, in("edx") -1, options(nostack, preserves_flags));
        } else {
            asm!("fxsave64 [{}]", in(reg) area, options(nostack, preserves_flags));
        }
    }
}

/// Load the registers.
///
/// # Safety
/// As for [`fresh`]; the area holds a valid image.
#[inline]
pub(crate) unsafe fn load(area: *const u8) {
    // SAFETY: the caller's; an invalid image would raise a protection fault.
    unsafe {
        if features::has(Feature::Xsave) {
            asm!("xrstor64 [{}]", in(reg) area, in("eax") -1, in("edx") -1, options(nostack, preserves_flags));
        } else {
            asm!("fxrstor64 [{}]", in(reg) area, options(nostack, preserves_flags));
        }
    }
}

/// Load an image of FXSAVE that a program made; other states become initial. `false`, with nothing loaded, if it sets
/// bits of MXCSR that the processor does not have, which FXRSTOR would refuse.
///
/// # Safety
/// As for [`fresh`].
pub(crate) unsafe fn load_fxsave(area: *mut u8, image: &[u8; LEGACY]) -> bool {
    let mxcsr = image.get(MXCSR_OFFSET..).and_then(|bytes| bytes.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b));
    if mxcsr & !MXCSR_MASK.load(Ordering::Relaxed) != 0 {
        return false;
    }
    // SAFETY: all inside the area; a header exists with XSAVE.
    unsafe {
        area.copy_from_nonoverlapping(image.as_ptr(), LEGACY);
        if features::has(Feature::Xsave) {
            clear_header(area);
            area.add(LEGACY).cast::<u64>().write(0b11);
        }
        load(area);
    }
    true
}

/// The MXCSR bits this processor has (Intel SDM 1, "Guidelines for Writing to the MXCSR Register").
fn mxcsr_mask() -> u32 {
    #[repr(align(64))]
    struct Image([u8; LEGACY]);
    let mut image = Image([0; LEGACY]);
    // SAFETY: a 16-byte aligned buffer of the size FXSAVE writes.
    unsafe { asm!("fxsave64 [{}]", in(reg) &raw mut image, options(nostack, preserves_flags)) };
    let mask = u32::from_le_bytes(image.0[MXCSR_MASK_OFFSET..][..4].try_into().unwrap_or_default());
    if mask == 0 { 0xffbf } else { mask }
}
