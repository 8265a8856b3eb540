//! The 16550 UART at COM1: polled output without set-up, usable from the first instruction.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::x86_64::cpu::port::{in8, out8};

const COM1: u16 = 0x3f8;
const LINE_STATUS: u16 = COM1 + 5;
const READY_TO_SEND: u8 = 0x20;
const HAS_DATA: u8 = 1;
/// Bytes the 16550 takes when it is ready.
const FIFO: usize = 16;

static PRESENT: AtomicBool = AtomicBool::new(false);

/// 115200 8N1, FIFOs on, no interrupts.
pub(crate) fn init() {
    let set_up = [(3, 0x80), (0, 1), (1, 0), (3, 3), (2, 0xc7), (4, 0x0b)];
    for (register, value) in set_up {
        // SAFETY: COM1's own registers; it cannot reach memory.
        unsafe { out8(COM1 + register, value) };
    }
    // SAFETY: reading the line status has no effect.
    let status = unsafe { in8(LINE_STATUS) };
    PRESENT.store(status != 0xff, Ordering::Relaxed);
}

/// Send bytes, waiting for room (bounded: a dead port must not hang a dying kernel). Ready to send means that the whole
/// FIFO is empty, so it is filled at once.
pub(crate) fn send(bytes: &[u8]) {
    if !PRESENT.load(Ordering::Relaxed) {
        return;
    }
    for piece in bytes.chunks(FIFO) {
        for _ in 0..100_000 {
            // SAFETY: reading the line status has no effect.
            if unsafe { in8(LINE_STATUS) } & READY_TO_SEND != 0 {
                break;
            }
            core::hint::spin_loop();
        }
        for byte in piece {
            // SAFETY: the data register of COM1.
            unsafe { out8(COM1, *byte) };
        }
    }
}

/// A received byte, if any.
pub(crate) fn receive() -> Option<u8> {
    if !PRESENT.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: reading the status has no effect; the data register is read only when a byte waits.
    unsafe { if in8(LINE_STATUS) & HAS_DATA != 0 { Some(in8(COM1)) } else { None } }
}

/// Raise an interrupt when data arrives.
pub(crate) fn enable_receive_interrupt() {
    // SAFETY: the interrupt-enable register of COM1.
    unsafe { out8(COM1 + 1, 1) };
}
