//! `cargo xtask mutants [--seed S] [--count N] [--only PATH] [--id ID] [--kept DIR] [--write] [--json]`: changes the
//! kernel at random places and asks whether `kwab` finds the changed function.
//!
//! The changes are those of `cargo-mutants`, which is installed when it is missing. All of them are built into one
//! kernel, each behind a switch, in a scratch checkout below `build/mutants`; the first time the compiler takes minutes
//! to name those that do not build. A sample of those that the loads come to is booted, one at a time and each with the
//! loads that come to it, and sorted: unnoticed, different output, program died, kernel died, hung. Of what died or
//! hung `kwab` is asked with the dump and, apart from that, with the serial log alone. The sample is stratified by
//! file; the same seed draws the same mutants of the same sources. What was found lies in `build/mutants/SEED/ID`;
//! `--kept DIR` asks `kwab` again about the cases in such a folder and boots nothing. The tables say what their columns
//! mean. A mutant that could not be judged at all fails the command; a wrong diagnosis does not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::binary;
use crate::mutants::baseline::Baseline;
use crate::mutants::list::Mutant;
use crate::mutants::loads::Loads;
use crate::mutants::reach::Reach;
use crate::mutants::report::{self, Record, Row};
use crate::mutants::tree::{Built, Tree};
use crate::mutants::{self, Session, described, list, refused, sample, seeds, slice};
use crate::results::{self, Circumstances};
use crate::setup::{self, Consent, Tool};
use crate::{paths, results::Kept};

/// The arguments of `cargo xtask mutants`.
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
    /// Only these, by their ids, in a kernel with no other mutants; several times for several.
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Begin no mutant after this many minutes.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Build and boot nothing: ask again about the cases in this folder.
    #[arg(long, value_name = "DIR")]
    kept: Option<PathBuf>,
    /// Keep the seed in the repository, for the page of results.
    #[arg(long, conflicts_with_all = ["only", "id", "kept", "minutes"])]
    write: bool,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments, consent: Consent) -> Result<ExitCode> {
    let began = Circumstances::now();
    let kwab = binary::kwab()?;
    let mut failures = Vec::new();
    let mut record = match &arguments.kept {
        Some(folder) => again(&kwab, folder, arguments)?,
        None => sampled(kwab, arguments, consent, &mut failures)?,
    };
    record.circumstances = Some(began.clone());
    if arguments.write {
        seeds::write(&record)?;
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&record)?);
    } else {
        print!("\n{}", report::tables(std::slice::from_ref(&record)));
    }
    if arguments.kept.is_none() {
        keep(record, arguments.only.is_none() && arguments.id.is_empty(), began)?;
    }
    results::verdict(&failures)
}

/// A few described changes with few loads, for the test of everything: an error names each that was not judged as it
/// must be.
pub fn slice(consent: Consent) -> Result<()> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let kwab = binary::kwab()?;
    let mut loads = Loads::prepare(consent)?;
    loads.jobs.retain(|job| slice::LOADS.contains(&job.name.as_str()));
    ensure!(loads.jobs.len() == slice::LOADS.len(), "loads of the slice no longer exist");
    let changes = slice::CHANGES.iter().map(|change| described::mutant(paths::root(), change));
    let changes = changes.collect::<Result<Vec<_>>>()?;
    let built = Tree::prepare()?.build(&changes, &BTreeMap::new())?;
    ensure!(built.left_out.is_empty(), "a change of the slice cannot be switched on: {:?}", built.left_out);
    let folder = paths::build("mutants/slice")?;
    let baseline = Baseline::take(&built.program, loads, &folder, consent)?;
    ensure!(baseline.unsteady.is_empty(), "without a mutation {} are not steady", baseline.unsteady.join(", "));
    let session = Session { reach: None, baseline, kwab, folder };
    let mut complaints = Vec::new();
    for (number, mutant) in (0..).zip(&changes) {
        let row = session.judge(number, mutant)?;
        println!("{}", row.line());
        complaints.extend(slice::complaints(&row));
    }
    results::verdict(&complaints).map(drop)
}

