//! Changes the kernel at random and asks `kwab` what happened.
//!
//! [`mod@list`] has the mutants of the kernel's crates from `cargo-mutants`, [`switch`] puts them into the sources,
//! each behind a switch, [`tree`] builds all of them as one kernel in a scratch checkout, and [`kernel`] turns one on.
//! [`loads`] is what each has to do, [`guest`] boots it and sorts the outcome, beside the kernel with no mutation
//! on ([`baseline`]), which also tells which mutants the loads come to, and [`reach`] which load to which; [`sample`]
//! draws some of those. For what died or hung, [`score`] asks `kwab` and compares the answer with the mutated function,
//! whose names [`names`] knows; of what only printed something else, [`traces`] records the calls of one load, so that
//! `kwab oracle` can be asked. [`Session`] does all of it for one mutant, [`report`] makes the tables.
//!
//! The kernel is kept as `build/mutants/SEED/kernel`, and of every mutant a folder `build/mutants/SEED/ID`: the change
//! (`mutant.diff`), the outcome (`row.json`), the console (`serial.log`), of a case the dump (`dump.kwab`), of another
//! output the calls (`good.log`, `bad.log`) and, as of a dead program, their paths (`paths-*`), and what `kwab` said
//! (`*.txt`).

pub mod baseline;
pub mod described;
pub mod guest;
pub mod kernel;
pub mod list;
pub mod loads;
pub mod names;
pub mod reach;
pub mod refused;
pub mod report;
pub mod sample;
pub mod score;
pub mod seeds;
pub mod slice;
pub mod switch;
pub mod traces;
pub mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::jobs::Job;
use crate::paths;
use baseline::Baseline;
use guest::{Difference, Sort};
use list::Mutant;
use names::{Blamed, Names};
use reach::Reach;
use report::Row;
use score::{Examiner, Score};

/// What all mutants of a run share.
pub struct Session {
    /// The kernel and what it does without a mutation.
    pub baseline: Baseline,
    /// Which of its loads come to which mutation; `None` to boot every mutant with all of them.
    pub reach: Option<Reach>,
    /// The program `kwab` that is judged.
    pub kwab: PathBuf,
    /// Where a folder per mutant is kept.
    pub folder: PathBuf,
}

/// Loads that differ whose paths are recorded until one of them parts.
const LOADS: usize = 3;

