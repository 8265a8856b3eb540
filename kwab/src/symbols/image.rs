//! One ELF image: its identity, its bytes by link address, its index, its unwind tables.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use object::{Object, ObjectSection};
use sha2::{Digest as _, Sha256};

use super::build::BuildIndex;
use super::bytes::ImageBytes;
use super::cache::IndexCache;
use super::calls::is_after_call;
use super::cfi::UnwindTables;
use super::elf::{self, Elf, ElfFailure, ElfTask, Headers, ReadHeaders, with_elf};
use super::index::{Index, IndexError};
use super::store::{self, ReadName};
use super::{BuildId, Location, PrintedFunction, Probe, SourceVersion, SymbolError, regular, relocatable, split};
use crate::units;

/// An ELF image that can answer for its addresses.
#[derive(Debug)]
pub struct Image {
    bytes: ImageBytes,
    headers: Headers,
    key: String,
    index: Mutex<Arc<Index>>,
    /// Whether the index was built by this process, so that building it again would give the same.
    is_built: AtomicBool,
    /// Units in files that were not found when the index was built.
    missing: usize,
    unwind: std::sync::OnceLock<Option<UnwindTables>>,
    cache: IndexCache,
    contents: Vec<Content>,
    /// When its file was written, if it still lies where it was built.
    written: Option<SystemTime>,
}

/// Bytes of the file that are loaded at a link address.
#[derive(Clone, Copy, Debug)]
struct Content {
    start: u64,
    offset: u64,
    length: u64,
}

impl Image {
    /// Opens a file; its index comes from the cache, or is built and put there.
    ///
    /// # Errors
    /// [`SymbolError`] when it cannot be read, is not an ELF file or too wide to index.
    pub fn open(path: &Path, cache: &IndexCache) -> Result<Self, SymbolError> {
        Self::from_bytes(ImageBytes::File(path.to_path_buf()), cache)
    }

    /// The same for bytes that may not be a file.
    ///
    /// # Errors
    /// As [`Image::open`].
    pub fn from_bytes(bytes: ImageBytes, cache: &IndexCache) -> Result<Self, SymbolError> {
        let headers = with_elf(&bytes, ReadHeaders).map_err(|failure| failed(&bytes, failure))?;
        let size = bytes.size().map_err(|source| SymbolError::Io { path: bytes.name(), source })?;
        let key = cache_key(&bytes, &headers, size)?;
        let cached = cache.load(&key).filter(|index| index.build_id() == headers.build_id && index.elf_size() == size);
        let is_built = AtomicBool::new(cached.is_none());
        let (index, missing) = match cached {
            Some(index) => (index, 0),
            None => build(&bytes, &headers, size, &key, cache)?,
        };
        let contents = with_elf(&bytes, ReadContents).map_err(|failure| failed(&bytes, failure))?;
        let (index, unwind) = (Mutex::new(Arc::new(index)), std::sync::OnceLock::new());
        let written = contents.iter().any(|content| content.length > 0).then(|| store::written(&bytes)).flatten();
        Ok(Self { bytes, headers, key, index, is_built, missing, unwind, cache: cache.clone(), contents, written })
    }

    /// Its path or name.
    #[must_use]
    pub fn name(&self) -> String {
        self.bytes.name()
    }

    /// What its file was called: what an image of a store says itself, else the end of its name.
    #[must_use]
    pub fn file_name(&self) -> String {
        let kept = with_elf(&self.bytes, ReadName).ok().filter(|name| !name.is_empty());
        let name = kept.unwrap_or_else(|| self.bytes.name());
        name.rsplit(['/', ':']).next().unwrap_or_default().trim_end_matches(".debug").to_owned()
    }

