//! Opens a dump and knows where its sections are, without reading them all.
//!
//! An undamaged dump is walked from header to header: a hundred megabytes cost a few hundred small reads, and a payload
//! is read and checked when it is asked for. Where a header does not follow as it must, the whole dump is read and
//! kwab-format's `Reader` finds what is sound and names what is not.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex};

use kwab_format::section::{FILE_HEADER_LEN, FILE_MAGIC, SECTION_HEADER_LEN, SECTION_TRAILER_LEN};
use kwab_format::{Defect, DefectKind, FileHeader, Flags, Item, Reader, Section, SectionHeader, SectionKind};

use super::extents::extents;
use super::memory::{Budget, Payload, read_unsized};
use super::section_info::SectionInfo;
use crate::magic::{self, Kind};
use crate::units::count;

/// A dump no longer than this is read whole and checked completely at once: that costs a few milliseconds.
pub(super) const READ_WHOLE: u64 = 8 << 20;
/// A damaged dump longer than this is not mended in memory.
const LARGEST_DAMAGED: u64 = 2 << 30;
/// Defects that are listed one by one: a defect takes more memory than the bytes that can bring it.
const MOST_DEFECTS: usize = 4096;
/// Bytes read at once while walking.
const WALK_WINDOW: usize = 64 << 10;

/// Why a file is not a dump that can be read. The text names the fact and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The path names a directory.
    #[error("is a directory; kwab list shows the dumps in it")]
    Directory,
    /// The file has no bytes.
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
    #[error("is not a kwab dump: it begins with {0}, not with a dump's magic number")]
    NotADump(String),
    /// Written by a later version.
    #[error("is a dump of format version {0}, which this kwab cannot read; a newer one can")]
    Version(u16),
    /// The file does not hold that many dumps.
    #[error("holds {}; there is no dump {wanted}", count(*held as u64, "dump", "dumps"))]
    NoSuchDump {
        /// How many it holds.
        held: usize,
        /// Which was asked for.
        wanted: usize,
    },
    /// Damaged, and too large to mend.
    #[error("is damaged at byte {0}, and too large to be mended in memory")]
    TooLarge(u64),
}

/// Where the bytes are.
#[derive(Debug)]
enum Storage {
    Memory(Vec<u8>),
    File(Mutex<File>),
    Released,
}

/// An open dump.
#[derive(Debug)]
pub struct DumpFile {
    bytes: Storage,
    /// Length of the dump in bytes.
    pub len: u64,
    /// The file header, when it is sound.
    pub header: Option<FileHeader>,
    /// Its sound sections, in the order of the file, without index and end.
    pub sections: Vec<SectionInfo>,
    /// What is wrong with it.
    pub defects: Vec<Defect>,
    /// Whether an end section closes it.
    pub ended: bool,
    /// What the end section holds, when there is one.
    pub end: Vec<u8>,
    /// Its sound index and end sections.
    pub tables: Vec<SectionInfo>,
    /// Which dump of its file it is, from 1.
    pub number: usize,
    /// How many dumps the file holds.
    pub dumps: usize,
    /// What decoding it may still hold.
    pub budget: Arc<Budget>,
}

