//! What the example kernel asks of its machine: the way in, a serial console, the power switch, its own memory.
//!
//! All unsafe code of the kernel is here.

use core::arch::{asm, global_asm};

use kwab_crash::TrapFrame;

global_asm!(include_str!("../../boot/start.S"), options(att_syntax, raw));

unsafe extern "C" {
    static image_low: u8;
    static image_high: u8;
    static stack_low: u8;
    static stack_high: u8;
    static build_id_note: u8;
    static build_id_end: u8;
}

/// The first serial port (16550).
const SERIAL: u16 = 0x3f8;
/// Where QEMU's `isa-debug-exit` listens.
const EXIT: u16 = 0xf4;
/// Name, owner and sizes in front of the bytes of a build-id note.
const NOTE_HEADER: usize = 16;

/// Called by `boot/start.S` once the machine runs in 64 bits.
#[unsafe(no_mangle)]
extern "C" fn kernel_main() -> ! {
    crate::run()
}

/// Called by `boot/start.S` for every exception.
#[unsafe(no_mangle)]
extern "C" fn exception(frame: &TrapFrame, cr2: u64, cr3: u64) -> ! {
    crate::die(frame, cr2, cr3)
}

/// Prints bytes on the serial console.
pub(crate) fn print(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: line status and transmitter of the port have no effect on memory.
        unsafe {
            asm!(
                "2: in al, dx", "test al, 0x20", "jz 2b",
                "sub edx, 5", "mov al, {byte}", "out dx, al",
                byte = in(reg_byte) *byte, inout("edx") u32::from(SERIAL) + 5 => _, out("al") _,
                options(nomem, nostack)
            );
        }
    }
}

/// Ends the machine.
pub(crate) fn power_off() -> ! {
    loop {
        // SAFETY: QEMU ends, and another machine has no such port; then the processor halts.
        unsafe { asm!("out dx, al", "hlt", in("dx") EXIT, in("al") 0_u8, options(nomem, nostack)) };
    }
}

/// Raises the breakpoint exception, whose handler does not return, so that a panic has a trap frame.
pub(crate) fn trap() -> ! {
    // SAFETY: the gate of the exception is set up before `kernel_main`.
    unsafe { asm!("int3", options(noreturn)) }
}

/// Addresses of the image.
pub(crate) fn image() -> (u64, u64) {
    (&raw const image_low as u64, &raw const image_high as u64)
}

/// Addresses of the stack.
pub(crate) fn stack() -> (u64, u64) {
    (&raw const stack_low as u64, &raw const stack_high as u64)
}

/// The build-id that the linker wrote.
pub(crate) fn build_id() -> &'static [u8] {
    let (low, high) = (&raw const build_id_note as u64, &raw const build_id_end as u64);
    memory(low, high).get(NOTE_HEADER..).unwrap_or_default()
}

/// The part of the image at `low..high`; what lies outside of it is left out.
pub(crate) fn memory(low: u64, high: u64) -> &'static [u8] {
    let (from, to) = image();
    let (low, high) = (low.clamp(from, to), high.clamp(from, to));
    let length = high.saturating_sub(low) as usize;
    // SAFETY: the range lies in the image, which is mapped; one processor runs, with interrupts off, and it reads only.
    unsafe { core::slice::from_raw_parts(low as *const u8, length) }
}

/// The driver's number, read where the pointer says.
pub(crate) fn number_of(driver: *const crate::Driver) -> u64 {
    // SAFETY: none, this is the bug: no caller looked at the pointers of its table. The place is only named here,
    let number = unsafe { &raw const (*driver).number };
    // SAFETY: and read here, which faults.
    unsafe { number.read_volatile() }
}
