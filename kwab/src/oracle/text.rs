//! The report as text of printable lines.

use std::fmt::Write as _;

use super::report::{Divergence, OracleReport, Side, Verdict};
use crate::plain;
use crate::units::{count, grouped};

/// Later differences that are shown.
const LATER: usize = 5;

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
    if !report.behind.is_empty() {
        out.push_str("\nFunctions of the kernel that it can come from, the nearest first:\n");
        for function in &report.behind {
            let _ = writeln!(out, "      {}", plain::line(function));
        }
    }
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