    /// Its file, unless it was taken out of an archive.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.bytes {
            ImageBytes::File(path) => Some(path),
            ImageBytes::Memory { .. } => None,
        }
    }

    /// Where its bytes are.
    pub(super) const fn source(&self) -> &ImageBytes {
        &self.bytes
    }

    /// What of the file is loaded: link address, offset in the file, bytes.
    pub fn loaded(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.contents.iter().filter(|content| content.length > 0).map(|c| (c.start, c.offset, c.length))
    }

    /// Fills `out` with the first bytes of the file, whether or not they are loaded; how many there are.
    #[must_use]
    pub fn head(&self, out: &mut [u8]) -> usize {
        self.read_file(0, out)
    }

    /// Its build-id, if it has one.
    #[must_use]
    pub fn build_id(&self) -> Option<BuildId> {
        (!self.headers.build_id.is_empty()).then(|| BuildId(self.headers.build_id.clone()))
    }

    /// Link address of the note with its build-id, if it is loaded.
    #[must_use]
    pub fn build_id_note(&self) -> Option<u64> {
        with_elf(&self.bytes, FindNote).ok().flatten()
    }

    /// What of it was left out, in words.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let left_out = self.index.lock().unwrap_or_else(PoisonError::into_inner).left_out();
        let units = units::count(left_out.into(), "unit", "units");
        let why = "they would take more memory or time than a file of its length may";
        let left_out = (left_out > 0).then(|| format!("{}: {units} of DWARF were not read: {why}", self.name()));
        left_out.or_else(|| {
            let units = units::count(self.missing as u64, "unit", "units");
            let where_to = "is in .dwo files that are not there; a package beside it would do (dwp -e)";
            (self.missing > 0).then(|| format!("{}: DWARF of {units} {where_to}", self.name()))
        })
    }

    /// Whether it has line tables, not only a symbol table.
    #[must_use]
    pub fn has_debug_info(&self) -> bool {
        self.headers.has_debug_info
    }

    /// Lowest link address and the one behind the highest, over all loadable segments.
    #[must_use]
    pub fn link_range(&self) -> (u64, u64) {
        let low = self.headers.loads.iter().map(|load| load.start).min().unwrap_or(0);
        let high = self.headers.loads.iter().map(|load| load.start.saturating_add(load.length)).max().unwrap_or(0);
        (low, high)
    }

    /// Whether a link address lies in an executable segment.
    #[must_use]
    pub fn is_code(&self, link: u64) -> bool {
        self.headers.loads.iter().any(|load| load.executable && link.wrapping_sub(load.start) < load.length)
    }

    /// How many bytes from a link address on are loaded and cannot be written; `None` when it lies in no such segment.
    #[must_use]
    pub fn constant_bytes(&self, link: u64) -> Option<u64> {
        let segment = self.headers.loads.iter().find(|load| link.wrapping_sub(load.start) < load.length);
        segment.filter(|load| !load.writable).map(|load| load.length - (link - load.start))
    }

    /// Everything known about a link address. An index that turns out to be damaged is rebuilt once.
    ///
    /// # Errors
    /// [`SymbolError`] when the index cannot be read and cannot be rebuilt.
    pub fn locate(&self, link: u64, probe: Probe) -> Result<Location, SymbolError> {
        let index = Arc::clone(&self.index.lock().unwrap_or_else(PoisonError::into_inner));
        match index.locate(link, probe) {
            Ok(location) => Ok(self.dated(location)),
            Err(source) if self.is_built.swap(true, Ordering::Relaxed) => {
                Err(SymbolError::Index { path: self.name(), source })
            }
            Err(_) => {
                self.cache.remove(&self.key);
                let (fresh, _) = build(&self.bytes, &self.headers, index.elf_size(), &self.key, &self.cache)?;
                let fresh = Arc::new(fresh);
                *self.index.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
                let found = fresh.locate(link, probe).map(|location| self.dated(location));
                found.map_err(|source| SymbolError::Index { path: self.name(), source })
            }
        }
    }

    /// A location whose sources have no checksum is of files that were there when the image was written.
    fn dated(&self, mut location: Location) -> Location {
        location.frames.iter_mut().for_each(|frame| frame.version = self.version(frame.version));
        location
    }

    fn version(&self, recorded: SourceVersion) -> SourceVersion {
        let written = self.written.filter(|_| recorded == SourceVersion::Unknown);
        written.map_or(recorded, SourceVersion::Before)
    }

    /// Link address and size of the symbol with this demangled name; `None` without one, or with a damaged index.
    #[must_use]
    pub fn find_symbol(&self, name: &str) -> Option<(u64, u64)> {
        let index = Arc::clone(&self.index.lock().unwrap_or_else(PoisonError::into_inner));
        index.find_symbol(name).ok().flatten()
    }

    /// Every symbol: its demangled name, link address and size.
    ///
    /// # Errors
    /// [`SymbolError`] when the index is damaged.
    pub fn all_symbols(&self) -> Result<Vec<(Arc<str>, u64, u64)>, SymbolError> {
        let index = Arc::clone(&self.index.lock().unwrap_or_else(PoisonError::into_inner));
        index.all_symbols().map_err(|source| SymbolError::Index { path: self.name(), source })
    }

    /// Shows `visit` the functions of every piece of code of one place in the source: its first link address, and the
    /// functions there, the innermost first.
    ///
    /// # Errors
    /// [`SymbolError`] when the index is damaged.
    pub fn visit_functions(&self, visit: &mut dyn FnMut(u64, &[Arc<str>])) -> Result<(), SymbolError> {
        let index = Arc::clone(&self.index.lock().unwrap_or_else(PoisonError::into_inner));
        index.visit_functions(visit).map_err(|source| SymbolError::Index { path: self.name(), source })
    }

    /// Whether its code is for x86_64.
    #[must_use]
    pub fn is_x86_64(&self) -> bool {
        with_elf(&self.bytes, Machine).is_ok_and(|(architecture, _)| architecture == object::Architecture::X86_64)
    }

    /// Which of these link addresses are behind a call instruction; `None` for an architecture whose calls are not
    /// known here.
    #[must_use]
    pub fn behind_calls(&self, links: &[u64]) -> Option<Vec<bool>> {
        /// The longest call instruction, with what may stand between it and its return address.
        const LONGEST_CALL: u64 = 8;
        let (architecture, big_endian) = with_elf(&self.bytes, Machine).ok()?;
        is_after_call(architecture, big_endian, &[0; LONGEST_CALL as usize])?;
        let is_behind = |link: &u64| {
            let mut bytes = [0; LONGEST_CALL as usize];
            // Code that begins less than that before the address has zeros in front.
            let there = (1..=LONGEST_CALL).rev().find(|back| self.is_code(link.wrapping_sub(*back)));
            let Some(length) = there.map(|back| back as usize) else { return false };
            let room = &mut bytes[LONGEST_CALL as usize - length..];
            self.read(link.wrapping_sub(length as u64), room) == length
                && is_after_call(architecture, big_endian, &bytes) == Some(true)
        };
        Some(links.iter().map(is_behind).collect())
    }

    /// The link addresses of functions that a kernel printed, in their order; none with a damaged index.
    #[must_use]
    pub fn find_printed(&self, wanted: &[PrintedFunction]) -> Vec<Option<u64>> {
        let index = Arc::clone(&self.index.lock().unwrap_or_else(PoisonError::into_inner));
        index.find_printed(wanted).unwrap_or_else(|_| vec![None; wanted.len()])
    }

    /// Fills `out` with the bytes the file has for a link address; how many there are.
    #[must_use]
    pub fn read(&self, link: u64, out: &mut [u8]) -> usize {
        let Some(content) = self
            .contents
            .iter()
            .find(|content| link.checked_sub(content.start).is_some_and(|skip| skip < content.length))
        else {
            return 0;
        };
        let skip = link - content.start;
        let wanted = out.len().min(usize::try_from(content.length - skip).unwrap_or(usize::MAX));
        self.read_file(content.offset + skip, &mut out[..wanted])
    }

    fn read_file(&self, offset: u64, out: &mut [u8]) -> usize {
        match &self.bytes {
            ImageBytes::File(path) => regular::open(path).and_then(|file| file.read_at(out, offset)).unwrap_or(0),
            ImageBytes::Memory { bytes, .. } => {
                let rest = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)).unwrap_or_default();
                let found = out.len().min(rest.len());
                out[..found].copy_from_slice(&rest[..found]);
                found
            }
        }
    }

    /// Its unwind tables, if it has any that can be read.
    #[must_use]
    pub fn unwind_tables(&self) -> Option<&UnwindTables> {
        self.unwind.get_or_init(|| with_elf(&self.bytes, ReadUnwind).ok().flatten()).as_ref()
    }
}

