//! The FS and GS bases of user mode: the kernel uses neither for itself while it runs; GS is swapped at the border.

use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::msr;

/// Both, as user mode has them.
pub(crate) fn user_bases() -> (u64, u64) {
    if features::has(Feature::FsGsBase) {
        let (fs, gs): (u64, u64);
        let _off = crate::irq::off();
        // SAFETY: FSGSBASE is on; GS is swapped back at once, interrupts are off, and an NMI restores what it finds.
        unsafe {
            core::arch::asm!(
                "rdfsbase {fs}", "swapgs", "rdgsbase {gs}", "swapgs",
                fs = out(reg) fs, gs = out(reg) gs, options(nomem, nostack),
            );
        }
        return (fs, gs);
    }
    // SAFETY: both registers exist on every x86-64 processor.
    unsafe { (msr::read(msr::FS_BASE), msr::read(msr::KERNEL_GS_BASE)) }
}

/// Set them. Both must be canonical.
pub(crate) fn set_user_bases(fs: u64, gs: u64) {
    let _off = crate::irq::off();
    if features::has(Feature::FsGsBase) {
        // SAFETY: as in `user_bases`; the kernel uses neither base.
        unsafe {
            core::arch::asm!(
                "wrfsbase {fs}", "swapgs", "wrgsbase {gs}", "swapgs",
                fs = in(reg) fs, gs = in(reg) gs, options(nomem, nostack),
            );
        }
        return;
    }
    // SAFETY: canonical values, and the kernel uses neither base.
    unsafe {
        msr::write(msr::FS_BASE, fs);
        msr::write(msr::KERNEL_GS_BASE, gs);
    }
}
