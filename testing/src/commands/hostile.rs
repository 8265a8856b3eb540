//! `cargo xtask hostile [--cases N] [--seed S] [--first N]`: gives mutated dumps to everything that kwab does with one.
//!
//! Workers of 1 GiB of address space run the cases in batches; a panic, a command of more than 5 s and a worker that
//! dies are findings, each with its seed, case and command. `--case N` writes the dump of one case to stdout. Ends
//! with 1 when there is a finding.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::hostile::{COMMANDS, MOST_MEMORY, last_words, work};
use crate::paths;
use crate::process::{Call, Error};
use crate::second::{corpus, mutate};

/// Cases of one worker.
const BATCH: u64 = 2_000;
/// The longest that a worker may take; a command that hangs is found by it.
const LIMIT: Duration = Duration::from_secs(300);

/// HostileArguments of `hostile`.
#[derive(Debug, Args)]
pub struct HostileArguments {
    /// How many cases.
    #[arg(long, default_value_t = 1_000_000)]
    cases: u64,
    /// Seed that determines the cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Write the dump of this case to stdout.
    #[arg(long)]
    case: Option<u64>,
    /// Be a worker that says in this file where it is.
    #[arg(long, hide = true)]
    worker: Option<PathBuf>,
}

/// A step of `cargo xtask test`: six thousand cases without a finding.
pub fn slice() -> Result<()> {
    let findings = judge(1, 0, 6_000)?;
    ensure!(findings == 0, "{findings} findings");
    Ok(())
}

/// Runs the cases.
pub fn run(arguments: &HostileArguments) -> Result<ExitCode> {
    let samples = corpus()?;
    if let Some(case) = arguments.case {
        io::stdout().write_all(&mutate::resealed(&samples, arguments.seed, case).bytes)?;
        return Ok(ExitCode::SUCCESS);
    }
    let end = arguments.first + arguments.cases;
    if let Some(progress) = &arguments.worker {
        for found in work(&samples, COMMANDS, arguments.seed, arguments.first..end, progress)? {
            println!("case {}: {}: {}", found.case, found.command, found.what);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let findings = judge(arguments.seed, arguments.first, end)?;
    Ok(if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the cases `first..end` in workers; prints the findings and gives their number.
fn judge(seed: u64, first: u64, end: u64) -> Result<usize> {
    let progress = paths::build("hostile")?.join(format!("progress-{seed}-{first}"));
    let (mut at, mut findings) = (first, 0);
    while at < end {
        let (found, next) = batch(seed, at, BATCH.min(end - at), &progress)?;
        for finding in &found {
            println!("seed {seed}: {finding}");
        }
        findings += found.len();
        at = next;
    }
    // Another run may have its own progress file there: nothing else is removed.
    let _ = fs::remove_file(&progress);
    println!("{} cases of seed {seed}: {findings} findings", end - first);
    Ok(findings)
}

/// Runs a worker; gives its findings and the first case that it has not run.
fn batch(seed: u64, first: u64, count: u64, progress: &PathBuf) -> Result<(Vec<String>, u64)> {
    // A build during this run replaces the file of this program; the process still has the one it was started from.
    let program = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    let kibibytes = MOST_MEMORY / 1024;
    let worker = Call::new("sh")
        .args(["-c", &format!("ulimit -v {kibibytes}; exec \"$@\""), "worker"])
        .arg(program)
        .args(["hostile", "--seed", &seed.to_string(), "--first", &first.to_string(), "--cases", &count.to_string()])
        .arg("--worker")
        .arg(progress)
        .limit(LIMIT);
    match worker.capture() {
        Ok(output) => Ok((output.stdout.lines().map(str::to_owned).collect(), first + count)),
        Err(error @ (Error::Failed { .. } | Error::TimedOut { .. })) => {
            let (case, command) = last_words(progress).with_context(|| format!("a worker printed nothing: {error}"))?;
            // What the cases before it gave was lost with the worker.
            let mut found = if case > first { batch(seed, first, case - first, progress)?.0 } else { Vec::new() };
            found.push(format!("case {case}: {command}: the worker died: {error}"));
            Ok((found, case + 1))
        }
        Err(error) => Err(error.into()),
    }
}
