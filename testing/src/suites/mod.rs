//! Third-party test suites: programs that others wrote to judge systems like ours.
//!
//! A suite is fetched from Debian's source packages, built statically with musl once, and kept in the cache; nothing of
//! it is committed. It gives an image and a list of jobs, and turns the jobs' reports into test results by name. The
//! judgement is the difference: what passes under Linux on the same QEMU must pass under our kernel.
//!
//! Whole suites take from minutes to an hour. A [`mod@slice`] of each takes a minute with everything that goes before it, and
//! is part of every test run.

pub mod busybox;
pub mod posix;
pub mod programs;
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

/// The suites.
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

/// Both kernels' results of one suite.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Compared {
    /// Our kernel's.
    pub ours: Results,
    /// Linux's.
    pub linux: Results,
}

impl Compared {
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
pub fn table(suite: Suite, results: &Compared) -> String {
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
        "{name}: {count} tests, {here} pass here, {there} pass on Linux, {differing} differ, {worse} of them pass on Linux only"
    );
    text
}

fn word<'a>(results: &'a Results, name: &str) -> &'a str {
    results.get(name).map_or("absent", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(rows: &[(&str, &str)]) -> Results {
        rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_test_that_vanished_with_a_crash_counts_as_a_difference() {
        let ours = results(&[("x.a", "pass")]);
        let linux = results(&[("x.a", "pass"), ("x.b", "pass"), ("x.c", "fail")]);
        let compared = Compared { ours, linux };
        let table = table(Suite::Posix, &compared);
        assert!(table.contains("posix: 3 tests, 1 pass here, 2 pass on Linux, 2 differ, 1 of them"), "{table}");
        let outcomes: Vec<Outcome> = compared.cases().into_iter().map(|case| case.outcome).collect();
        assert_eq!(outcomes[1], Outcome::Failure("absent; passes under Linux".into()));
        assert_eq!(outcomes[2], Outcome::Skipped("under Linux: fail".into()));
    }

    #[test]
    fn a_slice_takes_whole_interfaces_by_their_dot_and_nothing_that_only_begins_alike() {
        let chosen = Chosen::Slice(&["fork.", "cat"]);
        assert!(chosen.has("fork.1-1") && chosen.has("cat"));
        assert!(!chosen.has("bzcat") && !chosen.has("pthread_atfork.1-1") && !chosen.has("cat.1"));
    }
}
