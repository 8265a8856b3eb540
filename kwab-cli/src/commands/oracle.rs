//! `kwab oracle GOOD BAD [--program PROGRAM] [--symbols KERNEL] [--good-paths FILE --bad-paths FILE] [--json]`
//!
//! Compares two runs of one program, system call by system call, and says the first that differs: what the program
//! asked, what each kernel answered, and what follows from it. A run is a dump or a serial log with the events of
//! `debug=syscall,process,signal`, or the text that `strace -f -o FILE` writes under Linux. Processes, addresses and
//! descriptors are compared up to renaming. Two recordings of whole machines are compared from init on when only the
//! good one executes the program. Status 0 when nothing differs, 1 when something does or recorded paths part before
//! the program began, 3 when the runs cannot be compared (the program is missing, or made no calls) or nothing differs
//! but one is incomplete.
//!
//! With `--good-paths` and `--bad-paths`, which `cargo xtask boot --paths` records, it says where the ways of both runs
//! through the kernel part, and names the functions by that.
//!
//! ```console
//! $ strace -f -o good.txt ./program              # under Linux
//! $ cargo xtask boot --append debug=syscall,process,signal …
//! $ kwab oracle good.txt serial.log --program program
//! ```

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use kwab::model::memory::{read_stream, read_unsized};
use kwab::model::{Depth, Dump, DumpFile};
use kwab::oracle::report::{OracleReport, Verdict};
use kwab::oracle::{CompareOptions, Paths, Recorded, Trace, compare, is_strace, of_dumps, of_strace, text};
use kwab::symbols::{Image, IndexCache};

use super::analyse::open_dump;
use super::log::{self, may_be};
use super::not_opened;
use crate::cli::Oracle;
use crate::failure::{DAMAGED, FINDINGS, about, is_stdio, shown, system};
use crate::{inputs, output};

/// Bytes at the beginning of a file that decide what it is.
const LOOKED_AT: u64 = 8192;
/// Bytes of a recording of paths that are read; the recorder stops before.
const LONGEST_PATHS: u64 = 80 << 20;

/// Runs the command.
pub(crate) fn run(arguments: &Oracle) -> Result<ExitCode> {
    if is_stdio(&arguments.good) && is_stdio(&arguments.bad) {
        bail!("only one of the runs can come from stdin");
    }
    let recorded = RecordedPaths::of(arguments)?;
    let good = open(&arguments.good, false)?;
    // A machine that died before its first event still leaves paths.
    let bad = open(&arguments.bad, recorded.is_some())?;
    let compared = |from_init| {
        let options = CompareOptions { program: arguments.program.clone(), from_init };
        compare((&shown(&arguments.good), &good), (&shown(&arguments.bad), &bad), &options)
    };
    let mut report = compared(false);
    if let Some(kernel) = &arguments.symbols {
        let image = Arc::new(image(kernel)?);
        match &recorded {
            Some(recorded) => {
                recorded.follow(&image, &mut report);
                if report.verdict == Verdict::Same && report.partings.is_empty() {
                    // The machine may have gone wrong beside the program.
                    let mut whole = compared(true);
                    recorded.follow(&image, &mut whole);
                    let is_found = whole.verdict == Verdict::Differs || !whole.partings.is_empty();
                    report = if is_found { whole } else { report };
                }
            }
            None => report.name_functions(Arc::clone(&image)),
        }
        // Recordings of other runs than these have none of their calls.
        if report.behind.is_empty() {
            report.name_functions(image);
        }
    }
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(ExitCode::from(match report.verdict {
        Verdict::Differs => FINDINGS,
        // The bad run's machine ended in a call that only the good one left, or on its way to the program.
        Verdict::Same | Verdict::CannotTell if report.partings.iter().any(|parting| !parting.alike) => FINDINGS,
        Verdict::Same if !report.is_partial() => 0,
        Verdict::Same | Verdict::CannotTell => DAMAGED,
    }))
}

