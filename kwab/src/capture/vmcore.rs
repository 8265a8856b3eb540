//! Reads a core of a whole machine: QEMU's `dump-guest-memory`, Linux's `/proc/vmcore` and what was copied of it, in
//! ELF or kdump-compressed.
//!
//! Segments or bitmaps say which physical memory stands where in the file; notes hold the registers of each processor,
//! with control registers where QEMU wrote it (`QEMUCPUState`, QEMU `target/i386/arch_dump.c`), and the kernel's own
//! words about itself (`VMCOREINFO`; `KWAB`, where `export` wrote what it knew). Nothing is believed beyond the bytes
//! that the file has.

use std::fs::File;
use std::io;

use kwab_format::record::RegId;

use super::CaptureError;
use super::core_file::{
    NT_PRSTATUS, Note, PRSTATUS_REGISTERS, PT_LOAD, Segment, is_of_program, long, note, note_segments, refused,
    segments, word,
};
use super::kdump::{self, Pages};
use super::registers::Processor;
use super::source::{ReadAt as _, Source};
use crate::decode::USER_REGS;
use crate::memory::vmcoreinfo;

/// The general registers of `QEMUCPUState`, 8 bytes each behind version and size.
const QEMU_ORDER: [RegId; 18] = [
    RegId::RAX,
    RegId::RBX,
    RegId::RCX,
    RegId::RDX,
    RegId::RSI,
    RegId::RDI,
    RegId::RSP,
    RegId::RBP,
    RegId::R8,
    RegId::R9,
    RegId::R10,
    RegId::R11,
    RegId::R12,
    RegId::R13,
    RegId::R14,
    RegId::R15,
    RegId::RIP,
    RegId::RFLAGS,
];
/// Its first segments, 24 bytes each: selector, and base where that is kept.
const QEMU_SEGMENTS: [(RegId, Option<RegId>); 6] = [
    (RegId::CS, None),
    (RegId::DS, None),
    (RegId::ES, None),
    (RegId::FS, Some(RegId::FS_BASE)),
    (RegId::GS, Some(RegId::GS_BASE)),
    (RegId::SS, None),
];
/// Behind ten segments: CR0 to CR4 (there is no CR1), then the other base of GS.
const QEMU_CONTROL: [Option<RegId>; 6] =
    [Some(RegId::CR0), None, Some(RegId::CR2), Some(RegId::CR3), Some(RegId::CR4), Some(RegId::KERNEL_GS_BASE)];

/// How the file has a stretch of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// As it is, from this offset on.
    At(u64),
    /// Page by page, from this page descriptor on.
    Page(u64),
    /// It says that it is zero.
    Zeros,
}

/// Physical memory in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Physical address of the first byte.
    pub paddr: u64,
    /// Where its bytes are.
    pub stored: Stored,
    /// Number of bytes.
    pub length: u64,
}

/// An open core of a machine.
#[derive(Debug)]
pub struct Vmcore {
    source: Source,
    /// The packed pages of a kdump-compressed file.
    pages: Option<Pages>,
    /// The physical memory, in order of address and without overlap.
    pub loads: Vec<Load>,
    /// The processors that have registers.
    pub processors: Vec<Processor>,
    /// What the kernel says about itself: lines of `NAME=VALUE`.
    pub info: Option<String>,
    /// What the headers claim and the file does not have.
    pub missing: Vec<String>,
}

impl Vmcore {
    /// Reads the headers and notes.
    ///
    /// # Errors
    /// [`CaptureError::Core`] or [`CaptureError::Kdump`] when it is not the core of an x86-64 machine, and what the
    /// system says.
    pub fn open(file: File) -> Result<Self, CaptureError> {
        let mut source = Source::open(file)?;
        let missing = std::mem::take(&mut source.missing);
        let mut magic = [0; kdump::MAGIC.len()];
        let is_packed = source.read_some_at(&mut magic, 0)? == magic.len() && magic == *kdump::MAGIC;
        let mut core = Self { source, pages: None, loads: Vec::new(), processors: Vec::new(), info: None, missing };
        if is_packed {
            core.packed()?;
        } else {
            core.elf()?;
        }
        Ok(core)
    }

    fn elf(&mut self) -> Result<(), CaptureError> {
        let length = self.source.length;
        let segments = segments(&self.source, length)?;
        self.loads = loads(&segments, (length, self.source.stored), &mut self.missing)?;
        for bytes in note_segments(&self.source, length, &segments)? {
            self.notes(&bytes);
        }
        Ok(())
    }

