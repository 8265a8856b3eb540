//! Remembers what Linux answered to the slices of the suites, so that a test run needs not ask it for all of them.
//!
//! The repository's record (`testing/suites/<suite>.jsonl`) holds for one series of Linux (`6.1`) and for one version
//! of the suite's Debian source. A run that takes answers from it asks Linux again for some jobs, others with each
//! commit ([`SuiteRecord::sample`]), and for all of them when one contradicts. The suite of Debian's programs has no
//! record: its packages move with every point release.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::Suite;
use crate::jobs::{self, Report};
use crate::paths;

/// What Linux answered to each job, without what the results do not need of its output.
#[derive(Clone, Debug, Default)]
pub struct SuiteRecord {
    answers: BTreeMap<String, Report>,
}

/// What the record holds for: its first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The series of Linux's releases.
    linux: String,
    /// The first line of the source's `debian/changelog`.
    source: String,
}

impl Basis {
    /// That of a suite whose source lies in `tree`.
    pub fn new(linux: &str, tree: &Path) -> Result<Self> {
        let changes = paths::read(&tree.join("debian/changelog"))?;
        let source = changes.lines().next().unwrap_or_default().to_owned();
        Ok(Self { linux: linux.to_owned(), source })
    }
}

impl SuiteRecord {
    /// The record, if it holds for this; else one without answers.
    pub fn load(suite: Suite, basis: &Basis) -> Result<Self> {
        let file = file(suite);
        if !file.exists() {
            return Ok(Self::default());
        }
        Self::parse(&paths::read(&file)?, basis).with_context(|| paths::shown(&file))
    }

    fn parse(text: &str, basis: &Basis) -> Result<Self> {
        let mut lines = text.lines();
        let found: Basis = serde_json::from_str(lines.next().context("no first line")?)?;
        if found != *basis {
            return Ok(Self::default());
        }
        Ok(Self::of(lines.map(serde_json::from_str).collect::<Result<_, _>>()?))
    }

    /// One of these answers.
    pub fn of(answers: Vec<Report>) -> Self {
        Self { answers: jobs::by_name(answers) }
    }

    /// Linux's answer to the job of this name.
    pub fn answer(&self, job: &str) -> Option<&Report> {
        self.answers.get(job)
    }

    /// The names of `count` of the jobs that it answers, others for each `seed`.
    pub fn sample(&self, seed: &str, count: usize) -> Vec<&str> {
        jobs::sample(self.answers.keys().map(String::as_str), seed, count)
    }

    /// Writes the record of these reports; gives its file. A job that did not end by itself does not count.
    pub fn write(suite: Suite, basis: &Basis, reports: &[Report]) -> Result<PathBuf> {
        let mut lines = vec![serde_json::to_string(basis)?];
        for report in reports.iter().filter(|report| report.end.is_answer()) {
            lines.push(serde_json::to_string(&suite.essence(report))?);
        }
        let file = file(suite);
        paths::write(&file, (lines.join("\n") + "\n").as_bytes())?;
        Ok(file)
    }
}

fn file(suite: Suite) -> PathBuf {
    paths::root().join(format!("testing/suites/{}.jsonl", suite.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_linux_or_another_source_answers_nothing() {
        let basis = |linux: &str, source: &str| Basis { linux: linux.into(), source: source.into() };
        let text = "{\"linux\":\"6.1\",\"source\":\"x (1)\"}\n{\"name\":\"ash\",\"lines\":[],\"end\":{\"exit\":0}}\n";
        let has = |basis| SuiteRecord::parse(text, &basis).unwrap().answer("ash").is_some();
        assert!(has(basis("6.1", "x (1)")));
        assert!(!has(basis("6.12", "x (1)")) && !has(basis("6.1", "x (2)")));
        assert!(SuiteRecord::parse("{\"linux\":\"6.1\",\"source\":\"x (1)\"}\n{", &basis("6.1", "x (1)")).is_err());
    }
}
