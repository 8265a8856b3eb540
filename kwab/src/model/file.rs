//! Opens a dump and knows where its sections are, without reading them all.
//!
//! An undamaged dump is walked from header to header: a hundred megabytes cost a few hundred small reads, and a payload
//! is read and checked when it is asked for. Where a header does not follow as it must, the whole dump is read and
//! kwab-format's `Reader` finds what is sound and names what is not.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;

use kwab_format::section::{FILE_HEADER_LEN, FILE_MAGIC, SECTION_HEADER_LEN, SECTION_TRAILER_LEN};
use kwab_format::{Defect, DefectKind, FileHeader, Flags, Item, Reader, Section, SectionHeader, SectionKind};

use crate::magic::{self, Kind};

/// A dump no longer than this is read whole and checked completely at once: that costs a few milliseconds.
const READ_WHOLE: u64 = 8 << 20;
/// A damaged dump longer than this is not mended in memory.
const LARGEST_DAMAGED: u64 = 2 << 30;
/// Bytes read at once while walking.
const WALK_WINDOW: usize = 64 << 10;

/// Why a file is no dump that can be read. The text names the fact and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory.
    #[error("is a directory; kwab list shows the dumps in it")]
    Directory,
    /// No bytes.
    #[error("is empty: 0 bytes")]
    Empty,
    /// Text: probably a log.
    #[error("is text, not a dump; kwab import makes dumps of a serial log")]
    Text,
    /// A known format.
    #[error("is {what}, not a dump; {advice}")]
    Foreign {
        /// What it is.
        what: String,
        /// What can be done with it.
        advice: &'static str,
    },
    /// Neither a dump nor text.
    #[error("is not a kwab dump: it begins with {0}, not with the mark of one")]
    NotADump(String),
    /// Written by a later version.
    #[error("is a dump of format version {0}, which this kwab cannot read; a newer one can")]
    Version(u16),
    /// Damaged, and too large to mend.
    #[error("is damaged at byte {0}, and too large to be mended in memory")]
    TooLarge(u64),
}

/// One section of a dump.
#[derive(Debug, Clone, Copy)]
pub struct SectionInfo {
    /// Its header.
    pub header: SectionHeader,
    /// Where the header stands in the file.
    pub offset: u64,
    /// Whether the payload's checksum has been found right.
    pub verified: bool,
}

/// Where the bytes are.
#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File(Mutex<File>),
}

/// An open dump.
#[derive(Debug)]
pub struct DumpFile {
    bytes: Bytes,
    /// Its length.
    pub len: u64,
    /// The file header, when it is sound.
    pub header: Option<FileHeader>,
    /// Its sound sections, in order of place, without index and end.
    pub sections: Vec<SectionInfo>,
    /// What is wrong with it.
    pub defects: Vec<Defect>,
    /// Whether an end section closes it.
    pub ended: bool,
}

