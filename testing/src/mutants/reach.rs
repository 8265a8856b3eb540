//! Which loads come to which mutation: every load is booted once alone, with no mutation on.
//!
//! A mutant is booted with at most sixteen of the loads that come to it, spread over the list, and with the stress:
//! code that everything runs breaks everything or nothing, so that the other sixty tell little more. What it does to a
//! load that never runs its code (a leak, a corrupted page), or to one that was left out, goes unnoticed. The start of
//! the system is part of every boot. The table is kept as long as kernel and loads are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::guest;
use crate::jobs::Job;
use crate::paths;

/// Most loads that a mutation is booted with, beside [`STRESS`].
const MANY: usize = 16;

/// The load on two processors at once, which a mutation in its way always meets.
const STRESS: &str = "stress";

/// Of each mutation the loads that come to it, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reach {
    /// Of the kernel's image and the names of the loads.
    checksum: u32,
    loads: BTreeMap<u32, BTreeSet<String>>,
}

impl Reach {
    /// Boots each load of a baseline, or takes what is kept of the same kernel and loads.
    pub fn take(baseline: &Baseline, folder: &Path) -> Result<Self> {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&fs::read(&baseline.kernel.file).context("the kernel with its mutations")?);
        baseline.loads.jobs.iter().for_each(|job| hasher.update(job.name.as_bytes()));
        let checksum = hasher.finalize();
        let file = paths::build("mutants")?.join("reach.json");
        let kept = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        if let Some(kept) = kept.filter(|kept| kept.checksum == checksum) {
            return Ok(kept);
        }
        let mut reach = Self { checksum, ..Self::default() };
        for job in &baseline.loads.jobs {
            let initrd = baseline.loads.archive(std::slice::from_ref(job), "alone.cpio")?;
            let (_, memory) = guest::boot_with_memory(&baseline.kernel.file, &initrd, folder)?;
            let asked = baseline.kernel.asked(&memory).with_context(|| format!("{} alone", job.name))?;
            for number in asked {
                reach.loads.entry(number).or_default().insert(job.name.clone());
            }
        }
        paths::write(&file, &serde_json::to_vec(&reach)?)?;
        Ok(reach)
    }

    /// The loads to boot a mutation with, in their order; `None` for a mutation that no load came to.
    #[must_use]
    pub fn of(&self, number: u32, all: &[Job]) -> Option<Vec<Job>> {
        let names = self.loads.get(&number)?;
        let come: Vec<&Job> = all.iter().filter(|job| names.contains(&job.name)).collect();
        let is_taken = |&(index, job): &(usize, &&Job)| {
            // The index moves to another of `MANY` equal parts of the list.
            come.len() <= MANY
                || job.name == STRESS
                || index == 0
                || index * MANY / come.len() != (index - 1) * MANY / come.len()
        };
        Some(come.iter().enumerate().filter(is_taken).map(|(_, job)| (*job).clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_loads_are_all_taken_and_of_many_some_in_their_order_with_the_stress() {
        let job = |name: &str| Job { name: name.to_owned(), seconds: 1, words: Vec::new() };
        let mut all: Vec<Job> = (0..40).rev().map(|number| job(&format!("{number:02}"))).collect();
        all.insert(1, job(STRESS));
        let mut reach = Reach::default();
        reach.loads.insert(1, ["03", "20"].map(str::to_owned).into());
        reach.loads.insert(2, all.iter().map(|job| job.name.clone()).collect());
        let names =
            |number| reach.of(number, &all).map(|jobs| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>());
        assert_eq!(names(1), Some(vec!["20".to_owned(), "03".to_owned()]));
        let many = names(2).unwrap();
        assert_eq!((many.len(), many[0].as_str(), many[1].as_str()), (MANY + 1, "39", STRESS));
        assert!(many[2..].is_sorted_by(|one, other| one > other), "{many:?}");
        assert_eq!(names(3), None);
    }
}
