//! The regression gate: the figures that a commit stored, and how far a later one may be above them.
//!
//! The baseline is `testing/bench/baseline.json`: instructions per operation of our kernel for a slice of the
//! benchmarks. Instruction counts repeat exactly, so one percent is a change of the code, not noise. A figure may only
//! rise by a commit that stores a new baseline and says why.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{Figure, Run};
use crate::paths;

/// How far a figure may be above its baseline.
pub const ALLOWED: f64 = 1.01;

/// The slice that every test run measures: one benchmark for each mechanism that a careless change makes slower.
pub const SLICE: [&str; 15] = [
    "getpid",
    "read_null",
    "stat",
    "open_close",
    "pipe",
    "mmap_fault",
    "mmap_fault_4k",
    "mmap_munmap",
    "mprotect",
    "brk",
    "signal_delivery",
    "fork_exit",
    "exec_true",
    "exec_large_64",
    "socketpair",
];

/// The stored figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Instructions per operation by name.
    pub figures: BTreeMap<String, f64>,
}

/// One figure that rose too far.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Name of the benchmark.
    pub name: String,
    /// What the baseline says.
    pub before: f64,
    /// What was measured.
    pub now: f64,
}

impl Baseline {
    /// Where it is stored.
    pub fn file() -> PathBuf {
        paths::root().join("testing/bench/baseline.json")
    }

    /// The stored baseline; `None` when none was stored yet.
    pub fn load() -> Result<Option<Self>> {
        let file = Self::file();
        if !file.is_file() {
            return Ok(None);
        }
        serde_json::from_str(&paths::read(&file)?).map(Some).context("testing/bench/baseline.json")
    }

    /// Takes the figures of a run, keeping those that it did not measure.
    pub fn update(&mut self, run: &Run) {
        let figures = run.figures.iter().map(|figure| (figure.name.clone(), figure.per_operation()));
        self.figures.extend(figures);
    }

    /// Writes it to the file from which the gate reads it.
    pub fn store(&self) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        paths::write(&Self::file(), text.as_bytes())
    }

    /// The figures of a run that are more than [`ALLOWED`] above this baseline.
    pub fn regressions(&self, run: &Run) -> Vec<Regression> {
        let regression = |figure: &Figure| {
            let before = *self.figures.get(&figure.name)?;
            let now = figure.per_operation();
            (now > before * ALLOWED).then(|| Regression { name: figure.name.clone(), before, now })
        };
        run.figures.iter().filter_map(regression).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Conditions;

    #[test]
    fn two_percent_more_instructions_is_a_regression_and_one_percent_is_not() {
        let mut baseline = Baseline::default();
        baseline.figures.extend([("slow".to_owned(), 100.0), ("same".to_owned(), 100.0)]);
        let figure = |name: &str, total_ns| Figure { name: name.into(), iterations: 10, total_ns };
        let run = Run {
            kernel: "ours".into(),
            conditions: Conditions { flags: Vec::new(), image: 0 },
            figures: vec![figure("slow", 1020), figure("same", 1010), figure("new", 5000)],
            spread: BTreeMap::new(),
            user: BTreeMap::new(),
        };
        let found = baseline.regressions(&run);
        assert_eq!(found, [Regression { name: "slow".into(), before: 100.0, now: 102.0 }]);
    }

    #[test]
    fn the_slice_names_benchmarks_that_exist() {
        let table = crate::bench::table().unwrap();
        assert!(SLICE.iter().all(|name| table.iter().any(|row| row.name == *name)));
    }
}
