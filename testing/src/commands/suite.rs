//! `cargo xtask suite busybox|posix|programs [FILTER] [--slice] [--kernel ours|linux|both]`: third-party tests beside
//! Linux.
//!
//! FILTER keeps the jobs (applets, assertions, programs) whose name contains it; `--slice` takes the quick choice that
//! is part of every test run. Linux's last results are kept in `build/results`, and `--kernel ours` compares with them
//! where they cover the same jobs. The status is zero when every test that passes under Linux passes under our kernel;
//! one that passed only on Linux runs once more under both, for the sake of busy machines and tests with races of their
//! own, and is said to be unsteady when it agrees then. Results for machines are in `build/results/suite-*.json` and
//! `.xml`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::image::Image;
use crate::jobs::{self, Guest, Job, Report};
use crate::kernel::{Selection, Which};
use crate::results::Circumstances;
use crate::results::junit::Case;
use crate::setup::{self, Consent, Tool};
use crate::suites::{self, Chosen, Runs, Suite};
use crate::{paths, results};

/// SuiteArguments of `suite`.
#[derive(Debug, Args)]
pub struct SuiteArguments {
    /// The suite to run.
    #[arg(value_enum)]
    suite: Suite,
    /// Parts of job names, separated by commas; without it everything runs.
    filter: Option<String>,
    /// Only the quick choice of every test run.
    #[arg(long, conflicts_with = "filter")]
    slice: bool,
    /// Which kernels run.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Number of CPUs of the guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
}

impl SuiteArguments {
    /// A suite's slice under both kernels.
    pub fn slice(suite: Suite) -> Self {
        Self { suite, filter: None, slice: true, kernel: Selection::Both, smp: 2 }
    }

    fn chosen(&self) -> Chosen {
        match &self.filter {
            Some(parts) => Chosen::Parts(parts.clone()),
            None if self.slice => self.suite.slice(),
            None => Chosen::All,
        }
    }
}

/// Runs the command.
pub fn run(arguments: &SuiteArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Qemu], consent)?;
    let began = Circumstances::now();
    let suite = arguments.suite;
    let chosen = arguments.chosen();
    let (image, jobs) = suite.prepare(&chosen, consent)?;
    ensure!(!jobs.is_empty(), "no job's name contains {}", arguments.filter.as_deref().unwrap_or_default());
    let run = |kernel, suffix: &str, jobs: &[Job]| run_under(kernel, arguments, suffix, &image, jobs, consent);
    let suffix = chosen.suffix();
    let linux = match arguments.kernel {
        Selection::Ours => kept(suite, &jobs).map_or_else(|| run(Which::Linux, suffix, &jobs), Ok)?,
        _ => run(Which::Linux, suffix, &jobs)?,
    };
    if arguments.kernel == Selection::Linux {
        let linux = suite.results(&linux);
        let passes = linux.values().filter(|word| word.as_str() == "pass").count();
        println!("{} under Linux: {} tests, {passes} pass", suite.name(), linux.len());
        return Ok(ExitCode::SUCCESS);
    }
    let first = Runs { ours: run(Which::Ours, suffix, &jobs)?, linux };
    let doubtful: Vec<Job> = jobs.iter().filter(|job| first.is_worse(suite, &job.name)).cloned().collect();
    let again = |kernel| if doubtful.is_empty() { Ok(Vec::new()) } else { run(kernel, "-again", &doubtful) };
    let second = Runs { ours: again(Which::Ours)?, linux: again(Which::Linux)? };
    let compared = first.with_second_look(suite, &second);
    let name = format!("suite-{}", suite.name());
    results::keep(&name, chosen == Chosen::All, began, &compared)?;
    results::keep_junit(&name, chosen == Chosen::All, &compared.cases())?;
    print!("{}", suites::table(suite, &compared));
    results::verdict(&compared.cases().iter().filter_map(Case::failure).collect::<Vec<_>>())
}

fn run_under(
    kernel: Which,
    arguments: &SuiteArguments,
    suffix: &str,
    image: &Image,
    jobs: &[Job],
    consent: Consent,
) -> Result<Vec<Report>> {
    let label = format!("suite-{}{suffix}", arguments.suite.name());
    let boot = kernel.image(consent)?;
    let guest = Guest { kernel, boot: &boot, image, cpus: arguments.smp, append: "", label: &label };
    let mut done = 0;
    let reports = jobs::run(&guest, jobs, |report| {
        done += 1;
        eprintln!("{} {done}/{}: {} {}", kernel.name(), jobs.len(), report.name, report.end);
    })?;
    paths::write(&file(arguments.suite, suffix, kernel)?, &serde_json::to_vec_pretty(&reports)?)?;
    Ok(reports)
}

/// Linux's last reports of the whole suite, when there is one for each of these jobs.
fn kept(suite: Suite, jobs: &[Job]) -> Option<Vec<Report>> {
    let bytes = std::fs::read(file(suite, Chosen::All.suffix(), Which::Linux).ok()?).ok()?;
    let reports: Vec<Report> = serde_json::from_slice(&bytes).ok()?;
    let report = |job: &Job| reports.iter().find(|report| report.name == job.name).cloned();
    jobs.iter().map(report).collect()
}

fn file(suite: Suite, suffix: &str, kernel: Which) -> Result<PathBuf> {
    let name = format!("suite-{}{suffix}-{}.json", suite.name(), kernel.name());
    Ok(paths::build("results").context("keeping the results")?.join(name))
}
