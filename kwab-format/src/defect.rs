//! Names what can be wrong with a dump: where, how many bytes, which section, and what was found there.

use crate::section::{DumpId, SectionKind};
use core::fmt;

/// Something wrong at one place of a dump; everything that no defect names is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// What is wrong.
    pub kind: DefectKind,
    /// Where the affected bytes start.
    pub offset: u64,
    /// How many there are; 0 when bytes are missing rather than wrong.
    pub length: u64,
    /// The sections that are lost by it, first and last sequence number; `None` when none is.
    pub sections: Option<(u32, u32)>,
    /// Kind of the lost section, when its header is sound.
    pub section_kind: Option<SectionKind>,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefectKind {
    /// The file header is damaged; the sections say which dump it is.
    BadFileHeader,
    /// No section header where one belongs; reading went on at the next sync mark.
    BadSectionHeader,
    /// A payload's CRC is not that of its bytes.
    BadPayload {
        /// The CRC behind the payload.
        stored: u32,
        /// The CRC of the payload.
        computed: u32,
    },
    /// The bytes end inside a section (or the file header).
    Cut {
        /// Bytes that the section claims.
        claimed: u64,
        /// Bytes that are there.
        remain: u64,
    },
    /// Sections are missing between two sound ones, without a trace.
    Missing,
    /// A section stands at another place than its header says: bytes before it were lost or inserted.
    Displaced {
        /// Place minus claimed place.
        by: i64,
    },
    /// A section of another dump stands here; skipped.
    Foreign {
        /// The other dump.
        dump_id: DumpId,
    },
    /// A section that was already read stands here again; skipped.
    Repeated,
    /// The dump ends without an end section.
    NoEnd,
    /// Bytes follow the end section.
    Trailing,
    /// A section of an unknown kind or version that must not be ignored: conclusions may be wrong.
    CriticalUnknown,
    /// A payload under a right CRC is not a run of records: its writer is at fault.
    BadRecords,
    /// A compressed payload under a right CRC does not unpack.
    BadCompression,
}

impl Defect {
    pub(crate) const fn new(kind: DefectKind, offset: u64, length: u64) -> Self {
        Self { kind, offset, length, sections: None, section_kind: None }
    }

    pub(crate) const fn blame(mut self, first: u32, last: u32, kind: Option<SectionKind>) -> Self {
        self.sections = Some((first, last));
        self.section_kind = kind;
        self
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sections {
            Some((first, last)) if first == last => write!(f, "section {first}")?,
            Some((first, last)) => write!(f, "sections {first} to {last}")?,
            None => f.write_str("dump")?,
        }
        if let Some(kind) = self.section_kind {
            write!(f, " ({kind})")?;
        }
        write!(f, " at {:#x}: {}", self.offset, self.kind)?;
        if self.length > 0 { write!(f, "; {} bytes", self.length) } else { Ok(()) }
    }
}

impl fmt::Display for DefectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFileHeader => f.write_str("the file header is damaged"),
            Self::BadSectionHeader => f.write_str("no sound section header"),
            Self::BadPayload { stored, computed } => {
                write!(f, "the payload's CRC is {computed:08x}, {stored:08x} is stored")
            }
            Self::Cut { claimed, remain } => write!(f, "cut: claims {claimed} bytes, {remain} remain"),
            Self::Missing => f.write_str("missing without a trace"),
            Self::Displaced { by } if *by < 0 => write!(f, "{} bytes before it are lost", by.unsigned_abs()),
            Self::Displaced { by } => write!(f, "{by} bytes before it do not belong to the dump"),
            Self::Foreign { dump_id } => write!(f, "a section of dump {dump_id} lies here"),
            Self::Repeated => f.write_str("a repeated section lies here"),
            Self::NoEnd => f.write_str("there is no end section"),
            Self::Trailing => f.write_str("bytes follow the end section"),
            Self::CriticalUnknown => f.write_str("unknown, and marked as not to be ignored"),
            Self::BadRecords => f.write_str("the checksum is right but the records are not"),
            Self::BadCompression => f.write_str("the checksum is right but the payload does not unpack"),
        }
    }
}
