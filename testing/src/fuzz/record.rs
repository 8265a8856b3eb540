//! Keeps what the fuzzer found: totals for the page of results, and a folder of evidence for each finding.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::shrink::Shrunk;
use super::{Answer, Case, Count, Finding};
use crate::{paths, results};

/// One seed on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedRow {
    /// The seed of the run's choices.
    pub seed: u64,
    /// The commit of the kernel, with `+` behind it when files differed from it.
    pub commit: String,
    /// Number of CPUs of the machine.
    pub cpus: u32,
    /// Memory of the machine in MiB.
    pub memory: u32,
    /// Seconds of the host.
    pub seconds: f64,
    /// Programs that ran to their end or were killed; 0 when the machine was lost.
    pub programs: u64,
    /// Calls that were counted.
    pub calls: u64,
    /// What must not be.
    pub findings: Vec<Finding>,
}

/// The results of all seeds of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// In the order in which they ran.
    pub rows: Vec<SeedRow>,
    /// Of all rows, by the call's name.
    pub counts: BTreeMap<String, Count>,
}

/// Calls that an unprivileged program cannot make succeed, and why. One that does succeed is looked at as a finding.
pub const NEVER: &[(&str, &str)] = &[
    ("acct", "CAP_SYS_PACCT"),
    ("chroot", "CAP_SYS_CHROOT"),
    ("clock_settime", "CAP_SYS_TIME"),
    ("fremovexattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("fsetxattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("lremovexattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("lsetxattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("mount", "CAP_SYS_ADMIN"),
    ("pause", "EINTR is its only end"),
    ("reboot", "CAP_SYS_BOOT"),
    ("removexattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("restart_syscall", "nothing to restart"),
    ("rt_sigsuspend", "EINTR is its only end"),
    ("setdomainname", "CAP_SYS_ADMIN"),
    ("setgroups", "CAP_SETGID"),
    ("sethostname", "CAP_SYS_ADMIN"),
    ("setxattr", "CAP_SYS_ADMIN for all attributes that a tmpfs has"),
    ("settimeofday", "CAP_SYS_TIME"),
    ("syslog", "CAP_SYSLOG"),
    ("umount2", "CAP_SYS_ADMIN"),
    ("vhangup", "CAP_SYS_TTY_CONFIG"),
];

/// The calls among them that only an empty request can make succeed, so a success tells nothing.
const HARMLESS: &[&str] = &["restart_syscall", "syslog", "settimeofday", "setgroups"];

/// Calls that must not have succeeded and did, as findings.
#[must_use]
pub fn forbidden(answer: &Answer) -> Vec<Finding> {
    let did = |name: &str| answer.report.counts.get(name).is_some_and(|count| count.succeeded > 0);
    let wrong = NEVER.iter().filter(|(name, _)| did(name) && !HARMLESS.contains(name));
    let text = |name: &str, why: &str| format!("{name} succeeded without {why}");
    wrong.map(|(name, why)| Finding { kind: "privilege".into(), text: text(name, why), programs: Vec::new() }).collect()
}

/// The name under which the runs on this kernel are kept.
pub const NAME: &str = "fuzz";

/// Where the repository keeps the runs of all machines.
fn committed() -> PathBuf {
    paths::root().join("testing/data/fuzz/record.json")
}

impl Record {
    /// What was kept on this machine; of this kernel also what the repository keeps, where this machine has no more.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn so_far(name: &str) -> Result<Self> {
        if let Some(kept) = results::kept::<Self>(name)? {
            return Ok(kept.results);
        }
        let file = committed();
        if name != NAME || !file.is_file() {
            return Ok(Self::default());
        }
        serde_json::from_str(&paths::read(&file)?).with_context(|| paths::shown(&file))
    }

    /// Keeps what was found on this machine in the repository, for the next machine to add to.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn commit() -> Result<()> {
        let Some(kept) = results::kept::<Self>(NAME)? else { return Ok(()) };
        let mut text = serde_json::to_vec(&kept.results)?;
        text.push(b'\n');
        paths::write(&committed(), &text)
    }

    /// Takes an answer.
    pub fn note(&mut self, (case, commit): (&Case, &str), answer: &Answer, findings: Vec<Finding>) {
        let counted: u64 = answer.report.counts.values().map(|count| count.made).sum();
        let programs = answer.report.done.map_or(0, |done| done.0);
        self.rows.push(SeedRow {
            seed: case.seed,
            commit: commit.to_owned(),
            cpus: case.cpus,
            memory: case.memory,
            seconds: answer.seconds,
            programs,
            calls: counted,
            findings,
        });
        for (name, count) in &answer.report.counts {
            let all = self.counts.entry(name.clone()).or_default();
            all.made += count.made;
            all.succeeded += count.succeeded;
            let errors: BTreeSet<u16> = all.errors.iter().chain(&count.errors).copied().collect();
            all.errors = errors.into_iter().collect();
        }
    }

    /// The calls of `answered` that never succeeded although they can.
    #[must_use]
    pub fn uncovered<'a>(&self, answered: &'a BTreeSet<String>) -> Vec<&'a str> {
        let can = |name: &str| !NEVER.iter().any(|row| row.0 == name);
        let did = |name: &str| self.counts.get(name).is_some_and(|count| count.succeeded > 0);
        answered.iter().map(String::as_str).filter(|name| can(name) && !did(name)).collect()
    }

    /// Hours of machines, by a property of the row.
    fn hours(&self, of: impl Fn(&SeedRow) -> u32) -> Vec<(u32, f64)> {
        let mut hours: BTreeMap<u32, f64> = BTreeMap::new();
        self.rows.iter().for_each(|row| *hours.entry(of(row)).or_default() += row.seconds / 3600.0);
        hours.into_iter().collect()
    }

    /// The section of the page of results.
    #[must_use]
    pub fn table(&self, answered: &BTreeSet<String>) -> String {
        let hours: f64 = self.rows.iter().map(|row| row.seconds / 3600.0).sum();
        let seeds: BTreeSet<u64> = self.rows.iter().map(|row| row.seed).collect();
        let calls: u64 = self.rows.iter().map(|row| row.calls).sum();
        let programs: u64 = self.rows.iter().map(|row| row.programs).sum();
        let findings: Vec<(&SeedRow, &Finding)> =
            self.rows.iter().flat_map(|row| row.findings.iter().map(move |finding| (row, finding))).collect();
        let list = |unit: &str, hours: Vec<(u32, f64)>| {
            let parts = hours.iter().map(|(value, hours)| format!("{value}{unit}: {hours:.2} h"));
            parts.collect::<Vec<_>>().join(", ")
        };
        let mut text =
            String::from("| machine-hours | seeds | programs | calls | findings |\n|---:|---:|---:|---:|---:|\n");
        let _ = writeln!(text, "| {hours:.2} | {} | {programs} | {calls} | {} |", seeds.len(), findings.len());
        let _ = writeln!(
            text,
            "\nBy CPUs: {}. By memory: {}.",
            list("", self.hours(|row| row.cpus)),
            list(" MiB", self.hours(|row| row.memory))
        );
        if let Some(last) = self.rows.iter().rposition(|row| !row.findings.is_empty()) {
            let since = &self.rows[last + 1..];
            let hours: f64 = since.iter().map(|row| row.seconds / 3600.0).sum();
            let _ = writeln!(text, "\nSince the last finding: {hours:.2} machine-hours, {} runs.", since.len());
        }
        let commits: BTreeSet<&str> = self.rows.iter().map(|row| row.commit.as_str()).collect();
        let _ = writeln!(text, "\nKernels: {}.", commits.into_iter().collect::<Vec<_>>().join(", "));
        let uncovered = self.uncovered(answered);
        let (all, never) = (answered.len(), NEVER.iter().filter(|row| answered.contains(row.0)).count());
        let _ = write!(
            text,
            "\nOf {all} calls that the kernel answers {} succeeded at least once; {never} cannot without privilege",
            all - uncovered.len() - never
        );
        let _ = match uncovered.as_slice() {
            [] => writeln!(text, "."),
            names => writeln!(text, "; never: `{}`.", names.join("`, `")),
        };
        if !findings.is_empty() {
            text.push_str("\n| seed | CPUs | MiB | finding |\n|---:|---:|---:|---|\n");
            for (row, finding) in findings {
                let what = format!("{}: {}", finding.kind, finding.text).replace('|', "\\|");
                let _ = writeln!(text, "| {} | {} | {} | {what} |", row.seed, row.cpus, row.memory);
            }
        }
        text
    }
}

