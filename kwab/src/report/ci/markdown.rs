//! The report as Markdown of one screen: a job's summary, a comment.
//!
//! Every string of a log is escaped so that it is text in GitHub's and in common Markdown: no markup, no HTML, no link,
//! no mention of a user or an issue.

use std::fmt::Write as _;

use super::{Bug, CiReport, quiet, verdict};
use crate::report::markdown::{more, plain_text};

/// New crashes that have a row.
const NEW: usize = 12;
/// Known and gone ones.
const OTHERS: usize = 6;
/// Characters of a cell.
const CELL: usize = 120;

/// Writes the summary of a run.
#[must_use]
pub fn markdown(report: &CiReport) -> String {
    let mut out = format!("### kwab: {}\n\n", verdict(report));
    if !report.new.is_empty() {
        out.push_str("| new crash | where | signature | look at |\n|---|---|---|---|\n");
        for bug in report.new.iter().take(NEW) {
            let (title, place) = (cell(&bug.title), cell(&bug.place()));
            let _ = writeln!(out, "| {title} | {place} | {} | {} |", cell(bug.signature()), cell(&dump_of(bug)));
        }
        more(&mut out, report.new.len(), NEW, "new");
        out.push('\n');
    }
    let known = report.known.iter().map(|bug| (&bug.title, &bug.key, &bug.comment, bug.count));
    list(&mut out, "Known", known.collect());
    let gone = report.gone.iter().map(|known| (&known.title, &known.key, &known.comment, 0));
    list(&mut out, "Gone", gone.collect());
    for dumps in quiet(report) {
        let _ = writeln!(out, "Not counted: {dumps}.\n");
    }
    if !report.damaged.is_empty() {
        list_of_damage(&mut out, &report.damaged);
    }
    out
}

fn list(out: &mut String, title: &str, rows: Vec<(&String, &String, &String, usize)>) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:\n");
    for (what, key, comment, count) in rows.iter().take(OTHERS) {
        let what = if what.is_empty() { key } else { what };
        let times = if *count > 1 { format!(", {count} times") } else { String::new() };
        let comment = if comment.is_empty() { String::new() } else { format!(" – {}", cell(comment)) };
        let _ = writeln!(out, "- {}{times}{comment}", cell(what));
    }
    more(out, rows.len(), OTHERS, &title.to_lowercase());
    out.push('\n');
}

fn list_of_damage(out: &mut String, damaged: &[String]) {
    out.push_str("Damaged, so that a crash in it may be missing:\n\n");
    for one in damaged.iter().take(OTHERS) {
        let _ = writeln!(out, "- {}", cell(one));
    }
    more(out, damaged.len(), OTHERS, "damaged");
}

fn dump_of(bug: &Bug) -> String {
    let number = bug.example.dump.map_or(String::new(), |number| format!(" --dump {number}"));
    format!("{}{number}", bug.example.file)
}

/// Text of a cell.
fn cell(text: &str) -> String {
    plain_text(text, CELL)
}
