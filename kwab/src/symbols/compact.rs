//! Makes smaller ELF files of an image: one to keep, with its debug sections compressed, and one without its code.
//!
//! What is loaded stays where it is in the file, so that program headers, code and unwind tables are untouched; every
//! other section follows behind it, `.debug_*` compressed (gABI, "Section Compression"), and the section headers come
//! last. New are sections such as [`NAME`]: what the file was called, for the list of the store.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use object::LittleEndian as Le;
use object::elf::{
    CompressionHeader64, ELFCOMPRESS_ZLIB, FileHeader64, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHF_COMPRESSED,
    SHT_NOBITS, SHT_NOTE, SHT_NULL, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB, SectionFlags, SectionHeader64,
};
use object::pod::{bytes_of, bytes_of_slice};
use object::read::elf::FileHeader as _;
use object::{U16, U32, U64};

/// The section with the name of the file.
pub(super) const NAME: &str = ".kwab.name";

/// The image with compressed debug sections and these texts in sections of their own; `None` when it is not a
/// little-endian ELF file of 64 bits, or has no section headers to say what is what.
pub(super) fn compacted(bytes: &[u8], added: &[(&str, String)]) -> Option<Vec<u8>> {
    let ElfTables { header, programs, sections, strings } = ElfTables::of(bytes)?;
    let names = header.section_strings(Le, bytes, sections).ok()?;
    let mut out = bytes.get(..loaded(header, programs, sections)?)?.to_vec();
    let mut headers = sections.to_vec();
    for (index, section) in headers.iter_mut().enumerate() {
        if is_loaded(section) {
            continue;
        }
        let mut data = data(bytes, section)?.to_vec();
        if index == strings {
            added.iter().for_each(|(name, _)| data.extend_from_slice(&[name.as_bytes(), b"\0"].concat()));
        }
        let is_debug = names.get(section.sh_name.get(Le)).is_ok_and(|name| name.starts_with(b".debug_"));
        if is_debug && !section.sh_flags.get(Le).contains(SHF_COMPRESSED) {
            compress(section, &mut data);
        }
        put(&mut out, section, &data);
    }
    // Their names are the last texts of the table of names.
    let lengths = added.iter().map(|(name, _)| name.len() as u64 + 1).sum();
    let mut at = headers[strings].sh_size.get(Le).checked_sub(lengths)?;
    for (name, text) in added {
        let (mut section, mut data) = (new_section(at)?, text.clone().into_bytes());
        compress(&mut section, &mut data);
        put(&mut out, &mut section, &data);
        headers.push(section);
        at += name.len() as u64 + 1;
    }
    finish(out, header, &headers)
}

/// The image without the bytes of what is loaded, but with its notes, symbols and unwind tables, and with these debug
/// sections instead of its own; `None` as for [`compacted`].
pub(super) fn slimmed(bytes: &[u8], added: &[(&str, Vec<u8>)]) -> Option<Vec<u8>> {
    let ElfTables { header, programs, sections, strings } = ElfTables::of(bytes)?;
    let names = header.section_strings(Le, bytes, sections).ok()?;
    let mut table = data(bytes, &sections[strings])?.to_vec();
    let mut out = bytes_of(header).to_vec();
    for program in programs {
        let mut program = *program;
        (program.p_offset, program.p_filesz) = (U64::new(Le, 0), U64::new(Le, 0));
        out.extend_from_slice(bytes_of(&program));
    }
    let mut headers = sections.to_vec();
    for (index, section) in headers.iter_mut().enumerate().filter(|(index, _)| *index != strings) {
        let name = names.get(section.sh_name.get(Le)).unwrap_or_default();
        let (kind, is_allocated) = (section.sh_type.get(Le), section.sh_flags.get(Le).contains(SHF_ALLOC));
        let tables = kind == SHT_SYMTAB || kind == SHT_STRTAB && !is_allocated;
        if kind != SHT_NOBITS && (kind == SHT_NOTE || tables || name == b".eh_frame" || name == b".debug_frame") {
            let mut data = data(bytes, section)?.to_vec();
            if name == b".debug_frame" && !section.sh_flags.get(Le).contains(SHF_COMPRESSED) {
                compress(section, &mut data);
            }
            put(&mut out, section, &data);
        } else if is_allocated {
            section.sh_type = U32::new(Le, SHT_NOBITS);
        } else if index > 0 {
            // Numbers of sections stay: symbols name them.
            *section = new_section(0)?;
            section.sh_type = U32::new(Le, SHT_NULL);
        }
    }
    for (name, bytes) in added {
        let mut section = new_section(table.len() as u64)?;
        table.extend_from_slice(name.as_bytes());
        table.push(0);
        let mut data = bytes.clone();
        compress(&mut section, &mut data);
        put(&mut out, &mut section, &data);
        headers.push(section);
    }
    put(&mut out, &mut headers[strings], &table);
    let mut header = *header;
    header.e_phoff = U64::new(Le, size_of::<FileHeader64<Le>>() as u64);
    finish(out, &header, &headers)
}

/// The headers of an image.
struct ElfTables<'b> {
    header: &'b FileHeader64<Le>,
    programs: &'b [ProgramHeader64<Le>],
    sections: &'b [SectionHeader64<Le>],
    /// Number of the section with the names of sections.
    strings: usize,
}

