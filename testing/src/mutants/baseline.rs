//! The kernel without a mutation: what "the same output" means.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::guest::{self, Sort};
use super::kernel::Kernel;
use super::loads::Loads;
use super::names::Names;
use crate::jobs::{Job, Report};
use crate::paths;
use crate::setup::Consent;
use crate::ways::Recorder;

/// Boots that have to agree.
const BOOTS: usize = 2;

/// The kernel with all its mutations off, with what the loads do under it.
pub struct Baseline {
    /// The image, with no mutation on.
    pub kernel: Kernel,
    /// The functions of the image, from its debugging information.
    pub names: Names,
    /// The loads that do the same in each boot.
    pub loads: Loads,
    /// What they did.
    pub reports: Vec<Report>,
    /// The file system of the mutants.
    pub initrd: PathBuf,
    /// The loads that were left out, since they did not do the same twice.
    pub unsteady: Vec<String>,
    /// The programs that die of a signal, as loads make them do.
    pub dying: BTreeSet<String>,
    /// The mutations whose code the loads came to.
    pub reached: BTreeSet<u32>,
    /// Records the paths through this kernel.
    pub recorder: Recorder,
    /// How long a boot took.
    pub seconds: f64,
}

impl Baseline {
    /// Boots a kernel. A death of the kernel, a hang or an early end without a mutation is an error.
    /// A copy of the kernel is kept in `folder`.
    pub fn take(program: &Path, mut loads: Loads, folder: &Path, consent: Consent) -> Result<Self> {
        let kernel = Kernel::keep(program, folder)?;
        let mut reached = BTreeSet::new();
        let initrd = loads.archive(&loads.jobs, "loads.cpio")?;
        let mut reports: Vec<Report> = Vec::new();
        let (mut unsteady, mut dying, mut seconds) = (Vec::new(), BTreeSet::new(), 0.0);
        for number in 0..BOOTS {
            let (boot, memory) = guest::boot_with_memory(&kernel.file, &initrd, folder)?;
            reached.extend(kernel.asked(&memory)?);
            paths::write(&folder.join("baseline.log"), &boot.serial)?;
            dying.extend(boot.dead());
            let (sort, differences) = guest::sorted(&boot, if number == 0 { &boot.reports } else { &reports }, &dying);
            let kept = || format!("its console is in {}", paths::shown(&folder.join("baseline.log")));
            ensure!(!sort.is_case(), "without a mutation: {} ({:?}); {}", sort.name(), boot.ending, kept());
            ensure!(boot.reports.len() == loads.jobs.len(), "without a mutation {} jobs ended", boot.reports.len());
            unsteady.extend(differences.into_iter().map(|difference| difference.job));
            seconds = boot.seconds;
            if number == 0 {
                reports = boot.reports;
            } else {
                ensure!(
                    sort != Sort::DifferentOutput || !unsteady.is_empty(),
                    "the runner's status differs; {}",
                    kept()
                );
            }
        }
        let is_steady = |name: &str| !unsteady.iter().any(|other| other == name);
        loads.jobs.retain(|job| is_steady(&job.name));
        reports.retain(|report| is_steady(&report.name));
        loads.archive(&loads.jobs, "loads.cpio")?;
        let (names, recorder) = (Names::of(&kernel.file)?, Recorder::of(&kernel.file, consent)?);
        Ok(Self { kernel, names, loads, reports, initrd, unsteady, dying, reached, recorder, seconds })
    }

    /// What these loads did, in their order.
    #[must_use]
    pub fn reports_of(&self, jobs: &[Job]) -> Vec<Report> {
        let of = |job: &Job| self.reports.iter().find(|report| report.name == job.name).cloned();
        jobs.iter().filter_map(of).collect()
    }
}
