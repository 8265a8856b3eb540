//! Puts files of images into a dump, so that one file has all that a reader needs.

use std::collections::HashSet;
use std::io::{self, Write};

use kwab_format::record::ImageFile;
use kwab_format::{Fields as _, RecordType as _, Records, SectionKind, lz4};

use crate::model::DumpFile;
use crate::model::bulk;
use crate::model::emit::DumpWriter;
use crate::report::salvage;

/// Bytes of a file in one record, and in one section: what a reader unpacks at a time.
const PIECE: usize = 1 << 20;

/// A file that goes into a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOfImage {
    /// Name without a directory.
    pub name: String,
    /// GNU build-id, as raw bytes.
    pub build_id: Vec<u8>,
    /// The bytes of the ELF file.
    pub bytes: Vec<u8>,
    /// Whether it has line tables.
    pub has_lines: bool,
}

/// Writes a copy of `file` that carries these files, each in the place of one that it carries with the same build-id.
/// Gives what the copy lacks, one sentence per defect.
///
/// # Errors
/// When `out` fails.
pub fn embed(file: &DumpFile, name: &str, images: &[FileOfImage], out: &mut dyn Write) -> io::Result<Vec<String>> {
    let mut writer = DumpWriter::new(out, salvage::header(file, 2));
    let replaced: HashSet<&[u8]> = images.iter().map(|image| image.build_id.as_slice()).collect();
    let copied = salvage::copy(file, &mut writer, "lost before images were added", |index| {
        !build_id_of(file, index).is_some_and(|id| replaced.contains(id.as_slice()))
    });
    let mut table = Box::new([0; lz4::TABLE_LEN]);
    for image in images {
        for (number, piece) in image.bytes.chunks(PIECE).enumerate() {
            let record = ImageFile {
                build_id: Some(&image.build_id),
                name: Some(image.name.as_bytes()),
                length: Some(image.bytes.len() as u64),
                file_offset: Some((number * PIECE) as u64),
                bytes: Some(piece),
                ..ImageFile::default()
            };
            let mut records = Vec::new();
            if bulk::append(&mut records, &record, piece.len() + image.name.len() + image.build_id.len()) {
                writer.put_compressed(SectionKind::IMAGE_FILES, 1, &records, None, &mut table);
            }
        }
    }
    writer.put(SectionKind::NOTES, &salvage::origin(file, name));
    writer.finish()?;
    Ok(copied.lost)
}

/// The build-id of the image whose file the section of this index carries; one section has pieces of one file.
fn build_id_of(file: &DumpFile, index: usize) -> Option<Vec<u8>> {
    if file.sections.get(index)?.header.kind != SectionKind::IMAGE_FILES {
        return None;
    }
    let payload = file.payload(index).ok()?;
    let first = Records::new(&payload).find(|raw| raw.kind == ImageFile::KIND)?;
    let (piece, _) = ImageFile::decode(first.body).ok()?;
    piece.build_id.map(<[u8]>::to_vec)
}
