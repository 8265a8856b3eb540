//! A timer that interrupts a processor by NMI, whatever it does, unless it is set again in time.

use crate::time::Nanos;
use crate::x86_64::devices::hpet;

/// Let [`crate::Kernel::fatal`] be called with [`crate::trap::FatalKind::Nmi`] on the first processor `after` from now,
/// unless this is called again before. False on a machine without a timer that can (microvm). Any context.
pub fn arm(after: Nanos) -> bool {
    hpet::arm(after)
}

/// Cancels the watchdog; no effect if it is not armed. Any context.
pub fn disarm() {
    hpet::disarm();
}
