//! Owns the two headers of a dump: the file header at its front and the header of every section.
//!
//! Both are little-endian, of fixed size and under their own CRC32. A section header repeats the dump's id and the
//! section's position, so that any header found in a pile of bytes says which dump it belongs to, which section of it
//! it starts, and how far it has moved.

use crate::wire::copy;
use core::fmt;

/// First bytes of a file header. The first byte is not ASCII and the line ends expose a transfer in text mode.
pub const FILE_MAGIC: [u8; 8] = [0x89, b'K', b'W', b'A', b'B', 0x0D, 0x0A, 0x1A];
/// First bytes of a section header. The first byte never occurs in UTF-8.
pub const SYNC_MARK: [u8; 4] = [0xF5, b'K', b'W', b'S'];
/// The major version that this crate writes and reads.
pub const VERSION_MAJOR: u16 = 1;
/// The minor version that this crate writes.
pub const VERSION_MINOR: u16 = 0;
/// Bytes of a file header.
pub const FILE_HEADER_LEN: usize = 48;
/// Bytes of a section header.
pub const SECTION_HEADER_LEN: usize = 40;
/// Where in a section the bytes under the payload's CRC begin: at the header's own CRC, which binds the payload to this
/// header. Without it, a header that is torn off while it overwrites an older dump could adopt that dump's payload.
pub const PAYLOAD_CRC_START: usize = SECTION_HEADER_LEN - 4;
/// Bytes of the CRC behind a payload.
pub const SECTION_TRAILER_LEN: usize = 4;
/// The longest payload a section may claim: 16 MiB. A longer claim is damage whatever its CRC says.
pub const MAX_PAYLOAD_LEN: u32 = 16 << 20;

/// Names one dump; unique enough that two dumps in one log are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DumpId(pub u64);

impl DumpId {
    /// The short form that armoured lines carry: both halves folded together.
    #[must_use]
    pub const fn short(self) -> u32 {
        let [a, b, c, d, e, f, g, h] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d]) ^ u32::from_le_bytes([e, f, g, h])
    }
}

impl fmt::Display for DumpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Names one boot of one kernel; all zero when it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootId(pub [u8; 16]);

impl BootId {
    /// Whether the writer knew it.
    #[must_use]
    pub fn is_known(self) -> bool {
        self.0 != [0; 16]
    }
}

/// What a section is mainly about; any record may stand in any section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SectionKind(pub u16);

macro_rules! section_kinds {
    ($($(#[$doc:meta])* $num:literal $value:ident = $text:literal,)*) => {
        impl SectionKind {
            $($(#[$doc])* pub const $value: Self = Self($num);)*
            /// Every kind with its name, in order of value to a reader in a hurry.
            pub const NAMES: &'static [(u16, &'static str)] = &[$(($num, $text),)*];
            /// The name, or `None` for a kind that this version does not know.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($num => Some($text),)* _ => None }
            }
        }
    };
}
section_kinds! {
    /// Who wrote the dump, about which kernel, when and why.
    1 IDENTITY = "identity",
    /// What died, where, with which message; printed backtraces.
    2 CAUSE = "cause",
    /// Register sets and processors.
    3 REGISTERS = "registers",
    /// Stack bytes and bounds, code bytes at the fault.
    4 STACKS = "stacks",
    /// The rings of recent system calls.
    5 SYSCALLS = "syscalls",
    /// The flight recorder.
    6 FLIGHT = "flight",
    /// Mappings of address spaces.
    7 MEMORY_MAP = "memory-map",
    /// Page-table entries and frames.
    8 PAGE_TABLE = "page-table",
    /// Page contents against their files.
    9 PAGE_CHECKS = "page-checks",
    /// Tasks and what they wait for.
    10 TASKS = "tasks",
    /// Locks held and awaited.
    11 LOCKS = "locks",
    /// Loaded images with build-ids.
    12 IMAGES = "images",
    /// Kernel log bytes.
    13 LOG = "log",
    /// Counters and profiles.
    14 COUNTERS = "counters",
    /// Debug events in the order of their source.
    15 EVENTS = "events",
    /// Input that was not understood, and console text.
    16 KEPT = "kept",
    /// Bytes of physical or virtual memory that no other section holds.
    17 MEMORY = "memory",
    /// Notes of the writer or importer about the dump itself.
    18 NOTES = "notes",
    /// Files of images that the dump carries.
    19 IMAGE_FILES = "image-files",
    /// Where the sections are; optional.
    126 INDEX = "index",
    /// The last section: totals, and what the writer left out.
    127 END = "end",
}

impl SectionKind {
    /// First kind that is free for private use.
    pub const PRIVATE: Self = Self(0x8000);
}

impl fmt::Display for SectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "kind {:#06x}", self.0),
        }
    }
}

