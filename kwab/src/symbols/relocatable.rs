//! Kernel modules as they lie on disk: relocatable objects, whose sections have no addresses yet.
//!
//! Their loadable sections are laid out one behind the other, and the debug sections are relocated to that layout. The
//! addresses mean nothing outside; they tell the functions and lines of a module apart.

use object::{
    Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation, RelocationKind, RelocationTarget, SectionFlags,
    SectionIndex,
};

/// Where the layout begins: not at 0, which DWARF uses for code that was dropped.
const FIRST: u64 = 0x1000;

/// A loadable segment, in link addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Load {
    /// First address of the segment, as linked.
    pub(super) start: u64,
    /// Bytes in memory.
    pub(super) length: u64,
    /// Whether it is executable.
    pub(super) executable: bool,
    /// Whether it can be written.
    pub(super) writable: bool,
}

/// Whether the sections of an ELF file have no addresses.
pub(super) fn is_relocatable<'data, R: object::ReadRef<'data>>(elf: &object::File<'data, R>) -> bool {
    elf.kind() == ObjectKind::Relocatable
}

/// Addresses of the sections of a relocatable object by section number; empty for an image that has its own.
#[derive(Debug, Default)]
pub(super) struct Bases(Vec<u64>);

impl Bases {
    /// Lays the loadable sections out.
    pub(super) fn of<'data, R: object::ReadRef<'data>>(elf: &object::File<'data, R>) -> Self {
        let mut bases = Vec::new();
        let mut next = FIRST;
        for section in elf.sections().filter(|section| is_relocatable(elf) && is_allocated(section.flags())) {
            let align = section.align().clamp(1, FIRST);
            let base = next.div_ceil(align).saturating_mul(align);
            next = base.saturating_add(section.size());
            let index = section.index().0;
            if bases.len() <= index {
                bases.resize(index + 1, 0);
            }
            bases[index] = base;
        }
        Self(bases)
    }

    /// What is added to an address in that section.
    pub(super) fn base(&self, section: Option<SectionIndex>) -> u64 {
        section.and_then(|index| self.0.get(index.0)).copied().unwrap_or(0)
    }
}

/// The loadable sections as segments, with their ranges of the file.
pub(super) fn loads<'data, R: object::ReadRef<'data>>(elf: &object::File<'data, R>) -> Vec<(Load, Option<(u64, u64)>)> {
    let bases = Bases::of(elf);
    let sections = elf.sections().filter(|section| is_allocated(section.flags()));
    let load = |section: object::Section<'data, '_, R>| {
        let start = bases.base(Some(section.index()));
        let length = section.size().min(u64::MAX - start);
        {
            let (executable, writable) = (is_executable_section(section.flags()), is_writable(section.flags()));
            (Load { start, length, executable, writable }, section.file_range())
        }
    };
    sections.map(load).collect()
}

/// The bytes of a debug section with its relocations applied to the layout.
pub(super) fn relocated<'data, R: object::ReadRef<'data>>(
    elf: &object::File<'data, R>,
    section: &object::Section<'data, '_, R>,
    mut bytes: Vec<u8>,
) -> Vec<u8> {
    let bases = Bases::of(elf);
    for (offset, relocation) in section.relocations() {
        let Some(target) = target(elf, &bases, &relocation) else { continue };
        let width = usize::from(relocation.size() / 8);
        let field = usize::try_from(offset).ok().and_then(|start| bytes.get_mut(start..start.checked_add(width)?));
        let Some(field) = field.filter(|field| matches!(field.len(), 4 | 8)) else { continue };
        let mut value = target.wrapping_add_signed(relocation.addend());
        if relocation.has_implicit_addend() {
            let mut word = [0; 8];
            word[..field.len()].copy_from_slice(field);
            value = value.wrapping_add(u64::from_le_bytes(word));
        }
        field.copy_from_slice(&value.to_le_bytes()[..width]);
    }
    bytes
}

/// What a relocation refers to; `None` for kinds that debug sections do not use.
fn target<'data, R: object::ReadRef<'data>>(
    elf: &object::File<'data, R>,
    bases: &Bases,
    relocation: &Relocation,
) -> Option<u64> {
    if relocation.kind() != RelocationKind::Absolute {
        return None;
    }
    match relocation.target() {
        RelocationTarget::Symbol(index) => {
            let symbol = elf.symbol_by_index(index).ok()?;
            Some(bases.base(symbol.section_index()).wrapping_add(symbol.address()))
        }
        RelocationTarget::Section(index) => Some(bases.base(Some(index))),
        _ => None,
    }
}

/// Whether the flags of a section have `SHF_EXECINSTR`.
pub(super) fn is_executable_section(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & object::elf::SHF_EXECINSTR.0 != 0)
}

/// Whether the flags of a section have `SHF_WRITE`.
fn is_writable(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & object::elf::SHF_WRITE.0 != 0)
}

/// Whether the flags of a section have `SHF_ALLOC`.
pub(super) fn is_allocated(flags: SectionFlags) -> bool {
    matches!(flags, SectionFlags::Elf { sh_flags, .. } if sh_flags.0 & object::elf::SHF_ALLOC.0 != 0)
}
