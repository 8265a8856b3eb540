//! The crashes of a run beside those that are known, in words: first what is new.

use std::fmt::Write as _;
use std::path::Path;

use kwab::plain;
use kwab::report::ci::{Bug, CiReport, Known, quiet, verdict};
use kwab::report::command;

use super::{Tone, count, cut, paint};
use crate::output::Style;

/// Rows of known and of gone crashes that are shown; all of what is new is.
const MOST: usize = 8;
/// Columns of the rule.
const RULE: usize = 12;

/// Writes the page of a run.
pub(crate) fn page(report: &CiReport, written: bool, style: Style) -> String {
    let tone = if report.new.is_empty() || written { Tone::Head } else { Tone::Alarm };
    let files = count(report.files.len() as u64, "file", "files");
    let head = format!("{}  ({files}, baseline {})", verdict(report), report.baseline);
    let mut page = format!("{}\n", paint(style, tone, &cut(&head, style.width)));
    report.new.iter().for_each(|bug| new_rows(&mut page, bug, style));
    rows(&mut page, "known", report.known.iter().map(known_row).collect(), style);
    rows(&mut page, "gone", report.gone.iter().map(gone_row).collect(), style);
    for dumps in quiet(report) {
        let _ = writeln!(page, "{}", cut(&format!("quiet    {dumps}, which fails no run"), style.width));
    }
    rows(&mut page, "damaged", report.damaged.iter().map(|damage| (damage.clone(), "")).collect(), style);
    let line = match (written, report.new.is_empty()) {
        (true, _) => format!("written: {}; say in its comments why each is known", plain::line(&report.baseline)),
        (false, false) => "--write-baseline makes what is new known".to_string(),
        (false, true) => return page,
    };
    let _ = writeln!(page, "{}", paint(style, Tone::Dim, &cut(&line, style.width)));
    page
}

fn new_rows(page: &mut String, bug: &Bug, style: Style) {
    let rule = bug.finding.as_ref().map_or("–", |found| found.about.as_deref().unwrap_or(&found.rule));
    let line = format!("new      {rule:<RULE$} {}", bug.title);
    let _ = writeln!(page, "{}", cut(&line, style.width));
    let times = if bug.count > 1 { format!("{} times", bug.count) } else { String::new() };
    let line = bug.log_line.map_or(String::new(), |line| format!("line {line}"));
    let facts = [bug.place(), bug.example.victim.clone(), bug.signature().to_string(), times, line];
    let facts: Vec<String> =
        facts.iter().filter(|fact| !fact.is_empty()).map(|fact| plain::line(fact).into()).collect();
    let _ =
        writeln!(page, "{}", paint(style, Tone::Dim, &cut(&format!("         {}", facts.join(" · ")), style.width)));
    if bug.example.file == "stdin" {
        return;
    }
    let named = command::arguments(Path::new(&bug.example.file), bug.example.dump.unwrap_or(1));
    let _ = writeln!(page, "         kwab triage {}", plain::line(&named));
}

/// What a row says, and the baseline's comment.
type Row<'a> = (String, &'a str);

fn known_row(bug: &Bug) -> Row<'_> {
    let times = if bug.count > 1 { format!("{} times: ", bug.count) } else { String::new() };
    (format!("{times}{}", bug.title), &bug.comment)
}

fn gone_row(known: &Known) -> Row<'_> {
    (if known.title.is_empty() { &known.key } else { &known.title }.clone(), &known.comment)
}

fn rows(page: &mut String, what: &str, rows: Vec<Row<'_>>, style: Style) {
    for (row, comment) in rows.iter().take(MOST) {
        let _ = writeln!(page, "{}", cut(&format!("{what:<8} {row}"), style.width));
        if !comment.is_empty() {
            let _ = writeln!(page, "{}", paint(style, Tone::Dim, &cut(&format!("{:<8} {comment}", ""), style.width)));
        }
    }
    if let Some(more @ 1..) = rows.len().checked_sub(MOST) {
        let _ =
            writeln!(page, "{}", paint(style, Tone::Dim, &format!("{what:<8} … and {more} more (--json lists all)")));
    }
}
