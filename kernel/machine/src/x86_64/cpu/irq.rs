//! The interrupt flag of this processor: reading, masking, restoring, and waiting for an interrupt.

use core::arch::asm;

/// Whether interrupts are on.
#[inline]
pub(crate) fn enabled() -> bool {
    let flags: u64;
    // SAFETY: reading the flags through the stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    flags & 1 << 9 != 0
}

/// Turn interrupts off.
#[inline]
pub(crate) fn disable() {
    // SAFETY: turning interrupts off is always sound; a memory clobber, since it begins a critical section.
    unsafe { asm!("cli", options(nostack)) };
}

/// Turn interrupts on.
#[inline]
pub(crate) fn enable() {
    // SAFETY: handlers keep every invariant of the code they interrupt; a memory clobber, since it ends a critical
    // section.
    unsafe { asm!("sti", options(nostack)) };
}

/// Turn interrupts on and wait for one, without a gap between.
pub(crate) fn enable_and_halt() {
    // SAFETY: STI takes effect after the next instruction, so no interrupt is lost between the two.
    unsafe { asm!("sti", "hlt", options(nostack)) };
}

/// Stop this processor for good.
pub(crate) fn halt_for_ever() -> ! {
    loop {
        // SAFETY: nothing to keep running.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
