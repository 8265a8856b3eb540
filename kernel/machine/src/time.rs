//! Time: a monotonic clock every processor agrees on, the wall clock at boot, one timer per processor.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::x86_64::cpu::local;
use crate::x86_64::interrupts::{apic, clock};

pub use crate::x86_64::interrupts::clock::ClockParams;

/// Nanoseconds since boot.
pub type Nanos = u64;

pub(crate) static WALL_AT_BOOT: AtomicU64 = AtomicU64::new(0);

/// Monotonic nanoseconds since boot, from the time-stamp counter; the same on all processors.
#[inline]
pub fn now() -> Nanos {
    clock::now()
}

/// The cycle counter, for profiles.
#[inline]
pub fn cycles() -> u64 {
    clock::cycles()
}

/// The cycle counter in two halves, lower first, as the processor gives it: for recorders that only store it.
#[inline(always)]
pub fn cycles_in_halves() -> [u32; 2] {
    clock::cycles_in_halves()
}

/// How the time-stamp counter converts to nanoseconds, as the vDSO uses it.
pub fn params() -> ClockParams {
    clock::params()
}

/// Wall-clock nanoseconds since 1970 at [`now`] == 0, from the platform's clock (whole seconds).
pub fn wall_at_boot() -> u64 {
    WALL_AT_BOOT.load(Ordering::Relaxed)
}

/// Let this processor's timer expire at `deadline` (at once if past), replacing any earlier setting. Calls
/// [`crate::Kernel::timer`] once.
#[inline]
pub fn arm(deadline: Nanos) {
    let _off = crate::irq::off();
    let at = clock::cycles_at(deadline).max(1);
    local::here().timer.store(at, Ordering::Relaxed);
    apic::arm(at, clock::cycles());
}

/// Cancels this processor's timer; a later [`arm`] starts it again.
pub fn disarm() {
    let _off = crate::irq::off();
    local::here().timer.store(0, Ordering::Relaxed);
    apic::arm(0, 0);
}

/// The timer's interrupt: tell the kernel, unless the hardware could not count that far and has to go on.
pub(crate) fn expired() {
    let timer = &local::here().timer;
    let at = timer.load(Ordering::Relaxed);
    let now = clock::cycles();
    if at == 0 {
        return;
    }
    if now < at {
        return apic::arm(at, now);
    }
    timer.store(0, Ordering::Relaxed);
    (crate::hooks::hooks().timer)();
}