impl<'b> ElfTables<'b> {
    fn of(bytes: &'b [u8]) -> Option<Self> {
        let header = FileHeader64::<Le>::parse(bytes).ok()?;
        header.endian().ok()?;
        let sections = header.section_headers(Le, bytes).ok().filter(|sections| !sections.is_empty())?;
        let programs = header.program_headers(Le, bytes).ok()?;
        let strings = usize::from(header.e_shstrndx.get(Le).0);
        let is_plain = usize::from(header.e_shnum.get(Le)) == sections.len() && strings < sections.len();
        // Sections that share their bytes would be written once for each.
        let stored = sections.iter().filter(|section| section.sh_type.get(Le) != SHT_NOBITS);
        let claimed = stored.fold(0_u64, |sum, section| sum.saturating_add(section.sh_size.get(Le)));
        (is_plain && claimed <= 2 * bytes.len() as u64).then_some(Self { header, programs, sections, strings })
    }
}

/// A section whose name is at a place in the table of names.
fn new_section(name: u64) -> Option<SectionHeader64<Le>> {
    let zero = || U64::new(Le, 0);
    Some(SectionHeader64 {
        sh_name: U32::new(Le, u32::try_from(name).ok()?),
        sh_type: U32::new(Le, SHT_PROGBITS),
        sh_flags: U64::new(Le, SectionFlags(0)),
        sh_addr: zero(),
        sh_offset: zero(),
        sh_size: zero(),
        sh_link: U32::new(Le, 0),
        sh_info: U32::new(Le, 0),
        sh_addralign: U64::new(Le, 1),
        sh_entsize: zero(),
    })
}

/// Puts the section headers behind everything, and the file header with their place before it.
fn finish(mut out: Vec<u8>, header: &FileHeader64<Le>, headers: &[SectionHeader64<Le>]) -> Option<Vec<u8>> {
    out.resize(out.len().next_multiple_of(8), 0);
    let mut header = *header;
    header.e_shoff = U64::new(Le, out.len() as u64);
    header.e_shnum = U16::new(Le, u16::try_from(headers.len()).ok().filter(|count| *count < 0xff00)?);
    out.extend_from_slice(bytes_of_slice(headers));
    out.get_mut(..size_of::<FileHeader64<Le>>())?.copy_from_slice(bytes_of(&header));
    Some(out)
}

/// Whether a section keeps its place: it is loaded, or has no bytes.
fn is_loaded(section: &SectionHeader64<Le>) -> bool {
    let kind = section.sh_type.get(Le);
    section.sh_flags.get(Le).contains(SHF_ALLOC) || kind == SHT_NOBITS || kind == SHT_NULL
}

/// How many bytes of the file keep their place.
fn loaded(
    header: &FileHeader64<Le>,
    programs: &[ProgramHeader64<Le>],
    sections: &[SectionHeader64<Le>],
) -> Option<usize> {
    let table = header.e_phoff.get(Le).checked_add(size_of_val(programs) as u64)?;
    let mut end = table.max(size_of::<FileHeader64<Le>>() as u64);
    for program in programs.iter().filter(|program| program.p_type.get(Le) == PT_LOAD) {
        end = end.max(program.p_offset.get(Le).checked_add(program.p_filesz.get(Le))?);
    }
    for section in sections.iter().filter(|section| is_loaded(section) && section.sh_type.get(Le) != SHT_NOBITS) {
        end = end.max(section.sh_offset.get(Le).checked_add(section.sh_size.get(Le))?);
    }
    usize::try_from(end).ok()
}

fn data<'b>(bytes: &'b [u8], section: &SectionHeader64<Le>) -> Option<&'b [u8]> {
    let start = usize::try_from(section.sh_offset.get(Le)).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(section.sh_size.get(Le)).ok()?)?)
}

/// Compresses the bytes of a section, if that makes them fewer.
fn compress(section: &mut SectionHeader64<Le>, data: &mut Vec<u8>) {
    let chdr = CompressionHeader64::<Le> {
        ch_type: U32::new(Le, ELFCOMPRESS_ZLIB),
        ch_reserved: U32::new(Le, 0),
        ch_size: U64::new(Le, data.len() as u64),
        ch_addralign: section.sh_addralign,
    };
    let mut packed = ZlibEncoder::new(bytes_of(&chdr).to_vec(), Compression::default());
    let Some(packed) = packed.write_all(data).ok().and_then(|()| packed.finish().ok()) else { return };
    if packed.len() < data.len() {
        section.sh_flags = U64::new(Le, section.sh_flags.get(Le) | SHF_COMPRESSED);
        section.sh_addralign = U64::new(Le, align_of_val(&chdr).max(8) as u64);
        *data = packed;
    }
}

fn put(out: &mut Vec<u8>, section: &mut SectionHeader64<Le>, data: &[u8]) {
    // An alignment is the file's word; more than a page is not worth its padding.
    let align = usize::try_from(section.sh_addralign.get(Le)).unwrap_or(1).clamp(1, 4096);
    out.resize(out.len().next_multiple_of(align), 0);
    section.sh_offset = U64::new(Le, out.len() as u64);
    section.sh_size = U64::new(Le, data.len() as u64);
    out.extend_from_slice(data);
}
