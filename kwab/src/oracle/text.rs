//! The report as text of printable lines.

use std::fmt::Write as _;

use super::report::{Divergence, OracleReport, Parting, Side, Verdict};
use crate::plain;
use crate::units::{count, grouped};

/// Later differences that are shown.
const LATER: usize = 5;
/// Functions of a parting that are shown for each run, and lines of each.
const PARTS: usize = 2;
/// Functions that are named below partings, at least, and lines of a screen that more of them may fill.
const BEHIND: usize = 12;
const SCREEN: usize = 40;
const LINES: usize = 6;

/// The whole report. What the traces hold is untrusted, so every line is made printable.
#[must_use]
pub fn text(report: &OracleReport) -> String {
    let mut out = String::new();
    for (name, side) in [("good", &report.good), ("bad", &report.bad)] {
        let _ = writeln!(out, "{name:<5} {}", of_side(side));
        for gap in &side.gaps {
            let _ = writeln!(out, "      incomplete: {}", plain::line(gap));
        }
    }
    let program = plain::line(report.program.as_deref().unwrap_or("the program")).into_owned();
    out.push('\n');
    match (&report.first, report.verdict) {
        (Some(first), _) => differs(report, first, &mut out),
        (None, Verdict::CannotTell) if !report.partings.is_empty() => {
            let _ = writeln!(out, "no calls to compare: {program} is not executed in both runs");
            kernel(report, &mut out);
        }
        (None, Verdict::CannotTell) => {
            let _ = writeln!(out, "cannot compare: {program} is not executed in both runs, or made no calls there.");
            out.push_str(
                "Record this kernel with debug=syscall,process,signal on its command line,\n\
                 Linux with strace -f -o FILE; --program names another program.\n",
            );
        }
        (None, _) => {
            let calls = count(report.calls_alike as u64, "call", "calls");
            let _ = writeln!(out, "no difference: {calls} of {program} have the same arguments and answers");
            if report.is_partial() {
                out.push_str("What the incomplete run lacks may differ.\n");
            }
            kernel(report, &mut out);
        }
    }
    let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "not recorded".to_owned());
    if report.verdict != Verdict::CannotTell {
        let _ = writeln!(
            out,
            "\nends  good: {}; bad: {}",
            plain::line(&end(&report.ends.good)),
            plain::line(&end(&report.ends.bad))
        );
    }
    out
}

fn of_side(side: &Side) -> String {
    let threads = count(side.threads as u64, "thread", "threads");
    let calls = count(side.calls as u64, "call", "calls");
    format!("{}: {}, {threads}, {calls}", plain::line(&side.path), side.origin.name())
}

/// What is known of the way through the kernel.
fn kernel(report: &OracleReport, out: &mut String) {
    report.partings.iter().for_each(|parting| parts(parting, out));
    if !report.behind.is_empty() {
        out.push_str("\nFunctions of the kernel that it can come from, the nearest first:\n");
        let room = SCREEN.saturating_sub(out.lines().count());
        let most = if report.partings.is_empty() { report.behind.len() } else { BEHIND.max(room) };
        for function in report.behind.iter().take(most) {
            let _ = writeln!(out, "      {}", plain::line(function));
        }
    }
}

/// Where the paths of a call part.
fn parts(parting: &Parting, out: &mut String) {
    let answered = if parting.alike { ", which was answered alike" } else { "" };
    let _ = writeln!(out, "\nThe paths through the kernel part in {}{answered}:", plain::line(&parting.call));
    let often = if parting.times_only { " ran more often in one of them" } else { "" };
    let decided = parting.decided.as_ref().filter(|decided| **decided != parting.function);
    let decided = decided.map(|decided| format!(", decided in {}", plain::line(decided)));
    let asked = parting
        .asked
        .as_ref()
        .filter(|_| decided.is_none())
        .map(|asked| format!(", by what {} answered", plain::line(asked)));
    let (function, place) = (plain::line(&parting.function), plain::line(&parting.place));
    let _ = writeln!(out, "  >>  {function} ({place}){often}{}", decided.or(asked).unwrap_or_default());
    for (name, list) in [("good", &parting.only_good), ("bad", &parting.only_bad)] {
        for part in list.iter().take(PARTS) {
            let lines: Vec<String> = part.lines.iter().take(LINES).map(u32::to_string).collect();
            let more = if part.lines.len() > LINES { ", ..." } else { "" };
            let whole = if part.in_both { "" } else { ", only here" };
            let name = format!("only {name}");
            let function = plain::line(&part.function);
            let _ = writeln!(out, "      {name:<9} {function}: lines {}{more}{whole}", lines.join(", "));
        }
    }
    if !parting.before.is_empty() {
        let before: Vec<_> = parting.before.iter().take(PARTS).map(|name| plain::line(name)).collect();
        let _ = writeln!(out, "      before    {}", before.join(", "));
    }
}

fn differs(report: &OracleReport, first: &Divergence, out: &mut String) {
    let thread = if first.thread == "1" { String::new() } else { format!(", in thread {}", first.thread) };
    let _ = writeln!(out, "first difference{thread}: {}", plain::line(&first.sentence()));
    for call in &report.before {
        let _ = writeln!(out, "      both  {}", plain::line(call));
    }
    for (name, row) in [("good", &first.good), ("bad", &first.bad)] {
        let _ = writeln!(out, "  >>  {name:<5} {}", plain::line(row.as_deref().unwrap_or("(no such call here)")));
    }
    if !report.suspects.is_empty() {
        out.push_str(
            "\nThe program itself did something else: its input, the time, or what an earlier call wrote to memory\n\
             was another. The runs do not show memory; these calls before it write to it, the nearest first:\n",
        );
        for call in &report.suspects {
            let _ = writeln!(out, "      {}", plain::line(call));
        }
    }
    kernel(report, out);
    if report.later_count > 0 {
        let _ =
            writeln!(out, "\n{} after it:", count(report.later_count as u64, "more difference", "more differences"));
        for later in report.later.iter().take(LATER) {
            let _ = writeln!(out, "      {}", plain::line(&later.sentence()));
        }
        let shown = report.later.len().min(LATER);
        if report.later_count > shown {
            let _ = writeln!(out, "      and {}; --json lists more", grouped((report.later_count - shown) as u64));
        }
    }
}
