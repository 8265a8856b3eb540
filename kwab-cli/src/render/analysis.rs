//! Puts conclusions into words: triage, audit, verification of pages.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use kwab::analysis::audit::{RULES, Severity};
use kwab::analysis::finding::Evidence;
use kwab::analysis::forms::{AuditReport, VerifyReport};
use kwab::analysis::{Since, Triage};
use kwab::model::RecordRef;

use super::{LongWords, broken, command, count};
use crate::output::{self, Style};

/// Where the text of a hypothesis begins.
const INDENT: usize = 10;

/// The triage of a dump.
pub(crate) fn triage(report: &Triage, explain: bool, style: Style) -> String {
    let mut out = String::new();
    let source = if report.from_log { "log" } else { "dump" };
    wrap(&mut out, "", &bold(&report.headline, style), style);
    wrap(&mut out, "", &report.kernel, style);
    out.push('\n');
    // Where a row of evidence stood first: what several hypotheses rest on is read once.
    let mut told: HashMap<(String, Option<RecordRef>), usize> = HashMap::new();
    for (number, found) in report.hypotheses.iter().enumerate() {
        let head = format!("{:2}  {:.2}  ", number + 1, found.score);
        wrap(&mut out, &head, &format!("{}  [{}]", bold(&found.claim, style), found.rule), style);
        if explain {
            for line in found.explain() {
                wrap(&mut out, &" ".repeat(INDENT), &line, style);
            }
        } else {
            let mut shared = BTreeSet::new();
            for fact in &found.evidence {
                let first = *told.entry((fact.in_words(), fact.at)).or_insert(number);
                if first != number {
                    shared.insert(first + 1);
                    continue;
                }
                evidence(&mut out, fact, style);
            }
            if !shared.is_empty() {
                let others: Vec<String> = shared.iter().map(ToString::to_string).collect();
                wrap(
                    &mut out,
                    &" ".repeat(INDENT),
                    &format!("and the evidence of hypothesis {}", others.join(", ")),
                    style,
                );
            }
            for fact in &found.against {
                wrap(&mut out, "    against: ", &fact.text, style);
            }
            for why in &found.weakened {
                wrap(&mut out, "    weaker: ", why, style);
            }
        }
        if let Some(guilty) = &found.function {
            wrap(&mut out, "    look at: ", &guilty.in_words(), style);
        }
        for (at, next) in found.next.iter().enumerate() {
            let head = if at == 0 { "    next: " } else { "          " };
            let _ = writeln!(out, "{}", command(head, next, style));
        }
    }
    if report.hypotheses.is_empty() {
        let _ = writeln!(out, "no hypothesis: nothing in the {source} supports one");
    }
    if let Some(since) = report.untold_changes() {
        changed_since(&mut out, since, style);
    }
    if let Some(undecided) = &report.undecided {
        list(&mut out, " ?  looked at: ", &undecided.looked_at, style);
        for (label, text) in undecided.advice() {
            wrap(&mut out, &format!(" ?  {label}: "), text, style);
        }
    }
    list(&mut out, " –  ruled out: ", &report.ruled_out, style);
    list(&mut out, &format!("\nnot in this {source}: "), &report.lacking, style);
    if !report.losses.is_empty() {
        list(&mut out, "damaged: ", &report.losses, style);
    } else if !report.from_log {
        out.push_str("complete: every section is sound\n");
    }
    out
}

/// What was changed since a build that worked, where no hypothesis has it among its evidence.
fn changed_since(out: &mut String, since: &Since, style: Style) {
    let _ = writeln!(out, " Δ  {}:", since.title());
    for line in since.lines(usize::MAX - 1) {
        wrap(out, &format!("{}- ", " ".repeat(INDENT)), &line, style);
    }
}

/// A fact with its record; below it the first of the functions that it lists.
fn evidence(out: &mut String, fact: &Evidence, style: Style) {
    let at = fact.at.map(|at| format!(" ({at})")).unwrap_or_default();
    let colon = if fact.functions.is_empty() { "" } else { ":" };
    wrap(out, &" ".repeat(INDENT), &format!("{}{at}{colon}", fact.text), style);
    for function in fact.first_functions() {
        wrap(out, &format!("{}- ", " ".repeat(INDENT)), &function.in_words(), style);
    }
    if let rest @ 1.. = fact.other_functions().len() {
        wrap(out, &" ".repeat(INDENT), &format!("- {rest} more with --explain"), style);
    }
}

