//! Ways to stop.

/// Switch the machine off (ACPI S5, or the platform's own way); halts if nothing answers.
pub fn off() -> ! {
    todo!()
}

/// Reset it; halts if nothing answers.
pub fn reboot() -> ! {
    todo!()
}

/// Leave the emulator with status `code * 2 + 1` through `isa-debug-exit`, if it is there; otherwise returns.
pub fn debug_exit(code: u8) {
    let _ = code;
    todo!()
}

/// Stop this processor for good, interrupts off.
pub fn halt() -> ! {
    todo!()
}
