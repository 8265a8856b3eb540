//! Reads an ELF core of a whole machine: QEMU's `dump-guest-memory`, Linux's `/proc/vmcore` and what was copied of it.
//!
//! Segments say which physical memory stands where in the file; notes hold the registers of each processor, with
//! control registers where QEMU wrote it (`QEMUCPUState`, QEMU `target/i386/arch_dump.c`), and the kernel's own words
//! about itself (`VMCOREINFO`; `KWAB`, where `export` wrote what it knew). Nothing is believed beyond the bytes that
//! the file has.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use kwab_format::record::RegId;

use super::CaptureError;
use super::core_file::{
    NT_PRSTATUS, Note, PRSTATUS_REGISTERS, PT_LOAD, Segment, is_of_program, long, note, note_segments, refused,
    segments, word,
};
use super::registers::Processor;
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

/// Physical memory in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Physical address of the first byte.
    pub paddr: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Number of bytes in the file.
    pub length: u64,
}

/// An open core of a machine.
#[derive(Debug)]
pub struct Vmcore {
    file: File,
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
    /// [`CaptureError::Core`] when it is not the core of an x86-64 machine, and what the system says.
    pub fn open(file: File) -> Result<Self, CaptureError> {
        let length = file.metadata()?.len();
        let segments = segments(&file, length)?;
        let mut missing = Vec::new();
        let loads = loads(&segments, length, &mut missing)?;
        let mut core = Self { file, loads, processors: Vec::new(), info: None, missing };
        for bytes in note_segments(&core.file, length, &segments)? {
            core.notes(&bytes);
        }
        Ok(core)
    }

    /// Fills `out` from a physical address on; how many bytes the file has.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, paddr: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(at) = paddr.checked_add(done as u64) else { break };
            let behind = self.loads.partition_point(|load| load.paddr <= at);
            let load = behind.checked_sub(1).and_then(|number| self.loads.get(number));
            let Some(load) = load.filter(|load| at - load.paddr < load.length) else { break };
            let skip = at - load.paddr;
            let count = (out.len() - done).min(usize::try_from(load.length - skip).unwrap_or(usize::MAX));
            self.file.read_exact_at(&mut out[done..done + count], load.offset + skip)?;
            done += count;
        }
        Ok(done)
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
        let found = if full.is_empty() { plain } else { full };
        self.processors.extend(found);
    }
}

/// Whether a segment is physical memory; all ones is the address of what has none.
fn is_memory(segment: &Segment) -> bool {
    segment.kind == PT_LOAD && segment.length > 0 && segment.paddr != u64::MAX
}

/// The physical memory of the segments, in order and without overlap, as far as the file has it.
fn loads(segments: &[Segment], length: u64, missing: &mut Vec<String>) -> Result<Vec<Load>, CaptureError> {
    let mut found: Vec<&Segment> = segments.iter().filter(|segment| is_memory(segment)).collect();
    if found.is_empty() {
        return Err(refused("it holds no memory"));
    }
    if is_of_program(segments) {
        return Err(refused("it is the core of a program, without physical addresses"));
    }
    found.sort_by_key(|segment| (segment.paddr, std::cmp::Reverse(segment.length)));
    let mut loads: Vec<Load> = Vec::new();
    let mut covered = 0_u64;
    for segment in found {
        let there = segment.length.min(length.saturating_sub(segment.offset)).min(u64::MAX - segment.paddr);
        if there < segment.length {
            let (at, lost) = (segment.paddr.saturating_add(there), segment.length - there);
            missing.push(format!("{lost} bytes of memory at {at:#x}: the file is cut"));
        }
        let skip = covered.saturating_sub(segment.paddr).min(there);
        if there > skip {
            let (paddr, offset) = (segment.paddr + skip, segment.offset + skip);
            loads.push(Load { paddr, offset, length: there - skip });
            covered = paddr + (there - skip);
        }
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