struct ReadContents;

impl ElfTask for ReadContents {
    type Output = Vec<Content>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Vec<Content>> {
        use object::ObjectSegment;
        if relocatable::is_relocatable(elf) {
            let sections = relocatable::loads(elf).into_iter();
            let content = |(load, range): (relocatable::Load, Option<(u64, u64)>)| {
                let (offset, length) = range?;
                Some(Content { start: load.start, offset, length: length.min(load.length).min(u64::MAX - offset) })
            };
            return Ok(sections.filter_map(content).collect());
        }
        let contents = elf.segments().map(|segment| {
            let (start, (offset, length)) = (segment.address(), segment.file_range());
            // A segment that leaves the address space or the file's is cut there, so that sums of these numbers do not
            // overflow.
            let length = length.min(u64::MAX - start).min(u64::MAX - offset);
            Content { start, offset, length }
        });
        Ok(contents.collect())
    }
}

/// The architecture, and whether its numbers are big-endian.
struct Machine;

impl ElfTask for Machine {
    type Output = (object::Architecture, bool);

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        Ok((elf.architecture(), !elf.is_little_endian()))
    }
}

struct FindNote;

impl ElfTask for FindNote {
    type Output = Option<u64>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Option<u64>> {
        /// Type and name of the note; two sizes stand before them.
        const MARK: &[u8] = b"\x03\0\0\0GNU\0";
        let notes = elf.sections().filter(|section| section.kind() == object::SectionKind::Note);
        let mut found = notes.filter_map(|section| {
            let at = memchr::memmem::find(section.data().ok()?, MARK)?.checked_sub(8)?;
            Some(section.address().wrapping_add(at as u64)).filter(|_| section.address() != 0)
        });
        Ok(found.next())
    }
}

