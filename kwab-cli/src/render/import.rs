//! What an import says on stderr.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use kwab::import::{DumpSummary, ImportReport};
use kwab::plain;
use kwab::report::command;

use super::{bytes, count, cut, grouped};

/// Columns of the terminal that the rows are made for.
const WIDTH: usize = 80;
/// Dumps that are listed one by one.
const LISTED: usize = 20;

/// The summary of an import.
pub(crate) fn summary(report: &ImportReport, time: Duration, dry_run: bool) -> String {
    let mut out = String::new();
    let deaths = |kind: &str| report.dumps.iter().filter(|dump| dump.kind == kind).count() as u64;
    let (panics, processes) = (deaths("panic"), deaths("process"));
    let mut told = vec![
        bytes(report.bytes),
        count(u64::from(report.boots), "boot", "boots"),
        count(report.events, "event", "events"),
    ];
    if panics > 0 {
        told.push(count(panics, "panic", "panics"));
    }
    if processes > 0 {
        told.push(count(processes, "process crash", "process crashes"));
    }
    if panics + processes == 0 {
        told.push("no crash".to_string());
    }
    let head = format!("{}  {}", report.source, told.join(", "));
    let _ = writeln!(out, "{}  {:.2} s", cut(&head, WIDTH - 8), time.as_secs_f64());
    for dump in report.dumps.iter().take(LISTED) {
        out.push_str(&row(dump, dry_run, report.lines > 0));
    }
    if report.dumps.len() > LISTED {
        let _ = writeln!(out, "  … and {} more", grouped((report.dumps.len() - LISTED) as u64));
    }
    out.push_str(&losses(report));
    if let Some(path) = report.dumps.first().and_then(|dump| dump.path.as_ref()) {
        let named = command::arguments(Path::new(path), 1);
        let _ = writeln!(out, "next: kwab inspect {}", plain::line(&named));
    }
    out
}

/// One dump: a line that fits, and a second one for what is missing.
fn row(dump: &DumpSummary, dry_run: bool, has_lines: bool) -> String {
    let name = dump.path.as_deref().map_or_else(
        || if dry_run { format!("crash {}", dump.number) } else { "–".to_string() },
        |path| Path::new(path).file_name().map_or(path.to_string(), |name| name.to_string_lossy().into_owned()),
    );
    let name = if dry_run && dump.number == 0 { "recording".to_string() } else { name };
    let line = format!("  {name}  boot {}  {:<9}  {}  {}", dump.boot, dump.kind, dump.subject, dump.cause);
    let mut out = format!("{}\n", cut(&line, WIDTH));
    let mut more = Vec::new();
    if let Some(first) = dump.same_as {
        more.push(format!("same signature as crash {first} ({})", dump.signature));
    }
    if !dump.missing.is_empty() {
        let what = if has_lines { "log" } else { "file" };
        more.push(format!("the {what} has no {}", dump.missing.join(", no ")));
    }
    if let Some(printed) = dump.printed.filter(|printed| printed.mended_lines + printed.missing_bytes > 0) {
        let lines = count(printed.mended_lines, "line", "lines");
        more.push(format!("of the dump in it: {lines} mended, {} missing", bytes(printed.missing_bytes)));
    }
    for text in more {
        let _ = writeln!(out, "      {}", cut(&text, WIDTH - 6));
    }
    out
}

fn losses(report: &ImportReport) -> String {
    let mut out = String::new();
    let lost = &report.not_understood;
    if lost.count > 0 {
        let kinds: Vec<_> = lost.by_kind.iter().map(|(kind, count)| format!("{} {kind}s", grouped(*count))).collect();
        let _ = writeln!(out, "not understood: {} (kept; kwab cat DUMP kept)", kinds.join(", "));
        for loss in lost.first.iter().take(4) {
            let text = format!("  line {} byte {}: {}, {}", loss.line, loss.offset, loss.kind, loss.problem);
            let _ = writeln!(out, "{}", cut(&text, WIDTH));
        }
    }
    if report.rejoined > 0 {
        let _ = writeln!(out, "reassembled: {}", count(report.rejoined, "torn event", "torn events"));
    }
    if report.unknown_events > 0 {
        let _ = writeln!(out, "kept unparsed: {} of unknown types", count(report.unknown_events, "event", "events"));
    }
    out
}
