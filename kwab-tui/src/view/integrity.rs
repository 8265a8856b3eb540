//! Sections and what is wrong with them, what the dump lacks and what that weakens, what the writer remarked.

use kwab::model::memory::Budget;
use kwab::report::check::{CheckReport, SectionReport};
use kwab::report::inspect::Report;

use super::table::{Table, TableRow, kept};
use super::{Column, Key, Row, Slot, number, text};
use crate::text::{Line, bytes, count, grouped};
use crate::theme::Tone;

const COLUMNS: &[Column] = &[
    Column::number("section", 7, 1),
    Column::new("kind", 14, 0),
    Column::number("offset", 12, 3),
    Column::number("bytes", 10, 2),
    Column::number("records", 9, 2),
    Column::rest("state"),
];

/// Damage first, then what is missing, remarks, kernel and boot, and every section, as far as `budget` has room for
/// their rows. `checked` is whether all checksums have been looked at.
#[must_use]
pub fn integrity(check: &CheckReport, report: &Report, checked: bool, budget: &Budget) -> Table {
    let sections = check.sections.iter().map(|section| of_section(section, checked));
    let (rows, left_out) = kept(damage(check).chain(told(report)).chain(sections), budget);
    Table {
        slot: Slot::Integrity,
        columns: COLUMNS,
        fields: &["kind", "bytes", "records", "state"],
        rows,
        command: "kwab check DUMP",
        when_empty: "no section survives in this dump".to_string(),
        summary: Some(summary(check, report, checked)),
        flame: None,
        left_out,
    }
}

fn damage(check: &CheckReport) -> impl Iterator<Item = TableRow> {
    check.defects.iter().map(|defect| {
        let offset = format!("{:#x}", defect.offset);
        let detail = vec![
            Line::of(Tone::Alarm, defect.text.clone()),
            Line::field("at byte", defect.offset.to_string()),
            Line::field("affects", bytes(defect.length)),
            Line::plain("kwab salvage keeps what survives"),
        ];
        let number = defect.first_section.map_or_else(|| "–".to_string(), |number| number.to_string());
        said("damaged", number, offset, defect.text.clone(), Tone::Alarm, detail)
    })
}

/// What is missing, remarks, kernel and boot.
fn told(report: &Report) -> impl Iterator<Item = TableRow> {
    let none = String::new;
    let missing = report.completeness.missing.iter().map(move |gap| {
        let told = format!("{}: {}", gap.what, gap.weakens);
        let detail =
            vec![Line::of(Tone::Care, format!("not in this dump: {}", gap.what)), Line::plain(gap.weakens.clone())];
        said("missing", none(), none(), told, Tone::Care, detail)
    });
    let remarks = report.remarks.iter().map(move |remark| {
        let mut detail = vec![Line::plain(remark.text.clone()), Line::field("kind", remark.kind.clone())];
        detail.extend(remark.line.map(|line| Line::field("line", line.to_string())));
        said(&remark.kind, none(), none(), remark.text.clone(), Tone::Plain, detail)
    });
    let facts = report.meta.iter().map(move |fact| {
        let detail = vec![Line::of(Tone::Head, fact.name.clone()), Line::plain(fact.value.clone())];
        said(&fact.name, none(), none(), fact.value.clone(), Tone::Dim, detail)
    });
    missing.chain(remarks).chain(facts)
}

fn of_section(section: &SectionReport, checked: bool) -> TableRow {
    let state = if checked { "sound" } else { "not checked yet" };
    let cells = [
        section.number.to_string(),
        section.kind.clone(),
        format!("{:#x}", section.offset),
        bytes(u64::from(section.bytes)),
        grouped(u64::from(section.records)),
        state.to_string(),
    ];
    let detail = vec![
        Line::of(Tone::Head, format!("section {} ({})", section.number, section.kind)),
        Line::field("at byte", section.offset.to_string()),
        Line::field("payload", format!("{} bytes", grouped(u64::from(section.bytes)))),
        Line::field("records", grouped(u64::from(section.records))),
        Line::field("checksum", if checked { "good" } else { "not checked yet" }),
    ];
    TableRow {
        row: Row::of(Tone::Plain, cells).tone(5, if checked { Tone::Good } else { Tone::Dim }),
        detail,
        values: vec![text(section.kind.clone()), number(section.bytes), number(section.records), text(state)],
        keys: vec![
            Key::Number(section.number.into()),
            Key::Text(section.kind.clone()),
            Key::Number(section.offset),
            Key::Number(section.bytes.into()),
            Key::Number(section.records.into()),
        ],
        ..TableRow::default()
    }
}

fn summary(check: &CheckReport, report: &Report, checked: bool) -> Line {
    let sections = count(check.sections.len(), "section", "sections");
    let tone = if check.defects.is_empty() { Tone::Good } else { Tone::Alarm };
    let state = match (check.defects.len(), checked, check.sound) {
        (0, true, true) => "all checksums good".to_string(),
        (0, true, false) => "sound, but the dump has no end: it was cut".to_string(),
        (0, false, _) => "no damage seen so far".to_string(),
        (defects, ..) => count(defects, "defect", "defects"),
    };
    let missing = report.completeness.missing.len();
    let lacks =
        if missing == 0 { "complete".to_string() } else { format!("{} missing", count(missing, "thing", "things")) };
    Line::of(tone, format!("{sections}, {}, {state}; ", bytes(check.bytes))).and(Tone::Plain, lacks)
}

fn said(kind: &str, section: String, offset: String, told: String, tone: Tone, detail: Vec<Line>) -> TableRow {
    let cells = [section, kind.to_string(), offset, String::new(), String::new(), told.clone()];
    TableRow {
        row: Row::of(tone, cells),
        detail,
        values: vec![text(kind), None, None, text(told)],
        ..TableRow::default()
    }
}
