//! Integrity alone: every checksum, and what is damaged.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::DumpFile;

/// The version of [`CheckReports`]' JSON form.
pub const SCHEMA: u32 = 1;

/// What `kwab check --json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckReports {
    /// Version of this form.
    pub schema: u32,
    /// One per dump, in the order they were named.
    pub dumps: Vec<CheckReport>,
    /// Errors about the files that could not be read or are not dumps.
    pub unreadable: Vec<String>,
}

/// The state of one dump.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckReport {
    /// The dump as the user named it.
    pub file: String,
    /// Whether nothing is damaged or missing.
    pub sound: bool,
    /// Its length, bytes.
    pub bytes: u64,
    /// Records in sound sections.
    pub records: u64,
    /// Its sound sections.
    pub sections: Vec<SectionReport>,
    /// What is damaged.
    pub defects: Vec<DefectReport>,
}

/// A sound section.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SectionReport {
    /// Its number in the dump.
    pub number: u32,
    /// What it is about.
    pub kind: String,
    /// Where its header stands.
    pub offset: u64,
    /// Bytes of its payload.
    pub bytes: u32,
    /// Records in it.
    pub records: u32,
}

/// A defect.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DefectReport {
    /// Where it begins.
    pub offset: u64,
    /// How many bytes it affects; 0 when bytes are missing rather than wrong.
    pub length: u64,
    /// The first section that is lost by it.
    pub first_section: Option<u32>,
    /// The last section that is lost by it.
    pub last_section: Option<u32>,
    /// In words.
    pub text: String,
}

/// Checks everything.
pub fn check(file: &mut DumpFile, name: &str) -> CheckReport {
    file.verify_all();
    let sections: Vec<_> = file
        .sections
        .iter()
        .map(|section| SectionReport {
            number: section.header.seq,
            kind: section.header.kind.to_string(),
            offset: section.offset,
            bytes: section.header.payload_len,
            records: section.header.records,
        })
        .collect();
    let defects: Vec<_> = file
        .defects
        .iter()
        .map(|defect| DefectReport {
            offset: defect.offset,
            length: defect.length,
            first_section: defect.sections.map(|sections| sections.0),
            last_section: defect.sections.map(|sections| sections.1),
            text: defect.to_string(),
        })
        .collect();
    CheckReport {
        file: name.to_string(),
        sound: defects.is_empty() && file.ended,
        bytes: file.len,
        records: sections.iter().map(|section| u64::from(section.records)).sum(),
        sections,
        defects,
    }
}
