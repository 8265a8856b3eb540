//! Records the calls of a load that prints something else under a mutant, with the mutation and without, and once more
//! with the paths of these calls through the kernel.
//!
//! One load, the first that differs, is what a developer would look at. Both boots record every call of it, and the
//! program's name lies beside the logs, so that the cases that are kept can be judged again. Paths are recorded on one
//! processor by a clock of instructions, and of the kernel without a mutation twice: what differs then is noise. The
//! stress, which runs many programs for seconds, is taken only when no other load differs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::baseline::Baseline;
use super::guest::{self, Difference};
use crate::jobs::Job;
use crate::paths;
use crate::qemu::Clock;

/// The console with the calls of the kernel without a mutation.
pub const GOOD: &str = "good.log";
/// That of the mutant.
pub const BAD: &str = "bad.log";
/// The load that runs many programs for seconds.
const STRESS: &str = "stress";
/// The file with the program's name.
const PROGRAM: &str = "program";
/// As [`GOOD`], of the run whose paths are recorded.
pub const PATHS_GOOD: &str = "paths-good.log";
/// As [`BAD`], of the run whose paths are recorded.
pub const PATHS_BAD: &str = "paths-bad.log";
const PATHS_PROGRAM: &str = "paths-program";

/// Records the first load that differs; nothing is left when it is unknown.
pub fn record(baseline: &Baseline, mutant: &Path, differences: &[Difference], folder: &Path) -> Result<()> {
    let Some(first) = differences.first() else { return Ok(()) };
    let Some(job) = baseline.loads.jobs.iter().find(|job| job.name == first.job) else { return Ok(()) };
    let Some(program) = job.words.first() else { return Ok(()) };
    let initrd = baseline.loads.archive(std::slice::from_ref(job), "traced.cpio")?;
    for (kernel, name) in [(baseline.kernel.file.as_path(), GOOD), (mutant, BAD)] {
        let boot = guest::boot_recording(kernel, &initrd, folder)?;
        paths::write(&folder.join(name), &boot.serial)?;
    }
    paths::write(&folder.join(PROGRAM), program.as_bytes())
}

/// Records the paths of the first load that differs and is short, else of the one that `ran` when the machine was lost.
pub fn record_paths(
    baseline: &Baseline,
    mutant: &Path,
    (differences, ran): (&[Difference], Option<&Job>),
    folder: &Path,
) -> Result<()> {
    let job_of = |difference: &Difference| baseline.loads.jobs.iter().find(|job| job.name == difference.job);
    let is_short = |job: &&Job| job.name != STRESS;
    let Some(job) = differences.iter().filter_map(job_of).chain(ran).find(is_short) else { return Ok(()) };
    let Some(program) = job.words.first() else { return Ok(()) };
    let initrd = baseline.loads.archive(std::slice::from_ref(job), "paths.cpio")?;
    let good = baseline.kernel.file.as_path();
    let runs = [
        (good, PATHS_GOOD, Clock::Instructions),
        (good, PATHS_AGAIN, Clock::SlowInstructions),
        (mutant, PATHS_BAD, Clock::Instructions),
    ];
    for (kernel, name, clock) in runs {
        let serial = guest::boot_with_paths(kernel, &initrd, (&baseline.recorder, clock), &of_log(&folder.join(name)))?;
        paths::write(&folder.join(name), &serial)?;
    }
    paths::write(&folder.join(PATHS_PROGRAM), program.as_bytes())
}

/// As [`PATHS_GOOD`], of another run of it.
pub const PATHS_AGAIN: &str = "paths-again.log";

/// The file with the paths of a run, beside its log.
#[must_use]
pub fn of_log(log: &Path) -> PathBuf {
    log.with_extension("paths")
}

/// The program whose calls a folder has.
pub fn program(folder: &Path) -> Result<String> {
    named(&folder.join(PROGRAM))
}

/// The program whose paths a folder has.
pub fn program_of_paths(folder: &Path) -> Result<String> {
    named(&folder.join(PATHS_PROGRAM))
}

fn named(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| paths::shown(file))
}
