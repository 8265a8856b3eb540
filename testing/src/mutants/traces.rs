//! Records the calls of a load that prints something else under a mutant, with the mutation and without.
//!
//! One load, the first that differs, is what a developer would look at. Both boots record every call of it, and the
//! program's name lies beside the logs, so that the cases that are kept can be judged again.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::baseline::Baseline;
use super::guest::{self, Difference};
use crate::paths;

/// The console with the calls of the kernel without a mutation.
pub const GOOD: &str = "good.log";
/// That of the mutant.
pub const BAD: &str = "bad.log";
/// The file with the program's name.
const PROGRAM: &str = "program";

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

/// The program whose calls a folder has.
pub fn program(folder: &Path) -> Result<String> {
    let file = folder.join(PROGRAM);
    fs::read_to_string(&file).with_context(|| paths::shown(&file))
}
