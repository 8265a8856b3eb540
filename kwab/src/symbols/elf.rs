//! Reads what symbols need from an ELF file: build-id, code ranges, symbol table, debug and unwind sections.

use std::borrow::Cow;
use std::io::BufReader;
use std::ops::Range;

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadRef, SymbolKind};

use super::allowance::Allowance;
use super::bytes::ImageBytes;
use super::names::LONGEST;
use super::regular;
use super::relocatable::{self, Load, is_allocated};

/// A parsed ELF file, as handed to [`with_elf`].
pub(super) type Elf<'data, R> = object::File<'data, R>;

/// What is done with an ELF file, whatever holds its bytes.
pub(super) trait ElfTask {
    /// What comes out.
    type Output;

    /// Carries the request out on an image of either width.
    fn run<'data, R: ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output>;
}

/// Parses an image, reading only what the task touches.
pub(super) fn with_elf<T: ElfTask>(bytes: &ImageBytes, task: T) -> Result<T::Output, ElfFailure> {
    match bytes {
        ImageBytes::File(path) => {
            let file = regular::open(path).map_err(ElfFailure::Io)?;
            let length = file.metadata().map_err(ElfFailure::Io)?.len();
            run(&ReadCache::new(BufReader::new(file)), length, task)
        }
        ImageBytes::Memory { bytes, .. } => run(&**bytes, bytes.len() as u64, task),
    }
}

fn run<'data, R: ReadRef<'data>, T: ElfTask>(bytes: R, length: u64, task: T) -> Result<T::Output, ElfFailure> {
    /// How often a task may read every byte: headers, notes, symbols, relocations and the section that it is after.
    const TIMES: u64 = 12;
    let allowance = Allowance::new(length, TIMES);
    let elf = object::File::parse(Bounded { bytes, allowance: &allowance }).map_err(ElfFailure::Elf)?;
    task.run(&elf).map_err(ElfFailure::Elf)
}

/// The bytes of an image, as often as an [`Allowance`] lets them be read: thousands of notes, sections or names may
/// share them.
#[derive(Clone, Copy)]
struct Bounded<'r, R> {
    bytes: R,
    allowance: &'r Allowance,
}

impl<'data, R: ReadRef<'data>> ReadRef<'data> for Bounded<'_, R> {
    fn len(self) -> Result<u64, ()> {
        self.bytes.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'data [u8], ()> {
        if self.allowance.take(size) { self.bytes.read_bytes_at(offset, size) } else { Err(()) }
    }

    /// What is longer than a name can be comes as far as that, which [`super::demangle`] sees.
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'data [u8], ()> {
        let most = range.start.saturating_add(LONGEST as u64);
        let found = self.bytes.read_bytes_at_until(range.start..range.end.min(most), delimiter);
        let found = match found {
            Err(()) if range.end > most => self.bytes.read_bytes_at(range.start, LONGEST as u64 + 1)?,
            found => found?,
        };
        if self.allowance.take(found.len() as u64 + 1) { Ok(found) } else { Err(()) }
    }
}

/// Why an ELF file could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ElfFailure {
    /// The system refused.
    #[error("{0}")]
    Io(std::io::Error),
    /// The bytes are no ELF file.
    #[error("not a usable ELF image: {0}")]
    Elf(object::Error),
}

/// What the headers say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers {
    /// Build-id; empty without one.
    pub(super) build_id: Vec<u8>,
    /// The loadable segments, in the order of the program headers.
    pub(super) loads: Vec<Load>,
    /// Name of the file with the debug sections, when they were split off.
    pub(super) has_debug_info: bool,
    /// Whether it is an object whose sections have no addresses, as kernel modules are.
    pub(super) relocatable: bool,
}

/// Whether the flags of a segment have this one.
fn has_flag(flags: object::SegmentFlags, flag: object::elf::ProgramFlags) -> bool {
    matches!(flags, object::SegmentFlags::Elf { p_flags, .. } if p_flags.0 & flag.0 != 0)
}

/// Reads the headers.
pub(super) struct ReadHeaders;

impl ElfTask for ReadHeaders {
    type Output = Headers;

