//! Decides whether bytes are a dump; [`walk`](crate::walk) finds the sections.

pub use crate::payload::Section;
use crate::section::{DumpId, FILE_HEADER_LEN, FILE_MAGIC, FileHeader, HeaderError};
use crate::walk::{Sections, find_header};
use core::fmt;

/// Why bytes are not a dump at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// There are no bytes.
    Empty,
    /// Neither a file header nor any section header is in them.
    NotADump,
    /// The dump has a major version that this reader does not know.
    Version {
        /// The major version in the file header.
        major: u16,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the dump is empty"),
            Self::NotADump => f.write_str("no kwab header in it"),
            Self::Version { major } => write!(f, "format version {major} is newer than this reader"),
        }
    }
}

impl core::error::Error for OpenError {}

/// A dump in memory.
///
/// Reading never fails halfway: damage is a [`Defect`](crate::Defect) beside the sections that are sound.
///
/// ```
/// use kwab_format::record::{Cause, LogChunk};
/// use kwab_format::*;
///
/// let (mut region, mut buffer) = ([0; 8192], [0; 4096]);
/// let header = FileHeader::new(DumpId(7), BootId::default());
/// let mut writer = Writer::new(SliceSink::new(&mut region), &mut buffer, header);
/// writer.begin(SectionKind::CAUSE)?;
/// writer.put(&Cause { message: Some(b"no init found"), ..Cause::default() })?;
/// writer.begin(SectionKind::LOG)?;
/// writer.put(&LogChunk { bytes: Some(b"mounting root"), ..LogChunk::default() })?;
/// let (sink, result) = writer.finish();
/// result?;
///
/// // One bit of the log flips: it costs the log's section, which is named, and nothing else.
/// let mut bytes = sink.written().to_vec();
/// let at = bytes.windows(8).position(|window| window == b"mounting").expect("in the log");
/// bytes[at] ^= 1;
/// let (mut sound, mut defects) = (Vec::new(), Vec::new());
/// for item in Reader::new(&bytes).expect("a dump").sections() {
///     match item {
///         Item::Section(section) => sound.push(section.header.kind),
///         Item::Defect(defect) => defects.push(defect),
///     }
/// }
/// assert_eq!(sound, [SectionKind::CAUSE, SectionKind::END]);
/// assert!(matches!(defects[0].kind, DefectKind::BadPayload { .. }) && defects.len() == 1);
/// assert_eq!(defects[0].section_kind, Some(SectionKind::LOG));
/// # Ok::<(), WriteError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    file: Option<FileHeader>,
    dump_id: Option<DumpId>,
}

impl<'a> Reader<'a> {
    /// Looks for a dump at the front of `bytes`; a damaged file header is a defect, not an error.
    ///
    /// # Errors
    /// [`OpenError`] when there is nothing that could be read.
    pub fn new(bytes: &'a [u8]) -> Result<Self, OpenError> {
        if bytes.is_empty() {
            return Err(OpenError::Empty);
        }
        let header = bytes.first_chunk::<FILE_HEADER_LEN>().map(FileHeader::decode);
        match header {
            Some(Ok(file)) => return Ok(Self { bytes, file: Some(file), dump_id: Some(file.dump_id) }),
            Some(Err(HeaderError::Version { major })) => return Err(OpenError::Version { major }),
            Some(Err(_)) | None => {}
        }
        let dump_id = find_header(bytes, 0, |_| true).map(|(_, section)| section.dump_id);
        let known = bytes.len().min(FILE_MAGIC.len());
        if dump_id.is_none() && bytes.get(..known) != FILE_MAGIC.get(..known) {
            return Err(OpenError::NotADump);
        }
        Ok(Self { bytes, file: None, dump_id })
    }

    /// The file header, when it is sound.
    #[must_use]
    pub const fn file_header(&self) -> Option<FileHeader> {
        self.file
    }

    /// The dump's id, from the file header or else the first sound section.
    #[must_use]
    pub const fn dump_id(&self) -> Option<DumpId> {
        self.dump_id
    }

    /// All sections with their payloads checked, and all defects, in order of offset.
    #[must_use]
    pub const fn sections(&self) -> Sections<'a> {
        Sections::new(self.bytes, self.file, self.dump_id, true)
    }

    /// As [`sections`](Self::sections), but a payload is only checked when [`Section::verify`] is called: this visits a
    /// hundred megabytes in microseconds.
    #[must_use]
    pub const fn headers(&self) -> Sections<'a> {
        Sections::new(self.bytes, self.file, self.dump_id, false)
    }
}
