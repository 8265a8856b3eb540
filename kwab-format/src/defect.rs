//! Names what can be wrong with a dump: where, how many bytes, which section, and what was found there.

use crate::section::{DumpId, SectionKind};
use crate::wire::WireError;
use core::fmt;

/// Damage at one offset of a dump; everything that no defect names is sound.
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
    /// A section stands at another offset than its header says: bytes before it were lost or inserted.
    Displaced {
        /// Actual offset minus the offset in the header.
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
    /// A section stands behind one with a greater sequence number; it was read, and so were those that follow it in
    /// order.
    OutOfOrder {
        /// Its sequence number.
        seq: u32,
    },
    /// A record under a right CRC cannot be decoded; it costs itself.
    BadRecord {
        /// Its number in the section, from 0.
        record: u32,
        /// Which rule of the encoding the record breaks.
        error: WireError,
    },
    /// A payload under a right CRC ends with bytes that are no whole record.
    RecordTail,
    /// A payload does not hold as many records as its header says.
    RecordCount {
        /// What the header says.
        claimed: u32,
        /// Whole records in the payload.
        found: u32,
    },
    /// The end section counts something else than what is there.
    Totals {
        /// What is counted.
        what: Counted,
        /// The number in the end section.
        claimed: u64,
        /// What is there.
        found: u64,
    },
    /// A sound section was read in part, or not at all, because the reader's memory limit was reached.
    NotRead {
        /// Records that were read.
        records: u32,
        /// Records that the section's header says there are.
        claimed: u32,
    },
    /// Stands for defects that are not listed one by one.
    Further {
        /// Number of defects of this kind that are not listed.
        count: u64,
    },
}

/// What an end section counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Sections, of one kind when the defect names it.
    Sections,
    /// Records, of one kind of section when the defect names it.
    Records,
    /// Payload bytes of one kind of section, or bytes of the dump before the end section.
    Bytes,
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sections => "sections",
            Self::Records => "records",
            Self::Bytes => "bytes",
        })
    }
}

impl DefectKind {
    /// The name in `FORMAT.md` (4.1), which other readers use as well.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::BadFileHeader => "bad-file-header",
            Self::BadSectionHeader => "bad-section-header",
            Self::BadPayload { .. } => "bad-payload",
            Self::Cut { .. } => "cut",
            Self::Missing => "missing",
            Self::Displaced { .. } => "displaced",
            Self::Foreign { .. } => "foreign",
            Self::Repeated => "repeated",
            Self::NoEnd => "no-end",
            Self::Trailing => "trailing",
            Self::CriticalUnknown => "critical-unknown",
            Self::BadRecords => "bad-records",
            Self::BadCompression => "bad-compression",
            Self::OutOfOrder { .. } => "out-of-order",
            Self::BadRecord { .. } => "bad-record",
            Self::RecordTail => "record-tail",
            Self::RecordCount { .. } => "record-count",
            Self::Totals { .. } => "totals",
            Self::NotRead { .. } => "not-read",
            Self::Further { .. } => "further",
        }
    }
}

impl Defect {
    /// A defect that costs no section.
    #[must_use]
    pub const fn new(kind: DefectKind, offset: u64, length: u64) -> Self {
        Self { kind, offset, length, sections: None, section_kind: None }
    }

    /// The same, costing the sections `first` to `last`.
    #[must_use]
    pub const fn blame(mut self, first: u32, last: u32, kind: Option<SectionKind>) -> Self {
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
        if let DefectKind::Further { .. } = self.kind {
            return write!(f, ": {}", self.kind);
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
            Self::OutOfOrder { seq } => write!(f, "section {seq} stands behind later ones; it was read"),
            Self::BadRecord { record, error } => write!(f, "record {record} is malformed: {error}"),
            Self::RecordTail => f.write_str("bytes behind the last whole record"),
            Self::RecordCount { claimed, found } => write!(f, "the header claims {claimed} records, {found} are there"),
            Self::Totals { what, claimed, found } => {
                write!(f, "the end section claims {claimed} {what}, {found} are there")
            }
            Self::NotRead { records, claimed } => {
                write!(f, "the memory limit is reached: {records} of {claimed} records were read (--max-mem raises it)")
            }
            Self::Further { count } => write!(f, "{count} more defects"),
        }
    }
}
