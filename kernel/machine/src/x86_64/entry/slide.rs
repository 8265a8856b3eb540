//! Moves the kernel's image to a random virtual address, before anything but the stack holds an address of it.
//!
//! The image is position-independent code linked at the lowest address it can have, with the addresses in its data
//! written in place. So it runs where it was linked, and [`move_image`] is ordinary Rust: it draws an address, lets the
//! boot tables show the image there too, adds the distance to every address in data and returns the distance; the boot
//! assembly goes on in the moved image. [`crate::x86_64::memory::paging`] then maps the moved image alone. `nokaslr`
//! leaves it in place.
//!
//! The linker lists the addresses in data as `SHT_RELR` words (the generic ELF ABI's "Relative Relocation Table"): an
//! even word is the address of one, and the odd words behind it are bitmaps of the 63 words that follow the last one
//! listed.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::x86_64::cpu::{cpuinfo, features};
use crate::x86_64::interrupts::clock;
use crate::x86_64::layout::{self, Draws};
use crate::x86_64::memory::pvh;
use crate::x86_64::memory::table::{HUGE, PRESENT, WRITE};

/// Distance between two addresses the image may have.
const STEP: u64 = 2 << 20;
/// Steps that the image with the memory before it may take; the linker script checks it.
pub(super) const ROOM: usize = 16;
/// Steps from the link address to the end of the address space.
pub(super) const WINDOW: usize = 1024;

/// Called by the boot assembly where the image is linked, with the start info's physical address. Returns how far the
/// image was moved.
///
/// The lowest addresses are left out, since the image must stay mapped where it runs; so are the highest, which would
/// read as small negative numbers.
pub(super) extern "C" fn move_image(start_info: u64) -> u64 {
    features::detect();
    // SAFETY: nothing was overwritten yet; the boot tables map the first GiB, where loaders put the start info.
    let Some(info) = (unsafe { pvh::read(start_info) }) else { return 0 };
    let Some(bits) = randomness(pvh::command_line(&info)) else { return 0 };
    let step = ROOM + Draws(bits).below((WINDOW - 2 * ROOM) as u64) as usize;
    for (entry, piece) in window()[step..].iter().zip((0..).step_by(STEP as usize)).take(ROOM) {
        entry.store(piece | PRESENT | WRITE | HUGE, Relaxed);
    }
    let slide = step as u64 * STEP;
    // SAFETY: the first and only time, and the boot tables show the image there.
    unsafe { relocate(slide) };
    slide
}

/// The boot tables' second level for the top 2 GiB: what they show in each 2 MiB from where the image is linked.
fn window() -> &'static [AtomicU64; WINDOW] {
    unsafe extern "C" {
        static boot_window: [AtomicU64; WINDOW];
    }
    // SAFETY: made of words by the boot assembly, and used by nothing else but the processor's walks.
    unsafe { &boot_window }
}

/// Random bits for the addresses of the kernel's memory; `None` with `nokaslr`.
pub(super) fn randomness(command_line: &[u8]) -> Option<u64> {
    let fixed = command_line.split(|byte| *byte == b' ').any(|word| word == b"nokaslr");
    // Without a generator the cycle counter: it depends on the firmware's work before, and is all there is.
    (!fixed).then(|| cpuinfo::random().unwrap_or(0) ^ clock::cycles().rotate_left(32))
}

/// Adds `slide` to every address in the image's data.
///
/// # Safety
/// Once, on the boot tables, which let read-only data be written; the image must be mapped `slide` further up too.
unsafe fn relocate(slide: u64) {
    // SAFETY: the linker lists words of the image's own data that hold addresses of the image, each once.
    let move_word = |at: u64| unsafe {
        let word = at as *mut u64;
        word.write_unaligned(word.read_unaligned().wrapping_add(slide));
    };
    let mut next = 0;
    for entry in layout::relocations() {
        if entry & 1 == 0 {
            move_word(*entry);
            next = entry + 8;
        } else {
            (0..63).filter(|bit| entry >> (bit + 1) & 1 == 1).for_each(|bit| move_word(next + 8 * bit));
            next += 63 * 8;
        }
    }
}
