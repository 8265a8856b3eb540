//! Reads and writes the x86 I/O ports, one instruction each.

use core::arch::asm;

/// Read a byte.
///
/// # Safety
/// Reading `port` must not disturb a device some other code drives.
#[inline]
pub(crate) unsafe fn in8(port: u16) -> u8 {
    let value: u8;
    // SAFETY: the caller answers for the port; the instruction touches no memory.
    unsafe { asm!("in al, dx", out("al") value, in("dx") port, options(nomem, nostack, preserves_flags)) };
    value
}

/// Write a byte.
///
/// # Safety
/// Writing `port` must not make a device touch memory it does not own.
#[inline]
pub(crate) unsafe fn out8(port: u16, value: u8) {
    // SAFETY: the caller answers for the port; the instruction touches no memory.
    unsafe { asm!("out dx, al", in("al") value, in("dx") port, options(nomem, nostack, preserves_flags)) };
}

/// Write 16 bits.
///
/// # Safety
/// As for [`out8`].
pub(crate) unsafe fn out16(port: u16, value: u16) {
    // SAFETY: as for out8.
    unsafe { asm!("out dx, ax", in("ax") value, in("dx") port, options(nomem, nostack, preserves_flags)) };
}

/// Write 32 bits.
///
/// # Safety
/// As for [`out8`].
pub(crate) unsafe fn out32(port: u16, value: u32) {
    // SAFETY: as for out8.
    unsafe { asm!("out dx, eax", in("eax") value, in("dx") port, options(nomem, nostack, preserves_flags)) };
}

/// Read 32 bits.
///
/// # Safety
/// As for [`in8`].
pub(crate) unsafe fn in32(port: u16) -> u32 {
    let value: u32;
    // SAFETY: as for in8.
    unsafe { asm!("in eax, dx", out("eax") value, in("dx") port, options(nomem, nostack, preserves_flags)) };
    value
}
