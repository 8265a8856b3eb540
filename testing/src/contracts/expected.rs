//! Remembers what Linux printed, so that our kernel can be judged again without booting Linux again.
//!
//! An answer counts for exactly the program it was given for: the key is the name with the CRC-32 of the program's
//! bytes and of Linux's image. The file is in `build/` and never committed; a machine that has none boots Linux.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::program::Contract;
use crate::jobs::{End, Report};
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
        if matches!(report.end, End::Exit(_) | End::Signal(_)) {
            self.answers.insert(report.name.clone(), (key, report));
        }
    }
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