    fn packed(&mut self) -> Result<(), CaptureError> {
        let opened = kdump::open(&self.source)?;
        let stored = |first: Option<u64>| first.map_or(Stored::Zeros, Stored::Page);
        let load = |one: &kdump::Stretch| Load { paddr: one.paddr, stored: stored(one.first), length: one.length };
        self.loads = opened.stretches.iter().map(load).collect();
        self.missing.extend(opened.missing);
        self.pages = Some(opened.pages);
        self.notes(&opened.notes);
        // What stands among the notes is of the kernel that wrote them, which need not be the one that crashed.
        self.info = opened.info.or_else(|| self.info.take());
        Ok(())
    }

    /// Fills `out` from a physical address on; how many bytes the file has.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, paddr: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(load) = paddr.checked_add(done as u64).and_then(|at| self.load(at)) else { break };
            let skip = paddr + done as u64 - load.paddr;
            let count = (out.len() - done).min(usize::try_from(load.length - skip).unwrap_or(usize::MAX));
            let rest = &mut out[done..done + count];
            let read = match load.stored {
                Stored::At(offset) => self.source.read_some_at(rest, offset + skip)?,
                Stored::Page(first) => self.unpacked(first, skip, rest).0,
                Stored::Zeros => {
                    rest.fill(0);
                    count
                }
            };
            done += read;
            if read < count {
                break;
            }
        }
        Ok(done)
    }

    /// Why the byte at a physical address, which the file claims to have, cannot be read.
    #[must_use]
    pub fn why(&self, paddr: u64) -> String {
        let packed = self.load(paddr).and_then(|load| match load.stored {
            Stored::Page(first) => self.unpacked(first, paddr - load.paddr, &mut [0]).1,
            Stored::At(_) | Stored::Zeros => None,
        });
        packed.unwrap_or_else(|| "the file has no bytes there".to_owned())
    }

    /// Bytes of memory that may be believed to hold different things: packed pages can be many times the file.
    #[must_use]
    pub fn held(&self) -> u64 {
        /// Packed or not, a kernel's own tables have no more beyond the bytes of the file.
        const UNPACKED: u64 = 16 << 20;
        let claimed = self.loads.iter().fold(0_u64, |sum, load| sum.saturating_add(load.length));
        claimed.min(self.source.stored.saturating_add(UNPACKED))
    }

    fn load(&self, paddr: u64) -> Option<&Load> {
        let behind = self.loads.partition_point(|load| load.paddr <= paddr);
        let load = self.loads.get(behind.checked_sub(1)?)?;
        (paddr - load.paddr < load.length).then_some(load)
    }

    /// Fills `out` from packed pages; how many bytes there are, and why not all.
    fn unpacked(&self, first: u64, skip: u64, out: &mut [u8]) -> (usize, Option<String>) {
        let mut done = 0;
        while let (true, Some(pages)) = (done < out.len(), &self.pages) {
            let at = skip + done as u64;
            let inside = (at % kdump::PAGE) as usize;
            let count = (out.len() - done).min(kdump::PAGE as usize - inside);
            let copied = pages.copy(&self.source, first + at / kdump::PAGE, inside, &mut out[done..done + count]);
            if let Err(why) = copied {
                return (done, Some(why));
            }
            done += count;
        }
        (done, None)
    }

    /// The little-endian word at a physical address.
    #[must_use]
    pub fn word(&self, paddr: u64) -> Option<u64> {
        let mut word = [0; 8];
        (self.read(paddr, &mut word).ok()? == 8).then(|| u64::from_le_bytes(word))
    }

    /// A line of the kernel's words about itself.
    #[must_use]
    pub fn told(&self, name: &str) -> Option<&str> {
        vmcoreinfo::line(self.info.as_deref()?, name)
    }

    fn notes(&mut self, mut bytes: &[u8]) {
        let mut plain: Vec<Processor> = Vec::new();
        let mut full: Vec<Processor> = Vec::new();
        while let Some((Note { name, kind, body }, rest)) = note(bytes) {
            bytes = rest;
            match (name, kind) {
                (b"CORE", NT_PRSTATUS) => plain.extend(of_status(body, plain.len() as u32)),
                (b"QEMU", 0) => full.extend(of_qemu(body, full.len() as u32)),
                (b"VMCOREINFO" | b"KWAB", 0) => self.info = Some(String::from_utf8_lossy(body).into_owned()),
                _ => {}
            }
        }
        // Our own cores have tasks that sleep among the processors, with two registers; a processor has flags (SDM,
        // volume 1, 3.4.3: bit 1 is always set).
        let runs = |one: &Processor| one.get(RegId::RFLAGS) != 0;
        if plain.iter().any(runs) {
            plain.retain(runs);
            (0..).zip(&mut plain).for_each(|(number, one)| one.number = number);
        }
        let found = if full.is_empty() { plain } else { full };
        self.processors.extend(found);
    }
}

