//! Runs many guest programs in as few boots as possible: the host's half of `testing/guest/runner.c`.
//!
//! All programs lie in one image with a list of jobs. When the machine hangs or gives up in the middle of one, that job
//! is [`End::Lost`] and a new machine goes on with the next: one bad program never takes the others with it. The
//! console of each lost machine is kept, with the dumps that [`evidence`] makes of it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::evidence;
use crate::image::Image;
use crate::kernel::Which;
use crate::paths;
use crate::qemu::{self, Ending, Limits, Machine, run::Next};

/// A program to run in a guest.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its name: no white space, once per list.
    pub name: String,
    /// Time limit in seconds.
    pub seconds: u32,
    /// The command: an absolute path and its arguments; no tabs, no line ends.
    pub words: Vec<String>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// By exit, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// Killed after its time limit, in seconds.
    Timeout(i32),
    /// The machine did not survive it; in which way.
    Lost(String),
}

/// What [`End::Lost`] says of kernels that panicked.
const GAVE_UP: &str = "the kernel stopped";
const STOPPED: &str = "the machine stopped by itself";

impl End {
    /// Whether the program ended by itself: an answer, unlike a machine that was lost or a limit of time.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Exit(_) | Self::Signal(_))
    }

    /// Whether the kernel died, unlike one that was only too slow to answer.
    pub fn is_death(&self) -> bool {
        matches!(self, Self::Lost(reason) if reason.contains(GAVE_UP) || reason.contains(STOPPED))
    }
}

/// What one job did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The job's name.
    pub name: String,
    /// What it printed.
    pub lines: Vec<String>,
    /// How it ended.
    pub end: End,
}

/// Where jobs run.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// The kernel that runs the jobs.
    pub kernel: Which,
    /// The kernel image that QEMU loads.
    pub boot: &'a Path,
    /// What the jobs need, the runner included; the list of jobs is added here.
    pub image: &'a Image,
    /// Number of CPUs.
    pub cpus: u32,
    /// Further kernel options.
    pub append: &'a str,
    /// Names the files that are kept (`build/results/<label>-...`).
    pub label: &'a str,
}

/// A boot and the switch between two jobs may take this long on a busy machine.
const BOOT: Duration = Duration::from_secs(60);

/// Runs all jobs and returns a report for each, in order. `progress` is told the name and end of each as it comes.
pub fn run(guest: &Guest<'_>, jobs: &[Job], mut progress: impl FnMut(&Report)) -> Result<Vec<Report>> {
    let mut reports: Vec<Report> = Vec::new();
    let mut boots = 0;
    while reports.len() < jobs.len() {
        let left = &jobs[reports.len()..];
        boots += 1;
        let mut scribe = Scribe::default();
        let outcome = qemu::run(&machine(guest, left)?, limits(left), |line| {
            if let Some(report) = scribe.line(line) {
                progress(report);
            }
            Next::Go
        })?;
        let finished = scribe.reports.len();
        if outcome.ending != Ending::Exited(0) || finished < left.len() {
            let log = keep(guest, boots, &outcome.serial)?;
            let dumps = evidence::record(&log, &outcome.serial)?;
            let reason = format!("{}; {}", words(&outcome.ending), evidence::shown(&log, &dumps));
            if finished == 0 && scribe.open.is_none() {
                bail!("{} did not reach the first job: {reason}", guest.kernel.name());
            }
            if let Some(report) = scribe.lose(reason) {
                progress(report);
            }
        }
        reports.extend(scribe.reports);
    }
    Ok(reports)
}

/// The machine that runs these jobs.
pub fn machine(guest: &Guest<'_>, jobs: &[Job]) -> Result<Machine> {
    let mut image = guest.image.clone();
    put(&mut image, jobs);
    let file = paths::build("images")?.join(format!("{}-{}.cpio", guest.label, guest.kernel.name()));
    paths::write(&file, &image.archive())?;
    let options = guest.kernel.options();
    let append = format!("{options} quiet loglevel=1 rdinit=/sbin/runner {}", guest.append);
    let mut machine = Machine::new(guest.boot.to_owned(), file, append);
    machine.cpus = guest.cpus;
    Ok(machine)
}

/// Leaves a list of jobs where the runner looks for it.
pub fn put(image: &mut Image, jobs: &[Job]) {
    let line = |job: &Job| format!("{}\t{}\t{}\n", job.name, job.seconds, job.words.join("\t"));
    image.text("/etc/kwab/jobs", &jobs.iter().map(line).collect::<String>());
}

fn limits(jobs: &[Job]) -> Limits {
    let longest = jobs.iter().map(|job| job.seconds).max().unwrap_or(0);
    let all: u32 = jobs.iter().map(|job| job.seconds).sum();
    Limits {
        // A guest's second may take several of the host's when all of its CPUs are emulated by one busy thread.
        silence: BOOT + Duration::from_secs(u64::from(longest) * 2),
        total: BOOT + Duration::from_secs(u64::from(all) * 2),
    }
}

fn keep(guest: &Guest<'_>, boot: u32, serial: &[u8]) -> Result<PathBuf> {
    let log = paths::build("results")?.join(format!("{}-{}-{boot}.log", guest.label, guest.kernel.name()));
    paths::write(&log, serial)?;
    Ok(log)
}

