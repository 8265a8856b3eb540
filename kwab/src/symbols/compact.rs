//! Makes an image small enough to keep: the same ELF file with its debug sections compressed.
//!
//! What is loaded stays where it is in the file, so that program headers, code and unwind tables are untouched; every
//! other section follows behind it, `.debug_*` compressed (gABI, "Section Compression"), and the section headers come
//! last. One section is new, [`NAME`]: what the file was called, for the list of the store.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use object::LittleEndian as Le;
use object::elf::{
    CompressionHeader64, ELFCOMPRESS_ZLIB, FileHeader64, PT_LOAD, ProgramHeader64, SHF_ALLOC, SHF_COMPRESSED,
    SHT_NOBITS, SHT_NULL, SHT_PROGBITS, SectionHeader64,
};
use object::pod::{bytes_of, bytes_of_slice, from_bytes};
use object::read::elf::FileHeader as _;
use object::{U16, U32, U64};

/// The section with the name of the file.
pub(super) const NAME: &str = ".kwab.name";

/// The image with compressed debug sections and the name of its file; `None` when it is not a little-endian ELF file of
/// 64 bits, or has no section headers to say what is what.
pub(super) fn compacted(bytes: &[u8], name: &str) -> Option<Vec<u8>> {
    let header = FileHeader64::<Le>::parse(bytes).ok()?;
    header.endian().ok()?;
    let sections = header.section_headers(Le, bytes).ok().filter(|sections| !sections.is_empty())?;
    let programs = header.program_headers(Le, bytes).ok()?;
    let strings = usize::from(header.e_shstrndx.get(Le).0);
    if usize::from(header.e_shnum.get(Le)) != sections.len() || strings >= sections.len() {
        return None;
    }
    let names = header.section_strings(Le, bytes, sections).ok()?;
    let mut out = bytes.get(..loaded(header, programs, sections)?)?.to_vec();
    let mut headers = sections.to_vec();
    for (index, section) in headers.iter_mut().enumerate() {
        if is_loaded(section) {
            continue;
        }
        let mut data = data(bytes, section)?.to_vec();
        if index == strings {
            data.extend_from_slice(NAME.as_bytes());
            data.push(0);
        }
        let is_debug = names.get(section.sh_name.get(Le)).is_ok_and(|name| name.starts_with(b".debug_"));
        if is_debug && !section.sh_flags.get(Le).contains(SHF_COMPRESSED) {
            compress(section, &mut data);
        }
        put(&mut out, section, &data);
    }
    // The name of the new section is the last text of the table of names.
    let at = headers[strings].sh_size.get(Le).checked_sub(NAME.len() as u64 + 1)?;
    let mut named = SectionHeader64::<Le> {
        sh_name: U32::new(Le, u32::try_from(at).ok()?),
        sh_type: U32::new(Le, SHT_PROGBITS),
        sh_addralign: U64::new(Le, 1),
        ..*from_bytes::<SectionHeader64<Le>>(&[0; size_of::<SectionHeader64<Le>>()]).ok()?.0
    };
    put(&mut out, &mut named, name.as_bytes());
    headers.push(named);
    out.resize(out.len().next_multiple_of(8), 0);
    let mut header = *header;
    header.e_shoff = U64::new(Le, out.len() as u64);
    header.e_shnum = U16::new(Le, u16::try_from(headers.len()).ok().filter(|count| *count < 0xff00)?);
    out.extend_from_slice(bytes_of_slice(&headers));
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