/// Bits of a section header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// A reader that does not know the kind or version must not draw conclusions from the dump without saying so.
    pub const CRITICAL: Self = Self(1);
    /// The payload is a 4-byte length and an LZ4 block that unpacks to that many bytes of records.
    pub const COMPRESSED: Self = Self(2);
    /// The writer stopped early; the end section says why.
    pub const PARTIAL: Self = Self(4);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The mark or magic is not there.
    NoMark,
    /// The CRC that stands there, and the CRC of what stands there.
    BadCrc {
        /// The CRC in the header.
        stored: u32,
        /// The CRC of the header's bytes.
        computed: u32,
    },
    /// A major version that this crate cannot read.
    Version {
        /// The version in the header.
        major: u16,
    },
    /// A payload longer than [`MAX_PAYLOAD_LEN`].
    TooLong {
        /// The claimed length.
        claimed: u32,
    },
}

/// The 48 bytes at the front of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Format version; a reader refuses a greater major.
    pub major: u16,
    /// Format version; a greater minor only adds.
    pub minor: u16,
    /// Id of the dump, random, the same in every section header.
    pub dump_id: DumpId,
    /// The boot that it tells about.
    pub boot_id: BootId,
}

impl FileHeader {
    /// A header of this crate's version.
    #[must_use]
    pub const fn new(dump_id: DumpId, boot_id: BootId) -> Self {
        Self { major: VERSION_MAJOR, minor: VERSION_MINOR, dump_id, boot_id }
    }

    /// The header as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; FILE_HEADER_LEN] {
        let mut out = [0; FILE_HEADER_LEN];
        let mut put = Put(&mut out);
        put.bytes(&FILE_MAGIC);
        put.bytes(&self.major.to_le_bytes());
        put.bytes(&self.minor.to_le_bytes());
        put.bytes(&[0; 4]);
        put.bytes(&self.dump_id.0.to_le_bytes());
        put.bytes(&self.boot_id.0);
        put.bytes(&[0; 4]);
        put_crc(&mut out);
        out
    }

    /// Reads a header.
    ///
    /// # Errors
    /// No magic, a wrong CRC, or a major version of the future.
    pub fn decode(bytes: &[u8; FILE_HEADER_LEN]) -> Result<Self, HeaderError> {
        if !bytes.starts_with(&FILE_MAGIC) {
            return Err(HeaderError::NoMark);
        }
        check_crc(bytes)?;
        let mut get = Get(bytes.get(8..).unwrap_or_default());
        let (major, minor) = (get.u16(), get.u16());
        let _reserved = get.u32();
        let dump_id = DumpId(get.u64());
        let boot_id = BootId(get.array());
        if major > VERSION_MAJOR {
            return Err(HeaderError::Version { major });
        }
        Ok(Self { major, minor, dump_id, boot_id })
    }
}

/// The 40 bytes at the front of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionHeader {
    /// What it is mainly about.
    pub kind: SectionKind,
    /// Version of the kind's rules; 0 for all kinds of format version 1.
    pub version: u8,
    /// Criticality, compression, completeness.
    pub flags: Flags,
    /// Bytes of payload, without the CRC that follows them.
    pub payload_len: u32,
    /// 0 for the first section of a dump, then one more each.
    pub seq: u32,
    /// The dump it belongs to.
    pub dump_id: DumpId,
    /// Bytes of the dump before this header, file header included.
    pub position: u64,
    /// Number of records in the payload.
    pub records: u32,
}