/// The recordings of paths that the command line names.
struct RecordedPaths {
    good: Paths,
    bad: Paths,
    again: Vec<Paths>,
    /// The kernel of the good run, if it is another.
    good_kernel: Option<Image>,
}

impl RecordedPaths {
    fn of(arguments: &Oracle) -> Result<Option<Self>> {
        let files = &arguments.recorded;
        let paths = files.good_paths.as_deref().zip(files.bad_paths.as_deref()).filter(|_| arguments.symbols.is_some());
        let Some((good, bad)) = paths else { return Ok(None) };
        let again = files.again_paths.iter().map(|path| read_paths(path)).collect::<Result<Vec<_>>>()?;
        let good_kernel = files.good_symbols.as_deref().map(image).transpose()?;
        Ok(Some(Self { good: read_paths(good)?, bad: read_paths(bad)?, again, good_kernel }))
    }

    /// Adds where the paths part.
    fn follow(&self, bad: &Image, report: &mut OracleReport) {
        let good = Recorded { paths: &self.good, image: self.good_kernel.as_ref().unwrap_or(bad) };
        report.follow_paths(good, Recorded { paths: &self.bad, image: bad }, &self.again);
    }
}

fn image(kernel: &Path) -> Result<Image> {
    Image::open(kernel, &IndexCache::of_user()).map_err(|error| about(kernel, error))
}

fn read_paths(path: &Path) -> Result<Paths> {
    let failed = |error: std::io::Error| about(path, system(&error));
    let mut text = Vec::new();
    let mut file = inputs::open(path).map_err(failed)?;
    file.by_ref().take(LONGEST_PATHS).read_to_end(&mut text).map_err(failed)?;
    let mut paths = Paths::of(&text).map_err(|error| about(path, error))?;
    if file.read(&mut [0]).map_err(failed)? > 0 {
        paths.gaps.push(format!("the recording of paths is read up to {}", kwab::units::memory(LONGEST_PATHS)));
    }
    Ok(paths)
}

/// The run that a file, a pipe or stdin tells of; `silent`: a log may have neither an event nor a crash.
fn open(path: &Path, silent: bool) -> Result<Trace> {
    let failed = |error: std::io::Error| about(path, system(&error));
    let (start, whole) = beginning(path).map_err(failed)?;
    if is_strace(&start) {
        let text = match whole {
            Some(bytes) => bytes,
            None => read_whole(path).map_err(failed)?,
        };
        return Ok(of_strace(&text));
    }
    if may_be(&start) {
        let dumps = if silent && start.is_empty() { None } else { log::all(path, whole.clone())? };
        if let Some(dumps) = dumps {
            // A program that crashes cuts a log into dumps; the run goes on behind it.
            return of_dumps(dumps.into_iter().map(|dump| Ok(Dump::load(log::opened(path, dump)?, Depth::Export))));
        }
        if silent {
            return Ok(Trace::silent());
        }
    }
    of_dumps([match whole {
        Some(bytes) => {
            let file = DumpFile::number_of(bytes, 1).map_err(|error| not_opened(path, error));
            file.map(|file| Dump::load(file, Depth::Export))
        }
        None => open_dump(path, 1, Depth::Export),
    }])
}

/// The first bytes of a file, or all that a pipe or stdin holds, which can be read once only.
fn beginning(path: &Path) -> std::io::Result<(Vec<u8>, Option<Vec<u8>>)> {
    let start_of = |bytes: &[u8]| bytes[..bytes.len().min(LOOKED_AT as usize)].to_vec();
    if is_stdio(path) {
        let bytes = read_stream(std::io::stdin().lock())?;
        return Ok((start_of(&bytes), Some(bytes)));
    }
    let file = inputs::open(path)?;
    if !file.metadata()?.is_file() {
        let bytes = read_unsized(file)?;
        return Ok((start_of(&bytes), Some(bytes)));
    }
    let mut start = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut start)?;
    Ok((start, None))
}

fn read_whole(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    inputs::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
