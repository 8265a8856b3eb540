//! The interrupt flag, and which handler a vector has.

use core::arch::asm;
use core::sync::atomic::Ordering;

use super::{apic, local, smp};
use crate::hooks::hooks;
use crate::irq::Irq;

/// The one-shot timer of each processor.
pub(crate) const TIMER: u8 = 0xf0;
/// Another processor wants attention: work was requested or calls are in the mailbox.
pub(crate) const KICK: u8 = 0xf1;
/// What the controller raises when an interrupt went away; not acknowledged.
pub(crate) const SPURIOUS: u8 = 0xff;
/// Platform line n is vector `LINES + n`.
pub(crate) const LINES: u8 = 0x30;
/// The line of COM1.
pub(crate) const CONSOLE_LINE: u8 = 4;

/// Run the handler of `vector`, which interrupted a program (`from_user`) or the kernel, in interrupt context, interrupts off.
pub(super) fn dispatch(vector: u8, from_user: bool) {
    if vector == SPURIOUS {
        return;
    }
    let local = local::here();
    local.from_user.store(from_user, Ordering::Relaxed);
    let depth = &local.irq_depth;
    depth.store(depth.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    apic::end_of_interrupt();
    match vector {
        TIMER => crate::time::expired(),
        KICK => smp::kicked(),
        v if v == LINES + CONSOLE_LINE => (hooks().interrupt)(Irq::Console),
        v => (hooks().interrupt)(Irq::Line(v.wrapping_sub(LINES))),
    }
    depth.store(depth.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
}

#[inline]
pub(crate) fn enabled() -> bool {
    let flags: u64;
    // SAFETY: reading the flags through the stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    flags & 1 << 9 != 0
}

#[inline]
pub(crate) fn disable() {
    // SAFETY: turning interrupts off is always sound; a memory clobber, since it begins a critical section.
    unsafe { asm!("cli", options(nostack)) };
}

#[inline]
pub(crate) fn enable() {
    // SAFETY: handlers keep every invariant of the code they interrupt; a memory clobber, since it ends a critical section.
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
