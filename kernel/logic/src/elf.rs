//! Decides what an ELF file asks to have mapped, and refuses everything that asks for nonsense.
//!
//! Two steps, because the kernel reads a file piecewise: [`Header::parse`] looks at the first 64 bytes and says where
//! the program headers are; [`Image::parse`] turns those into load segments. Source: the System V ABI, chapters 4 and
//! 5, and the checks of Linux's `fs/binfmt_elf.c` as observed from outside (a bad file is `ENOEXEC`).

use alloc::vec::Vec;

use crate::vma::{PAGE, Prot, USER_END};

pub mod notes;

/// Bytes of the ELF64 file header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of one ELF64 program header.
pub const PHDR_BYTES: usize = 56;
/// Most program headers accepted: Linux reads at most 64 KiB of them; real programs have a dozen.
pub const MAX_PHDRS: u16 = 1024;
/// `e_machine` of x86_64.
pub const EM_X86_64: u16 = 62;
/// `e_machine` of aarch64.
pub const EM_AARCH64: u16 = 183;

/// Why a file cannot be run. Every variant is `ENOEXEC` to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElfError {
    /// Shorter than its own header says, or no ELF magic.
    NotElf,
    /// Not ELF64 little-endian for this machine.
    WrongMachine,
    /// Neither `ET_EXEC` nor `ET_DYN`.
    WrongType,
    /// Program headers of the wrong size or number.
    BadHeaders,
    /// A segment that overflows, leaves user space, holds more file than memory, or is not congruent to its offset.
    BadSegment,
    /// Nothing to load.
    NoSegments,
    /// An interpreter path that is empty, too long or not terminated.
    BadInterpreter,
}

/// Whether addresses in the file are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// `ET_EXEC`: segments are mapped at the addresses in the file.
    Fixed,
    /// `ET_DYN`: the kernel chooses a base.
    Anywhere,
}

/// What the file header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Fixed or relocatable.
    pub placement: Placement,
    /// Entry point, before relocation.
    pub entry: u64,
    /// File offset of the program headers.
    pub phoff: u64,
    /// How many there are.
    pub phnum: u16,
}

impl Header {
    /// Reads a file header for `machine` (`e_machine`).
    pub fn parse(bytes: &[u8], machine: u16) -> Result<Header, ElfError> {
        if bytes.len() < HEADER_BYTES || bytes[..4] != *b"\x7fELF" {
            return Err(ElfError::NotElf);
        }
        if bytes[4] != 2 || bytes[5] != 1 || u16_at(bytes, 18) != machine {
            return Err(ElfError::WrongMachine);
        }
        let placement = match u16_at(bytes, 16) {
            2 => Placement::Fixed,
            3 => Placement::Anywhere,
            _ => return Err(ElfError::WrongType),
        };
        let phnum = u16_at(bytes, 56);
        if usize::from(u16_at(bytes, 54)) != PHDR_BYTES || phnum == 0 || phnum > MAX_PHDRS {
            return Err(ElfError::BadHeaders);
        }
        Ok(Header { placement, entry: u64_at(bytes, 24), phoff: u64_at(bytes, 32), phnum })
    }

    /// Bytes of program headers to read at [`Header::phoff`].
    pub fn phdr_bytes(&self) -> usize {
        usize::from(self.phnum) * PHDR_BYTES
    }
}

/// One `PT_LOAD`, checked: congruent, in user space, `file_bytes <= mem_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Virtual address, before relocation.
    pub vaddr: u64,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Bytes that come from the file.
    pub file_bytes: u64,
    /// Bytes it occupies; the rest is zero.
    pub mem_bytes: u64,
    /// The access that `p_flags` asks for.
    pub prot: Prot,
}

impl Segment {
    /// Address of the first page it touches: `vaddr` rounded down.
    pub fn page_start(&self) -> u64 {
        self.vaddr & !(PAGE - 1)
    }

    /// End of the pages that hold file bytes; equal to [`Segment::page_start`] when there are none.
    pub fn file_page_end(&self) -> u64 {
        if self.file_bytes == 0 { self.page_start() } else { page_up(self.vaddr + self.file_bytes) }
    }

    /// End of all its pages.
    pub fn page_end(&self) -> u64 {
        page_up(self.vaddr + self.mem_bytes)
    }

    /// File offset of its first page.
    pub fn page_offset(&self) -> u64 {
        self.offset & !(PAGE - 1)
    }

    /// The bytes between the end of the file's part and the end of its page, which the loader clears when the segment
    /// has a zero part. Linux clears them only for a segment whose memory exceeds its file bytes.
    pub fn tail_to_clear(&self) -> Option<(u64, u64)> {
        let end = self.vaddr + self.file_bytes;
        (self.mem_bytes > self.file_bytes && end & (PAGE - 1) != 0).then(|| (end, page_up(end)))
    }
}

