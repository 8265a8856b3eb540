//! Model-specific and control registers.

use core::arch::asm;

pub(crate) const APIC_BASE: u32 = 0x1b;
pub(crate) const SYSENTER_CS: u32 = 0x174;
pub(crate) const SYSENTER_ESP: u32 = 0x175;
pub(crate) const SYSENTER_EIP: u32 = 0x176;
pub(crate) const EFER: u32 = 0xc000_0080;
pub(crate) const STAR: u32 = 0xc000_0081;
pub(crate) const LSTAR: u32 = 0xc000_0082;
pub(crate) const CSTAR: u32 = 0xc000_0083;
pub(crate) const FMASK: u32 = 0xc000_0084;
pub(crate) const FS_BASE: u32 = 0xc000_0100;
pub(crate) const GS_BASE: u32 = 0xc000_0101;
pub(crate) const KERNEL_GS_BASE: u32 = 0xc000_0102;
pub(crate) const TSC_AUX: u32 = 0xc000_0103;
pub(crate) const TSC_DEADLINE: u32 = 0x6e0;
/// First of the x2APIC registers: MSR = this + (xAPIC offset >> 4).
pub(crate) const X2APIC: u32 = 0x800;

/// Read a register.
///
/// # Safety
/// `msr` must exist on this processor.
#[inline]
pub(crate) unsafe fn read(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller answers for the register's existence.
    unsafe { asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    u64::from(high) << 32 | u64::from(low)
}

/// Write a register.
///
/// # Safety
/// `msr` must exist, and `value` must keep the kernel's own view of memory and of its per-CPU block intact.
#[inline]
pub(crate) unsafe fn write(msr: u32, value: u64) {
    let (low, high) = (value as u32, (value >> 32) as u32);
    // SAFETY: the caller answers for the effect. Not `nomem`: bases and paging switches may change what memory means.
    unsafe { asm!("wrmsr", in("ecx") msr, in("eax") low, in("edx") high, options(nostack, preserves_flags)) };
}

/// The address of the last page fault.
#[inline]
pub(crate) fn cr2() -> u64 {
    let value: u64;
    // SAFETY: reading CR2 has no effect.
    unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// The root table in use.
#[inline]
pub(crate) fn cr3() -> u64 {
    let value: u64;
    // SAFETY: reading CR3 has no effect.
    unsafe { asm!("mov {}, cr3", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Use another root table; flushes this processor's non-global translations.
///
/// # Safety
/// `root` must be a root table whose upper half is the kernel's.
#[inline]
pub(crate) unsafe fn set_cr3(root: u64) {
    // SAFETY: the caller answers for the table.
    unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
}

/// Control register 4.
pub(crate) fn cr4() -> u64 {
    let value: u64;
    // SAFETY: reading CR4 has no effect.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Set control register 4.
///
/// # Safety
/// Every bit set must be supported and must fit how the kernel runs.
pub(crate) unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller answers for the bits.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) };
}

/// Control register 0.
pub(crate) fn cr0() -> u64 {
    let value: u64;
    // SAFETY: reading CR0 has no effect.
    unsafe { asm!("mov {}, cr0", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Set control register 0.
///
/// # Safety
/// As for [`set_cr4`].
pub(crate) unsafe fn set_cr0(value: u64) {
    // SAFETY: the caller answers for the bits.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) };
}
