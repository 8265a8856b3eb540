//! Third-party test suites: programs that others wrote to judge systems like ours.
//!
//! A suite is fetched from Debian's source packages, built statically with musl once, and kept in the cache; nothing of
//! it is committed. It gives an image and a list of jobs, and turns the jobs' reports into test results by name. The
//! judgement is the difference: what passes under Linux on the same QEMU must pass under our kernel.

pub mod busybox;
pub mod posix;
pub mod programs;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use clap::ValueEnum;

use crate::image::Image;
use crate::jobs::{Job, Report};
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
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Busybox => "busybox",
            Self::Posix => "posix",
            Self::Programs => "programs",
        }
    }

    /// Fetches and builds what is missing; gives the image and the jobs whose name contains a part of the filter.
    pub fn prepare(self, filter: Option<&str>, consent: Consent) -> Result<(Image, Vec<Job>)> {
        let (image, mut jobs) = match self {
            Self::Busybox => busybox::prepare(consent),
            Self::Posix => posix::prepare(filter, consent),
            Self::Programs => programs::prepare(consent),
        }?;
        jobs.retain(|job| filter.is_none_or(|filter| filter.split(',').any(|part| job.name.contains(part))));
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

/// The table of a suite: counts for both kernels and every test on which they differ.
pub fn table(suite: Suite, ours: &Results, linux: &Results) -> String {
    let passes = |results: &Results| results.values().filter(|result| result.as_str() == "pass").count();
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(linux.keys()).collect();
    let absent = "absent".to_owned();
    let result = |results: &Results, name: &String| results.get(name).unwrap_or(&absent).clone();
    let mut text = String::new();
    let mut differing = 0;
    let mut worse = 0;
    for name in &names {
        let (here, there) = (result(ours, name), result(linux, name));
        if here != there {
            differing += 1;
            worse += usize::from(there == "pass");
            let _ = writeln!(text, "{name:<50} ours {here:<24} linux {there}");
        }
    }
    let (here, there) = (passes(ours), passes(linux));
    let name = suite.name();
    let _ = writeln!(
        text,
        "{name}: {} tests, {here} pass here, {there} pass on Linux, {differing} differ, {worse} of them pass on Linux only",
        names.len()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_vanished_with_a_crash_counts_as_a_difference() {
        let results = |rows: &[(&str, &str)]| rows.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let (ours, linux) = (results(&[("a", "pass")]), results(&[("a", "pass"), ("b", "pass"), ("c", "fail")]));
        let table = table(Suite::Posix, &ours, &linux);
        assert!(table.contains("posix: 3 tests, 1 pass here, 2 pass on Linux, 2 differ, 1 of them"), "{table}");
    }
}