/// Everything the loader needs from the program headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Load segments in ascending order of address.
    pub segments: Vec<Segment>,
    /// Offset and length of the interpreter's path, with its terminator.
    pub interpreter: Option<(u64, usize)>,
    /// Whether the stack must be executable (`PT_GNU_STACK` with `PF_X`).
    pub exec_stack: bool,
    /// Address of the program headers in memory, before relocation: for `AT_PHDR`.
    pub phdr_vaddr: u64,
    /// Strictest alignment of a load segment, at least a page.
    pub align: u64,
}

impl Image {
    /// Reads the program headers `bytes` that belong to `header`.
    pub fn parse(header: &Header, bytes: &[u8]) -> Result<Image, ElfError> {
        if bytes.len() < header.phdr_bytes() {
            return Err(ElfError::BadHeaders);
        }
        let mut image =
            Image { segments: Vec::new(), interpreter: None, exec_stack: false, phdr_vaddr: 0, align: PAGE };
        let mut phdr_entry = None;
        for ph in bytes.chunks_exact(PHDR_BYTES).take(usize::from(header.phnum)) {
            match u32_at(ph, 0) {
                PT_LOAD => image.load(ph)?,
                PT_INTERP if image.interpreter.is_none() => {
                    let bytes = u64_at(ph, 32);
                    if !(2..=4096).contains(&bytes) {
                        return Err(ElfError::BadInterpreter);
                    }
                    image.interpreter = Some((u64_at(ph, 8), bytes as usize));
                }
                PT_PHDR => phdr_entry = Some(u64_at(ph, 16)),
                PT_GNU_STACK => image.exec_stack = u32_at(ph, 4) & PF_X != 0,
                _ => {}
            }
        }
        let Some(first) = image.segments.first() else { return Err(ElfError::NoSegments) };
        let in_first = header.phoff.checked_sub(first.offset).filter(|at| *at < first.file_bytes);
        let by_segment = image.segments.iter().find_map(|s| {
            let at = header.phoff.checked_sub(s.offset).filter(|at| *at < s.file_bytes)?;
            Some(s.vaddr + at)
        });
        image.phdr_vaddr = phdr_entry.or(in_first.map(|at| first.vaddr + at)).or(by_segment).unwrap_or(0);
        Ok(image)
    }

    /// Page range from the first segment's start to the last one's end.
    pub fn span(&self) -> (u64, u64) {
        let start = self.segments.first().map_or(0, Segment::page_start);
        let end = self.segments.iter().map(Segment::page_end).max().unwrap_or(0);
        (start, end)
    }

    fn load(&mut self, ph: &[u8]) -> Result<(), ElfError> {
        let flags = u32_at(ph, 4);
        let (offset, vaddr) = (u64_at(ph, 8), u64_at(ph, 16));
        let (file_bytes, mem_bytes, align) = (u64_at(ph, 32), u64_at(ph, 40), u64_at(ph, 48));
        if mem_bytes == 0 && file_bytes == 0 {
            return Ok(());
        }
        let end = vaddr.checked_add(mem_bytes).ok_or(ElfError::BadSegment)?;
        let file_end = offset.checked_add(file_bytes).ok_or(ElfError::BadSegment)?;
        let congruent = vaddr & (PAGE - 1) == offset & (PAGE - 1);
        if file_bytes > mem_bytes || end > USER_END || file_end > i64::MAX as u64 - PAGE || !congruent {
            return Err(ElfError::BadSegment);
        }
        if self.segments.last().is_some_and(|last| vaddr < last.vaddr + last.mem_bytes) {
            return Err(ElfError::BadSegment);
        }
        if align.is_power_of_two() && align <= MAX_ALIGN {
            self.align = self.align.max(align);
        }
        let mut prot = Prot::NONE;
        for (bit, add) in [(PF_R, Prot::READ), (PF_W, Prot::WRITE), (PF_X, Prot::EXEC)] {
            if flags & bit != 0 {
                prot = prot.with(add);
            }
        }
        self.segments.push(Segment { vaddr, offset, file_bytes, mem_bytes, prot });
        Ok(())
    }
}

/// What a file that begins with `#!` asks for: interpreter and optional single argument, as Linux splits them.
pub fn shebang(first_bytes: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let line = first_bytes.strip_prefix(b"#!")?;
    let line = &line[..line.iter().position(|b| *b == b'\n' || *b == 0).unwrap_or(line.len())];
    let line = trim(line);
    let split = line.iter().position(|b| is_blank(*b)).unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(split);
    let rest = trim(rest);
    if interpreter.is_empty() {
        return None;
    }
    Some((interpreter, (!rest.is_empty()).then_some(rest)))
}

