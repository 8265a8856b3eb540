//! The platform's interrupt lines: all masked but the console's.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::acpi::Madt;
use crate::x86_64::cpu::port;
use crate::x86_64::interrupts::{apic, vectors};
use crate::x86_64::memory::paging;

static PAGE: AtomicPtr<u32> = AtomicPtr::new(core::ptr::null_mut());
/// Input of the console's line: line 4 unless the firmware says it is wired elsewhere.
static CONSOLE_INPUT: AtomicU32 = AtomicU32::new(vectors::CONSOLE_LINE as u32);

const VERSION: u32 = 1;
const REDIRECTION: u32 = 0x10;
const MASKED: u32 = 1 << 16;

fn write(register: u32, value: u32) {
    let page = PAGE.load(Ordering::Relaxed);
    if !page.is_null() {
        // SAFETY: the controller's select and window registers, mapped by `init`; used on one processor at a time, at
        // boot and when the console or the watchdog begins.
        unsafe {
            page.write_volatile(register);
            page.byte_add(0x10).write_volatile(value);
        }
    }
}

fn read(register: u32) -> u32 {
    let page = PAGE.load(Ordering::Relaxed);
    if page.is_null() {
        return 0;
    }
    // SAFETY: as for `write`.
    unsafe {
        page.write_volatile(register);
        page.byte_add(0x10).read_volatile()
    }
}

/// Deliver a pulse on `input` to the first processor as a non-maskable interrupt. False without a controller or that
/// input.
pub(crate) fn deliver_nmi(input: u32, apic_id: u32) -> bool {
    const NMI: u32 = 4 << 8;
    if PAGE.load(Ordering::Relaxed).is_null() || input > read(VERSION) >> 16 & 0xff {
        return false;
    }
    write(REDIRECTION + 2 * input + 1, apic_id << 24);
    write(REDIRECTION + 2 * input, NMI);
    true
}

/// Mask every input of the first controller, and both old ones.
pub(crate) fn init(madt: &Madt) {
    // SAFETY: the data ports of the two 8259s: all inputs masked.
    unsafe {
        port::out8(0x21, 0xff);
        port::out8(0xa1, 0xff);
    }
    if madt.io_apic == 0 {
        return;
    }
    PAGE.store(paging::map_device(madt.io_apic, 4096).cast(), Ordering::Relaxed);
    let line = usize::from(vectors::CONSOLE_LINE);
    CONSOLE_INPUT.store(madt.lines[line].wrapping_sub(madt.io_apic_first), Ordering::Relaxed);
    for input in 0..=(read(VERSION) >> 16 & 0xff) {
        write(REDIRECTION + 2 * input, MASKED);
    }
}

/// Deliver the console's line to this processor.
pub(crate) fn enable_console() {
    let input = CONSOLE_INPUT.load(Ordering::Relaxed);
    write(REDIRECTION + 2 * input + 1, apic::id() << 24);
    write(REDIRECTION + 2 * input, u32::from(vectors::LINES + vectors::CONSOLE_LINE));
}
