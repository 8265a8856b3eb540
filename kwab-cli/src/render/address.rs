//! What translate, search and whatis print.

use std::fmt::Write as _;

use kwab::plain;
use kwab::report::address::search::SearchReport;
use kwab::report::address::translate::{Source, Translation};
use kwab::report::address::whatis::{Subject, WhatIs};
use kwab::units::memory;

use super::{count, wrap};

/// The way of an address through its tables.
pub(crate) fn translation(answer: &Translation) -> String {
    let source = match answer.source {
        Source::Tables => "by the page tables in captured memory",
        Source::Records => "by the kernel's records of entries",
        Source::Nothing => "no page tables in this dump",
    };
    let mut out = format!("{} in {}, {source}\n", answer.address, plain::line(&answer.space));
    for row in &answer.levels {
        let at = row.at.as_deref().unwrap_or("?");
        let entry = row.entry.as_deref().unwrap_or("<not captured>");
        let (table, index) = (row.table, row.index);
        let _ = writeln!(out, "  {table:<4}  [{index:>3}]  {at:<18}  {entry:<18}  {}", row.flags.join(" "));
    }
    let _ = write!(out, "  = {}", answer.conclusion);
    if let (Some(bytes), Some(rights)) = (answer.page_bytes, &answer.rights) {
        let _ = write!(out, "; page of {}, {rights}", memory(bytes));
    }
    out.push('\n');
    out
}

/// Where a pattern is.
pub(crate) fn hits(report: &SearchReport) -> String {
    let mut out = String::new();
    for hit in &report.hits {
        let first = hit.addresses.first().map(|address| address.address.as_str());
        let at = first.or(hit.physical.as_deref()).unwrap_or_default();
        let _ = write!(out, "{at}");
        if let Some(physical) = hit.physical.as_ref().filter(|_| first.is_some()) {
            let _ = write!(out, "  physical {physical}");
        }
        let names = [hit.symbol.as_deref(), hit.piece.as_deref()];
        for name in names.into_iter().flatten() {
            let _ = write!(out, "  {}", plain::line(name));
        }
        let _ = write!(out, "\n  {} [{}] {}\n", hit.before, report.pattern, hit.behind);
        for more in hit.addresses.iter().skip(1) {
            let _ = writeln!(out, "  at {} too, {}", more.address, plain::line(&more.space));
        }
    }
    let hits = count(report.count, "hit", "hits");
    let _ = write!(out, "{hits} in {}", memory(report.searched));
    let listed = report.hits.len() as u64;
    if listed < report.count {
        let _ = write!(out, ", the first {listed} shown (-n shows more)");
    }
    if report.lost > 0 {
        let _ = write!(out, "; {} could not be read", count(report.lost as u64, "section", "sections"));
    }
    out.push('\n');
    out
}

/// What an address is.
pub(crate) fn facts(answer: &WhatIs) -> String {
    let kind = if answer.physical { "physical" } else { "in" };
    let space = if answer.physical { String::new() } else { format!(" {}", plain::line(&answer.space)) };
    let mut out = format!("{} {kind}{space}\n", answer.address);
    for fact in &answer.facts {
        let name = match fact.subject {
            Subject::Class => "is",
            Subject::Symbol => "symbol",
            Subject::Mapping => "mapping",
            Subject::Stack => "stack",
            Subject::Lock => "lock",
            Subject::Register => "register",
            Subject::Translation => "leads to",
            Subject::Frame => "frame",
            Subject::PageTable => "table",
            Subject::Mapped => "mapped",
            Subject::Captured => "captured",
        };
        let record = fact.record.map(|record| format!("  [{record}]")).unwrap_or_default();
        let text = format!("{}{record}", fact.text);
        let _ = writeln!(out, "  {name:<9} {}", wrap(&text, 100, "            "));
    }
    if answer.facts.is_empty() {
        out.push_str("  nothing is known about it\n");
    }
    out
}