/// Writes the evidence of a finding under `build/results/fuzz`, and returns the stem of its files.
pub fn evidence(case: &Case, answer: &Answer, findings: &[Finding], shrunk: Option<&Shrunk>) -> Result<PathBuf> {
    let folder = paths::build("results")?.join("fuzz");
    std::fs::create_dir_all(&folder)?;
    let stem = folder.join(format!("seed-{}-smp{}-mem{}", case.seed, case.cpus, case.memory));
    paths::write(&stem.with_extension("log"), &answer.serial)?;
    if let Some(dump) = &answer.dump {
        paths::write(&stem.with_extension("kwab"), dump)?;
    }
    let mut text = format!(
        "seed {}, {} CPUs, {} MiB, {} workers, {} s, at most {} programs\n",
        case.seed, case.cpus, case.memory, case.workers, case.seconds, case.programs
    );
    findings.iter().for_each(|one| {
        let _ = writeln!(text, "{}: {} (programs {:?})", one.kind, one.text, one.programs);
    });
    answer.triage.iter().for_each(|line| {
        let _ = writeln!(text, "triage: {line}");
    });
    if let Some(shrunk) = shrunk {
        let how = if shrunk.again { "still fails" } else { "did not fail again" };
        let _ = writeln!(text, "\nshrunk in {} boots; {how}: --only {}\n", shrunk.boots, shrunk.only.join(" --only "));
        text.push_str(&shrunk.text);
    }
    paths::write(&stem.with_extension("txt"), text.as_bytes())?;
    Ok(stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::Report;

    fn answer(lines: &[&str]) -> Answer {
        let mut report = Report::default();
        lines.iter().for_each(|line| report.line(line));
        Answer { report, serial: Vec::new(), dump: None, triage: Vec::new(), seconds: 36.0 }
    }

    fn case() -> Case {
        Case {
            seed: 3,
            seconds: 30,
            programs: 9,
            workers: 3,
            cpus: 2,
            memory: 256,
            without: Vec::new(),
            only: Vec::new(),
        }
    }

    #[test]
    fn counts_add_up_and_what_never_succeeded_is_named() {
        let mut record = Record::default();
        record.note((&case(), "abc"), &answer(&["FUZZ-CALL read 10 0 9", "FUZZ-CALL chroot 2 0 1"]), Vec::new());
        record.note((&case(), "abc"), &answer(&["FUZZ-CALL read 5 0 14", "FUZZ-CALL write 2 2 "]), Vec::new());
        assert_eq!(record.counts["read"], Count { made: 15, succeeded: 0, errors: vec![9, 14] });
        let answered = ["read", "write", "chroot"].map(str::to_owned).into();
        assert_eq!(record.uncovered(&answered), ["read"]);
        let table = record.table(&answered);
        assert!(table.contains("| 0.02 | 1 | 0 | 19 | 0 |"), "{table}");
        assert!(table.contains("Kernels: abc.") && !table.contains("Since the last finding"), "{table}");
        assert!(table.contains("Of 3 calls that the kernel answers 1 succeeded at least once; 1 cannot"), "{table}");
    }

    #[test]
    fn hours_since_the_last_finding_are_told() {
        let mut record = Record::default();
        let found = Finding { kind: "hang".into(), text: "no heartbeat".into(), programs: Vec::new() };
        for findings in [Vec::new(), vec![found], Vec::new(), Vec::new()] {
            record.note((&case(), "abc"), &answer(&[]), findings);
        }
        let table = record.table(&BTreeSet::new());
        assert!(table.contains("| 0.04 | 1 |"), "{table}");
        assert!(table.contains("Since the last finding: 0.02 machine-hours, 2 runs."), "{table}");
    }

    #[test]
    fn a_privileged_call_that_succeeds_is_a_finding() {
        assert_eq!(forbidden(&answer(&["FUZZ-CALL mount 2 1 1"])).len(), 1);
        assert_eq!(forbidden(&answer(&["FUZZ-CALL mount 2 0 1", "FUZZ-CALL setgroups 1 1 1"])).len(), 0);
    }
}
