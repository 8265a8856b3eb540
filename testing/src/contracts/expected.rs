//! Remembers what Linux printed, so that our kernel can be judged again without booting Linux again.
//!
//! An answer counts for exactly the program it was given for. There are two memories. That of this machine is in
//! `build/`, with the CRC-32 of the program's bytes and of Linux's image as the key. That of the repository
//! ([`LinuxRecord`], `testing/contracts/linux.jsonl`) has only the program's, and counts for Linux images of one series
//! (`6.1`): the programs are the same bytes on every machine with Debian's compiler. A run that takes answers from it
//! asks Linux again for a few of them ([`LinuxRecord::sample`]), others with each commit.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::program::{self, Contract};
use crate::jobs::{self, Report};
use crate::paths;

/// What Linux answered to each contract, with the key under which the answer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    answers: BTreeMap<String, (u64, Report)>,
}

impl Expected {
    /// What is remembered; nothing when there is no file, or when its form is an older one.
    pub fn load() -> Result<Self> {
        match fs::read(file()?) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).context("reading Linux's remembered answers"),
        }
    }

    /// Keeps what is remembered.
    pub fn store(&self) -> Result<()> {
        paths::write(&file()?, &serde_json::to_vec_pretty(self)?)
    }

    /// The answer for this program, if it was given for the same bytes.
    pub fn answer(&self, contract: &Contract, key: u64) -> Option<&Report> {
        self.answers.get(&contract.name).filter(|(known, _)| *known == key).map(|(_, report)| report)
    }

    /// Remembers an answer. One of a machine that was lost, or of a program that ran out of time, is none.
    pub fn remember(&mut self, key: u64, report: Report) {
        if report.end.is_answer() {
            self.answers.insert(report.name.clone(), (key, report));
        }
    }
}

/// The repository's memory of Linux's answers.
#[derive(Clone, Debug, Default)]
pub struct LinuxRecord {
    answers: BTreeMap<String, Recorded>,
}

/// One line of the record's file. The first has the series of Linux.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Recorded {
    /// CRC-32 of the program.
    program: u32,
    #[serde(flatten)]
    report: Report,
}

#[derive(Serialize, Deserialize)]
struct Header {
    linux: String,
}

impl LinuxRecord {
    /// The record, if it is of this series of Linux (`6.1`).
    pub fn load(series: &str) -> Result<Self> {
        let file = record_file();
        if !file.exists() {
            return Ok(Self::default());
        }
        Self::parse(&paths::read(&file)?, series).with_context(|| paths::shown(&file))
    }

    fn parse(text: &str, series: &str) -> Result<Self> {
        let mut lines = text.lines();
        let header: Header = serde_json::from_str(lines.next().context("no first line")?)?;
        if header.linux != series {
            return Ok(Self::default());
        }
        let line = |line| {
            let recorded: Recorded = serde_json::from_str(line)?;
            Ok((recorded.report.name.clone(), recorded))
        };
        Ok(Self { answers: lines.map(line).collect::<Result<_>>()? })
    }

    /// Linux's answer to the program with this key, of any image of the series.
    pub fn answer(&self, contract: &Contract, key: u64) -> Option<&Report> {
        let recorded = self.answers.get(&contract.name)?;
        (u64::from(recorded.program) == key >> 32).then_some(&recorded.report)
    }

    /// The names of `count` of the contracts that the record answers, others for each `seed`.
    pub fn sample(&self, seed: &str, count: usize) -> Vec<&str> {
        jobs::sample(self.answers.keys().map(String::as_str), seed, count)
    }

    /// Writes the record: each program's key with what Linux answered at last. An answer of a machine that was lost, or
    /// of a program that ran out of time, is none.
    pub fn write<'r>(series: &str, answers: impl Iterator<Item = (u64, &'r Report)>) -> Result<()> {
        let mut text = serde_json::to_string(&Header { linux: series.to_owned() })?;
        for (key, report) in answers.filter(|(_, report)| report.end.is_answer()) {
            let line = Recorded { program: (key >> 32) as u32, report: report.clone() };
            write!(text, "\n{}", serde_json::to_string(&line)?)?;
        }
        text.push('\n');
        paths::write(&record_file(), text.as_bytes())
    }
}

/// Where the repository's memory is.
pub fn record_file() -> PathBuf {
    program::folder().join("linux.jsonl")
}

/// The key of a program under a Linux image.
pub fn key(program: &Path, linux: &Path) -> Result<u64> {
    let checksum = |path: &Path| {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", paths::shown(path)))?;
        Ok::<_, anyhow::Error>(u64::from(crc32fast::hash(&bytes)))
    };
    Ok(checksum(program)? << 32 | checksum(linux)?)
}

fn file() -> Result<PathBuf> {
    Ok(paths::build("results")?.join("contracts-linux.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::Link;

    fn contract(name: &str) -> Contract {
        Contract { name: name.to_owned(), source: PathBuf::new(), link: Link::Static, seconds: 10 }
    }

    #[test]
    fn a_recorded_answer_counts_for_the_same_program_under_the_same_series() {
        let text =
            "{\"linux\":\"6.1\"}\n{\"program\":7,\"name\":\"vm/a\",\"lines\":[\"x = 1\"],\"end\":{\"exit\":0}}\n";
        let record = LinuxRecord::parse(text, "6.1").unwrap();
        let answer = |key| record.answer(&contract("vm/a"), key).map(|report| report.lines.clone());
        assert_eq!(answer(7 << 32 | 5), Some(vec!["x = 1".to_owned()]));
        assert_eq!(answer(8 << 32 | 5), None);
        assert!(record.answer(&contract("vm/b"), 7 << 32).is_none());
        assert!(LinuxRecord::parse(text, "6.12").unwrap().answer(&contract("vm/a"), 7 << 32).is_none());
        assert!(LinuxRecord::parse("{\"linux\":\"6.1\"}\n{", "6.1").is_err());
    }

    #[test]
    fn each_seed_samples_others() {
        let line = |n| format!("\n{{\"program\":1,\"name\":\"a/{n}\",\"lines\":[],\"end\":{{\"exit\":0}}}}");
        let text = "{\"linux\":\"6.1\"}".to_owned() + &(0..50).map(line).collect::<String>();
        let record = LinuxRecord::parse(&text, "6.1").unwrap();
        assert_eq!(record.sample("one", 10).len(), 10);
        assert_ne!(record.sample("one", 10), record.sample("two", 10));
        assert_eq!(record.sample("one", 99).len(), 50);
    }
}
