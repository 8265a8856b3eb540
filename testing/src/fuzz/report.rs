//! Reads what the fuzzer said on the console: findings, counts of calls, how far it came.
//!
//! The lines are those that `testing/guest/fuzz/supervise.c` lists. A line that is torn by another is skipped: counts
//! are then too small, never wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `panic`, `hang`, or the guest's own word: `watched`, `file`, `privilege`, `leak`, `memory`, `starved`,
    /// `unkillable`.
    pub kind: String,
    /// What was seen.
    pub text: String,
    /// Programs that ran, or may have run, at that moment.
    pub programs: Vec<u32>,
}

/// How often a call was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Calls made, failed ones included.
    pub made: u64,
    /// Without an error.
    pub succeeded: u64,
    /// The errors that came back.
    pub errors: Vec<u16>,
}

/// The console's lines as values.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order in which they were seen.
    pub findings: Vec<Finding>,
    /// By the call's name.
    pub counts: BTreeMap<String, Count>,
    /// The last program that was named.
    pub at: Option<u32>,
    /// Programs, calls and milliseconds of a run that came to its end.
    pub done: Option<(u64, u64, u64)>,
}

/// Programs between two that are named, and how many may run at once.
const NAMED_EVERY: u32 = 8;

impl Report {
    /// Takes one line of the console.
    pub fn line(&mut self, line: &str) {
        if let Some(at) = line.strip_prefix("FUZZ-AT ").and_then(|number| number.trim().parse().ok()) {
            self.at = Some(at);
        } else if let Some(rest) = line.strip_prefix("FUZZ-FINDING ") {
            self.findings.extend(finding(rest));
        } else if let Some((name, count)) = line.strip_prefix("FUZZ-CALL ").and_then(count) {
            self.counts.insert(name, count);
        } else if let Some(rest) = line.strip_prefix("FUZZ-DONE ") {
            self.done = done(rest);
        }
    }

    /// The programs that may have run when the machine was lost.
    #[must_use]
    pub fn last_programs(&self, workers: u32) -> Vec<u32> {
        let Some(at) = self.at else { return Vec::new() };
        (at.saturating_sub(workers)..at + NAMED_EVERY).collect()
    }
}

fn finding(rest: &str) -> Option<Finding> {
    let (kind, rest) = rest.split_once(" running ")?;
    let (programs, text) = rest.split_once(": ")?;
    let programs = programs.split(',').filter_map(|number| number.parse().ok()).collect();
    Some(Finding { kind: kind.to_owned(), text: text.trim().to_owned(), programs })
}

fn count(rest: &str) -> Option<(String, Count)> {
    let mut words = rest.split(' ');
    let name = words.next()?.to_owned();
    let (made, succeeded) = (words.next()?.parse().ok()?, words.next()?.trim().parse().ok()?);
    let errors = words.next().unwrap_or_default().trim().split(',').filter_map(|error| error.parse().ok()).collect();
    Some((name, Count { made, succeeded, errors }))
}

fn done(rest: &str) -> Option<(u64, u64, u64)> {
    let value = |name: &str| {
        let mut words = rest.split(' ').skip_while(|word| *word != name);
        words.nth(1)?.parse().ok()
    };
    Some((value("programs")?, value("calls")?, value("milliseconds")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_counts_and_the_end_are_read_and_torn_lines_are_not() {
        let mut report = Report::default();
        let lines = [
            "FUZZ-AT 16",
            "FUZZ-FINDING watched running 17,18: checker got signal 9",
            "FUZZ-FINDING file running -: /etc/passwd has other content",
            "FUZZ-CALL read 10 4 9,14",
            "FUZZ-CALL wri",
            "FUZZ-DONE seed 1 programs 20 calls 14 milliseconds 900 lost 12 findings 2",
        ];
        lines.iter().for_each(|line| report.line(line));
        assert_eq!(report.findings[0].programs, [17, 18]);
        assert_eq!((report.findings[1].kind.as_str(), report.findings[1].programs.len()), ("file", 0));
        assert_eq!(report.counts["read"], Count { made: 10, succeeded: 4, errors: vec![9, 14] });
        assert_eq!(report.counts.len(), 1);
        assert_eq!(report.done, Some((20, 14, 900)));
        assert_eq!(report.last_programs(3), (13..24).collect::<Vec<_>>());
    }
}
