//! The memory reserved for dumps: RAM that is never given to the allocator, at a physical address the host knows.
//!
//! `dumpmem=SIZE[@ADDRESS]` on the command line (bytes; `K`, `M`, `G` and hexadecimal understood; the default address
//! is 64 MiB) reserves it. When the emulator keeps RAM in a file, what is written here is in that file at offset
//! ADDRESS at once, and it survives a reset. Its contents at boot are whatever the last run left.

use crate::addr::{FrameNumber, FrameRange, PAGE_SHIFT, PhysAddr};
use crate::sync::Once;
use crate::x86_64::cpu::memory;
use crate::x86_64::layout;

/// Where it is unless the command line says.
const DEFAULT_ADDRESS: u64 = 64 << 20;

static RANGE: Once<FrameRange> = Once::new();

/// The reserved memory, if the command line asked for it and it could be had.
pub fn find() -> Option<Region> {
    RANGE.get().map(|range| Region { range: *range })
}

/// The reserved memory that [`find`] returned: written through the direct map, never handed out by the frame
/// allocator.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    range: FrameRange,
}

impl Region {
    /// Physical address of the first byte, a multiple of 4096.
    pub fn address(&self) -> PhysAddr {
        self.range.start.addr()
    }

    /// Its length in bytes, a multiple of 4096.
    pub fn size(&self) -> usize {
        self.range.frames() << PAGE_SHIFT
    }

    /// Write at `offset`; returns how many bytes fitted. Never blocks, never faults.
    pub fn write(&self, offset: usize, from: &[u8]) -> usize {
        let len = from.len().min(self.size().saturating_sub(offset));
        // SAFETY: within RAM that only this type uses; racing writers only mix bytes.
        unsafe { memory::copy(self.at(offset), from.as_ptr(), len) };
        len
    }

    /// Read at `offset`; returns how many bytes there were.
    pub fn read(&self, offset: usize, to: &mut [u8]) -> usize {
        let len = to.len().min(self.size().saturating_sub(offset));
        // SAFETY: as for `write`.
        unsafe { memory::copy(to.as_mut_ptr(), self.at(offset), len) };
        len
    }

    fn at(&self, offset: usize) -> *mut u8 {
        layout::direct(self.address()).wrapping_add(offset.min(self.size()))
    }
}

/// What the command line asks for, as frames. `None` without the option, or if it cannot be parsed.
pub(crate) fn wanted(command_line: &[u8]) -> Option<FrameRange> {
    let option = command_line.split(|b| *b == b' ').find_map(|word| word.strip_prefix(b"dumpmem="))?;
    let mut parts = option.split(|b| *b == b'@').map(number);
    let size = parts.next()??;
    let address = parts.next().unwrap_or(Some(DEFAULT_ADDRESS))?;
    let start = u32::try_from(address >> PAGE_SHIFT).ok()?;
    let end = u32::try_from(address.checked_add(size)? >> PAGE_SHIFT).ok()?;
    (start < end).then_some(FrameRange { start: FrameNumber(start), end: FrameNumber(end) })
}

fn number(text: &[u8]) -> Option<u64> {
    let text = core::str::from_utf8(text).ok()?;
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    value.checked_mul(1 << shift)
}

/// Stores the range that boot reserved.
pub(crate) fn reserve(range: FrameRange) {
    // Set by boot alone, once.
    let _ = RANGE.set(range);
}