impl DumpFile {
    /// Opens the dump at `path`.
    ///
    /// # Errors
    /// [`OpenError`]; damage is no error.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(OpenError::Directory);
        }
        if !meta.is_file() || meta.len() <= READ_WHOLE {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Self::from_bytes(bytes);
        }
        let mut head = [0; FILE_HEADER_LEN];
        file.read_exact(&mut head)?;
        let len = meta.len();
        match walk(&mut file, &head, len) {
            Ok((header, sections)) => Ok(Self {
                bytes: Bytes::File(Mutex::new(file)),
                len,
                header: Some(header),
                sections,
                defects: Vec::new(),
                ended: true,
            }),
            Err(at) => {
                if !head.starts_with(&FILE_MAGIC[..4]) {
                    wrong_type(&head)?;
                }
                if len > LARGEST_DAMAGED {
                    return Err(OpenError::TooLarge(at));
                }
                let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
                file.seek(SeekFrom::Start(0))?;
                file.read_to_end(&mut bytes)?;
                Self::from_bytes(bytes)
            }
        }
    }

    /// Takes a dump that is already in memory, for example from a pipe.
    ///
    /// # Errors
    /// [`OpenError`]; damage is no error.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        use kwab_format::reader::OpenError as Why;
        let reader = match Reader::new(&bytes) {
            Ok(reader) => reader,
            Err(Why::Version { major }) => return Err(OpenError::Version(major)),
            Err(_) => {
                wrong_type(&bytes)?;
                // The mark is there and nothing else is: a dump cut within its first bytes.
                return Ok(Self::cut_at_birth(bytes));
            }
        };
        let header = reader.file_header();
        let mut sections = Vec::new();
        let mut defects = Vec::new();
        let mut ended = false;
        for item in reader.sections() {
            match item {
                Item::Defect(defect) => defects.push(defect),
                Item::Section(section) => {
                    ended |= section.header.kind == SectionKind::END;
                    if !is_table(section.header.kind) {
                        let offset = section.offset as u64;
                        sections.push(SectionInfo { header: section.header, offset, verified: true });
                    }
                }
            }
        }
        Ok(Self { len: bytes.len() as u64, bytes: Bytes::Memory(bytes), header, sections, defects, ended })
    }

    fn cut_at_birth(bytes: Vec<u8>) -> Self {
        let remain = bytes.len() as u64;
        let kind = DefectKind::Cut { claimed: FILE_HEADER_LEN as u64, remain };
        let defect = Defect { kind, offset: 0, length: remain, sections: None, section_kind: None };
        Self {
            len: remain,
            bytes: Bytes::Memory(bytes),
            header: None,
            sections: Vec::new(),
            defects: vec![defect],
            ended: false,
        }
    }

    /// The payload of section `index` as it lies in the dump, checked but not unpacked.
    ///
    /// # Errors
    /// As [`payload`](Self::payload).
    pub fn packed_payload(&self, index: usize) -> Result<Vec<u8>, Defect> {
        match self.whole(index)? {
            Cow::Borrowed(whole) => Ok(whole[SECTION_HEADER_LEN..whole.len() - SECTION_TRAILER_LEN].to_vec()),
            Cow::Owned(mut whole) => {
                whole.truncate(whole.len() - SECTION_TRAILER_LEN);
                whole.drain(..SECTION_HEADER_LEN);
                Ok(whole)
            }
        }
    }

    /// The records of section `index`, checked and unpacked.
    ///
    /// # Errors
    /// The defect that makes them unusable; a failing read counts as one.
    pub fn payload(&self, index: usize) -> Result<Vec<u8>, Defect> {
        let info = &self.sections[index];
        if !info.header.flags.contains(Flags::COMPRESSED) {
            return self.packed_payload(index);
        }
        let whole = self.whole(index)?;
        let section = Section::parse(&whole, info.offset as usize).ok_or_else(|| unreadable(info))?;
        let mut unpacked = vec![0; section.unpacked_len()];
        let length = section.unpack(&mut unpacked)?.len();
        unpacked.truncate(length);
        Ok(unpacked)
    }

    /// Header, payload and checksum of a section, checked.
    fn whole(&self, index: usize) -> Result<Cow<'_, [u8]>, Defect> {
        let info = &self.sections[index];
        let total = info.header.total_len() as usize;
        let whole = match &self.bytes {
            Bytes::Memory(bytes) => {
                let start = info.offset as usize;
                Cow::Borrowed(bytes.get(start..start + total).unwrap_or_default())
            }
            Bytes::File(file) => {
                let mut whole = vec![0; total];
                let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let read = file.seek(SeekFrom::Start(info.offset)).and_then(|_| file.read_exact(&mut whole));
                read.map_err(|_| unreadable(info))?;
                Cow::Owned(whole)
            }
        };
        let section = Section::parse(&whole, info.offset as usize).ok_or_else(|| unreadable(info))?;
        if !info.verified {
            section.verify()?;
        }
        Ok(whole)
    }

    /// Checks the payloads that have not been checked yet; what is wrong is added to the defects.
    pub fn verify_all(&mut self) {
        for index in 0..self.sections.len() {
            if self.sections[index].verified {
                continue;
            }
            match self.payload(index) {
                Ok(_) => self.sections[index].verified = true,
                Err(defect) => self.defects.push(defect),
            }
        }
        let bad: Vec<_> = self.defects.iter().filter_map(|defect| defect.sections).collect();
        self.sections.retain(|info| {
            info.verified || !bad.iter().any(|(first, last)| (*first..=*last).contains(&info.header.seq))
        });
    }

    /// How many payloads have been checked.
    pub fn verified(&self) -> usize {
        self.sections.iter().filter(|section| section.verified).count()
    }

    /// Notes that a payload was found right, or is not.
    pub(crate) fn note(&mut self, index: usize, outcome: Result<(), Defect>) {
        match outcome {
            Ok(()) => self.sections[index].verified = true,
            Err(defect) => self.defects.push(defect),
        }
    }
}

