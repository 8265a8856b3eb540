//! Boots a kernel with the loads and sorts the outcome.
//!
//! One boot per kernel, two processors, memory for dumps. A guest that says nothing for `SILENCE`, without the time
//! that the host did not give it, hangs and is asked for a dump by a non-maskable interrupt, as a developer would do by
//! hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kwab::model::Dump;
use kwab_format::record::{CauseKind, Reason};
use kwab_format::stream::Dumps;
use serde::{Deserialize, Serialize};

use super::loads::compared;
use crate::crashes::qmp;
use crate::jobs::{End, Report, Scribe};
use crate::kernel::Which;
use crate::qemu::{self, Clock, Ending, Limits, Machine, OnSilence, run::Next};
use crate::ways::{self, Recorder};

/// Options of every boot, beside those of our kernel: deaths and errors reach the console, hangs are noticed.
const OPTIONS: &str = "quiet loglevel=4 norandmaps watchdog=10 hung_task=12 rdinit=/sbin/runner";

/// A guest that said nothing for so long hangs; the slowest job takes a quarter.
const SILENCE: Duration = Duration::from_secs(16);

/// The longest run, and the longest silence: the dump that is asked for has to come within their difference.
const LIMITS: Limits = Limits { total: Duration::from_secs(240), silence: Duration::from_secs(32) };

/// The same where paths are recorded: of one load, by a machine that ends by itself when its kernel dies.
const PATH_LIMITS: Limits = Limits { total: Duration::from_secs(60), silence: Duration::from_secs(20) };

/// The signals by which a program dies of what itself does.
const CRASHES: &[&str] = &["SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"];

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// All loads end and print as without it.
    Unnoticed,
    /// Loads print something else, or end with another status.
    DifferentOutput,
    /// A program died of a signal that does not die without it.
    ProgramDied,
    /// The kernel died, or the machine stopped without a word.
    KernelDied,
    /// The kernel noticed a hang, or the machine said nothing any more, or a load took too long.
    Hung,
}

impl Sort {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Unnoticed, Self::DifferentOutput, Self::ProgramDied, Self::KernelDied, Self::Hung];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unnoticed => "unnoticed",
            Self::DifferentOutput => "different output",
            Self::ProgramDied => "program died",
            Self::KernelDied => "kernel died",
            Self::Hung => "hung",
        }
    }

    /// Whether something died or hung, so that there is a case for `kwab`.
    #[must_use]
    pub fn is_case(self) -> bool {
        matches!(self, Self::ProgramDied | Self::KernelDied | Self::Hung)
    }
}

/// A dump that a guest left, and what it is of.
#[derive(Clone, Debug)]
pub struct Left {
    /// The whole dump, as it lay in memory.
    pub bytes: Vec<u8>,
    /// What died or hung.
    pub of: Sort,
    /// The program and its signal; empty for other dumps.
    pub program: String,
}

/// What a boot gave.
#[derive(Clone, Debug)]
pub struct Boot {
    /// The jobs that ended.
    pub reports: Vec<Report>,
    /// How the run ended.
    pub ending: Ending,
    /// Whether it was asked for a dump because of its silence.
    pub asked: bool,
    /// Everything on the console.
    pub serial: Vec<u8>,
    /// The dumps, in the order in which they lie in memory.
    pub dumps: Vec<Left>,
    /// How long it took.
    pub seconds: f64,
}

impl Boot {
    /// The first dump of this sort, other than those of programs that die without a mutation too, or by a signal that
    /// another program sends.
    #[must_use]
    pub fn dump(&self, sort: Sort, dying: &BTreeSet<String>) -> Option<&[u8]> {
        let is_sent = |program: &str| !program.is_empty() && CRASHES.iter().all(|signal| !program.ends_with(signal));
        let fits = |left: &&Left| left.of == sort && !dying.contains(&left.program) && !is_sent(&left.program);
        let fitting = self.dumps.iter().find(fits);
        fitting.map(|left| left.bytes.as_slice())
    }

    /// The programs that died, each with its signal.
    #[must_use]
    pub fn dead(&self) -> BTreeSet<String> {
        let dead = self.dumps.iter().filter(|left| left.of == Sort::ProgramDied);
        dead.map(|left| left.program.clone()).collect()
    }
}

/// Boots a kernel and reads the memory that it was loaded into when it is gone; scratch files lie in `folder`.
pub fn boot_with_memory(kernel: &Path, initrd: &Path, folder: &Path) -> Result<(Boot, Vec<u8>)> {
    let low = folder.join("low.ram");
    fs::remove_file(&low).ok();
    let boot = boot_keeping(kernel, initrd, folder, Some(&low), "")?;
    let memory = fs::read(&low).context("the guest's memory")?;
    fs::remove_file(&low).ok();
    Ok((boot, memory))
}

