//! The bytes of an index file: header, section table, entries. Written by `build`, read by `index`.
//!
//! ```text
//! header     magic, version, base address, size and build-id of the ELF file, section table, CRC32 of the header
//! fences     first address of every block of segments        u32 each, offset from base
//! segments   [address, node, file, line]                      4 × u32, sorted; each holds until the next one
//! nodes      [parent, function, call file, call line]         4 × u32
//! symbols    [address, size, name, 0]                         4 × u32, sorted
//! strings    length u32, then UTF-8; a string is named by the offset of its length; that of a source file
//!            may have a zero byte and its MD5 in hexadecimal behind the path
//! checks     CRC32 of each block of the four sections above, in order
//! ```
//! Everything is little-endian. A block is [`BLOCK`] bytes of a section; it is read and checked as a whole.

/// First bytes of an index file.
pub(super) const MAGIC: [u8; 8] = *b"KWABSYM\n";
/// Goes up with every change of layout or of what is stored; older files are rebuilt.
pub(super) const VERSION: u32 = 2;
/// Bytes of a block.
pub(super) const BLOCK: usize = 8192;
/// Bytes of an entry of segments, nodes and symbols.
pub(super) const ENTRY: usize = 16;
/// Entries in a block.
pub(super) const PER_BLOCK: usize = BLOCK / ENTRY;
/// "There is none", for nodes and strings.
pub(super) const NONE: u32 = u32::MAX;
/// Bytes of the header, with its CRC32 in the last four.
pub(super) const HEADER: usize = 8 + 4 + 4 + 8 + 8 + 36 + SECTIONS * 16 + 4 + 4;
/// Sections in the table: fences, segments, nodes, symbols, strings, checks.
pub(super) const SECTIONS: usize = 6;
/// The longest build-id that the header has room for.
pub(super) const MAX_BUILD_ID: usize = 32;

/// A section of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// First address of each segment block.
    Fences = 0,
    /// Address to node and line.
    Segments = 1,
    /// Functions and inline calls.
    Nodes = 2,
    /// The symbols of the image, by address.
    Symbols = 3,
    /// Names and paths.
    Strings = 4,
    /// CRC32 of the blocks.
    Checks = 5,
}

/// The sections that are read in blocks, in the order of their checks.
pub(super) const BLOCKED: [Section; 4] = [Section::Segments, Section::Nodes, Section::Symbols, Section::Strings];

/// What the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Units of DWARF that were not read to their end because that costs more than an image of its length may.
    pub(super) left_out: u32,
    /// Link address that all others are offsets from.
    pub(super) base: u64,
    /// Bytes of the ELF file.
    pub(super) elf_size: u64,
    /// Build-id of the ELF file; empty without one.
    pub(super) build_id: Vec<u8>,
    /// Offset and length of each section.
    pub(super) sections: [(u64, u64); SECTIONS],
    /// CRC32 of fences and checks together, the parts that are not read in blocks.
    pub(super) eager_crc: u32,
}

impl Header {
    /// The header's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.left_out.to_le_bytes());
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.elf_size.to_le_bytes());
        let id = &self.build_id[..self.build_id.len().min(MAX_BUILD_ID)];
        out.extend_from_slice(&(id.len() as u32).to_le_bytes());
        let mut padded = [0; MAX_BUILD_ID];
        padded[..id.len()].copy_from_slice(id);
        out.extend_from_slice(&padded);
        for (offset, length) in self.sections {
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
        }
        out.extend_from_slice(&self.eager_crc.to_le_bytes());
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a header; `None` when it is of another version, damaged, or names bytes outside a file of `file_len`
    /// bytes.
    pub(super) fn decode(bytes: &[u8], file_len: u64) -> Option<Self> {
        let bytes = bytes.get(..HEADER)?;
        let (body, crc) = bytes.split_at(HEADER - 4);
        if body[..8] != MAGIC || word(body, 8) != VERSION || word(crc, 0) != crc32fast::hash(body) {
            return None;
        }
        let id_len = usize::try_from(word(body, 32)).ok()?;
        let build_id = body[36..36 + MAX_BUILD_ID].get(..id_len)?.to_vec();
        let mut sections = [(0, 0); SECTIONS];
        for (at, section) in sections.iter_mut().enumerate() {
            *section = (long(body, 68 + at * 16), long(body, 76 + at * 16));
            if section.0.checked_add(section.1)? > file_len {
                return None;
            }
        }
        let eager_crc = word(body, 68 + SECTIONS * 16);
        let left_out = word(body, 12);
        Some(Self { left_out, base: long(body, 16), elf_size: long(body, 24), build_id, sections, eager_crc })
    }
}

/// The little-endian u32 at an offset; 0 beyond the end.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The little-endian u64 at an offset; 0 beyond the end.
pub(super) fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