impl Session {
    /// Boots, sorts and scores one mutant, which has this number in the kernel.
    pub fn judge(&self, number: u32, mutant: &Mutant) -> Result<Row> {
        let folder = self.folder.join(mutant.id());
        if folder.is_dir() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", paths::shown(&folder)))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", paths::shown(&folder)))?;
        paths::write(&folder.join("mutant.diff"), mutant.diff.as_bytes())?;
        let mut row = Row::of(mutant);
        let kernel = self.folder.join("kernel.on");
        self.baseline.kernel.write(number, &kernel)?;
        self.run(number, mutant, &kernel, &folder, &mut row)?;
        fs::remove_file(&kernel).with_context(|| format!("cannot remove {}", paths::shown(&kernel)))?;
        paths::write(&folder.join("row.json"), &serde_json::to_vec_pretty(&row)?)?;
        Ok(row)
    }

    fn run(&self, number: u32, mutant: &Mutant, kernel: &Path, folder: &Path, row: &mut Row) -> Result<()> {
        let all = &self.baseline.loads.jobs;
        let some = self.reach.as_ref().and_then(|reach| reach.of(number, all));
        let (initrd, reports) = match &some {
            None => (self.baseline.initrd.clone(), self.baseline.reports.clone()),
            Some(jobs) => (self.baseline.loads.archive(jobs, "some.cpio")?, self.baseline.reports_of(jobs)),
        };
        let boot = guest::boot(kernel, &initrd, folder)?;
        (row.sort, row.differences) = guest::sorted(&boot, &reports, &self.baseline.dying);
        row.seconds.boot = boot.seconds;
        row.jobs = boot.reports.len();
        row.ending = format!("{:?}", boot.ending);
        let dump = if row.sort.is_case() { boot.dump(row.sort, &self.baseline.dying) } else { None };
        score::keep(folder, dump, &boot.serial)?;
        if row.sort == Sort::DifferentOutput && self.is_unsteady(kernel, folder, &row.differences)? {
            row.sort = Sort::Unnoticed;
            row.unsteady = true;
        }
        if row.sort == Sort::DifferentOutput {
            self.baseline.names.blame(mutant, &mut row.blamed)?;
            traces::record(&self.baseline, kernel, &row.differences, folder)?;
            row.traces = self.examiner(&row.blamed)?.traces(folder)?;
        }
        if row.sort != Sort::Unnoticed {
            self.baseline.names.blame(mutant, &mut row.blamed)?;
            // What ran when the machine was lost is behind the jobs that ended.
            let ran = some.as_ref().unwrap_or(all).get(boot.reports.len());
            // A load that went wrong beside others may do the same as before when it runs alone.
            for at in 0..LOADS {
                let of = (row.differences.get(at..).unwrap_or_default(), ran);
                if at > 0 && of.0.is_empty() {
                    break;
                }
                traces::record_paths(&self.baseline, kernel, of, folder)?;
                row.paths = self.examiner(&row.blamed)?.paths(folder)?;
                if row.paths.as_ref().is_none_or(|paths| paths.judged) {
                    break;
                }
            }
        }
        if row.sort.is_case() {
            self.baseline.names.blame(mutant, &mut row.blamed)?;
            examine(&self.kwab, &self.baseline.kernel.file, &self.baseline.names, folder, row)?;
        }
        Ok(())
    }

    fn examiner<'a>(&'a self, blamed: &'a Blamed) -> Result<Examiner<'a>> {
        let (kernel, names) = (&self.baseline.kernel.file, &self.baseline.names);
        Ok(Examiner { kwab: &self.kwab, kernel, names, blamed, cache: paths::build("mutants")?.join("symbols") })
    }

    /// Whether the jobs that differ agree when they run again, alone: a busy machine can make a load miss its margins.
    fn is_unsteady(&self, kernel: &Path, folder: &Path, differences: &[Difference]) -> Result<bool> {
        let differs = |name: &str| differences.iter().any(|difference| difference.job == name);
        let jobs: Vec<Job> = self.baseline.loads.jobs.iter().filter(|job| differs(&job.name)).cloned().collect();
        if jobs.is_empty() {
            return Ok(false);
        }
        let initrd = self.baseline.loads.archive(&jobs, "again.cpio")?;
        let again = guest::boot(kernel, &initrd, folder)?;
        Ok(guest::sorted(&again, &self.baseline.reports_of(&jobs), &self.baseline.dying).0 == Sort::Unnoticed)
    }
}

/// Asks `kwab` about the case that is kept in a folder, once about the dump and once about the serial log alone.
fn examine(kwab: &Path, kernel: &Path, names: &Names, folder: &Path, row: &mut Row) -> Result<()> {
    let since = Instant::now();
    let cache = paths::build("mutants")?.join("symbols");
    let examiner = Examiner { kwab, kernel, names, blamed: &row.blamed, cache };
    let dump = folder.join("dump.kwab");
    let of_dump = if dump.is_file() { examiner.dump(&dump)? } else { Score::default() };
    let of_serial = examiner.log(&folder.join("serial.log"))?;
    row.dump = Some(of_dump);
    row.serial = Some(of_serial);
    row.seconds.score = since.elapsed().as_secs_f64();
    Ok(())
}

/// Judges the cases that are kept in a folder again, without building or booting.
pub fn kept(kwab: &Path, folder: &Path, mut each: impl FnMut(&Row)) -> Result<Vec<Row>> {
    let kernel = folder.join("kernel");
    let names = Names::of(&kernel)?;
    let mut rows = Vec::new();
    for entry in walkdir::WalkDir::new(folder).min_depth(1).max_depth(1).sort_by_file_name() {
        let folder = entry?.into_path();
        let file = folder.join("row.json");
        if !file.is_file() {
            continue;
        }
        let mut row: Row = serde_json::from_str(&paths::read(&file)?).with_context(|| paths::shown(&file))?;
        if row.sort.is_case() {
            examine(kwab, &kernel, &names, &folder, &mut row)?;
        }
        let cache = paths::build("mutants")?.join("symbols");
        let examiner = Examiner { kwab, kernel: &kernel, names: &names, blamed: &row.blamed, cache };
        (row.traces, row.paths) = (examiner.traces(&folder)?, examiner.paths(&folder)?);
        paths::write(&file, &serde_json::to_vec_pretty(&row)?)?;
        each(&row);
        rows.push(row);
    }
    Ok(rows)
}