/// Boots a kernel; scratch files lie in `folder`.
pub fn boot(kernel: &Path, initrd: &Path, folder: &Path) -> Result<Boot> {
    boot_keeping(kernel, initrd, folder, None, "")
}

/// Boots a kernel that prints every call of the loads.
pub fn boot_recording(kernel: &Path, initrd: &Path, folder: &Path) -> Result<Boot> {
    boot_keeping(kernel, initrd, folder, None, "debug=syscall,buffers,process,signal")
}

/// Boots a kernel whose paths are recorded into a file, with every call of the loads printed; what its console said.
pub fn boot_with_paths(
    kernel: &Path,
    initrd: &Path,
    (recorder, clock): (&Recorder, Clock),
    file: &Path,
) -> Result<Vec<u8>> {
    let options = format!("{} {OPTIONS} {}", Which::Ours.options(), ways::OPTIONS);
    let mut machine = Machine::new(kernel.to_owned(), initrd.to_owned(), options);
    machine.clock = clock;
    recorder.put(&mut machine, file);
    Ok(qemu::run(&machine, PATH_LIMITS, |_| Next::Go)?.serial)
}

fn boot_keeping(kernel: &Path, initrd: &Path, folder: &Path, low: Option<&Path>, more: &str) -> Result<Boot> {
    let (memory, socket) = (folder.join("dumps.ram"), folder.join("qmp"));
    let options = format!("{} {OPTIONS} {more}", Which::Ours.options());
    let mut machine = Machine::new(kernel.to_owned(), initrd.to_owned(), options);
    machine.cpus = 2;
    fs::remove_file(&memory).ok();
    machine.keep_dumps_in(&memory)?;
    machine.low = low.map(Path::to_owned);
    machine.extra.extend(qmp::arguments(&socket));
    let (mut scribe, mut asked) = (Scribe::default(), false);
    let mut ask = || {
        asked = true;
        // A guest that ended meanwhile has no socket any more.
        let _ = qmp::Session::open(&socket).and_then(|mut session| session.execute("inject-nmi", ""));
    };
    let outcome = qemu::run_asking(&machine, LIMITS, Some(OnSilence { after: SILENCE, act: &mut ask }), |line| {
        scribe.line(line);
        // A death of the kernel has this line as its last; a dead program's has a "process" in it.
        if is_last_word(line) { Next::Stop } else { Next::Go }
    })?;
    let dumps = left(&fs::read(&memory).context("the guest's memory for dumps")?);
    for file in [&memory, &socket] {
        fs::remove_file(file).ok();
    }
    let seconds = outcome.elapsed.as_secs_f64();
    Ok(Boot { reports: scribe.reports, ending: outcome.ending, asked, serial: outcome.serial, dumps, seconds })
}

/// Whether a line says that the dump of the kernel's own death is written.
fn is_last_word(line: &str) -> bool {
    line.starts_with("kwab: dump of ")
}

/// The dumps in a memory region.
fn left(region: &[u8]) -> Vec<Left> {
    let left = |bytes: &[u8]| {
        let (of, program) = subject(bytes);
        Left { bytes: bytes.to_vec(), of, program }
    };
    Dumps::new(region).map(|found| left(found.bytes)).collect()
}

/// What a dump is of, with the program that died; one that cannot be read was the kernel's.
fn subject(bytes: &[u8]) -> (Sort, String) {
    let kernel = (Sort::KernelDied, String::new());
    let Ok(dump) = Dump::from_bytes(bytes.to_vec()) else { return kernel };
    let case = dump.case();
    let Some(cause) = case.causes.first() else { return kernel };
    let reason = case.identities.first().and_then(|identity| identity.reason);
    match (cause.kind, reason) {
        (Some(CauseKind::FATAL_SIGNAL), _) | (_, Some(Reason::PROCESS_CRASH)) => {
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            (Sort::ProgramDied, format!("{} {}", text(cause.comm), text(cause.signal_name)))
        }
        (Some(CauseKind::NMI | CauseKind::SOFT_LOCKUP | CauseKind::HUNG_TASK), _) | (_, Some(Reason::HANG)) => {
            (Sort::Hung, String::new())
        }
        _ => kernel,
    }
}

/// A job that did something else than without a mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Name of the job.
    pub job: String,
    /// How it ended without a mutation, and with it.
    pub ends: [String; 2],
    /// The first line that differs, both ways; empty where there is none.
    pub line: [String; 2],
}

