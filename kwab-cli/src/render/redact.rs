//! What redact prints: what was removed, and the table of fields.

use std::fmt::Write as _;

use kwab::plain;
use kwab::redact::table::{Field, Holds, STAMP, TABLE};
use kwab::redact::{Policy, RedactReport};

use super::{bytes, count, wrap};

/// Rows of removed fields that are printed.
const MOST_ROWS: usize = 24;

/// What was removed, the fields with the most bytes first.
pub(crate) fn redacted(report: &RedactReport) -> String {
    let records = count(report.records, "record", "records");
    let values = count(report.values(), "value", "values");
    let mut out = format!(
        "{}: {records} stay, policy {}; {values} with {} removed or shortened\n",
        plain::line(&report.output),
        report.policy.name(),
        bytes(report.bytes()),
    );
    let mut rows: Vec<_> = report.removed.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    for row in rows.iter().take(MOST_ROWS) {
        let values = count(row.values, "value", "values");
        let _ = writeln!(out, "  {:<36} {values:>16} {:>10}", row.field, bytes(row.bytes));
    }
    if rows.len() > MOST_ROWS {
        let more = count((rows.len() - MOST_ROWS) as u64, "more field", "more fields");
        let _ = writeln!(out, "  … and {more} (--json lists all)");
    }
    if report.unknown_sections > 0 {
        let sections = count(report.unknown_sections, "section", "sections");
        let _ = writeln!(out, "  {sections} of unknown kinds with {} removed", bytes(report.unknown_bytes));
    }
    for lost in report.lost.iter().take(64) {
        let _ = writeln!(out, "  lost: {}", wrap(lost, 72, "        "));
    }
    out
}

/// Every field: what it may hold, and its fate under each policy.
pub(crate) fn rules() -> String {
    let mut out = format!("{:<36} {:<10} {:<34} {}\n", "FIELD", "HOLDS", "KERNEL", "STRUCTURE");
    for rows in TABLE {
        list(&mut out, rows.name, rows.fields);
    }
    list(&mut out, "(any record)", STAMP);
    out
}

fn list(out: &mut String, name: &str, fields: &[Field]) {
    for field in fields {
        let name = format!("{name}.{}", field.name);
        if let Holds::List(inner) = field.holds {
            list(out, &name, inner);
            continue;
        }
        let fate = |policy| field.holds.under(policy);
        let kernel = fate(Policy::Kernel);
        let _ = writeln!(out, "{name:<36} {:<10} {kernel:<34} {}", field.holds.name(), fate(Policy::Structure));
    }
}