/// A section that was there when the dump was opened and cannot be read now.
fn unreadable(info: &SectionInfo) -> Defect {
    Defect {
        kind: DefectKind::Cut { claimed: info.header.total_len(), remain: 0 },
        offset: info.offset,
        length: info.header.total_len(),
        sections: Some((info.header.seq, info.header.seq)),
        section_kind: Some(info.header.kind),
    }
}

/// Sections that only help to find others.
fn is_table(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::INDEX | SectionKind::END)
}

/// Follows the headers of an undamaged dump; otherwise says where it stopped being one.
fn walk(file: &mut File, head: &[u8; FILE_HEADER_LEN], len: u64) -> Result<(FileHeader, Vec<SectionInfo>), u64> {
    let header = FileHeader::decode(head).map_err(|_| 0u64)?;
    let mut sections = Vec::new();
    let mut at = FILE_HEADER_LEN as u64;
    let mut seq = 0;
    let mut window = Window { bytes: vec![0; WALK_WINDOW], start: 0, filled: 0 };
    loop {
        let raw = window.header_at(file, at).ok_or(at)?;
        let section = SectionHeader::decode(&raw).map_err(|_| at)?;
        let follows = section.dump_id == header.dump_id && section.seq == seq && section.position == at;
        let known = section.version == 0 && section.kind.name().is_some();
        if !follows || !known || at + section.total_len() > len {
            return Err(at);
        }
        if !is_table(section.kind) {
            sections.push(SectionInfo { header: section, offset: at, verified: false });
        }
        at += section.total_len();
        seq += 1;
        if section.kind == SectionKind::END {
            return if at == len { Ok((header, sections)) } else { Err(at) };
        }
    }
}

/// The stretch of the file that was read last, so that small sections do not cost a read each.
struct Window {
    bytes: Vec<u8>,
    start: u64,
    filled: usize,
}

impl Window {
    fn header_at(&mut self, file: &mut File, at: u64) -> Option<[u8; SECTION_HEADER_LEN]> {
        let inside = |window: &Self| {
            let from = usize::try_from(at.checked_sub(window.start)?).ok()?;
            window.bytes.get(..window.filled)?.get(from..from + SECTION_HEADER_LEN)?.first_chunk().copied()
        };
        if let Some(header) = inside(self) {
            return Some(header);
        }
        file.seek(SeekFrom::Start(at)).ok()?;
        self.start = at;
        self.filled = 0;
        // A jump to a far section reads little; neighbours read on from there.
        while self.filled < SECTION_HEADER_LEN {
            match file.read(&mut self.bytes[self.filled..]) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.filled += count,
            }
        }
        inside(self)
    }
}

/// Says what a file without the mark of a dump is. `Ok` when it begins like one.
fn wrong_type(bytes: &[u8]) -> Result<(), OpenError> {
    let Some(first) = bytes.first() else { return Err(OpenError::Empty) };
    if *first == FILE_MAGIC[0] && FILE_MAGIC.starts_with(&bytes[..bytes.len().min(FILE_MAGIC.len())]) {
        return Ok(());
    }
    let head = &bytes[..bytes.len().min(4096)];
    match magic::kind(head) {
        Kind::Text => return Err(OpenError::Text),
        Kind::Packed(packing) => {
            return Err(OpenError::Foreign { what: format!("{} data", packing.name()), advice: packing.for_dumps() });
        }
        kind @ (Kind::Utf16(_) | Kind::Other(..)) => {
            return Err(OpenError::Foreign { what: kind.name(), advice: kind.advice() });
        }
        Kind::Binary { .. } => {}
    }
    let shown: Vec<_> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Err(OpenError::NotADump(shown.join(" ")))
}
