//! `cargo xtask mutants [--seed S] [--count N] [--only PATH] [--kept DIR] [--json]`: changes the kernel at random places and
//! asks whether `kwab` finds the changed function.
//!
//! The changes are those of `cargo-mutants`, which is installed when it is missing. Each mutant is built in a scratch
//! checkout below `build/mutants`, booted once with a fixed set of loads, and sorted: does not build, unnoticed, different
//! output, program died, kernel died, hung. Of what died or hung `kwab` is asked with the dump and, apart from that, with the serial log
//! alone. The sample is stratified by file; the same seed draws the same mutants of the same sources. What was found lies in
//! `build/mutants/SEED/ID`; `--kept DIR` asks `kwab` again about the cases in such a folder and boots nothing. The tables say
//! what their columns mean. A mutant that could not be judged at all fails the command; a wrong diagnosis does not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::linux_crashes::score;
use crate::mutants::baseline::Baseline;
use crate::mutants::loads::Loads;
use crate::mutants::report::{self, Record, Row};
use crate::mutants::tree::Tree;
use crate::mutants::{self, Session, described, list, sample, slice};
use crate::results::{self, Circumstances};
use crate::setup::{self, Consent, Tool};
use crate::{paths, results::Kept};

/// Its arguments.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What the sample is drawn by.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many mutants.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,
    /// Only of files whose path begins so, as `kernel/src/mm`.
    #[arg(long, value_name = "PATH")]
    only: Option<String>,
    /// Begin no mutant after this many minutes.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Build and boot nothing: ask again about the cases in this folder.
    #[arg(long, value_name = "DIR")]
    kept: Option<PathBuf>,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, consent: Consent) -> Result<ExitCode> {
    let began = Circumstances::now();
    let kwab = score::program()?;
    let mut failures = Vec::new();
    let record = match &arguments.kept {
        Some(folder) => again(&kwab, folder, arguments)?,
        None => sampled(kwab, arguments, consent, &mut failures)?,
    };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        print!("\n{}", report::tables(std::slice::from_ref(&record)));
    }
    if arguments.kept.is_none() {
        keep(record, arguments.only.is_none(), began)?;
    }
    results::verdict(&failures)
}

/// A few described changes with few loads, for the test of everything: an error names each that was not judged as it must be.
pub fn slice(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let kwab = score::program()?;
    let tree = Tree::prepare()?;
    let mut loads = Loads::prepare(consent)?;
    loads.jobs.retain(|job| slice::LOADS.contains(&job.name.as_str()));
    ensure!(loads.jobs.len() == slice::LOADS.len(), "loads of the slice are gone");
    let baseline = Baseline::take(&tree, loads)?;
    ensure!(baseline.unsteady.is_empty(), "without a mutation {} are not steady", baseline.unsteady.join(", "));
    let changes = slice::CHANGES.iter().map(|change| described::mutant(tree.root(), change));
    let changes = changes.collect::<Result<Vec<_>>>()?;
    let session = Session { tree, baseline, kwab, folder: paths::build("mutants/slice")? };
    let mut complaints = Vec::new();
    for mutant in &changes {
        let row = session.judge(mutant)?;
        println!("{}", row.line());
        complaints.extend(slice::complaints(&row));
    }
    results::verdict(&complaints).map(drop)
}

/// Asks again about what is kept.
fn again(kwab: &Path, folder: &Path, arguments: &Arguments) -> Result<Record> {
    let rows = mutants::kept(kwab, folder, |row| show(row, arguments))?;
    ensure!(!rows.is_empty(), "no mutant is kept in {}", paths::shown(folder));
    Ok(Record { seed: arguments.seed, listed: rows.len(), rows })
}

/// Draws the sample and judges it.
fn sampled(kwab: PathBuf, arguments: &Arguments, consent: Consent, failures: &mut Vec<String>) -> Result<Record> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let tree = Tree::prepare()?;
    let mut all = list::list(tree.root())?;
    let only = arguments.only.as_deref().unwrap_or_default();
    all.retain(|mutant| mutant.file.starts_with(only));
    ensure!(!all.is_empty(), "no mutant of a file that begins with {only}");
    let listed = all.len();
    let baseline = Baseline::take(&tree, Loads::prepare(consent)?)?;
    if !arguments.json {
        let (jobs, unsteady) = (baseline.loads.jobs.len(), baseline.unsteady.join(", "));
        let dying = baseline.dying.iter().cloned().collect::<Vec<_>>().join(", ");
        println!("{listed} mutants; {jobs} loads in {:.0} s; unsteady: {unsteady}; dying: {dying}", baseline.seconds);
    }
    let folder = paths::build(&format!("mutants/{}", arguments.seed))?;
    let session = Session { tree, baseline, kwab, folder };
    let (since, limit) = (Instant::now(), arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes)));
    let mut rows = Vec::new();
    for mutant in sample::order(all, arguments.seed).iter().take(arguments.count as usize) {
        if limit.is_some_and(|limit| since.elapsed() >= limit) {
            break;
        }
        match session.judge(mutant) {
            Ok(row) => {
                show(&row, arguments);
                rows.push(row);
            }
            Err(error) => {
                eprintln!("error: {}: {error:#}", mutant.name);
                failures.push(format!("{}: {error:#}", mutant.name));
            }
        }
    }
    ensure!(!rows.is_empty(), "no mutant was judged: {}", failures.join("; "));
    Ok(Record { seed: arguments.seed, listed, rows })
}

fn show(row: &Row, arguments: &Arguments) {
    if !arguments.json {
        println!("{}", row.line());
    }
}

/// Keeps a seed's record beside those of other seeds, for the page of results.
fn keep(record: Record, complete: bool, began: Circumstances) -> Result<()> {
    let mut records = match results::kept::<Vec<Record>>("mutants").context("what other seeds left")? {
        // Figures of another commit are not mixed with these.
        Some(Kept { circumstances, results }) if circumstances.commit == began.commit => results,
        _ => Vec::new(),
    };
    records.retain(|other| other.seed != record.seed);
    records.push(record);
    records.sort_by_key(|record| record.seed);
    results::keep("mutants", complete, began, records)
}