/// The audit of mappings and page tables.
pub(crate) fn audit(report: &AuditReport, style: Style) -> String {
    let mut out = String::new();
    let AuditReport { mappings, entries, frames, findings, losses, .. } = report;
    let _ = writeln!(
        out,
        "{}, {}, {}: {} violated",
        count(*mappings as u64, "mapping", "mappings"),
        count(*entries as u64, "page-table entry", "page-table entries"),
        count(*frames as u64, "frame", "frames"),
        count(findings.len() as u64, "rule", "rules")
    );
    for finding in findings {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let pid = finding.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let head = format!("{:<14} {severity:<8}", finding.rule);
        let times = if finding.count == 1 { "once".to_owned() } else { format!("{} times", finding.count) };
        wrap(&mut out, &head, &format!("{} ({times}{pid})", bold(finding.title, style)), style);
        for witness in &finding.witnesses {
            let at = witness.at.map(|at| format!(" ({at})")).unwrap_or_default();
            wrap(&mut out, "               ", &format!("{}{at}", witness.text), style);
        }
        if finding.count > finding.witnesses.len() as u64 {
            let _ = writeln!(out, "               and {} more", finding.count - finding.witnesses.len() as u64);
        }
        for why in &finding.weakened {
            wrap(&mut out, "               weaker: ", why, style);
        }
    }
    if *entries == 0 {
        out.push_str(
            "no page-table entries in this dump: rules that need them could not be checked (kwab's own kernel records \
             them with debug=audit)\n",
        );
    }
    list(&mut out, "damaged: ", losses, style);
    out
}

/// Pages that differ from their files.
pub(crate) fn verify(report: &VerifyReport, style: Style) -> String {
    let mut out = String::new();
    let verified = &report.verified;
    let _ = writeln!(
        out,
        "{} compared by the kernel, {} here, {} not comparable: {} wrong",
        count(verified.by_kernel, "page", "pages"),
        verified.here,
        verified.not_comparable,
        report.wrong.len()
    );
    for page in &report.wrong {
        let pid = page.pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
        let offset = page.file_offset.map(|offset| format!(" +{offset:#x}")).unwrap_or_default();
        let head = format!("{:<14}", page.rule);
        let what = bold(&page.content.describe(), style);
        wrap(
            &mut out,
            &head,
            &format!("page {:#018x}{pid}  {}{offset}: {what}  ({})", page.vaddr, page.path, page.at),
            style,
        );
        let offset = page.first_diff.map(|diff| format!("at +{diff:#x}: ")).unwrap_or_default();
        wrap(&mut out, "              ", &format!("{offset}expected {} found {}", page.expected, page.actual), style);
        for why in &page.weakened {
            wrap(&mut out, "              weaker: ", why, style);
        }
    }
    list(&mut out, "damaged: ", &report.losses, style);
    out
}

/// The rules of the audit.
pub(crate) fn rules() -> String {
    RULES
        .iter()
        .map(|rule| format!("{:<14} {:<8} {}\n", rule.id, format!("{:?}", rule.severity).to_lowercase(), rule.title))
        .collect()
}

fn list(out: &mut String, head: &str, items: &[String], style: Style) {
    if !items.is_empty() {
        wrap(out, head, &items.join("; "), style);
    }
}

fn bold(text: &str, style: Style) -> String {
    if style.color { format!("{}{text}{}", output::sgr("1"), output::sgr("0")) } else { text.to_owned() }
}

/// Writes `text` behind `head`, broken between words at the width, further lines indented like the first.
fn wrap(out: &mut String, head: &str, text: &str, style: Style) {
    let columns = head.trim_start_matches('\n').chars().count();
    let indent = columns.min(style.width / 3);
    let (first, rest) = (style.width.saturating_sub(columns), style.width.saturating_sub(indent));
    let lines = broken(&output::one_line(text), first, rest, LongWords::Kept);
    let _ = writeln!(out, "{head}{}", lines.join(&format!("\n{}", " ".repeat(indent))));
}

#[cfg(test)]
mod tests {
    use kwab::analysis::finding::{ListedFunction, Statement};

    use super::*;

    #[test]
    fn functions_of_a_fact_stand_below_it_one_a_line_and_at_most_three_of_many() {
        let why = Some("returned the tested value".to_owned());
        let function = |number: usize| ListedFunction {
            name: format!("kernel::f{number}"),
            place: (number == 0).then(|| "kernel/src/f.rs:7".to_owned()),
            why: why.clone().filter(|_| number == 1),
        };
        let fact = Statement::listing("these led to it", (0..10).map(function).collect()).unwrap();
        let mut out = String::new();
        evidence(&mut out, &Evidence::context(fact), Style { color: false, width: 80 });
        let rows: Vec<&str> = out.lines().map(str::trim_start).collect();
        let wanted = [
            "these led to it:",
            "- kernel::f0 (kernel/src/f.rs:7)",
            "- kernel::f1, returned the tested value",
            "- kernel::f2",
            "- 7 more with --explain",
        ];
        assert_eq!(rows, wanted);
        assert!(out.lines().all(|line| line.starts_with("          ") && line.len() <= 80), "{out}");
    }
}
