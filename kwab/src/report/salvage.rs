//! Makes a sound dump of what survives in a damaged one.

use std::io::{self, Write};

use kwab_format::record::{Note, NoteKind, Source};
use kwab_format::{BootId, DumpId, FileHeader, SectionKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::DumpFile;
use crate::model::emit::DumpWriter;

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

/// Copies the sound sections of `file` into a new dump, with a note per defect and the origin.
///
/// # Errors
/// When `out` fails. Sections that become unreadable while they are copied count as lost.
pub fn salvage(file: &DumpFile, name: &str, out: &mut dyn Write) -> Result<SalvageReport, SalvageError> {
    let old = file.header.map(|header| header.dump_id).or_else(|| Some(file.sections.first()?.header.dump_id));
    let old = old.unwrap_or_default();
    let boot = file.header.map_or(BootId([0; 16]), |header| header.boot_id);
    // Another dump, and the same one every time.
    let id = DumpId(old.0.rotate_left(1) ^ 0x5a1f_a6ed_0000_0001);
    let mut writer = DumpWriter::new(out, FileHeader::new(id, boot));
    let mut lost: Vec<String> = file.defects.iter().map(ToString::to_string).collect();
    let mut sections = 0;
    let mut records = 0;
    for (index, section) in file.sections.iter().enumerate() {
        match file.packed_payload(index) {
            Ok(payload) => {
                writer.put_section(&section.header, &payload);
                sections += 1;
                records += u64::from(section.header.records);
            }
            Err(defect) => lost.push(defect.to_string()),
        }
    }
    for text in &lost {
        let text = format!("lost before salvage: {text}");
        let note = Note { kind: Some(NoteKind::DEFECT), text: Some(text.as_bytes()), ..Note::default() };
        writer.put(SectionKind::NOTES, &note);
    }
    let source = Source {
        name: Some(name.as_bytes()),
        length: Some(file.len),
        dialect: Some(b"kwab"),
        dump_id: Some(old.0),
        ..Source::default()
    };
    writer.put(SectionKind::NOTES, &source);
    writer.finish()?;
    Ok(SalvageReport { schema: SCHEMA, input: name.to_string(), output: String::new(), sections, records, lost })
}