/// Whether a segment is physical memory; all ones is the address of what has none.
fn is_memory(segment: &Segment) -> bool {
    segment.kind == PT_LOAD && segment.length > 0 && segment.paddr != u64::MAX
}

/// The physical memory of the segments, in order and without overlap, as far as a file that ends at `length` has it.
/// Its `stored` bytes are all that the segments have together: none is memory of many addresses.
fn loads(
    segments: &[Segment],
    (length, stored): (u64, u64),
    missing: &mut Vec<String>,
) -> Result<Vec<Load>, CaptureError> {
    let mut found: Vec<&Segment> = segments.iter().filter(|segment| is_memory(segment)).collect();
    if found.is_empty() {
        return Err(refused("it holds no memory"));
    }
    if is_of_program(segments) {
        return Err(refused("it is the core of a program, without physical addresses"));
    }
    found.sort_by_key(|segment| (segment.paddr, std::cmp::Reverse(segment.length)));
    let mut loads: Vec<Load> = Vec::new();
    let (mut covered, mut left, mut shared) = (0_u64, stored, 0_u64);
    for segment in found {
        let there = segment.length.min(length.saturating_sub(segment.offset)).min(u64::MAX - segment.paddr);
        if there < segment.length {
            let (at, lost) = (segment.paddr.saturating_add(there), segment.length - there);
            missing.push(format!("{lost} bytes of memory at {at:#x}: the file is cut"));
        }
        let skip = covered.saturating_sub(segment.paddr).min(there);
        let taken = (there - skip).min(left);
        shared = shared.saturating_add(there - skip - taken);
        if taken > 0 {
            let (paddr, offset) = (segment.paddr + skip, segment.offset + skip);
            loads.push(Load { paddr, stored: Stored::At(offset), length: taken });
            (covered, left) = (paddr + taken, left - taken);
        }
    }
    if shared > 0 {
        missing.push(format!("{shared} bytes of memory: the segments claim more than the {stored} bytes of the file"));
    }
    Ok(loads)
}

fn of_status(body: &[u8], number: u32) -> Option<Processor> {
    let values = body.get(PRSTATUS_REGISTERS..)?;
    let registers: Vec<(RegId, u64)> =
        USER_REGS.iter().zip(values.chunks_exact(8)).map(|(id, value)| (*id, long(value, 0))).collect();
    processor(number, registers)
}

fn of_qemu(body: &[u8], number: u32) -> Option<Processor> {
    const GENERAL: usize = 8;
    const SEGMENTS: usize = GENERAL + 8 * QEMU_ORDER.len();
    const CONTROL: usize = SEGMENTS + 24 * 10;
    if body.len() < CONTROL {
        return None;
    }
    let mut registers: Vec<(RegId, u64)> =
        QEMU_ORDER.iter().enumerate().map(|(at, id)| (*id, long(body, GENERAL + 8 * at))).collect();
    for (at, (id, base)) in QEMU_SEGMENTS.iter().enumerate() {
        registers.push((*id, u64::from(word(body, SEGMENTS + 24 * at))));
        registers.extend(base.map(|base| (base, long(body, SEGMENTS + 24 * at + 16))));
    }
    let control = body[CONTROL..].chunks_exact(8);
    registers.extend(QEMU_CONTROL.iter().zip(control).filter_map(|(id, value)| Some(((*id)?, long(value, 0)))));
    processor(number, registers)
}

fn processor(number: u32, registers: Vec<(RegId, u64)>) -> Option<Processor> {
    let mut processor = Processor { number, registers, ..Processor::default() };
    processor.in_user = processor.get(RegId::CS) & 3 == 3;
    processor.registers.iter().any(|(id, _)| *id == RegId::RIP).then_some(processor)
}
