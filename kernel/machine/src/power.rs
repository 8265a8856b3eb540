//! Ends the machine: power off, restart, or leave QEMU with a status.

use crate::x86_64::cpu::irq;
use crate::x86_64::devices::power;

/// Switch the machine off (ACPI S5, or the platform's own way); halts if nothing answers.
pub fn off() -> ! {
    power::off();
    halt()
}

/// Reset it; halts if nothing answers.
pub fn reboot() -> ! {
    power::reboot();
    halt()
}

/// Leave the emulator with status `code * 2 + 1` through `isa-debug-exit`, if it is there; otherwise returns.
pub fn debug_exit(code: u8) {
    power::debug_exit(code);
}

/// Tell the host that the guest panicked, through `pvpanic` if it is there.
pub fn notify_panic() {
    power::notify_panic();
}

/// Stop this processor for good, interrupts off.
pub fn halt() -> ! {
    irq::halt_for_ever()
}
