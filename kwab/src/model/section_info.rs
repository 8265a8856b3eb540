//! Where a section of an open dump lies, and whether its payload was checked.

use kwab_format::{Flags, SectionHeader, SectionKind};

/// One section of a dump.
#[derive(Debug, Clone, Copy)]
pub struct SectionInfo {
    /// The section's header as the dump has it.
    pub header: SectionHeader,
    /// Where the header stands in the file.
    pub offset: u64,
    /// Whether the payload's checksum has been found right.
    pub verified: bool,
}

impl SectionInfo {
    /// Whether it holds bulk memory, which is read when an address in it is asked for (FORMAT.md, 2.6).
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        self.header.kind == SectionKind::MEMORY && self.header.flags.contains(Flags::COMPRESSED)
    }
}