/// What becomes of a boot beside a kernel without a mutation: its reports, and the programs that die under it.
#[must_use]
pub fn sorted(boot: &Boot, baseline: &[Report], dying: &BTreeSet<String>) -> (Sort, Vec<Difference>) {
    let differences = differences(boot, baseline);
    let has = |sort: Sort| boot.dump(sort, dying).is_some();
    let ended = |wanted: fn(&End) -> bool| boot.reports.iter().any(|report| wanted(&report.end));
    let died = |report: &Report| {
        let before = baseline.iter().find(|other| other.name == report.name);
        matches!(report.end, End::Signal(_)) && before.is_some_and(|before| before.end != report.end)
    };
    let sort = if has(Sort::KernelDied) {
        Sort::KernelDied
    } else if has(Sort::Hung) || boot.asked || matches!(boot.ending, Ending::Hung | Ending::TimedOut) {
        Sort::Hung
    } else if !matches!(boot.ending, Ending::Exited(_)) {
        Sort::KernelDied
    } else if ended(|end| matches!(end, End::Timeout(_))) {
        Sort::Hung
    } else if has(Sort::ProgramDied) || boot.reports.iter().any(died) {
        Sort::ProgramDied
    } else if !differences.is_empty() || boot.ending != Ending::Exited(0) {
        Sort::DifferentOutput
    } else {
        Sort::Unnoticed
    };
    (sort, differences)
}

/// The jobs that differ, in the order of the loads; what a lost machine did not come to is not among them.
fn differences(boot: &Boot, baseline: &[Report]) -> Vec<Difference> {
    let pairs = baseline.iter().zip(&boot.reports);
    let differs = |(before, after): &(&Report, &Report)| {
        before.name != after.name || before.end != after.end || compared(before) != compared(after)
    };
    pairs.filter(differs).map(|(before, after)| difference(before, after)).collect()
}

fn difference(before: &Report, after: &Report) -> Difference {
    let (was, is) = (compared(before), compared(after));
    let at = was.iter().zip(&is).take_while(|(was, is)| was == is).count();
    let line = |lines: &[&str]| lines.get(at).map_or_else(String::new, |line| (*line).to_owned());
    let ends = [before.end.to_string(), after.end.to_string()];
    Difference { job: before.name.clone(), ends, line: [line(&was), line(&is)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(name: &str, line: &str, end: End) -> Report {
        Report { name: name.into(), lines: vec![line.into()], end }
    }

    fn boot(reports: &[Report], ending: Ending) -> Boot {
        Boot { reports: reports.to_vec(), ending, asked: false, serial: Vec::new(), dumps: Vec::new(), seconds: 1.0 }
    }

    #[test]
    fn a_mutant_is_sorted_by_the_worst_that_it_does() {
        let baseline = [report("a", "1", End::Exit(0)), report("b", "2", End::Exit(0))];
        let sort = |reports: &[Report], ending| sorted(&boot(reports, ending), &baseline, &BTreeSet::new()).0;
        assert_eq!(sort(&baseline, Ending::Exited(0)), Sort::Unnoticed);
        let other = [baseline[0].clone(), report("b", "3", End::Exit(0))];
        assert_eq!(sort(&other, Ending::Exited(0)), Sort::DifferentOutput);
        let dead = [other[0].clone(), report("b", "3", End::Signal(11))];
        assert_eq!(sort(&dead, Ending::Exited(0)), Sort::ProgramDied);
        assert_eq!(sort(&dead, Ending::Panicked("x".into())), Sort::KernelDied);
        assert_eq!(sort(&baseline[..1], Ending::Stopped(Some(1))), Sort::KernelDied);
        assert_eq!(sort(&baseline[..1], Ending::Hung), Sort::Hung);
        let asked = Boot { asked: true, ..boot(&baseline[..1], Ending::Enough) };
        let mut left = boot(&baseline, Ending::Exited(0));
        left.dumps.push(Left { bytes: Vec::new(), of: Sort::ProgramDied, program: "x SIGBUS".into() });
        assert_eq!(sorted(&left, &baseline, &BTreeSet::new()).0, Sort::ProgramDied);
        assert_eq!(sorted(&left, &baseline, &left.dead()).0, Sort::Unnoticed);
        left.dumps[0].program = "x SIGTERM".into();
        assert_eq!(sorted(&left, &baseline, &BTreeSet::new()).0, Sort::Unnoticed);
        assert_eq!(sorted(&asked, &baseline, &BTreeSet::new()).0, Sort::Hung);
    }

    #[test]
    fn a_difference_shows_the_first_line_that_differs() {
        let baseline = [report("a", "1", End::Exit(0)), report("b", "2", End::Exit(0))];
        let other = [baseline[0].clone(), report("b", "3", End::Exit(0))];
        let (_, differences) = sorted(&boot(&other, Ending::Exited(0)), &baseline, &BTreeSet::new());
        assert_eq!(differences.len(), 1);
        assert_eq!((differences[0].job.as_str(), &differences[0].line), ("b", &["2".to_owned(), "3".to_owned()]));
    }
}
