//! Third-party test suites, run under both kernels.
//!
//! A suite is fetched from Debian's source packages, built statically with musl once, and kept in the cache; nothing of
//! it is committed. It gives an image and a list of jobs, and turns the jobs' reports into test results by name. The
//! judgement is the difference: what passes under Linux on the same QEMU must pass under our kernel.
//!
//! The Linux Test Project is not among them: no source or binary package of it is in Debian (bullseye, bookworm,
//! trixie, forky, sid, experimental; main, contrib and non-free), and what is called `ltp` on PyPI and npm is something
//! else. What its programs ask of system calls is asked by contracts (`testing/contracts`).
//!
//! Whole suites take from minutes to an hour. A [`mod@slice`] of each takes a minute with everything that goes before
//! it, and is part of every test run.

pub mod busybox;
pub mod posix;
pub mod programs;
pub mod record;
pub mod slice;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::image::Image;
use crate::jobs::{Job, Report};
use crate::results::junit::{Case, Outcome};
use crate::setup::Consent;

/// Test results by name; the value is the suite's own word, `pass` when all is well.
pub type Results = BTreeMap<String, String>;

/// The third-party test suites that both kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// BusyBox's own tests.
    Busybox,
    /// The Open POSIX Test Suite.
    Posix,
    /// Real dynamic programs from Debian.
    Programs,
}

impl Suite {
    /// The jobs of its slice.
    pub fn slice(self) -> Chosen {
        match self {
            Self::Busybox => Chosen::Slice(slice::BUSYBOX),
            Self::Posix => Chosen::Slice(slice::POSIX),
            Self::Programs => Chosen::All,
        }
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busybox => "busybox",
            Self::Posix => "posix",
            Self::Programs => "programs",
        }
    }

    /// Fetches and builds what is missing; gives the image and the chosen jobs.
    pub fn prepare(self, chosen: &Chosen, consent: Consent) -> Result<(Image, Vec<Job>)> {
        let (image, mut jobs) = match self {
            Self::Busybox => busybox::prepare(consent),
            Self::Posix => posix::prepare(chosen, consent),
            Self::Programs => programs::prepare(consent),
        }?;
        jobs.retain(|job| chosen.has(&job.name));
        Ok((image, jobs))
    }

    /// The name of its Debian source package; [`Suite::Programs`] are of many.
    pub fn source(self) -> Option<&'static str> {
        match self {
            Self::Busybox => Some(busybox::SOURCE),
            Self::Posix => Some(posix::SOURCE),
            Self::Programs => None,
        }
    }

    /// A report without the lines that no result is made of.
    pub fn essence(self, report: &Report) -> Report {
        let is_needed = |line: &&String| match self {
            Self::Busybox => busybox::verdict(line).is_some(),
            Self::Posix => false,
            Self::Programs => true,
        };
        Report { lines: report.lines.iter().filter(is_needed).cloned().collect(), ..report.clone() }
    }

    /// Test results from what the jobs printed and how they ended.
    pub fn results(self, reports: &[Report]) -> Results {
        match self {
            Self::Busybox => busybox::results(reports),
            Self::Posix => posix::results(reports),
            Self::Programs => programs::results(reports),
        }
    }
}

/// Which jobs of a suite run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// All of them.
    All,
    /// Those whose name contains one of the comma-separated parts.
    Parts(String),
    /// Those of the suite's [`mod@slice`].
    Slice(&'static [&'static str]),
}

impl Chosen {
    /// Whether a job is among them. A row of a slice names a job, or with a dot at its end a whole interface.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Parts(parts) => parts.split(',').any(|part| name.contains(part)),
            Self::Slice(rows) => rows.iter().any(|row| name == *row || (row.ends_with('.') && name.starts_with(row))),
        }
    }

    /// What the names of its files end with.
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::All => "",
            Self::Parts(_) => "-partial",
            Self::Slice(_) => "-slice",
        }
    }
}

/// What the jobs of one suite did under both kernels.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Reports of the jobs under the kernel of this workspace.
    pub ours: Vec<Report>,
    /// Reports of the jobs under Linux.
    pub linux: Vec<Report>,
}

impl Runs {
    /// Whether a test of this job passed under Linux only.
    pub fn is_worse(&self, suite: Suite, job: &str) -> bool {
        let of = |reports: &[Report]| {
            let report: Vec<Report> = reports.iter().filter(|report| report.name == job).cloned().collect();
            suite.results(&report)
        };
        let compared = SuiteComparison { ours: of(&self.ours), linux: of(&self.linux), unsteady: Vec::new() };
        compared.rows().iter().any(|(_, here, there)| *there == "pass" && *here != "pass")
    }

