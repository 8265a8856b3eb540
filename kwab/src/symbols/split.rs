//! DWARF that lies apart from its image: an object with debug information per unit (`.dwo`), or all of them in one
//! package (`.dwp`) beside the image (DWARF 5, 7.3.2 and 7.3.5; GNU's extension of DWARF 4).
//!
//! The image keeps a skeleton of each unit, with its lines and where its code lies. A file counts when it has a unit
//! with the number that the skeleton has: a name is only a hint.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{DebugInfoOffset, DwarfPackage, DwoId, Reader, Section as _, SectionId, UnitRef, UnitType};

use super::bytes::ImageBytes;
use super::elf::{self, Elf, ElfTask, with_elf};
use super::{names, regular};

/// Bytes of a section, shared by what was read from them.
type Bytes = Arc<[u8]>;

/// Bytes of files that are looked into for an image at most, beside eight times its own.
const MOST_BYTES: u64 = 64 << 20;

/// The sections of a file that can be of use, by what they hold.
type Loose<T> = HashMap<SectionId, T>;

/// The files that belong to the skeletons of an image.
#[derive(Debug, Default)]
pub(super) struct SplitFiles {
    package: Option<Loose<Bytes>>,
    objects: HashMap<u64, Loose<Bytes>>,
    /// Bytes of all of them.
    pub(super) length: u64,
    /// Skeletons whose unit was not found.
    pub(super) missing: usize,
}

/// Where a unit lies that an image has the skeleton of.
struct Apart {
    id: u64,
    /// Paths by which the skeleton calls it, the likeliest first.
    paths: Vec<PathBuf>,
}

impl SplitFiles {
    /// Those of the image at a path that has these skeletons and so many bytes; `None` when its units are whole.
    pub(super) fn of<'u, R: Reader<Offset = usize> + 'u>(
        image: Option<&Path>,
        skeletons: impl Iterator<Item = UnitRef<'u, R>>,
        bytes: u64,
    ) -> Option<Self> {
        let apart: Vec<Apart> = skeletons.filter_map(|unit| Apart::of(image, &unit)).collect();
        if apart.is_empty() {
            return None;
        }
        let mut files = Self::default();
        let (mut objects, mut length, mut missing) = (HashMap::new(), 0_u64, 0);
        if let Some(path) = image.and_then(package_of) {
            length = std::fs::metadata(&path).map_or(0, |meta| meta.len());
            files.package = with_elf(&ImageBytes::File(path), ReadPackage).ok();
        }
        let package = files.package.as_ref().and_then(|package| package_with(package, |bytes| slice(bytes)));
        let most = MOST_BYTES.saturating_add(bytes.saturating_mul(8));
        for Apart { id, paths } in apart {
            let is_packed = package.as_ref().is_some_and(|package| package.cu_index.find(id).is_some());
            if is_packed || objects.contains_key(&id) {
                continue;
            }
            let found = paths.into_iter().find_map(|path| {
                let own = regular::open(&path).ok()?.metadata().ok()?.len();
                // Those with another unit count too: a thousand skeletons may name one file.
                length = length.saturating_add(own).min(most.saturating_add(1));
                let fits = length <= most;
                fits.then(|| with_elf(&ImageBytes::File(path), ReadObject { id }).ok()).flatten()?
            });
            match found {
                Some(sections) => drop(objects.insert(id, sections)),
                None => missing += 1,
            }
        }
        Some(Self { objects, length, missing, ..files })
    }

    /// What they hold, read in another way.
    pub(super) fn with<'f, R: Reader<Offset = usize>>(&'f self, read: impl Fn(&'f Bytes) -> R) -> Splits<R> {
        let package = self.package.as_ref().and_then(|package| package_with(package, &read));
        let object = |(id, sections): (&u64, &'f Loose<Bytes>)| {
            (*id, sections.iter().map(|(id, bytes)| (*id, read(bytes))).collect())
        };
        Splits { package, objects: self.objects.iter().map(object).collect() }
    }
}

fn package_with<'f, R: Reader<Offset = usize>>(
    sections: &'f Loose<Bytes>,
    read: impl Fn(&'f Bytes) -> R,
) -> Option<DwarfPackage<R>> {
    let empty = read(sections.get(&SectionId::DebugAddr)?);
    let load = |id: SectionId| Ok::<_, gimli::Error>(sections.get(&id).map_or_else(|| empty.clone(), &read));
    DwarfPackage::load(load, empty.clone()).ok()
}

/// The package beside an image: `vmlinux.dwp`, or `prog.dwp` of `prog.debug`.
pub(super) fn package_of(image: &Path) -> Option<PathBuf> {
    let mut name = image.as_os_str().to_owned();
    name.push(".dwp");
    let paths = [PathBuf::from(name), image.with_extension("dwp")];
    paths.into_iter().find(|path| path != image && regular::open(path).is_ok())
}

