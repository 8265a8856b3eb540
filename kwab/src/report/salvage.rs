//! Makes a sound dump of what survives in a damaged one.

use std::io::{self, Write};

use kwab_format::record::{Note, NoteKind, Source};
use kwab_format::{BootId, DumpId, FileHeader, SectionKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::emit::DumpWriter;
use crate::model::{DumpFile, losses};

/// The version of [`SalvageReport`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// What was saved and what was lost.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SalvageReport {
    /// Version of this form.
    pub schema: u32,
    /// The damaged dump.
    pub input: String,
    /// The sound one.
    pub output: String,
    /// Sections that survived.
    pub sections: usize,
    /// Records in them.
    pub records: u64,
    /// Defects, each of which cost something.
    pub lost: Vec<String>,
}

/// Why nothing was saved.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// The output failed.
    #[error("writing failed: {0}")]
    Write(#[from] io::Error),
}

/// What was copied of a dump.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copied {
    /// Sections that were.
    pub(crate) sections: usize,
    /// Records in them.
    pub(crate) records: u64,
    /// Defects, each of which cost something.
    pub(crate) lost: Vec<String>,
}

/// Copies the sound sections of `file` that are wanted, by their positions among its sections, into a dump that is
/// being written, with what is lost: a note per defect that begins with `words`, and what weakens conclusions.
pub(crate) fn copy<W: Write>(
    file: &DumpFile,
    writer: &mut DumpWriter<W>,
    words: &str,
    wanted: impl Fn(usize) -> bool,
) -> Copied {
    let mut copied = Copied { lost: file.defects.iter().map(ToString::to_string).collect(), ..Copied::default() };
    for (index, section) in file.sections.iter().enumerate().filter(|(index, _)| wanted(*index)) {
        match file.packed_payload(index) {
            Ok(payload) => {
                writer.put_section(&section.header, &payload);
                copied.sections += 1;
                copied.records += u64::from(section.header.records);
            }
            Err(defect) => copied.lost.push(defect.to_string()),
        }
    }
    for text in &copied.lost {
        let text = format!("{words}: {text}");
        let note = Note { kind: Some(NoteKind::DEFECT), text: Some(text.as_bytes()), ..Note::default() };
        writer.put(SectionKind::NOTES, &note);
    }
    losses(file).iter().for_each(|lost| writer.put(SectionKind::NOTES, lost));
    copied
}

/// The header of a copy of `file`, a dump of its own, the same one every time; `way` tells kinds of copies apart.
pub(crate) fn header(file: &DumpFile, way: u64) -> FileHeader {
    let boot = file.header.map_or(BootId([0; 16]), |header| header.boot_id);
    FileHeader::new(DumpId(id(file).0.rotate_left(1) ^ 0x5a1f_a6ed_0000_0000 ^ way), boot)
}

/// What a copy of `file` says of where it comes from.
pub(crate) fn origin<'a>(file: &DumpFile, name: &'a str) -> Source<'a> {
    Source {
        name: Some(name.as_bytes()),
        length: Some(file.len),
        dialect: Some(b"kwab"),
        dump_id: Some(id(file).0),
        ..Source::default()
    }
}

fn id(file: &DumpFile) -> DumpId {
    let of_sections = || file.sections.first().map(|section| section.header.dump_id);
    file.header.map(|header| header.dump_id).or_else(of_sections).unwrap_or_default()
}

/// Copies the sound sections of `file` into a new dump, with a note per defect and the origin.
///
/// # Errors
/// When `out` fails. Sections that become unreadable while they are copied count as lost.
pub fn salvage(file: &DumpFile, name: &str, out: &mut dyn Write) -> Result<SalvageReport, SalvageError> {
    let mut writer = DumpWriter::new(out, header(file, 1));
    let Copied { sections, records, lost } = copy(file, &mut writer, "lost before salvage", |_| true);
    writer.put(SectionKind::NOTES, &origin(file, name));
    writer.finish()?;
    Ok(SalvageReport { schema: SCHEMA, input: name.to_string(), output: String::new(), sections, records, lost })
}
