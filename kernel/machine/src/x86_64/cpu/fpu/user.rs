//! Moves the registers straight into a signal frame and out of one, as Linux does: no area of the kernel lies between.
//!
//! Each store has its fix-up, XSAVE too, so a frame that cannot be written is an error and one on a page that is not
//! there yet waits for it. XSAVE writes XSTATE_BV alone of its header and ORs into that; a load wants the rest 0.

use core::arch::asm;
use core::sync::atomic::Ordering;

use super::super::copy;
use super::super::features::{self, Feature};
use super::{FEATURES, FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2, size, size_for_user};

/// Save the registers to `to` with Linux's description of the image (`struct _fpx_sw_bytes`, in bytes the processor
/// leaves alone) and the magic behind it; `Err` if a byte of that is not writable, or `to` is not 64-byte aligned.
///
/// # Safety
/// [`size_for_user`] bytes from `to` on are in the user half. The registers hold the running thread's state.
pub(crate) unsafe fn save_to_user(to: *mut u8) -> Result<(), ()> {
    let failed: u32;
    if !features::has(Feature::Xsave) {
        // SAFETY: the same contract.
        return unsafe { save_legacy(to) };
    }
    let about = u64::from(FP_XSTATE_MAGIC1) | (size_for_user() as u64) << 32;
    copy::open();
    // SAFETY: the caller's for the addresses; the fix-ups leave `failed` at 1.
    unsafe {
        asm!(
            ".macro guarded instruction:vararg",
            "20: \\instruction",
            ".pushsection .fixups, \"aw\"", ".balign 8", ".quad 20b, 29f", ".popsection",
            ".endm",
            "mov {failed:e}, 1",
            "guarded mov [{to} + 464], {about}",
            "guarded mov [{to} + 472], {features}",
            "guarded mov [{to} + 480], {size}",
            "guarded mov [{to} + {size}], {magic:e}",
            "xor {magic:e}, {magic:e}",
            ".irp at, 488, 496, 504, 512, 520, 528, 536, 544, 552, 560, 568",
            "guarded mov [{to} + \\at], {magic}",
            ".endr",
            "guarded xsave64 [{to}]",
            "xor {failed:e}, {failed:e}",
            "29:",
            ".purgem guarded",
            to = in(reg) to,
            about = in(reg) about,
            features = in(reg) FEATURES.load(Ordering::Relaxed),
            size = in(reg) size() as u64,
            magic = inout(reg) u64::from(FP_XSTATE_MAGIC2) => _,
            failed = out(reg) failed,
            in("eax") -1,
            in("edx") -1,
            options(nostack),
        );
    }
    copy::close();
    if failed == 0 { Ok(()) } else { Err(()) }
}

/// Load `states` from an image that says it is whole (`struct _fpx_sw_bytes`). `Err` if the processor refuses the image
/// or cannot read all of it: then the registers hold a mixture.
///
/// # Safety
/// All of an image at `from` is in the user half; XSAVE exists. The registers hold the running thread's state.
#[inline]
pub(crate) unsafe fn load_from_user(from: *const u8, states: u64) -> Result<(), ()> {
    let failed: u32;
    copy::open();
    // SAFETY: the caller's; a protection fault too ends at the fix-up, which leaves `failed` at 1.
    unsafe {
        asm!(
            "mov {failed:e}, 1",
            "20: xrstor64 [{from}]",
            "xor {failed:e}, {failed:e}",
            "29:",
            ".pushsection .fixups, \"aw\"", ".balign 8", ".quad 20b, 29b", ".popsection",
            from = in(reg) from,
            failed = out(reg) failed,
            in("eax") states as u32,
            in("edx") (states >> 32) as u32,
            options(nostack),
        );
    }
    copy::close();
    if failed == 0 { Ok(()) } else { Err(()) }
}

/// Where there is no XSAVE, the image is that of FXSAVE and is not described.
#[cold]
unsafe fn save_legacy(to: *mut u8) -> Result<(), ()> {
    let failed: u32;
    copy::open();
    // SAFETY: the caller's, of `save_to_user`; the fix-ups leave `failed` at 1.
    unsafe {
        asm!(
            "mov {failed:e}, 1",
            "20: fxsave64 [{to}]",
            "21: mov [{to} + {size}], {magic:e}",
            "xor {failed:e}, {failed:e}",
            "29:",
            ".pushsection .fixups, \"aw\"", ".balign 8",
            ".quad 20b, 29b, 21b, 29b",
            ".popsection",
            to = in(reg) to,
            size = in(reg) size() as u64,
            magic = in(reg) FP_XSTATE_MAGIC2,
            failed = out(reg) failed,
            options(nostack),
        );
    }
    copy::close();
    if failed == 0 { Ok(()) } else { Err(()) }
}
