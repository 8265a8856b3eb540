//! What check, salvage and list print.

use std::fmt::Write as _;

use kwab::capture::{CaptureReport, Nmi};
use kwab::plain;
use kwab::report::catalogue::{Catalogue, CatalogueEntry, Group};
use kwab::report::check::CheckReport;
use kwab::report::salvage::SalvageReport;

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
    let mut out = format!("{}: {processors}, {} bytes of memory; {asked}\n", plain::line(name), report.bytes);
    for missing in report.missing.iter().take(64) {
        let _ = writeln!(out, "  missing: {}", wrap(missing, 72, "           "));
    }
    out
}

/// Renders the list of dumps as a table.
pub(crate) fn list(catalogue: &Catalogue, style: Style) -> String {
    let mut out = String::new();
    let head = format!("{:>4}  {:<9}  {:<12}  {}", "n", "signature", "first", "what and where");
    let _ = writeln!(out, "{}", paint(style, Tone::Head, &cut(&head, style.width)));
    for group in &catalogue.groups {
        out.push_str(&rows(group, style));
    }
    if catalogue.groups.is_empty() {
        out.push_str("no dumps here\n");
    }
    out
}

fn rows(group: &Group, style: Style) -> String {
    let Some(first) = group.dumps.first() else { return String::new() };
    let signature = match first.kind.as_str() {
        "recording" | "unreadable" => "–",
        _ => group.signature.as_str(),
    };
    let line = format!("{:>4}  {:<9}  {:<12}  {}", group.dumps.len(), signature, time(first), first.cause);
    let mut out = format!("{}\n", cut(&line, style.width));
    for dump in &group.dumps {
        let number = dump.dump.map_or(String::new(), |number| format!(", dump {number}"));
        let mut line = format!("{:33}{}{number}", "", dump.file);
        if !dump.sound && dump.kind != "unreadable" {
            let _ = write!(line, "  ⚠ {}", count(dump.defects.max(1) as u64, "defect", "defects"));
        }
        if dump.kind != "unreadable" && dump.cause != first.cause {
            let _ = write!(line, "  {}", dump.victim);
        }
        let _ = writeln!(out, "{}", paint(style, Tone::Dim, &cut(&line, style.width)));
    }
    out
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
