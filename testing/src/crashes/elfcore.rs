//! An ELF core that QEMU's `dump-guest-memory` wrote: physical memory, and each processor's registers.

use anyhow::{Context as _, Result, ensure};
use kwab_format::record::RegId;

use super::seen::Registers;

/// An ELF core of the machine's memory, as QEMU's `dump-guest-memory` writes it.
#[derive(Debug)]
pub struct Core<'a> {
    bytes: &'a [u8],
    /// Physical address, bytes, offset in the file.
    segments: Vec<(u64, u64, u64)>,
    /// The registers of each processor, by QEMU's number.
    pub cpus: Vec<Registers>,
}

/// `PT_LOAD` and `PT_NOTE`.
const LOAD: [u8; 4] = [1, 0, 0, 0];
const NOTE: [u8; 4] = [4, 0, 0, 0];

/// Where QEMU's own note has what (`QEMUCPUState` of its `target/i386/arch_dump.c`): two 32-bit words, then the general
/// registers, six segment registers of 24 bytes with the selector first and the base last, four tables, control
/// registers.
const LAYOUT: &[(RegId, usize)] = &[
    (RegId::RAX, 8),
    (RegId::RBX, 16),
    (RegId::RCX, 24),
    (RegId::RDX, 32),
    (RegId::RSI, 40),
    (RegId::RDI, 48),
    (RegId::RSP, 56),
    (RegId::RBP, 64),
    (RegId::R8, 72),
    (RegId::R9, 80),
    (RegId::R10, 88),
    (RegId::R11, 96),
    (RegId::R12, 104),
    (RegId::R13, 112),
    (RegId::R14, 120),
    (RegId::R15, 128),
    (RegId::RIP, 136),
    (RegId::RFLAGS, 144),
    (RegId::FS_BASE, 240),
    (RegId::GS_BASE, 264),
    (RegId::CR0, 392),
    (RegId::CR2, 408),
    (RegId::CR3, 416),
    (RegId::CR4, 424),
    (RegId::KERNEL_GS_BASE, 432),
];
/// Selectors have 32 bits there.
const SELECTORS: &[(RegId, usize)] = &[(RegId::CS, 152), (RegId::SS, 272)];

impl<'a> Core<'a> {
    /// Takes a core apart.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        ensure!(bytes.starts_with(b"\x7fELF\x02"), "QEMU's core is not a 64-bit ELF file");
        let table = word(bytes, 32).context("no program headers")? as usize;
        let count = half(bytes, 56).context("no program headers")?;
        let mut core = Self { bytes, segments: Vec::new(), cpus: Vec::new() };
        for at in (0..count as usize & 0xffff).map(|number| table + 56 * number) {
            let kind = bytes.get(at..at + 4).context("program headers end early")?;
            let field = |offset| word(bytes, at + offset).context("a program header ends early");
            let (offset, paddr, size) = (field(8)?, field(24)?, field(32)?);
            if kind == LOAD {
                core.segments.push((paddr, size, offset));
            } else if kind == NOTE {
                core.notes(offset as usize, size as usize);
            }
        }
        Ok(core)
    }

    /// Notes: sizes of name and contents, a type, both padded to four bytes.
    fn notes(&mut self, start: usize, size: usize) {
        let (mut at, end) = (start, start + size);
        while let (true, Some(name), Some(length)) = (at < end, half(self.bytes, at), half(self.bytes, at + 4)) {
            let name_at = at + 12;
            let contents = name_at + (name as usize).next_multiple_of(4);
            if self.bytes.get(name_at..name_at + 4) == Some(b"QEMU") {
                let one = |(id, offset): &(RegId, usize)| Some((*id, word(self.bytes, contents + offset)?));
                let selector = |(id, offset): &(RegId, usize)| {
                    Some((*id, u64::from(half(self.bytes, contents + offset)? & 0xffff)))
                };
                self.cpus.push(LAYOUT.iter().filter_map(one).chain(SELECTORS.iter().filter_map(selector)).collect());
            }
            at = contents + (length as usize).next_multiple_of(4);
        }
    }

    fn physical(&self, at: u64, length: u64) -> Option<&'a [u8]> {
        let (paddr, _, offset) = self.segments.iter().find(|(start, size, _)| (*start..start + size).contains(&at))?;
        let from = usize::try_from(at - paddr + offset).ok()?;
        self.bytes.get(from..from + length as usize)
    }

    /// The bytes at a virtual address below a page-table root.
    pub fn read(&self, root: u64, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(length);
        while out.len() < length {
            let at = at + out.len() as u64;
            let page = self.translate(root, at)?;
            let piece = (4096 - at % 4096).min((length - out.len()) as u64);
            out.extend_from_slice(self.physical(page + at % 4096, piece)?);
        }
        Some(out)
    }

    /// The physical address of the page that `at` lies in (SDM 3, 4.5).
    fn translate(&self, root: u64, at: u64) -> Option<u64> {
        const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
        let mut table = root & ADDRESS;
        for level in (0..4u32).rev() {
            let index = at >> (12 + 9 * level) & 511;
            let entry = u64::from_le_bytes(self.physical(table + 8 * index, 8)?.try_into().ok()?);
            if entry & 1 == 0 {
                return None;
            }
            if level == 0 || entry & 0x80 != 0 {
                let inside = (1u64 << (12 + 9 * level)) - 1;
                return Some(((entry & ADDRESS & !inside) | (at & inside)) & !0xfff);
            }
            table = entry & ADDRESS;
        }
        None
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
