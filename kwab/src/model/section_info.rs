//! Where a section of an open dump lies, and whether its payload was checked.

use kwab_format::SectionHeader;

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