impl DumpFile {
    /// Opens the dump at `path`; the first when the file holds several.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_number(path, 1)
    }

    /// Opens dump `number`, from 1, of the file at `path`.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn open_number(path: &Path, number: usize) -> Result<Self, OpenError> {
        Self::of_file(File::open(path)?, number)
    }

    /// Takes dump `number`, from 1, of an open file, whose position is at its beginning.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn of_file(mut file: File, number: usize) -> Result<Self, OpenError> {
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(OpenError::Directory);
        }
        if !meta.is_file() {
            return Self::number_of(read_unsized(file)?, number);
        }
        if meta.len() <= READ_WHOLE {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Self::number_of(bytes, number);
        }
        let mut head = [0; FILE_HEADER_LEN];
        file.read_exact(&mut head)?;
        let len = meta.len();
        match walk(&mut file, &head, len) {
            Ok((header, sections, tables, end)) if number == 1 => Ok(Self {
                bytes: Storage::File(Mutex::new(file)),
                len,
                header: Some(header),
                sections,
                defects: Vec::new(),
                ended: true,
                end,
                tables,
                number,
                dumps: 1,
                budget: Arc::new(Budget::of(len, 0)),
            }),
            Ok(_) => Err(OpenError::NoSuchDump { held: 1, wanted: number }),
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
                Self::number_of(bytes, number)
            }
        }
    }

    /// Takes a dump that is already in memory, for example from a pipe.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::number_of(bytes, 1)
    }

    /// Takes dump `number`, from 1, of a file that is already in memory.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn number_of(mut bytes: Vec<u8>, number: usize) -> Result<Self, OpenError> {
        let length = bytes.len() as u64;
        let extents = extents(&bytes);
        let dumps = extents.len().max(1);
        if number == 0 || number > dumps {
            return Err(OpenError::NoSuchDump { held: dumps, wanted: number });
        }
        if let Some(extent) = extents.get(number - 1).filter(|extent| extent.len() < bytes.len()) {
            bytes.truncate(extent.end);
            bytes.drain(..extent.start);
        }
        let mut file = Self::alone(bytes)?;
        (file.number, file.dumps) = (number, dumps);
        file.budget = Arc::new(Budget::of(length, length));
        Ok(file)
    }

    /// Takes one of the `dumps` of a file, of which `held` further bytes are in memory.
    pub(super) fn part(bytes: Vec<u8>, number: usize, dumps: usize, held: usize) -> Result<Self, OpenError> {
        let length = bytes.len() as u64;
        let mut file = Self::alone(bytes)?;
        (file.number, file.dumps) = (number, dumps);
        file.budget = Arc::new(Budget::of(length.max(held as u64), length + held as u64));
        Ok(file)
    }

    /// Takes bytes that hold one dump, whatever else looks like the beginning of one in them.
    ///
    /// # Errors
    /// [`OpenError`]; damage is not an error.
    pub fn alone(bytes: Vec<u8>) -> Result<Self, OpenError> {
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
        let (mut ended, mut end, mut tables, mut more) = (false, Vec::new(), Vec::new(), 0);
        for item in reader.sections() {
            match item {
                Item::Defect(_) if defects.len() >= MOST_DEFECTS => more += 1,
                Item::Defect(defect) => defects.push(defect),
                Item::Section(section) => {
                    if section.header.kind == SectionKind::END {
                        ended = true;
                        end = section.payload.to_vec();
                    }
                    let list = if is_table(section.header.kind) { &mut tables } else { &mut sections };
                    let offset = section.offset as u64;
                    list.push(SectionInfo { header: section.header, offset, verified: true });
                }
            }
        }
        // What is missing is only known at the end of the walk.
        defects.sort_by_key(|defect| (defect.offset, defect.kind != DefectKind::Missing));
        if more > 0 {
            defects.push(Defect::new(DefectKind::Further { count: more }, 0, 0));
        }
        let len = bytes.len() as u64;
        let budget = Arc::new(Budget::of(len, len));
        let bytes = Storage::Memory(bytes);
        Ok(Self { len, bytes, header, sections, defects, ended, end, tables, number: 1, dumps: 1, budget })
    }

    fn cut_at_birth(bytes: Vec<u8>) -> Self {
        let remain = bytes.len() as u64;
        let kind = DefectKind::Cut { claimed: FILE_HEADER_LEN as u64, remain };
        let defect = Defect { kind, offset: 0, length: remain, sections: None, section_kind: None };
        Self {
            len: remain,
            bytes: Storage::Memory(bytes),
            header: None,
            sections: Vec::new(),
            defects: vec![defect],
            ended: false,
            end: Vec::new(),
            tables: Vec::new(),
            number: 1,
            dumps: 1,
            budget: Arc::new(Budget::of(remain, remain)),
        }
    }

    /// The payload of section `index` as it lies in the dump, checked but not unpacked.
    ///
    /// # Errors
    /// As [`payload`](Self::payload).
    pub fn packed_payload(&self, index: usize) -> Result<Payload, Defect> {
        let info = &self.sections[index];
        self.packed_of(info)
    }

    fn packed_of(&self, info: &SectionInfo) -> Result<Payload, Defect> {
        Payload::new(&self.budget, info, info.header.payload_len as usize, || match self.whole(info)? {
            Cow::Borrowed(whole) => Ok(whole[SECTION_HEADER_LEN..whole.len() - SECTION_TRAILER_LEN].to_vec()),
            Cow::Owned(mut whole) => {
                whole.truncate(whole.len() - SECTION_TRAILER_LEN);
                whole.drain(..SECTION_HEADER_LEN);
                Ok(whole)
            }
        })
    }

    /// The records of section `index`, checked and unpacked; none when the section is of a version that is not known.
    ///
    /// # Errors
    /// The defect that makes them unusable; a failing read counts as one, and so does a budget without room for them.
    pub fn payload(&self, index: usize) -> Result<Payload, Defect> {
        self.payload_of(&self.sections[index])
    }

    /// The same for a section that may also be an index or end section.
    pub(crate) fn payload_of(&self, info: &SectionInfo) -> Result<Payload, Defect> {
        if info.header.version != 0 {
            return self.whole(info).map(|_| Payload::default());
        }
        if !info.header.flags.contains(Flags::COMPRESSED) {
            return self.packed_of(info);
        }
        let whole = self.whole(info)?;
        let section = Section::parse(&whole, info.offset as usize).ok_or_else(|| unreadable(info))?;
        Payload::new(&self.budget, info, section.unpacked_len(), || {
            let mut unpacked = vec![0; section.unpacked_len()];
            let length = section.unpack(&mut unpacked)?.len();
            unpacked.truncate(length);
            Ok(unpacked)
        })
    }

    /// Header, payload and checksum of a section, checked.
    fn whole(&self, info: &SectionInfo) -> Result<Cow<'_, [u8]>, Defect> {
        let whole = self.bytes_at(info.offset, info.header.total_len()).ok_or_else(|| unreadable(info))?;
        let section = Section::parse(&whole, info.offset as usize).ok_or_else(|| unreadable(info))?;
        if !info.verified {
            section.verify()?;
        }
        Ok(whole)
    }

    /// `length` bytes of the dump from `offset` on, unless it ends before.
    fn bytes_at(&self, offset: u64, length: u64) -> Option<Cow<'_, [u8]>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.len)?;
        match &self.bytes {
            Storage::Memory(bytes) => bytes.get(offset as usize..end as usize).map(Cow::Borrowed),
            Storage::File(file) => {
                let mut whole = vec![0; length as usize];
                let mut file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut whole)).ok()?;
                Some(Cow::Owned(whole))
            }
            Storage::Released => None,
        }
    }

    /// The header and the records of a section that `defect` blames for a wrong CRC of its payload; `None` for another
    /// defect, or when they cannot be unpacked. Any byte of the records may be wrong: they are for people who look, and
    /// nothing may be concluded from them.
    pub fn untrusted(&self, defect: &Defect) -> Option<(SectionHeader, Payload)> {
        if !matches!(defect.kind, DefectKind::BadPayload { .. }) {
            return None;
        }
        let head = self.bytes_at(defect.offset, SECTION_HEADER_LEN as u64)?;
        let header = SectionHeader::decode(head.first_chunk()?).ok().filter(|header| header.version == 0)?;
        let whole = self.bytes_at(defect.offset, header.total_len())?;
        let section = Section::parse(&whole, defect.offset as usize)?;
        let info = SectionInfo { header, offset: defect.offset, verified: false };
        let payload = Payload::new(&self.budget, &info, section.unpacked_len(), || {
            let mut scratch = vec![0; section.unpacked_len()];
            Ok(section.unpack(&mut scratch)?.to_vec())
        });
        payload.ok().map(|payload| (header, payload))
    }

    /// Checks the payloads that have not been checked yet; what is wrong is added to the defects.
    pub fn verify_all(&mut self) {
        for index in 0..self.sections.len() {
            if self.sections[index].verified {
                continue;
            }
            match self.whole(&self.sections[index]).map(|_| ()) {
                Ok(()) => self.sections[index].verified = true,
                Err(defect) => self.add_defect(defect),
            }
        }
        // Whatever is not verified now was found damaged above.
        self.sections.retain(|info| info.verified);
    }

    /// How many payloads have been checked.
    pub fn verified(&self) -> usize {
        self.sections.iter().filter(|section| section.verified).count()
    }

    /// Notes that a payload was found right, or is not.
    pub(crate) fn note(&mut self, index: usize, outcome: Result<(), Defect>) {
        match outcome {
            Ok(()) => self.sections[index].verified = true,
            Err(defect) => self.add_defect(defect),
        }
    }

    /// Drops the bytes, or closes the file: from now on no payload can be read. Sections and defects stay known.
    pub fn release(&mut self) {
        self.bytes = Storage::Released;
    }

    /// Adds a defect; beyond a limit they are only counted.
    pub fn add_defect(&mut self, defect: Defect) {
        if self.defects.len() < MOST_DEFECTS {
            self.defects.push(defect);
            return;
        }
        match self.defects.last_mut().map(|last| &mut last.kind) {
            Some(DefectKind::Further { count }) => *count += 1,
            _ => self.defects.push(Defect::new(DefectKind::Further { count: 1 }, 0, 0)),
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
fn walk(file: &mut File, head: &[u8; FILE_HEADER_LEN], len: u64) -> Result<Walked, u64> {
    let header = FileHeader::decode(head).map_err(|_| 0u64)?;
    let (mut sections, mut tables) = (Vec::new(), Vec::new());
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
        let list = if is_table(section.kind) { &mut tables } else { &mut sections };
        list.push(SectionInfo { header: section, offset: at, verified: false });
        at += section.total_len();
        seq += 1;
        if section.kind == SectionKind::END {
            let end = read_end(file, at - section.total_len(), &section).filter(|_| at == len).ok_or(at)?;
            return Ok((header, sections, tables, end));
        }
    }
}

/// What an undamaged dump begins with, its sections, its index and end sections, and the payload of its end section.
type Walked = (FileHeader, Vec<SectionInfo>, Vec<SectionInfo>, Vec<u8>);

/// The payload of the end section, checked.
fn read_end(file: &mut File, at: u64, header: &SectionHeader) -> Option<Vec<u8>> {
    let mut whole = vec![0; usize::try_from(header.total_len()).ok()?];
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut whole)).ok()?;
    let section = Section::parse(&whole, 0)?;
    section.verify().is_ok().then(|| section.payload.to_vec())
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
        kind @ (Kind::Utf16(_) | Kind::Recorded(_) | Kind::Other(..)) => {
            return Err(OpenError::Foreign { what: kind.name(), advice: kind.advice() });
        }
        Kind::Binary { .. } => {}
    }
    let shown: Vec<_> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Err(OpenError::NotADump(shown.join(" ")))
}