fn words(ending: &Ending) -> String {
    match ending {
        Ending::Panicked(line) => format!("{GAVE_UP} ({line})"),
        Ending::Hung => "the machine hung".into(),
        Ending::TimedOut => "the machine ran out of time".into(),
        Ending::Stopped(code) => format!("{STOPPED} (QEMU: {code:?})"),
        Ending::Exited(status) => format!("the runner ended early with {status}"),
        Ending::Enough => "the run was ended".into(),
    }
}

/// Turns the console into reports.
#[derive(Debug, Default)]
pub struct Scribe {
    /// The jobs that ended.
    pub reports: Vec<Report>,
    /// The job that runs, with what it printed so far.
    pub open: Option<(String, Vec<String>)>,
}

impl Scribe {
    /// Takes one line; returns a report that it completed.
    pub fn line(&mut self, line: &str) -> Option<&Report> {
        if let Some(name) = line.strip_prefix("CONTRACT-BEGIN ") {
            self.open = Some((name.to_owned(), Vec::new()));
            return None;
        }
        let (name, lines) = self.open.as_mut()?;
        let end = line.strip_prefix("CONTRACT-END ").and_then(|rest| rest.strip_prefix(name.as_str()));
        let Some(end) = end.and_then(end_of) else {
            if !is_of_the_kernel(line) {
                lines.push(line.to_owned());
            }
            return None;
        };
        let (name, mut lines) = self.open.take()?;
        // The runner starts its line with a line end, in case the program's last line had none.
        if lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        self.reports.push(Report { name, lines, end });
        self.reports.last()
    }

    /// The machine is gone: the open job is lost, or, between two jobs, the last one did it.
    fn lose(&mut self, reason: String) -> Option<&Report> {
        match self.open.take() {
            Some((name, lines)) => self.reports.push(Report { name, lines, end: End::Lost(reason) }),
            None => self.reports.last_mut()?.end = End::Lost(format!("after it: {reason}")),
        }
        self.reports.last()
    }
}

fn end_of(rest: &str) -> Option<End> {
    let (kind, number) = rest.trim().split_once(' ')?;
    let number = number.parse().ok()?;
    match kind {
        "exit" => Some(End::Exit(number)),
        "signal" => Some(End::Signal(number)),
        "timeout" => Some(End::Timeout(number)),
        _ => None,
    }
}

/// Lines that the kernel itself puts on the console, whatever its log level: events and armoured dumps.
fn is_of_the_kernel(line: &str) -> bool {
    line.starts_with("DBG {") || line.starts_with("KWAB")
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit {status}"),
            Self::Signal(number) => write!(f, "signal {number}"),
            Self::Timeout(seconds) => write!(f, "timeout {seconds}"),
            Self::Lost(reason) => write!(f, "lost: {reason}"),
        }
    }
}

/// `count` of these names, others for each `seed`.
pub fn sample<'n>(names: impl Iterator<Item = &'n str>, seed: &str, count: usize) -> Vec<&'n str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_cached_key(|name| crc32fast::hash(format!("{seed} {name}").as_bytes()));
    names.truncate(count);
    names
}

/// Reports by name.
pub fn by_name(reports: Vec<Report>) -> BTreeMap<String, Report> {
    reports.into_iter().map(|report| (report.name.clone(), report)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scribe(lines: &[&str]) -> Scribe {
        let mut scribe = Scribe::default();
        for line in lines {
            scribe.line(line);
        }
        scribe
    }

    #[test]
    fn a_program_that_prints_no_line_end_is_still_closed() {
        let scribe = scribe(&["noise", "", "CONTRACT-BEGIN a/b", "one", "two", "CONTRACT-END a/b exit 0"]);
        assert_eq!(scribe.reports[0].lines, ["one", "two"]);
        let scribe = self::scribe(&["CONTRACT-BEGIN a/b", "one", "", "CONTRACT-END a/b signal 11"]);
        assert_eq!(scribe.reports[0], Report { name: "a/b".into(), lines: vec!["one".into()], end: End::Signal(11) });
    }

    #[test]
    fn a_kernel_event_in_the_middle_is_not_the_programs_output() {
        let scribe = scribe(&["CONTRACT-BEGIN a", "x", "DBG {\"type\":\"canary\"}", "CONTRACT-END a exit 0"]);
        assert_eq!(scribe.reports[0].lines, ["x"]);
    }

    #[test]
    fn a_program_that_imitates_the_end_of_another_does_not_close_itself() {
        let scribe = scribe(&["CONTRACT-BEGIN a", "CONTRACT-END b exit 0", "CONTRACT-END a exit 1"]);
        assert_eq!(scribe.reports[0].lines, ["CONTRACT-END b exit 0"]);
        assert_eq!(scribe.reports[0].end, End::Exit(1));
    }

    #[test]
    fn a_machine_that_dies_between_two_jobs_is_blamed_on_the_first() {
        let mut scribe = scribe(&["CONTRACT-BEGIN a", "CONTRACT-END a exit 0"]);
        scribe.lose("it hung".into());
        assert_eq!(scribe.reports[0].end, End::Lost("after it: it hung".into()));
        assert!(!scribe.reports[0].end.is_death());
        assert!(End::Lost(format!("after it: {}", words(&Ending::Stopped(Some(97))))).is_death());
    }
}