    /// The results, with those of a second run in the place of the first run's. Its jobs that are no longer worse are
    /// unsteady.
    pub fn with_second_look(mut self, suite: Suite, second: &Self) -> SuiteComparison {
        let replace = |first: &mut [Report], second: &[Report]| {
            for report in first {
                if let Some(again) = second.iter().find(|again| again.name == report.name) {
                    *report = again.clone();
                }
            }
        };
        replace(&mut self.ours, &second.ours);
        replace(&mut self.linux, &second.linux);
        let names = second.ours.iter().map(|report| &report.name);
        let unsteady = names.filter(|name| !second.is_worse(suite, name)).cloned().collect();
        SuiteComparison { ours: suite.results(&self.ours), linux: suite.results(&self.linux), unsteady }
    }
}

/// Both kernels' results of one suite.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SuiteComparison {
    /// Results under the kernel of this workspace.
    pub ours: Results,
    /// Results under Linux.
    pub linux: Results,
    /// Jobs that were worse than under Linux once and were not when both kernels ran them again.
    #[serde(default)]
    pub unsteady: Vec<String>,
}

impl SuiteComparison {
    /// Every test's name with our kernel's word and Linux's; `absent` where a run did not get to it.
    pub fn rows(&self) -> Vec<(&str, &str, &str)> {
        let names: BTreeSet<&String> = self.ours.keys().chain(self.linux.keys()).collect();
        let row = |name| (String::as_str(name), word(&self.ours, name), word(&self.linux, name));
        names.into_iter().map(row).collect()
    }

    /// Cases for CI: what fails under Linux too is left out, with Linux's word.
    pub fn cases(&self) -> Vec<Case> {
        let case = |(name, here, there): (&str, &str, &str)| {
            let outcome = match (here, there) {
                ("pass", _) => Outcome::Pass,
                (here, "pass") => Outcome::Failure(format!("{here}; passes under Linux")),
                (_, there) => Outcome::Skipped(format!("under Linux: {there}")),
            };
            let (class, test) = name.split_once(['.', ':']).unwrap_or(("", name));
            Case { class: class.to_owned(), name: test.trim().to_owned(), outcome }
        };
        self.rows().into_iter().map(case).collect()
    }
}

/// The table of a suite: counts for both kernels and every test on which they differ.
pub fn table(suite: Suite, results: &SuiteComparison) -> String {
    let passes = |results: &Results| results.values().filter(|result| result.as_str() == "pass").count();
    let mut text = String::new();
    let (mut differing, mut worse) = (0, 0);
    let rows = results.rows();
    for (name, here, there) in rows.iter().filter(|(_, here, there)| here != there) {
        differing += 1;
        worse += usize::from(*there == "pass");
        let _ = writeln!(text, "{name:<50} ours {here:<24} linux {there}");
    }
    let (here, there, count) = (passes(&results.ours), passes(&results.linux), rows.len());
    let name = suite.name();
    let _ = writeln!(
        text,
        "{name}: {count} tests, {here} pass here, {there} pass on Linux, {differing} differ, \
         {worse} of them pass on Linux only"
    );
    if !results.unsteady.is_empty() {
        let _ = writeln!(text, "unsteady, worse only in the first of two runs: {}", results.unsteady.join(", "));
    }
    text
}

fn word<'a>(results: &'a Results, name: &str) -> &'a str {
    results.get(name).map_or("absent", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::End;

    fn results(rows: &[(&str, &str)]) -> Results {
        rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_test_that_vanished_with_a_crash_counts_as_a_difference() {
        let ours = results(&[("x.a", "pass")]);
        let linux = results(&[("x.a", "pass"), ("x.b", "pass"), ("x.c", "fail")]);
        let compared = SuiteComparison { ours, linux, unsteady: Vec::new() };
        let table = table(Suite::Posix, &compared);
        assert!(table.contains("posix: 3 tests, 1 pass here, 2 pass on Linux, 2 differ, 1 of them"), "{table}");
        let outcomes: Vec<Outcome> = compared.cases().into_iter().map(|case| case.outcome).collect();
        assert_eq!(outcomes[1], Outcome::Failure("absent; passes under Linux".into()));
        assert_eq!(outcomes[2], Outcome::Skipped("under Linux: fail".into()));
    }

    #[test]
    fn a_job_that_is_worse_once_is_unsteady_and_one_that_is_worse_twice_fails() {
        let report = |name: &str, status| Report { name: name.into(), lines: Vec::new(), end: End::Exit(status) };
        let runs =
            |a, b| Runs { ours: vec![report("a", a), report("b", b)], linux: vec![report("a", 0), report("b", 0)] };
        let first = runs(1, 1);
        assert!(first.is_worse(Suite::Posix, "a") && first.is_worse(Suite::Posix, "b"));
        let compared = first.with_second_look(Suite::Posix, &runs(0, 1));
        assert_eq!(compared.unsteady, ["a"]);
        assert_eq!(compared.ours, results(&[("a", "pass"), ("b", "fail")]));
    }

    #[test]
    fn a_slice_takes_whole_interfaces_by_their_dot_and_nothing_that_only_begins_alike() {
        let chosen = Chosen::Slice(&["fork.", "cat"]);
        assert!(chosen.has("fork.1-1") && chosen.has("cat"));
        assert!(!chosen.has("bzcat") && !chosen.has("pthread_atfork.1-1") && !chosen.has("cat.1"));
    }
}
