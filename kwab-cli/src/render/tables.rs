//! What check, salvage and list print.

use std::fmt::Write as _;

use kwab::capture::{CaptureReport, Nmi};
use kwab::plain;
use kwab::report::catalogue::{CatalogueEntry, Group, last_of};
use kwab::report::check::CheckReport;
use kwab::report::salvage::SalvageReport;
use kwab::units::memory;

use super::{Tone, bytes, count, cut, paint, wrap};
use crate::output::Style;

/// The state of a dump.
pub(crate) fn check(report: &CheckReport) -> String {
    let sections = count(report.sections.len() as u64, "section", "sections");
    let records = count(report.records, "record", "records");
    let state = if report.sound { "sound" } else { "DAMAGED" };
    let mut out = format!("{}: {state}: {sections}, {records}, {}\n", plain::line(&report.file), bytes(report.bytes));
    for defect in report.defects.iter().take(64) {
        let _ = writeln!(out, "  {}", wrap(&defect.text, 78, "    "));
    }
    if report.defects.len() > 64 {
        let _ = writeln!(
            out,
            "  … and {} (--json lists all)",
            count(report.defects.len() as u64 - 64, "more defect", "more defects")
        );
    }
    if !report.sound {
        let _ = writeln!(out, "  kwab salvage {} -o good.kwab keeps what survives", plain::line(&report.file));
    }
    out
}

/// What was saved.
pub(crate) fn salvage(report: &SalvageReport) -> String {
    let sections = count(report.sections as u64, "section", "sections");
    let records = count(report.records, "record", "records");
    let mut out = format!("{}: {sections} with {records} survive\n", plain::line(&report.output));
    for lost in report.lost.iter().take(64) {
        let _ = writeln!(out, "  lost: {}", wrap(lost, 72, "        "));
    }
    out
}

/// Says what was captured, and where to look.
pub(crate) fn capture(report: &CaptureReport) -> String {
    let asked = match report.nmi {
        Nmi::Taken => {
            return "the guest's kernel handled the NMI and writes its own dump: into the file of its dump memory\n\
                    (dumpmem=) or on its dump disk, else in armour on its serial line; kwab import FILE reads each\n"
                .to_owned();
        }
        Nmi::Ignored => "the guest did not act on an NMI",
        Nmi::Refused => "the machine cannot inject an NMI",
        Nmi::NotSent => "no NMI was sent",
    };
    let name = report.output.as_deref().unwrap_or_default();
    let processors = count(report.processors as u64, "processor", "processors");
    let ram = match report.ram_bytes {
        0 => String::new(),
        all => format!(", {} of RAM ({} of it zeros)", memory(all), memory(report.ram_zeros)),
    };
    let (name, bytes) = (plain::line(name), report.bytes);
    let mut out = format!("{name}: {processors}, {bytes} bytes around their pointers{ram}; {asked}\n");
    for missing in report.missing.iter().take(64) {
        let _ = writeln!(out, "  missing: {}", wrap(missing, 72, "           "));
    }
    out
}

/// Dumps of a group that are named unless the list is wide.
const NAMED: usize = 8;
/// Where what is below the first line of a group begins.
const INDENT: usize = 6;

/// How many dumps of a group are named.
pub(crate) const fn named(style: Style) -> usize {
    if style.width == usize::MAX { usize::MAX } else { NAMED }
}

/// Renders a list of dumps as a table, group by group: each with how many dumps it has, and the first and the last of
/// them; the words for nothing stand where there is none.
pub(crate) fn list<E>(
    groups: impl Iterator<Item = Result<(Group, usize), E>>,
    nothing: &'static str,
    style: Style,
) -> impl Iterator<Item = Result<String, E>> {
    let head = format!("{:>4}  {:>5}  {:<12}  {}", "n", "score", "rule", "what, where, who and when");
    let head = format!("{}\n", paint(style, Tone::Head, &cut(&head, style.width)));
    let mut groups = groups.map(move |group| group.map(|(group, dumps)| rows(&group, dumps, style))).peekable();
    let first = if groups.peek().is_none() { format!("{nothing}\n") } else { head };
    std::iter::once(Ok(first)).chain(groups)
}

