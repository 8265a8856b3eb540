//! The container of every core: ELF header, program headers and notes, of machines ([`super::vmcore`]) and of programs.
//!
//! Nothing is believed beyond the bytes that the file has: program headers and notes are read as far as they lie in it.

use super::CaptureError;
use super::source::ReadAt;

/// Program headers that are read.
const MOST_SEGMENTS: u64 = 1 << 20;
/// Bytes of notes that are read.
const MOST_NOTES: u64 = 16 << 20;
/// Bytes of the ELF header, and of a program header.
const EHDR: usize = 64;
const PHDR: usize = 56;
/// Says that the number of program headers stands elsewhere (gABI, `PN_XNUM`).
const PN_XNUM: u16 = 0xffff;
const ET_CORE: u16 = 4;
const EM_X86_64: u16 = 62;
/// A segment with memory, and one with notes.
pub(crate) const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// The registers of a thread (`struct elf_prstatus`), and where they begin in it.
pub(crate) const NT_PRSTATUS: u32 = 1;
pub(crate) const PRSTATUS_REGISTERS: usize = 112;

/// A program header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// Type of the segment (`PT_LOAD` …).
    pub kind: u32,
    /// Rights: bit 0 execute, 1 write, 2 read.
    pub flags: u32,
    /// Offset in the file.
    pub offset: u64,
    /// Virtual address of the first byte.
    pub vaddr: u64,
    /// Physical address of the first byte.
    pub paddr: u64,
    /// Bytes in the file.
    pub length: u64,
    /// Bytes in memory.
    pub memory: u64,
}

/// Whether it is the core of a program, which says no physical addresses.
pub(crate) fn is_of_program(segments: &[Segment]) -> bool {
    let mut loads = segments.iter().filter(|segment| segment.kind == PT_LOAD && segment.memory > 0).peekable();
    loads.peek().is_some() && loads.clone().all(|segment| segment.paddr == 0) && loads.any(|segment| segment.vaddr != 0)
}

/// The notes as they stand in the file, as far as it has them.
pub(crate) fn note_segments(
    file: &impl ReadAt,
    length: u64,
    segments: &[Segment],
) -> Result<Vec<Vec<u8>>, CaptureError> {
    let mut left = MOST_NOTES;
    let mut all = Vec::new();
    for segment in segments.iter().filter(|segment| segment.kind == PT_NOTE) {
        let size = segment.length.min(left).min(length.saturating_sub(segment.offset));
        left -= size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        file.read_all_at(&mut bytes, segment.offset)?;
        all.push(bytes);
    }
    Ok(all)
}

/// The little-endian integers of the file's structures; 0 beyond the end, which no check takes for a value.
pub(crate) fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// A word of 32 bits, likewise.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// One of 64 bits.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// An error of this module.
pub(crate) fn refused(why: &str) -> CaptureError {
    CaptureError::Core(why.to_owned())
}

/// The program headers of a core of x86-64.
pub(crate) fn segments(file: &impl ReadAt, length: u64) -> Result<Vec<Segment>, CaptureError> {
    let mut header = [0; EHDR];
    if length < EHDR as u64 {
        return Err(refused("it is shorter than an ELF header"));
    }
    file.read_all_at(&mut header, 0)?;
    if !header.starts_with(b"\x7fELF") {
        return Err(refused("it does not begin with an ELF header"));
    }
    if header[4..6] != [2, 1] || half(&header, 16) != ET_CORE || half(&header, 18) != EM_X86_64 {
        return Err(refused("it is an ELF file of another kind or machine"));
    }
    let (at, mut count) = (long(&header, 32), u64::from(half(&header, 56)));
    if half(&header, 54) != PHDR as u16 {
        return Err(refused("its program headers have an unknown size"));
    }
    if count == u64::from(PN_XNUM) {
        let mut section = [0; 64];
        let place = long(&header, 40).checked_add(64).filter(|end| *end <= length);
        let place = place.ok_or_else(|| refused("the number of its program headers is beyond its end"))?;
        file.read_all_at(&mut section, place - 64)?;
        count = u64::from(word(&section, 44));
    }
    let size = count.min(MOST_SEGMENTS) * PHDR as u64;
    if count > MOST_SEGMENTS || at.checked_add(size).is_none_or(|end| end > length) {
        return Err(refused("its program headers are beyond its end"));
    }
    let mut table = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_all_at(&mut table, at)?;
    let segment = |row: &[u8]| Segment {
        kind: word(row, 0),
        flags: word(row, 4),
        offset: long(row, 8),
        vaddr: long(row, 16),
        paddr: long(row, 24),
        length: long(row, 32),
        memory: long(row, 40),
    };
    Ok(table.chunks_exact(PHDR).map(segment).collect())
}

/// A note of a `PT_NOTE` segment.
pub(crate) struct Note<'n> {
    /// Its owner, without the end.
    pub name: &'n [u8],
    /// Type of the note (`NT_PRSTATUS` …).
    pub kind: u32,
    /// What it says.
    pub body: &'n [u8],
}

/// The note at the front, and the bytes behind it.
pub(crate) fn note(bytes: &[u8]) -> Option<(Note<'_>, &[u8])> {
    if bytes.len() < 12 {
        return None;
    }
    let (name, body) = (word(bytes, 0) as usize, word(bytes, 4) as usize);
    let body_at = 12_usize.checked_add(name)?.checked_next_multiple_of(4)?;
    let end = body_at.checked_add(body)?;
    let rest = bytes.get(end.checked_next_multiple_of(4)?.min(bytes.len()).max(end)..)?;
    let name = bytes.get(12..12 + name)?;
    let name = name.strip_suffix(b"\0").unwrap_or(name);
    Some((Note { name, kind: word(bytes, 8), body: bytes.get(body_at..end)? }, rest))
}
