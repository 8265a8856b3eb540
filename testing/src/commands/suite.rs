//! `cargo xtask suite busybox|posix|programs [FILTER] [--slice] [--kernel ours|linux|both]`: third-party tests beside
//! Linux.
//!
//! FILTER keeps the jobs (applets, assertions, programs) whose name contains it; `--slice` takes the quick choice that
//! is part of every test run. Linux's last results are kept in `build/results`, and `--kernel ours` compares with them
//! where they cover the same jobs. `--record N` takes Linux's answers from the repository ([`SuiteRecord`]) and asks it
//! for the rest and for N more, others with each commit; `--write` renews that record. The status is zero when every
//! test that passes under Linux passes under our kernel; one that passed only on Linux runs once more under both, for
//! the sake of busy machines and tests with races of their own, and is said to be unsteady when it agrees then. Results
//! for machines are in `build/results/suite-*.json` and `.xml`.

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
use crate::suites::record::{Basis, SuiteRecord};
use crate::suites::{self, Chosen, Runs, Suite};
use crate::{debian, paths, results};

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
    /// Take Linux's answers to the slice from the repository, and ask it again for this many.
    #[arg(long, value_name = "N", requires = "slice")]
    record: Option<usize>,
    /// Renew the record of Linux's answers to the slice in the repository.
    #[arg(long, requires = "slice", conflicts_with = "record")]
    write: bool,
    /// Which kernels run.
    #[arg(long, value_enum, default_value_t)]
    kernel: Selection,
    /// Number of CPUs of the guest.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    smp: u32,
}

impl SuiteArguments {
    /// A suite's slice beside what the repository remembers of Linux, a tenth of it asked again.
    pub fn slice(suite: Suite) -> Self {
        Self { suite, filter: None, slice: true, record: Some(10), write: false, kernel: Selection::Both, smp: 2 }
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
    let basis = basis(suite, began.linux_series(), consent)?;
    let linux = match (arguments.kernel, &basis, arguments.record) {
        (Selection::Ours, ..) => kept(suite, &jobs).map_or_else(|| run(Which::Linux, suffix, &jobs), Ok)?,
        (_, Some(basis), Some(count)) => {
            let record = SuiteRecord::load(suite, basis)?;
            let ask = |jobs: &[Job]| run(Which::Linux, "-asked", jobs);
            recorded(suite, &record, &jobs, &record.sample(&began.commit, count), ask)?
        }
        _ => run(Which::Linux, suffix, &jobs)?,
    };
    if arguments.write {
        let basis = basis.with_context(|| format!("no record of Linux's answers is kept of {}", suite.name()))?;
        println!("{}", paths::shown(&SuiteRecord::write(suite, &basis, &linux)?));
    }
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

/// What the suite's record holds for; no record is kept of a suite without a source.
fn basis(suite: Suite, linux: &str, consent: Consent) -> Result<Option<Basis>> {
    let tree = suite.source().map(|package| debian::source(package, consent)).transpose()?;
    tree.map(|tree| Basis::new(linux, &tree)).transpose()
}

/// What Linux says to each job: by the record, but for what that does not answer and for the `sample`, which Linux is
/// asked for. If it contradicts the record twice, it is asked for everything.
fn recorded(
    suite: Suite,
    record: &SuiteRecord,
    jobs: &[Job],
    sample: &[&str],
    ask: impl Fn(&[Job]) -> Result<Vec<Report>>,
) -> Result<Vec<Report>> {
    let is_asked = |job: &&Job| record.answer(&job.name).is_none() || sample.contains(&job.name.as_str());
    let asked: Vec<Job> = jobs.iter().filter(is_asked).cloned().collect();
    let ask_some = |jobs: &[Job]| if jobs.is_empty() { Ok(Vec::new()) } else { ask(jobs) };
    let answers = jobs::by_name(ask_some(&asked)?);
    println!("Linux: {} asked now, {} remembered", asked.len(), jobs.len() - asked.len());
    let contradicts = |now: &Report| {
        let results = |report: &Report| suite.results(std::slice::from_ref(report));
        now.end.is_answer() && record.answer(&now.name).is_some_and(|then| results(then) != results(now))
    };
    let doubtful: Vec<Job> = asked.into_iter().filter(|job| answers.get(&job.name).is_some_and(contradicts)).collect();
    if let Some(still) = ask_some(&doubtful)?.iter().find(|now| contradicts(now)) {
        println!("Linux answers {} otherwise than the record: it is asked for all", still.name);
        return ask(jobs);
    }
    let answer = |job: &Job| record.answer(&job.name).or_else(|| answers.get(&job.name)).cloned();
    jobs.iter().map(|job| answer(job).with_context(|| format!("Linux did not come to {}", job.name))).collect()
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::jobs::End;

    /// Asks a Linux under which every job ends with `status`, of a record that says zero of the jobs `a` and `b`.
    fn ask(jobs: &[&str], sample: &[&str], status: impl Fn(usize) -> i32) -> (Vec<String>, Vec<End>) {
        let report = |name: &str, status| Report { name: name.into(), lines: Vec::new(), end: End::Exit(status) };
        let record = SuiteRecord::of(vec![report("a", 0), report("b", 0)]);
        let job = |name: &&str| Job { name: (*name).into(), seconds: 1, words: Vec::new() };
        let asked: RefCell<Vec<String>> = RefCell::default();
        let linux = |jobs: &[Job]| {
            asked.borrow_mut().push(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(" "));
            Ok(jobs.iter().map(|job| report(&job.name, status(asked.borrow().len()))).collect())
        };
        let jobs: Vec<Job> = jobs.iter().map(job).collect();
        let answers = recorded(Suite::Posix, &record, &jobs, sample, linux).unwrap();
        (asked.into_inner(), answers.into_iter().map(|report| report.end).collect())
    }

    #[test]
    fn linux_is_asked_for_the_sample_and_for_what_the_record_does_not_have() {
        assert_eq!(ask(&["a", "b"], &[], |_| 1), (vec![], vec![End::Exit(0), End::Exit(0)]));
        assert_eq!(ask(&["a", "b", "c"], &["b"], |_| 0).0, ["b c"]);
    }

    #[test]
    fn a_linux_that_contradicts_twice_is_asked_for_all_and_one_that_did_once_is_not() {
        let (asked, answers) = ask(&["a", "b"], &["b"], |_| 1);
        assert_eq!((asked.join(", ").as_str(), &answers[..]), ("b, b, a b", &[End::Exit(1), End::Exit(1)][..]));
        let (asked, answers) = ask(&["a", "b"], &["b"], |round| i32::from(round == 1));
        assert_eq!((asked.join(", ").as_str(), &answers[..]), ("b, b", &[End::Exit(0), End::Exit(0)][..]));
    }
}