impl Apart {
    fn of<R: Reader<Offset = usize>>(image: Option<&Path>, unit: &UnitRef<'_, R>) -> Option<Self> {
        let id = unit.dwo_id?.0;
        let string = |reader: &R| Some(cut(reader.to_slice().ok()?.into_owned()));
        let Some(name) = unit.dwo_name().ok().flatten().and_then(|value| string(&unit.attr_string(value).ok()?)) else {
            return Some(Self { id, paths: Vec::new() });
        };
        let folder = unit.comp_dir.as_ref().and_then(string);
        let beside = image.map(|image| crate::output::folder_of(image).to_path_buf());
        let made = folder.map(|folder| folder.join(&name));
        let mut paths: Vec<PathBuf> = made.into_iter().collect();
        if let Some(beside) = beside {
            paths.push(beside.join(&name));
            paths.extend(name.file_name().map(|name| beside.join(name)));
        }
        Some(Self { id, paths })
    }
}

/// A path as it stands in an image, cut at the longest that is kept.
fn cut(mut bytes: Vec<u8>) -> PathBuf {
    bytes.truncate(names::LONGEST);
    PathBuf::from(OsString::from_vec(bytes))
}

/// What the units of an image are read from whose skeletons it has.
#[derive(Debug)]
pub(super) struct Splits<R: Reader<Offset = usize>> {
    package: Option<DwarfPackage<R>>,
    objects: HashMap<u64, Loose<R>>,
}

impl<R: Reader<Offset = usize>> Splits<R> {
    /// The sections with the unit of this number, for a skeleton of `parent`, and the unit's header in them.
    pub(super) fn find(&self, id: DwoId, parent: &gimli::Dwarf<R>) -> Option<(gimli::Dwarf<R>, gimli::UnitHeader<R>)> {
        let packed = self.package.as_ref().and_then(|package| package.find_cu(id, parent).ok().flatten());
        let dwarf = match packed {
            Some(dwarf) => dwarf,
            None => {
                let mut dwarf = dwarf_of(self.objects.get(&id.0)?)?;
                dwarf.make_dwo(parent);
                dwarf
            }
        };
        let header = unit_of(&dwarf, id.0)?;
        Some((dwarf, header))
    }
}

/// The header of the unit with a number; the only one where the header has no room for a number (DWARF 4).
fn unit_of<R: Reader<Offset = usize>>(dwarf: &gimli::Dwarf<R>, id: u64) -> Option<gimli::UnitHeader<R>> {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        match header.type_() {
            UnitType::SplitCompilation(found) if found.0 == id => return Some(header),
            UnitType::Compilation if header.version() < 5 => return Some(header),
            _ => {}
        }
    }
    None
}

/// The sections of an object as gimli has them.
fn dwarf_of<R: Reader<Offset = usize>>(sections: &Loose<R>) -> Option<gimli::Dwarf<R>> {
    let empty = sections.get(&SectionId::DebugAddr)?;
    let load = |id: SectionId| Ok::<_, gimli::Error>(sections.get(&id).unwrap_or(empty).clone());
    gimli::Dwarf::load(load).ok()
}

fn slice(bytes: &Bytes) -> gimli::EndianSlice<'_, gimli::LittleEndian> {
    gimli::EndianSlice::new(bytes, gimli::LittleEndian)
}

/// The sections that a file of units apart has, and an empty one in the place of what such a file never has.
fn loose<'data, R: object::ReadRef<'data>>(elf: &Elf<'data, R>) -> Loose<Bytes> {
    const KINDS: [SectionId; 13] = [
        SectionId::DebugAbbrev,
        SectionId::DebugCuIndex,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLoc,
        SectionId::DebugLocLists,
        SectionId::DebugMacinfo,
        SectionId::DebugMacro,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
        SectionId::DebugTuIndex,
        SectionId::DebugTypes,
    ];
    let all = elf::Sections::of(elf);
    let named = KINDS.into_iter().filter_map(|id| Some((id, id.dwo_name()?)));
    let found = named.map(|(id, name)| (id, Bytes::from(all.get(name))));
    found.chain([(SectionId::DebugAddr, Bytes::default())]).collect()
}

struct ReadPackage;

impl ElfTask for ReadPackage {
    type Output = Loose<Bytes>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        Ok(loose(elf))
    }
}

/// Reads an object that has the unit with a number.
struct ReadObject {
    id: u64,
}

impl ElfTask for ReadObject {
    type Output = Option<Loose<Bytes>>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        let sections = loose(elf);
        let dwarf = dwarf_of(&sections.iter().map(|(id, bytes)| (*id, slice(bytes))).collect());
        let is_meant = |dwarf: gimli::Dwarf<_>| {
            let header = unit_of(&dwarf, self.id)?;
            let is_meant = header.version() >= 5 || dwarf.unit(header).ok()?.dwo_id?.0 == self.id;
            is_meant.then_some(())
        };
        let found = dwarf.and_then(is_meant).is_some();
        Ok(found.then_some(sections))
    }
}

/// Whether a unit of an image may be a skeleton: DWARF 5 says so in its header; before, only what names addresses by
/// number can be one.
pub(super) fn may_be_skeleton<R: Reader<Offset = usize>>(
    dwarf: &gimli::Dwarf<R>,
    header: &gimli::UnitHeader<R>,
) -> bool {
    match header.type_() {
        UnitType::Skeleton(_) => true,
        UnitType::Compilation => header.version() < 5 && !dwarf.debug_addr.reader().is_empty(),
        _ => false,
    }
}

/// The place of an entry in the sections of its unit, as a key for all units of an image.
pub(super) fn key(index: usize, is_apart: bool, offset: DebugInfoOffset) -> (usize, usize) {
    (if is_apart { index } else { usize::MAX }, offset.0)
}
