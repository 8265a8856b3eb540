//! The images of a minidump: names, ranges and the identifiers of their debug information.

use std::io;

use kwab_format::record::ImageKind;
use minidump_common::format::{CvSignature, MINIDUMP_MODULE, MINIDUMP_STREAM_TYPE as StreamType, VS_FIXEDFILEINFO};
use scroll::{LE, Pread as _};

use super::super::elf_core::{HEAD, MOST_IMAGES, MOST_PATH, headers};
use super::super::file_memory::FileMemory;
use super::super::process::{CapturedMemory as _, ProcessImage};
use super::container::Container;
use super::linux::Auxv;

/// Bytes of an identifier in front of the name of its file.
const PDB70_HEAD: usize = 24;
/// Bytes of a CodeView record that are looked at.
const MOST_CV: usize = 4096;
/// Bytes of a GNU build-id that are believed.
const BUILD_IDS: std::ops::RangeInclusive<usize> = 4..=64;
/// The signature of a version that a module has.
const VERSION_SIGNATURE: u32 = 0xfeef_04bd;

/// The images, and a sentence for each whose debug information has another identifier than a build-id.
pub(super) fn read(
    container: &Container<'_>,
    memory: &FileMemory<'_>,
    auxv: &Auxv,
    remarks: &mut Vec<String>,
) -> io::Result<Vec<ProcessImage>> {
    const MOST_REMARKS: usize = 64;
    let rows: Vec<MINIDUMP_MODULE> = container.list("modules", StreamType::ModuleListStream, MOST_IMAGES as u32)?;
    let mut images = Vec::new();
    let mut head = vec![0; HEAD];
    for (number, row) in rows.into_iter().enumerate() {
        let (start, size) = (row.base_of_image, u64::from(row.size_of_image));
        let Some(end) = start.checked_add(size) else {
            container.lacks(format!("module {number}: {size} bytes from {start:#x} on are beyond the last address"));
            continue;
        };
        let path = container.utf16(row.module_name_rva.into(), MOST_PATH)?.unwrap_or_default();
        let kind = kind(number, &path, start..end, auxv);
        let mut image = ProcessImage {
            path: path.into_bytes(),
            range: (start, end),
            kind,
            version: version(&row.version_info),
            ..ProcessImage::default()
        };
        let found = memory.read(start, &mut head[..HEAD.min(row.size_of_image as usize)])?;
        if head[..found].starts_with(b"\x7fELF") {
            headers(&mut image, &head[..found]);
        }
        let code_view = container.bytes(&format!("identifier of module {number}"), row.cv_record, MOST_CV)?;
        match identifier(&code_view) {
            Some(Identifier::Build(id)) => image.build_id = image.build_id.or(Some(id)),
            Some(Identifier::Debug(id)) if remarks.len() < MOST_REMARKS => {
                remarks.push(format!("debug id of {}: {id}", String::from_utf8_lossy(&image.path)));
            }
            _ => {}
        }
        images.push(image);
    }
    Ok(images)
}

/// The first module is the program, unless the auxiliary vector says which one is.
fn kind(number: usize, path: &str, range: std::ops::Range<u64>, auxv: &Auxv) -> ImageKind {
    let executable = auxv.entry.map_or(number == 0, |entry| range.contains(&entry));
    match path {
        "linux-gate.so" | "linux-vdso.so" | "linux-vdso.so.1" | "[vdso]" => ImageKind::VDSO,
        _ if auxv.vdso == Some(range.start) => ImageKind::VDSO,
        _ if executable => ImageKind::EXECUTABLE,
        _ if auxv.base == Some(range.start) => ImageKind::INTERPRETER,
        _ => ImageKind::LIBRARY,
    }
}

/// What names the debug information of a module.
enum Identifier {
    Build(Vec<u8>),
    /// As Breakpad and symbol servers write it: GUID and age.
    Debug(String),
}

fn identifier(record: &[u8]) -> Option<Identifier> {
    let signature: u32 = record.pread_with(0, LE).ok()?;
    let rest = record.get(4..)?;
    if signature == CvSignature::Elf as u32 {
        // Writers that know none put zeros.
        let id = rest.to_vec();
        return Some(Identifier::Build(id)).filter(|_| BUILD_IDS.contains(&rest.len()) && rest.iter().any(|b| *b != 0));
    }
    if signature == CvSignature::Pdb70 as u32 && record.len() >= PDB70_HEAD {
        let (first, second, third) =
            (rest.pread_with::<u32>(0, LE), rest.pread_with::<u16>(4, LE), rest.pread_with::<u16>(6, LE));
        let age: u32 = rest.pread_with(16, LE).ok()?;
        let last: String = rest.get(8..16)?.iter().map(|byte| format!("{byte:02X}")).collect();
        return Some(Identifier::Debug(format!(
            "{:08X}{:04X}{:04X}{last}{age:x}",
            first.ok()?,
            second.ok()?,
            third.ok()?
        )));
    }
    None
}

/// `10.0.19041.1`.
fn version(info: &VS_FIXEDFILEINFO) -> Option<String> {
    let (high, low) = (info.file_version_hi, info.file_version_lo);
    (info.signature == VERSION_SIGNATURE && (high, low) != (0, 0))
        .then(|| format!("{}.{}.{}.{}", high >> 16, high & 0xffff, low >> 16, low & 0xffff))
}
