//! Integrity alone: every checksum, every record, the totals of the end section, and what is wrong with them.

use std::collections::HashMap;

use kwab_format::defect::Counted;
use kwab_format::record::{End, KindTotal};
use kwab_format::{AnyRecord, Defect, DefectKind, Records, SectionKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{DumpFile, SectionInfo};

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

/// A defect of a dump: what, where, and which sections it costs.
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
    /// The defect as a sentence.
    pub text: String,
}

/// Malformed records of one section that are named one by one.
const MOST_RECORDS: u64 = 16;

/// Checks every section against its checksums, and the dump for completeness.
pub fn check(file: &mut DumpFile, name: &str) -> CheckReport {
    file.verify_all();
    check_sections(file);
    check_totals(file);
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

/// Unpacks every payload and decodes every record in it.
fn check_sections(file: &mut DumpFile) {
    // Index and end sections hold records like any other.
    for at in 0..file.sections.len() + file.tables.len() {
        // What the payload of a later version holds is not known.
        let info = file.sections.get(at).or_else(|| file.tables.get(at - file.sections.len()));
        let Some(info) = info.copied().filter(|info| info.header.version == 0) else { continue };
        let found = match file.payload_of(&info) {
            Ok(payload) => check_records(&info, &payload),
            Err(defect) => vec![defect],
        };
        found.into_iter().for_each(|defect| file.add_defect(defect));
    }
}

/// What is wrong with the records of a payload whose checksum is right.
fn check_records(info: &SectionInfo, payload: &[u8]) -> Vec<Defect> {
    let header = &info.header;
    let at = |kind, length: usize| {
        Defect::new(kind, info.offset, length as u64).blame(header.seq, header.seq, Some(header.kind))
    };
    let mut found = Vec::new();
    let (mut count, mut bad) = (0_u32, 0);
    let mut records = Records::new(payload);
    for raw in records.by_ref() {
        if let Err(error) = raw.decode() {
            bad += 1;
            if bad <= MOST_RECORDS {
                found.push(at(DefectKind::BadRecord { record: count, error }, raw.body.len()));
            }
        }
        count = count.saturating_add(1);
    }
    if bad > MOST_RECORDS {
        found.push(at(DefectKind::Further { count: bad - MOST_RECORDS }, 0));
    }
    if !records.rest().is_empty() {
        found.push(at(DefectKind::RecordTail, records.rest().len()));
    }
    if count != header.records {
        found.push(at(DefectKind::RecordCount { claimed: header.records, found: count }, 0));
    }
    found
}

/// What there is of a kind of section, or of all.
#[derive(Debug, Clone, Copy, Default)]
struct There {
    sections: u64,
    records: u64,
    bytes: u64,
}

/// Compares what the last end section counts with what is there. Where sections are lost, their defects say so already.
fn check_totals(file: &mut DumpFile) {
    if file.defects.iter().any(|defect| defect.sections.is_some()) {
        return;
    }
    let Some(end) = file.tables.iter().rfind(|info| info.header.kind == SectionKind::END).copied() else { return };
    let mut all = There { bytes: end.offset, ..There::default() };
    let mut kinds: HashMap<SectionKind, There> = HashMap::new();
    for info in file.sections.iter().chain(&file.tables).filter(|info| info.header.kind != SectionKind::END) {
        let of_kind = kinds.entry(info.header.kind).or_default();
        of_kind.bytes += u64::from(info.header.payload_len);
        for there in [of_kind, &mut all] {
            there.sections += 1;
            there.records += u64::from(info.header.records);
        }
    }
    let (mut found, mut last) = (Vec::new(), Vec::new());
    for record in Records::new(&file.end).filter_map(|raw| raw.decode().ok()) {
        match record {
            // Kind 0 sums up the kinds for which the writer had no room.
            AnyRecord::KindTotal(KindTotal { kind: Some(kind @ 1..), sections, records, bytes, .. }) => {
                let kind = SectionKind(kind);
                let there = kinds.get(&kind).copied().unwrap_or_default();
                compare((sections, records, bytes), there, Some(kind), &end, &mut found);
            }
            // Of several the last counts.
            AnyRecord::End(End { sections, records, bytes, .. }) => {
                last.clear();
                compare((sections, records, bytes), all, None, &end, &mut last);
            }
            _ => {}
        }
    }
    found.into_iter().chain(last).for_each(|defect| file.add_defect(defect));
}

/// Compares counted sections, records and bytes with what is there.
fn compare(
    (sections, records, bytes): (Option<u32>, Option<u64>, Option<u64>),
    there: There,
    kind: Option<SectionKind>,
    end: &SectionInfo,
    found: &mut Vec<Defect>,
) {
    differ(Counted::Sections, sections.map(u64::from), there.sections, kind, end, found);
    differ(Counted::Records, records, there.records, kind, end, found);
    differ(Counted::Bytes, bytes, there.bytes, kind, end, found);
}

fn differ(
    what: Counted,
    claimed: Option<u64>,
    there: u64,
    kind: Option<SectionKind>,
    end: &SectionInfo,
    found: &mut Vec<Defect>,
) {
    if let Some(claimed) = claimed.filter(|claimed| *claimed != there) {
        let mut defect = Defect::new(DefectKind::Totals { what, claimed, found: there }, end.offset, 0);
        // Named by the kind that is counted wrongly; no section is lost by it.
        defect.section_kind = kind;
        found.push(defect);
    }
}
