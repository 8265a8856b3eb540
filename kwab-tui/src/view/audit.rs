//! What the audit of mappings and page tables found, and which pages are not what their files say.

use kwab::analysis::Context;
use kwab::analysis::audit::{Severity, scope};
use kwab::analysis::verify::{Backing, verified};
use kwab::model::memory::Budget;

use super::table::{Table, TableRow, kept};
use super::{Column, Link, Row, Slot, Target, number, text};
use crate::text::{Line, address};
use crate::theme::Tone;

const AUDIT: &[Column] = &[
    Column::new("severity", 9, 3),
    Column::new("rule", 14, 0),
    Column::number("count", 7, 1),
    Column::new("first", 18, 2),
    Column::rest("what is wrong"),
];

/// Violated rules as rows.
#[must_use]
pub fn audit(ctx: &Context<'_, '_>) -> Table {
    let (mappings, entries, frames) = scope(ctx.case);
    let rows = ctx.audit.iter().map(|finding| {
        let (word, tone) = match finding.severity {
            Severity::Error => ("error", Tone::Alarm),
            Severity::Warning => ("warning", Tone::Care),
            Severity::Note => ("note", Tone::Plain),
        };
        let mut detail = vec![
            Line::of(tone, format!("{}: {}", finding.rule, finding.title)),
            Line::field("count", finding.count.to_string()),
        ];
        detail.extend(finding.pid.map(|pid| Line::field("process", pid.to_string())));
        for witness in &finding.witnesses {
            detail.push(Line::of(Tone::Dim, "• ").and(Tone::Plain, witness.text.clone()));
        }
        detail.extend(finding.weakened.iter().map(|why| Line::of(Tone::Care, format!("weaker: {why}"))));
        let mut links = Vec::new();
        if let Some(addr) = finding.addr {
            links.push(Link::new(format!("page of {addr:#x}"), Target::Page(addr)));
            links.push(Link::new(format!("mapping of {addr:#x}"), Target::Mapping(addr)));
        }
        let records = finding.witnesses.iter().filter_map(|witness| Some((witness.text.clone(), witness.at?)));
        links.extend(records.map(|(label, at)| Link::new(label, Target::Record(at))));
        let first = finding.addr.map(address).unwrap_or_default();
        let cells =
            [word.to_string(), finding.rule.to_string(), finding.count.to_string(), first, finding.title.to_string()];
        TableRow {
            row: Row::of(Tone::Plain, cells).tone(0, tone).tone(1, tone),
            detail,
            links,
            values: vec![text(finding.rule), text(word), finding.pid.and_then(number), finding.addr.and_then(number)],
            alike: Some(finding.rule.to_string()),
            ..TableRow::default()
        }
    });
    Table {
        slot: Slot::Audit,
        columns: AUDIT,
        fields: &["rule", "severity", "pid", "addr"],
        rows: rows.collect(),
        command: "kwab audit-vm DUMP",
        when_empty: match (mappings, entries) {
            (0, 0) => "nothing to audit: no mappings and no page-table entries in this dump".to_string(),
            _ => format!("no rule is violated ({mappings} mappings, {entries} entries and {frames} frames audited)"),
        },
        summary: Some(Line::of(Tone::Dim, format!("audited: {mappings} mappings, {entries} entries, {frames} frames"))),
        flame: None,
        left_out: 0,
    }
}

const CHECKS: &[Column] = &[
    Column::new("page", 18, 0),
    Column::new("rule", 14, 2),
    Column::number("at", 7, 3),
    Column::rest("content found"),
    Column::new("file", 26, 4),
    Column::number("pid", 6, 5).incidental(),
];

/// Wrong pages as rows.
#[must_use]
pub fn checks(ctx: &Context<'_, '_>, backing: &Backing, budget: &Budget) -> Table {
    let compared = verified(ctx.case, backing);
    let rows = ctx.pages.iter().map(|page| {
        let offset = page.file_offset.map_or(String::new(), |offset| format!(" +{offset:#x}"));
        let file = format!("{}{offset}", page.path);
        let at = page.first_diff.map_or(String::new(), |at| format!("+{at:#x}"));
        let mut detail = vec![
            Line::of(Tone::Alarm, format!("{}: {}", page.rule, page.content.describe())),
            Line::field("page", address(page.vaddr)),
            Line::field("file", file.clone()),
            Line::field("expected", page.expected.clone()),
            Line::field("found", page.actual.clone()),
        ];
        detail.extend(page.weakened.iter().map(|why| Line::of(Tone::Care, format!("weaker: {why}"))));
        let cells = [
            address(page.vaddr),
            page.rule.to_string(),
            at,
            page.content.describe(),
            file.clone(),
            page.pid.map_or(String::new(), |pid| pid.to_string()),
        ];
        TableRow {
            row: Row::of(Tone::Plain, cells).tone(1, Tone::Alarm),
            detail,
            links: vec![
                Link::new(format!("page of {:#x}", page.vaddr), Target::Page(page.vaddr)),
                Link::new(format!("record {}", page.at), Target::Record(page.at)),
                Link::new(format!("bytes at {:#x}", page.vaddr), Target::Bytes(page.vaddr)),
            ],
            at: Some(page.at),
            alike: Some(format!("{} {file}", page.rule)),
            values: vec![number(page.vaddr), text(page.rule), text(file), page.pid.and_then(number)],
            ..TableRow::default()
        }
    });
    let (rows, left_out) = kept(rows, budget);
    let (kernel, here, not) = (compared.by_kernel, compared.here, compared.not_comparable);
    Table {
        slot: Slot::Checks,
        columns: CHECKS,
        fields: &["page", "rule", "file", "pid"],
        rows,
        command: "kwab verify-pages DUMP",
        when_empty: match kernel + here {
            0 => format!("no page could be compared ({not} lack their file): --backing INITRAMFS|DIR gives the files"),
            all => format!("all {all} compared pages match their files"),
        },
        summary: Some(Line::of(
            Tone::Dim,
            format!("compared: {kernel} by the kernel, {here} here; {not} not comparable"),
        )),
        flame: None,
        left_out,
    }
}
