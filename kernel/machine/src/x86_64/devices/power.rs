//! Power-off, reset, `pvpanic` and `isa-debug-exit` through their ports.

use super::acpi::Sleep;
use crate::addr::PhysAddr;
use crate::sync::Once;
use crate::x86_64::cpu::port::{in8, out8, out16};
use crate::x86_64::layout;
use crate::x86_64::memory::paging;

/// QEMU's `isa-debug-exit`, where our boots put it.
const DEBUG_EXIT: u16 = 0xf4;

/// QEMU's `pvpanic`: reads as the events it understands, writing one announces it.
const PVPANIC: u16 = 0x505;
const PANICKED: u8 = 1;

/// Implements [`crate::power::notify_panic`] by writing to `pvpanic`; no effect without the device.
pub(crate) fn notify_panic() {
    // SAFETY: nothing else answers at this port; without the device it reads as all ones.
    unsafe {
        let events = in8(PVPANIC);
        if events != 0xff && events & PANICKED != 0 {
            out8(PVPANIC, PANICKED);
        }
    }
}

/// Implements [`crate::power::debug_exit`]: QEMU exits with status `code << 1 | 1`; no effect without the device.
pub(crate) fn debug_exit(code: u8) {
    // SAFETY: nothing else answers at this port.
    unsafe { out8(DEBUG_EXIT, code) };
}

static SLEEP: Once<Sleep> = Once::new();

/// Remember how to switch off. Once, at boot.
pub(crate) fn init(sleep: Sleep) {
    // Set by boot alone.
    let _ = SLEEP.set(sleep);
}

/// Implements [`crate::power::off`] by the ACPI sleep register found at boot; returns if there is none.
pub(crate) fn off() {
    match SLEEP.get() {
        // SAFETY: the firmware's PM1a control register: sleep type, sleep enable.
        Some(Sleep::Port(port, kind)) => unsafe { out16(*port, u16::from(*kind) << 10 | 1 << 13) },
        // SAFETY: the firmware's sleep control register: sleep type, sleep enable; mapped at boot.
        Some(Sleep::Register(at, kind)) => unsafe { layout::direct(PhysAddr(*at)).write_volatile(kind << 2 | 1 << 5) },
        _ => {}
    }
}

/// Make the sleep register reachable. Boot only.
pub(crate) fn map(sleep: Sleep) {
    if let Sleep::Register(at, _) = sleep {
        paging::map_device(at, 1);
    }
}

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
