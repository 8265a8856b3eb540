//! `cargo xtask suite busybox|posix|programs [FILTER] [--kernel ours|linux|both]`: third-party tests, compared with Linux.
//!
//! FILTER keeps the jobs (applets, assertions, programs) whose name contains it. Linux's last results are kept in
//! `build/results`, and `--kernel ours` compares with them where they cover the same jobs. The status is zero when every
//! test that passes under Linux passes under our kernel.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use super::kernel::{Selection, Which};
use crate::image::Image;
use crate::jobs::{self, Guest, Job, Report};
use crate::paths;
use crate::setup::{self, Consent, Tool};
use crate::suites::{self, Results, Suite};

/// Its arguments.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Which suite.
    #[arg(value_enum)]
    suite: Suite,
    /// Parts of job names, separated by commas; without it everything runs.
    filter: Option<String>,
    /// Which kernels run.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Number of CPUs of the guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
}

impl Arguments {
    /// A whole suite under both kernels.
    pub fn of(suite: Suite) -> Self {
        Self { suite, filter: None, kernel: Selection::Both, smp: 2 }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let suite = arguments.suite;
    let (image, jobs) = suite.prepare(arguments.filter.as_deref(), consent)?;
    ensure!(!jobs.is_empty(), "no job's name contains {}", arguments.filter.as_deref().unwrap_or_default());
    let mut reports = Vec::new();
    for kernel in [Which::Linux, Which::Ours] {
        let kept =
            (kernel == Which::Linux && arguments.kernel == Selection::Ours).then(|| kept(suite, &jobs)).flatten();
        if let Some(kept) = kept {
            reports.push((kernel, kept));
        } else if arguments.kernel.kernels().contains(&kernel) || kernel == Which::Linux {
            reports.push((kernel, run_under(kernel, arguments, &image, &jobs, consent)?));
        }
    }
    let results: Vec<(Which, Results)> =
        reports.into_iter().map(|(kernel, reports)| (kernel, suite.results(&reports))).collect();
    match &results[..] {
        [(_, linux), (_, ours)] => {
            print!("{}", suites::table(suite, ours, linux));
            let worse = linux.iter().any(|(name, word)| word == "pass" && ours.get(name) != Some(word));
            Ok(if worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        }
        results => {
            for (kernel, results) in results {
                let passes = results.values().filter(|word| word.as_str() == "pass").count();
                println!("{} under {}: {} tests, {passes} pass", suite.name(), kernel.name(), results.len());
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn run_under(
    kernel: Which,
    arguments: &Arguments,
    image: &Image,
    jobs: &[Job],
    consent: Consent,
) -> Result<Vec<Report>> {
    let label = format!("suite-{}", arguments.suite.name());
    let boot = kernel.image(consent)?;
    let guest = Guest { kernel, boot: &boot, image, cpus: arguments.smp, append: "", label: &label };
    let mut done = 0;
    let reports = jobs::run(&guest, jobs, |report| {
        done += 1;
        eprintln!("{} {done}/{}: {} {}", kernel.name(), jobs.len(), report.name, report.end);
    })?;
    paths::write(&file(arguments.suite, kernel)?, &serde_json::to_vec_pretty(&reports)?)?;
    Ok(reports)
}

/// Linux's last reports, when there is one for each of these jobs.
fn kept(suite: Suite, jobs: &[Job]) -> Option<Vec<Report>> {
    let bytes = std::fs::read(file(suite, Which::Linux).ok()?).ok()?;
    let reports: Vec<Report> = serde_json::from_slice(&bytes).ok()?;
    let report = |job: &Job| reports.iter().find(|report| report.name == job.name).cloned();
    jobs.iter().map(report).collect()
}

fn file(suite: Suite, kernel: Which) -> Result<PathBuf> {
    let name = format!("suite-{}-{}.json", suite.name(), kernel.name());
    Ok(paths::build("results").context("keeping the results")?.join(name))
}