impl SectionHeader {
    /// The header as bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; SECTION_HEADER_LEN] {
        let mut out = [0; SECTION_HEADER_LEN];
        let mut put = Put(&mut out);
        put.bytes(&SYNC_MARK);
        put.bytes(&self.kind.0.to_le_bytes());
        put.bytes(&[self.version, self.flags.0]);
        put.bytes(&self.payload_len.to_le_bytes());
        put.bytes(&self.seq.to_le_bytes());
        put.bytes(&self.dump_id.0.to_le_bytes());
        put.bytes(&self.position.to_le_bytes());
        put.bytes(&self.records.to_le_bytes());
        put_crc(&mut out);
        out
    }

    /// Reads a header.
    ///
    /// # Errors
    /// No sync mark, a wrong CRC, or a payload longer than the format allows.
    pub fn decode(bytes: &[u8; SECTION_HEADER_LEN]) -> Result<Self, HeaderError> {
        if !bytes.starts_with(&SYNC_MARK) {
            return Err(HeaderError::NoMark);
        }
        check_crc(bytes)?;
        let mut get = Get(bytes.get(4..).unwrap_or_default());
        let kind = SectionKind(get.u16());
        let [version, flags] = get.array();
        let header = Self {
            kind,
            version,
            flags: Flags(flags),
            payload_len: get.u32(),
            seq: get.u32(),
            dump_id: DumpId(get.u64()),
            position: get.u64(),
            records: get.u32(),
        };
        if header.payload_len > MAX_PAYLOAD_LEN {
            return Err(HeaderError::TooLong { claimed: header.payload_len });
        }
        Ok(header)
    }

    /// Bytes of the whole section: header, payload and CRC.
    #[must_use]
    pub const fn total_len(&self) -> u64 {
        (SECTION_HEADER_LEN as u64).saturating_add(self.payload_len as u64).saturating_add(SECTION_TRAILER_LEN as u64)
    }
}

/// Makes a section of the payload that stands in `buf` from [`SECTION_HEADER_LEN`] on: puts `header` before it and the
/// CRC behind it, and returns the whole section; `None` when `buf` is shorter than the header says.
pub fn seal<'a>(buf: &'a mut [u8], header: &SectionHeader) -> Option<&'a [u8]> {
    let total = usize::try_from(header.total_len()).ok()?;
    let section = buf.get_mut(..total)?;
    *section.first_chunk_mut::<SECTION_HEADER_LEN>()? = header.encode();
    let (covered, crc) = section.split_last_chunk_mut::<SECTION_TRAILER_LEN>()?;
    *crc = crc32fast::hash(covered.get(PAYLOAD_CRC_START..)?).to_le_bytes();
    Some(section)
}

fn put_crc(header: &mut [u8]) {
    if let Some((body, crc)) = header.split_last_chunk_mut::<4>() {
        *crc = crc32fast::hash(body).to_le_bytes();
    }
}

fn check_crc(header: &[u8]) -> Result<(), HeaderError> {
    let (body, stored) = header.split_last_chunk::<4>().ok_or(HeaderError::NoMark)?;
    let (stored, computed) = (u32::from_le_bytes(*stored), crc32fast::hash(body));
    if stored == computed { Ok(()) } else { Err(HeaderError::BadCrc { stored, computed }) }
}

/// Fills a header from the front; its length is checked by the layout tests.
struct Put<'b>(&'b mut [u8]);

impl Put<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        if let Some((to, rest)) = core::mem::take(&mut self.0).split_at_mut_checked(bytes.len()) {
            copy(to, bytes);
            self.0 = rest;
        }
    }
}

/// Takes a header apart from the front; past its end it reads zeros.
struct Get<'b>(&'b [u8]);

impl Get<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.0 = rest;
                *bytes
            }
            None => [0; N],
        }
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}