fn rows(group: &Group, dumps: usize, style: Style) -> String {
    let Some(first) = group.dumps.first() else { return String::new() };
    let likely = group.finding.as_ref();
    let score = likely.map_or("–".to_string(), |found| format!("{:.2}", found.score));
    let rule = likely.map_or("–", |found| found.about.as_deref().unwrap_or(&found.rule));
    let what = match (likely, first.kind.as_str()) {
        // The rule has a column of its own.
        (Some(found), _) => found.claim.strip_suffix(&format!(" [{rule}]")).unwrap_or(&found.claim),
        (None, "recording") if group.count > 1 => "recordings without a crash",
        (None, "unreadable") if group.count > 1 => "files that are not dumps",
        (None, _) => first.cause.as_str(),
    };
    let line = format!("{:>4}  {score:>5}  {rule:<12}  {}", group.count, plain::line(what));
    let mut out = format!("{}\n", cut(&line, style.width));
    let mut dim = |indent: usize, text: &str| {
        let line = format!("{:indent$}{text}", "");
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &cut(&line, style.width)));
    };
    if first.kind != "unreadable" {
        if likely.is_some() && first.kind != "recording" {
            dim(INDENT, &plain::line(&first.cause));
        }
        dim(INDENT, &who_and_when(group, first));
    }
    let most = named(style);
    for dump in group.dumps.iter().take(most) {
        dim(INDENT + 2, &name_of(dump, first));
    }
    if let Some(more @ 1..) = dumps.checked_sub(most) {
        dim(INDENT + 2, &format!("… and {} (--wide names all)", count(more as u64, "more", "more")));
    }
    out
}

/// Where it was, in which process, when, and the names of the symptom.
fn who_and_when(group: &Group, first: &CatalogueEntry) -> String {
    let mut facts: Vec<String> = Vec::new();
    let mut add = |fact: String| {
        if !fact.is_empty() {
            facts.push(fact);
        }
    };
    // What an audit finds lies elsewhere than where the dump was taken.
    if group.finding.as_ref().is_none_or(|found| found.function.is_some() || found.about.is_none()) {
        add(plain::line(group.place()).into_owned());
    }
    add(plain::line(&first.process).into_owned());
    let last = last_of(group.dumps.iter()).filter(|_| group.count > 1).map(time);
    add(match last.filter(|last| *last != time(first)) {
        Some(last) => format!("{} to {last}", time(first)),
        None => time(first),
    });
    if !matches!(first.kind.as_str(), "recording" | "lost") {
        add(match group.signatures.len() {
            0 | 1 => first.signature.clone(),
            several => format!("{several} signatures"),
        });
    }
    facts.join(" · ")
}

/// A dump of a group: its file, its damage, and what it says otherwise than the first.
fn name_of(dump: &CatalogueEntry, first: &CatalogueEntry) -> String {
    let number = dump.dump.map_or(String::new(), |number| format!(", dump {number}"));
    let mut line = format!("{}{number}", plain::line(&dump.file));
    if dump.kind == "unreadable" {
        let _ = write!(line, "  {}", plain::line(&dump.cause));
        return line;
    }
    if !dump.sound {
        let _ = write!(line, "  ⚠ {}", count(dump.defects.max(1) as u64, "defect", "defects"));
    }
    if dump.source != first.source {
        let _ = write!(line, "  {}", if dump.source == "log" { "from a log" } else { "from the kernel" });
    }
    if dump.process != first.process {
        let _ = write!(line, "  {}", plain::line(&dump.process));
    }
    line
}

/// When it happened: by the wall clock, else since boot.
fn time(entry: &CatalogueEntry) -> String {
    if let Some(wall) = entry.wall_ns {
        let seconds = wall.div_euclid(1_000_000_000).rem_euclid(86_400);
        return format!("{:02}:{:02}:{:02} UTC", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    match entry.mono_ns {
        Some(ns) => format!("+{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1000),
        None => "–".to_string(),
    }
}
