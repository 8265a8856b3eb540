//! Makes a dump that may be shared: what users' programs held, named or typed is removed, what a triage needs stays.
//!
//! The rule is an allow-list ([`table`]): of every field of every kind of record it says what the field may hold, and
//! each class of content has one fate per [`Policy`]. What the table does not know is removed: kinds, fields, sections,
//! the bytes between sections, values that enumerations have no name for. Numbers are judged by their values, because a
//! register or a word of a stack may hold eight bytes of a text (`known`). The dump is written again from nothing, so
//! its checksums, its index and its totals are those of what stays, and it says itself what was removed: a note and
//! counters of the group `redacted`.

mod known;
mod memory;
mod record;
mod removed;
pub mod table;
#[cfg(test)]
mod tests;
mod texts;

use std::io::{self, Write};
use std::rc::Rc;

use kwab_format::record::{Counter, DroppedSection, End, IndexEntry, KindTotal, Note, NoteKind, RecordKind, Records};
use kwab_format::{BootId, Defect, DefectKind, DumpId, FileHeader, RecordType as _, SectionKind};
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use removed::RemovedField;

use crate::model::emit::DumpWriter;
use crate::model::{DumpFile, losses};

/// The version of [`RedactReport`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// What stays of the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The kernel's memory and names, nothing of users.
    Kernel,
    /// Kinds, sizes, addresses and how they relate; no memory and no text but fixed words.
    Structure,
}

impl Policy {
    /// The name in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Structure => "structure",
        }
    }
}

/// What a redaction removed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RedactReport {
    /// Version of this form.
    pub schema: u32,
    /// The dump that was read.
    pub input: String,
    /// The one that was written.
    pub output: String,
    /// What stays of the dump.
    pub policy: Policy,
    /// Records that stay, whole or in part.
    pub records: u64,
    /// What was removed, by field, in the order of the format.
    pub removed: Vec<RemovedField>,
    /// Sections of kinds or versions that this kwab does not know, which were removed.
    pub unknown_sections: u64,
    /// Bytes of them.
    pub unknown_bytes: u64,
    /// What was lost before: defects of the dump that was read.
    pub lost: Vec<String>,
}

impl RedactReport {
    /// Values that were removed or shortened.
    #[must_use]
    pub fn values(&self) -> u64 {
        self.removed.iter().map(|field| field.values).sum()
    }

    /// Bytes of them and of unknown sections.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.removed.iter().map(|field| field.bytes).fold(self.unknown_bytes, u64::saturating_add)
    }
}

/// Writes what may be shared of `file`, by `policy`.
///
/// # Errors
/// When `out` fails.
pub fn redact(file: &DumpFile, name: &str, policy: Policy, out: &mut dyn Write) -> io::Result<RedactReport> {
    let known = Rc::new(known::Known::of(file));
    // The boot is not named: it is in the logs of the machine.
    let id = id_of(file, policy, &known);
    let mut writer = DumpWriter::new(out, FileHeader::new(id, BootId::default()));
    let mut rewriter = record::Rewriter::new(policy, known);
    let mut report = RedactReport {
        schema: SCHEMA,
        input: name.to_owned(),
        output: String::new(),
        policy,
        records: 0,
        removed: Vec::new(),
        unknown_sections: 0,
        unknown_bytes: 0,
        lost: file.defects.iter().map(told).collect(),
    };
    for (index, section) in file.sections.iter().enumerate() {
        let header = &section.header;
        if header.kind.name().is_none() || header.version != 0 {
            report.unknown_sections += 1;
            report.unknown_bytes += u64::from(header.payload_len);
            continue;
        }
        let payload = match file.payload(index) {
            Ok(payload) => payload,
            Err(defect) => {
                report.lost.push(told(&defect));
                continue;
            }
        };
        for raw in Records::new(&payload) {
            if is_of_writer(raw.kind) {
                continue;
            }
            if let Some(kept) = rewriter.rewrite(raw) {
                writer.put_raw(header.kind, kept);
                report.records += 1;
            }
        }
    }
    if !file.ended && !report.lost.iter().any(|lost| lost.contains("end section")) {
        report.lost.push("the dump has no end section".to_owned());
    }
    // Numbers of kinds and reasons, nothing else: a redacted dump must not seem to hold everything.
    for lost in losses(file) {
        let stamp = kwab_format::record::Stamp::default();
        writer.put(SectionKind::NOTES, &DroppedSection { stamp, ..lost });
    }
    report.removed = rewriter.removed.fields();
    tell(&mut writer, &report);
    let too_long = writer.too_long();
    writer.finish()?;
    if too_long > 0 {
        report.lost.push(format!("{too_long} records are longer than a section of a redacted dump can be"));
    }
    Ok(report)
}

/// Another dump, and the same one every time: named after what stays of its identity and its cause. The old id may be
/// a digest of the file that was read, which tells what was removed to those who can guess.
fn id_of(file: &DumpFile, policy: Policy, known: &Rc<known::Known>) -> DumpId {
    let mut rewriter = record::Rewriter::new(policy, Rc::clone(known));
    let mut digest = Sha256::new();
    digest.update([policy as u8]);
    for (index, section) in file.sections.iter().enumerate() {
        let header = &section.header;
        digest.update(header.kind.0.to_le_bytes());
        digest.update(header.records.to_le_bytes());
        if !matches!(header.kind, SectionKind::IDENTITY | SectionKind::CAUSE) || header.version != 0 {
            continue;
        }
        let Ok(payload) = file.payload(index) else { continue };
        for raw in Records::new(&payload).filter(|raw| !is_of_writer(raw.kind)) {
            if let Some(kept) = rewriter.rewrite(raw) {
                digest.update(kept.body);
            }
        }
    }
    let digest = digest.finalize();
    DumpId(digest.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)))
}

/// A defect without what is a digest of bytes that are removed, or the id of another dump.
fn told(defect: &Defect) -> String {
    let text = defect.to_string();
    match defect.kind {
        DefectKind::BadPayload { .. } => text.replace(&defect.kind.to_string(), "the payload's CRC is wrong"),
        DefectKind::Foreign { .. } => text.replace(&defect.kind.to_string(), "a section of another dump lies here"),
        _ => text,
    }
}

/// Whether records of a kind are made by the writer of a dump, about its own sections.
const fn is_of_writer(kind: RecordKind) -> bool {
    matches!(kind, IndexEntry::KIND | KindTotal::KIND | End::KIND)
}

/// Says in the dump itself what was removed.
fn tell<W: Write>(writer: &mut DumpWriter<W>, report: &RedactReport) {
    let text = format!(
        "redacted by kwab {}, policy {}: {} values with {} bytes were removed or shortened; the counters say which",
        env!("CARGO_PKG_VERSION"),
        report.policy.name(),
        report.values(),
        report.bytes(),
    );
    let note = |kind, text: &str, writer: &mut DumpWriter<W>| {
        writer.put(SectionKind::NOTES, &Note { kind: Some(kind), text: Some(text.as_bytes()), ..Note::default() });
    };
    note(NoteKind::REMARK, &text, writer);
    for lost in report.lost.iter().take(256) {
        note(NoteKind::DEFECT, &format!("lost before redaction: {lost}"), writer);
    }
    for field in &report.removed {
        for (value, unit) in [(field.values, "values"), (field.bytes, "bytes")] {
            let counter = Counter {
                group: Some(b"redacted"),
                name: Some(field.field.as_bytes()),
                value: i64::try_from(value).ok(),
                unit: Some(unit.as_bytes()),
                ..Counter::default()
            };
            writer.put(SectionKind::COUNTERS, &counter);
        }
    }
}
