//! `cargo xtask second-reader [--cases N] [--seed S] [--keep FOLDER]`: asks two readers about the same dumps.
//!
//! Reads every dump of the repository and N mutated ones of them with kwab-format and with the reader in
//! `testing/second-reader`, and compares sections, values and defects. A disagreement is printed with its seed and
//! number; `--keep` leaves such dumps in a folder. Ends with 1 when there is one.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::paths;
use crate::second::{Sample, corpus, disagreements, mutate};

/// Dumps in one call of the second reader.
const BATCH: u64 = 500;

/// SecondReaderArguments of `second-reader`.
#[derive(Debug, Args)]
pub struct SecondReaderArguments {
    /// Mutated dumps beside those of the repository.
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// Which mutated dumps.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where dumps go that are read differently.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Reads every sample with both readers and reports the first difference of each.
pub fn run(arguments: &SecondReaderArguments) -> Result<ExitCode> {
    let scratch = paths::build("second-reader")?;
    let samples = corpus()?;
    let mut differ = compare(&samples, &scratch, arguments)?;
    for first in (0..arguments.cases).step_by(BATCH as usize) {
        let numbers = first..arguments.cases.min(first + BATCH);
        let batch: Vec<_> = numbers.map(|number| mutate::mutated(&samples, arguments.seed, number)).collect();
        differ += compare(&batch, &scratch, arguments)?;
    }
    let read = samples.len() as u64 + arguments.cases;
    println!("{read} dumps ({} mutated, seed {}): {differ} read differently", arguments.cases, arguments.seed);
    Ok(if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compare(samples: &[Sample], scratch: &std::path::Path, arguments: &SecondReaderArguments) -> Result<usize> {
    let found = disagreements(samples, scratch)?;
    for disagreement in &found {
        println!("{}: {}", disagreement.name, disagreement.text);
        let bytes = samples.iter().find(|sample| sample.name == disagreement.name).map(|sample| &sample.bytes);
        if let (Some(folder), Some(bytes)) = (&arguments.keep, bytes) {
            fs::create_dir_all(folder)?;
            let name: String = disagreement.name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(found.len())
}