fn trim(mut line: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = line {
        if !is_blank(*first) {
            break;
        }
        line = rest;
    }
    while let [rest @ .., last] = line {
        if !is_blank(*last) {
            break;
        }
        line = rest;
    }
    line
}

fn is_blank(b: u8) -> bool {
    b == b' ' || b == b'\t'
}

fn page_up(addr: u64) -> u64 {
    addr.saturating_add(PAGE - 1) & !(PAGE - 1)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_PHDR: u32 = 6;
const PT_GNU_STACK: u32 = 0x6474_e551;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;
/// Larger alignments are ignored, so that a hostile file cannot ask for a base outside user space.
const MAX_ALIGN: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    fn header(kind: u16, phnum: u16) -> Vec<u8> {
        let mut h = vec![0u8; 64];
        h[..6].copy_from_slice(b"\x7fELF\x02\x01");
        h[16..18].copy_from_slice(&kind.to_le_bytes());
        h[18..20].copy_from_slice(&EM_X86_64.to_le_bytes());
        h[24..32].copy_from_slice(&0x401000u64.to_le_bytes());
        h[32..40].copy_from_slice(&64u64.to_le_bytes());
        h[54..56].copy_from_slice(&56u16.to_le_bytes());
        h[56..58].copy_from_slice(&phnum.to_le_bytes());
        h
    }

    fn phdr(kind: u32, flags: u32, fields: [u64; 6]) -> Vec<u8> {
        let mut p = vec![];
        p.extend(kind.to_le_bytes());
        p.extend(flags.to_le_bytes());
        for f in fields {
            p.extend(f.to_le_bytes());
        }
        p
    }

    #[test]
    fn a_data_segment_shares_its_last_file_page_with_the_bss() {
        let h = Header::parse(&header(2, 2), EM_X86_64).unwrap();
        let mut ph = phdr(PT_LOAD, 5, [0, 0x400000, 0, 0x1234, 0x1234, 0x1000]);
        ph.extend(phdr(PT_LOAD, 6, [0x1ff0, 0x402ff0, 0, 0x20, 0x3000, 0x1000]));
        let image = Image::parse(&h, &ph).unwrap();
        let data = image.segments[1];
        assert_eq!((data.page_start(), data.file_page_end(), data.page_end()), (0x402000, 0x404000, 0x406000));
        assert_eq!(data.tail_to_clear(), Some((0x403010, 0x404000)));
        assert_eq!(image.segments[0].tail_to_clear(), None);
        assert_eq!(image.phdr_vaddr, 0x400040);
        assert_eq!(image.span(), (0x400000, 0x406000));
    }

    #[test]
    fn hostile_segments_are_refused() {
        let h = Header::parse(&header(2, 1), EM_X86_64).unwrap();
        for fields in [
            [0, u64::MAX - 10, 0, 5, 20, 0x1000],
            [0, 0x400000, 0, 30, 20, 0x1000],
            [1, 0x400000, 0, 10, 20, 0x1000],
            [u64::MAX - 0xfff, 0x400000, 0, 0x1000, 0x1000, 0],
            [0, 0x7fff_ffff_f000, 0, 1, 1, 0x1000],
        ] {
            assert_eq!(Image::parse(&h, &phdr(PT_LOAD, 5, fields)), Err(ElfError::BadSegment), "{fields:x?}");
        }
        assert_eq!(Image::parse(&h, &[0; 40]), Err(ElfError::BadHeaders));
        assert_eq!(Image::parse(&h, &phdr(7, 5, [0; 6])), Err(ElfError::NoSegments));
    }

    #[test]
    fn truncated_and_foreign_files_are_refused() {
        let good = header(3, 1);
        for cut in 0..64 {
            assert_eq!(Header::parse(&good[..cut], EM_X86_64), Err(ElfError::NotElf));
        }
        assert_eq!(Header::parse(&good, EM_AARCH64), Err(ElfError::WrongMachine));
        assert_eq!(Header::parse(&header(1, 1), EM_X86_64), Err(ElfError::WrongType));
        assert_eq!(Header::parse(&header(2, 0), EM_X86_64), Err(ElfError::BadHeaders));
    }

    #[test]
    fn a_shebang_line_splits_once() {
        assert_eq!(shebang(b"#! /bin/sh -e -x \nfoo"), Some((&b"/bin/sh"[..], Some(&b"-e -x"[..]))));
        assert_eq!(shebang(b"#!/bin/awk\n"), Some((&b"/bin/awk"[..], None)));
        assert_eq!(shebang(b"#!   \n"), None);
        assert_eq!(shebang(b"echo"), None);
    }
}