/// Asks again about what is kept.
fn again(kwab: &Path, folder: &Path, arguments: &Arguments) -> Result<Record> {
    let rows = mutants::kept(kwab, folder, |row| show(row, arguments))?;
    ensure!(!rows.is_empty(), "no mutant is kept in {}", paths::shown(folder));
    Ok(Record {
        seed: arguments.seed,
        circumstances: None,
        listed: rows.len(),
        left_out: BTreeMap::new(),
        not_reached: 0,
        rows,
    })
}

/// Builds a kernel with these mutants in it, which are all that are listed or some.
fn built(mutants: &[Mutant], are_all: bool) -> Result<Built> {
    let built = Tree::prepare()?.build(mutants, &refused::known(mutants)?)?;
    if are_all {
        refused::remember(mutants, &built.left_out)?;
    }
    Ok(built)
}

/// Draws the sample and judges it.
fn sampled(kwab: PathBuf, arguments: &Arguments, consent: Consent, failures: &mut Vec<String>) -> Result<Record> {
    setup::require(&[Tool::Qemu, Tool::MuslGcc], consent)?;
    let ids = &arguments.id;
    let mut all = list::list()?;
    all.retain(|mutant| ids.is_empty() || ids.iter().any(|id| mutant.id() == *id));
    ensure!(!all.is_empty(), "no mutant has one of these ids: {}", ids.join(", "));
    let built = built(&all, ids.is_empty())?;
    let folder = paths::build(&format!("mutants/{}", arguments.seed))?;
    let baseline = Baseline::take(&built.program, Loads::prepare(consent)?, &folder, consent)?;
    let mut record = Record {
        seed: arguments.seed,
        circumstances: None,
        listed: 0,
        left_out: BTreeMap::new(),
        not_reached: 0,
        rows: Vec::new(),
    };
    let only = arguments.only.as_deref().unwrap_or_default();
    let mut built_in = Vec::new();
    for (number, mutant) in (0..).zip(all).filter(|(_, mutant)| mutant.file.starts_with(only)) {
        record.listed += 1;
        match built.left_out.get(&number) {
            Some(reason) => {
                let class = reason.split_once(": ").map_or(reason.as_str(), |(class, _)| class);
                *record.left_out.entry(class.to_owned()).or_default() += 1;
            }
            None => {
                record.not_reached += usize::from(!baseline.reached.contains(&number));
                built_in.push((number, mutant));
            }
        }
    }
    let reached = built_in.len() - record.not_reached;
    ensure!(reached > 0, "the loads reach no mutant of a file whose path begins with {only}");
    if !arguments.json {
        let (jobs, unsteady) = (baseline.loads.jobs.len(), baseline.unsteady.join(", "));
        let dying = baseline.dying.iter().cloned().collect::<Vec<_>>().join(", ");
        println!("{} mutants, {reached} reached; {jobs} loads in {:.0} s", record.listed, baseline.seconds);
        println!("left out: {:?}; unsteady: {unsteady}; dying: {dying}", record.left_out);
    }
    // Which mutants the loads come to moves by a few from run to run: it does not decide which the seed draws.
    let mut sample = sample::order(built_in, arguments.seed);
    sample.retain(|(number, _)| baseline.reached.contains(number));
    let session = Session { reach: Some(Reach::take(&baseline, &folder)?), baseline, kwab, folder };
    let (since, limit) = (Instant::now(), arguments.minutes.map(|minutes| Duration::from_secs(60 * minutes)));
    for (number, mutant) in sample.iter().take(arguments.count as usize) {
        if limit.is_some_and(|limit| since.elapsed() >= limit) {
            break;
        }
        match session.judge(*number, mutant) {
            Ok(row) => {
                show(&row, arguments);
                record.rows.push(row);
            }
            Err(error) => {
                eprintln!("error: {}: {error:#}", mutant.name);
                failures.push(format!("{}: {error:#}", mutant.name));
            }
        }
    }
    ensure!(!record.rows.is_empty(), "no mutant was judged: {}", failures.join("; "));
    Ok(record)
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