struct ReadUnwind;

impl ElfTask for ReadUnwind {
    type Output = Option<UnwindTables>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        let address = |name: &str| elf.section_by_name(name).map_or(0, |section| section.address());
        let sections = elf::Sections::of(elf);
        let eh_frame = sections.get(".eh_frame").into_owned();
        let debug_frame = sections.get(".debug_frame").into_owned();
        Ok(UnwindTables::new(eh_frame, address(".eh_frame"), debug_frame, address(".text")))
    }
}

fn build(
    bytes: &ImageBytes,
    headers: &Headers,
    elf_size: u64,
    key: &str,
    cache: &IndexCache,
) -> Result<(Index, usize), SymbolError> {
    let path = if let ImageBytes::File(path) = bytes { Some(path.as_path()) } else { None };
    let built = with_elf(bytes, BuildIndex { headers, elf_size, path }).map_err(|failure| failed(bytes, failure))?;
    let (built, missing) = built.map_err(|span| SymbolError::TooWide { path: bytes.name(), span })?;
    // Files that were not found may be there the next time.
    if missing == 0 {
        cache.store(key, &built);
    }
    let index = Index::from_bytes(built);
    let index = index.map_err(|source: IndexError| SymbolError::Index { path: bytes.name(), source })?;
    Ok((index, missing))
}

/// Of a file its build-id or a checksum, its size, and which file of this machine it is in which state; of other bytes
/// their digest. Build-id, size and checksum are their maker's choice: an image that came with a stranger's dump must
/// not answer for another one.
fn cache_key(bytes: &ImageBytes, headers: &Headers, size: u64) -> Result<String, SymbolError> {
    let path = match bytes {
        ImageBytes::File(path) => path,
        ImageBytes::Memory { bytes, .. } => {
            let digest = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            return Ok(format!("sha256-{digest}"));
        }
    };
    let io = |source| SymbolError::Io { path: bytes.name(), source };
    let mut file = regular::open(path).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    let of = |meta: &Metadata| format!("{:x}.{:x}.{:x}.{:x}", meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec());
    let mut state = of(&meta);
    // Units in a package beside it are in the index, too.
    if let Some(meta) = split::package_of(path).and_then(|package| std::fs::metadata(package).ok()) {
        state = format!("{state}-{}", of(&meta));
    }
    if (8..=32).contains(&headers.build_id.len()) {
        return Ok(format!("{}-{size:x}-{state}", BuildId(headers.build_id.clone())));
    }
    let (mut sum, mut piece) = (crc32fast::Hasher::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece).map_err(io)? {
            0 => return Ok(format!("crc{:08x}-{size:x}-{state}", sum.finalize())),
            read => sum.update(&piece[..read]),
        }
    }
}

fn failed(bytes: &ImageBytes, failure: ElfFailure) -> SymbolError {
    let path = bytes.name();
    match failure {
        ElfFailure::Io(source) => SymbolError::Io { path, source },
        ElfFailure::Elf(source) => SymbolError::Elf { path, source },
    }
}