    fn run<'data, R: ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Headers> {
        let loads = elf.segments().map(|segment| Load {
            start: segment.address(),
            length: segment.size(),
            executable: has_flag(segment.flags(), object::elf::PF_X),
            writable: has_flag(segment.flags(), object::elf::PF_W),
        });
        let relocatable = relocatable::is_relocatable(elf);
        let sections = || relocatable::loads(elf).into_iter().map(|(load, _)| load).collect();
        Ok(Headers {
            relocatable,
            build_id: elf.build_id()?.unwrap_or_default().to_vec(),
            loads: if relocatable { sections() } else { loads.collect() },
            has_debug_info: elf.section_by_name(".debug_info").is_some_and(|section| section.size() > 0),
        })
    }
}

/// A symbol with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RawSymbol {
    /// Address of the symbol, as linked.
    pub(super) address: u64,
    /// Size in bytes; 0 when unknown.
    pub(super) size: u64,
    /// Name as in the file.
    pub(super) name: String,
    /// Global symbols and symbols with a type and a size are preferred where several lie at one address.
    pub(super) rank: u8,
}

/// The symbols of functions and data that are loaded, sorted by address, one per address.
pub(super) fn symbols<'data, R: ReadRef<'data>>(elf: &Elf<'data, R>) -> Vec<RawSymbol> {
    let allocated: Vec<bool> = elf.sections().map(|section| (section.index().0, is_allocated(section.flags()))).fold(
        Vec::new(),
        |mut all, (index, allocated)| {
            if all.len() <= index {
                all.resize(index + 1, false);
            }
            all[index] = allocated;
            all
        },
    );
    let usable = |symbol: &object::Symbol<'data, '_, R>| {
        let placed = symbol.section_index().is_some_and(|index| allocated.get(index.0) == Some(&true));
        placed && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown)
    };
    let bases = relocatable::Bases::of(elf);
    let mut found: Vec<RawSymbol> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(usable)
        .filter_map(|symbol| {
            let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
            let typed = symbol.kind() != SymbolKind::Unknown;
            let rank = u8::from(typed) * 4 + u8::from(symbol.size() > 0) * 2 + u8::from(symbol.is_global());
            (!name.is_empty() && !name.starts_with(".L")).then(|| RawSymbol {
                address: bases.base(symbol.section_index()).wrapping_add(symbol.address()),
                size: symbol.size(),
                name,
                rank,
            })
        })
        .collect();
    found.sort_by(|a, b| {
        (a.address, std::cmp::Reverse(a.rank), &a.name).cmp(&(b.address, std::cmp::Reverse(b.rank), &b.name))
    });
    found.dedup_by_key(|symbol| symbol.address);
    found
}

/// What a byte of the file may be in sections: those with debug information shrink to a fifth, lists to a tenth.
const UNPACKED: u64 = 16;

/// Sections of an image, unpacked as long as they have together what an image of its length may.
pub(super) struct Sections<'e, 'data, R: ReadRef<'data>> {
    elf: &'e Elf<'data, R>,
    room: Allowance,
}

impl<'e, 'data, R: ReadRef<'data>> Sections<'e, 'data, R> {
    /// Those of an image.
    pub(super) fn of(elf: &'e Elf<'data, R>) -> Self {
        let length = match elf {
            object::File::Elf32(elf) => elf.data().len(),
            object::File::Elf64(elf) => elf.data().len(),
            _ => Ok(0),
        };
        Self { elf, room: Allowance::new(length.unwrap_or(0), UNPACKED) }
    }

    /// Whether one claimed too many bytes.
    pub(super) fn is_cut(&self) -> bool {
        self.room.is_spent()
    }

    /// The bytes of a section, decompressed; empty when it is not there, or claims too many.
    pub(super) fn get(&self, name: &str) -> Cow<'data, [u8]> {
        let Some(section) = self.elf.section_by_name(name) else { return Cow::default() };
        let fits = |packed: &object::CompressedData<'data>| self.room.take(packed.uncompressed_size);
        let packed = section.compressed_data().ok().filter(fits);
        let bytes = packed.and_then(|packed| packed.decompress().ok()).unwrap_or_default();
        if relocatable::is_relocatable(self.elf) {
            return Cow::Owned(relocatable::relocated(self.elf, &section, bytes.into_owned()));
        }
        bytes
    }
}
