//! The ports that end a machine.

use super::port::{in8, out8};

/// QEMU's `isa-debug-exit`, where our boots put it.
const DEBUG_EXIT: u16 = 0xf4;

/// See [`crate::power::debug_exit`].
pub(crate) fn debug_exit(code: u8) {
    // SAFETY: nothing else answers at this port.
    unsafe { out8(DEBUG_EXIT, code) };
}

/// See [`crate::power::off`].
pub(crate) fn off() {}

/// Reset through the chipset, then the keyboard controller.
pub(crate) fn reboot() {
    // SAFETY: 0xcf9 resets PIIX and ICH chipsets, 0x64 command 0xfe pulses the reset line elsewhere.
    unsafe {
        out8(0xcf9, 2);
        out8(0xcf9, 6);
        for _ in 0..1000 {
            if in8(0x64) & 2 == 0 {
                break;
            }
        }
        out8(0x64, 0xfe);
    }
}
