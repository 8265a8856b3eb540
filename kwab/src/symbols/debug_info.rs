//! The DWARF sections of an image in memory, for what an index does not hold: types, variables and where they live.

use std::sync::Arc;

use gimli::LittleEndian;

use super::Image;
use super::elf::{self, Elf, ElfTask, with_elf};
use super::split::SplitFiles;
use super::units::Units;

/// Bytes of DWARF that are shared by what was read from them.
pub type Dwarf = gimli::EndianArcSlice<LittleEndian>;

struct ReadDebugInfo;

impl ElfTask for ReadDebugInfo {
    type Output = gimli::Dwarf<Dwarf>;

    fn run<'data, R: object::ReadRef<'data>>(self, elf: &Elf<'data, R>) -> object::Result<Self::Output> {
        let sections = elf::Sections::of(elf);
        let load = |id: gimli::SectionId| {
            let bytes: Arc<[u8]> = sections.get(id.name()).into();
            Ok::<_, object::Error>(Dwarf::new(bytes, LittleEndian))
        };
        gimli::Dwarf::load(load)
    }
}

impl Image {
    /// Reads the DWARF sections; `None` without any, or when they cannot be read.
    #[must_use]
    pub fn debug_info(&self) -> Option<gimli::Dwarf<Dwarf>> {
        self.has_debug_info().then(|| with_elf(self.source(), ReadDebugInfo).ok()).flatten()
    }

    /// The units of its DWARF; `None` as for [`Image::debug_info`].
    pub(crate) fn units(&self) -> Option<Units<Dwarf>> {
        let length = self.source().size().ok()?;
        let units = Units::of(self.debug_info()?, length);
        let Some(files) = SplitFiles::of(self.path(), units.skeletons(), length) else { return Some(units) };
        Some(units.with_splits(files.with(|bytes| Dwarf::new(bytes.clone(), LittleEndian)), files.length))
    }
}
