//! `kwab salvage BAD -o GOOD|- [--force] [--json]`
//!
//! Makes a fresh, valid dump of what survives in a damaged one: the sound sections as they are, a note per defect, and
//! the origin. Of a file with several dumps each goes into a file of its own. With `-o -` the dump goes to stdout and
//! the report to stderr. Status 0 when nothing was damaged, 3 when something was lost, 2 when nothing survives.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::model::DumpFile;
use kwab::report::salvage::{SalvageError, salvage};

use super::list::named;
use super::open_file;
use crate::cli::Salvage;
use crate::failure::{DAMAGED, FAILED, about, is_stdio, shown, system};
use crate::output::{self, Output};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Salvage) -> Result<ExitCode> {
    let output = destination(arguments, &arguments.output)?;
    if output.is_stdout() && arguments.json {
        bail!("--json and the dump would both go to stdout; name a file with -o");
    }
    let bad = arguments.bad.as_path();
    // What can be read only once is read once, with all its dumps.
    let is_once = arguments.number.is_none() && (is_stdio(bad) || !bad.is_file());
    let mut held = if is_once { named(bad) } else { Vec::new() }.into_iter();
    let first = match held.next() {
        Some(first) => first?,
        // Why there is none has been said.
        None if is_once => return Ok(ExitCode::from(FAILED)),
        None => open_file(bad, arguments.number.unwrap_or(1))?,
    };
    let dumps = first.dumps;
    if arguments.number.is_some() || dumps == 1 {
        return one(arguments, first, &output);
    }
    if output.is_stdout() {
        bail!("{} holds {dumps} dumps and stdout takes one; --dump N chooses it", shown(&arguments.bad));
    }
    let numbers = 1..=dumps;
    let outputs: Result<Vec<Output>> =
        numbers.map(|number| destination(arguments, &numbered(&arguments.output, number))).collect();
    let (mut first, mut damaged) = (Some(first), false);
    for (number, output) in outputs?.iter().enumerate() {
        let file = match first.take().map(Ok).or_else(|| held.next()) {
            Some(file) => file?,
            None => open_file(bad, number + 1)?,
        };
        damaged |= one(arguments, file, output)? != ExitCode::SUCCESS;
    }
    Ok(ExitCode::from(if damaged { DAMAGED } else { 0 }))
}

/// Where a sound dump goes; refused before anything is read.
fn destination(arguments: &Salvage, path: &Path) -> Result<Output> {
    Output::of(Some(path), arguments.force, [arguments.bad.as_path()])?.of_binary()
}

/// `good.kwab` becomes `good-2.kwab`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = match path.extension() {
        Some(end) => format!("{stem}-{number}.{}", end.to_string_lossy()),
        None => format!("{stem}-{number}"),
    };
    path.with_file_name(name)
}

fn one(arguments: &Salvage, mut file: DumpFile, output: &Output) -> Result<ExitCode> {
    file.verify_all();
    if file.sections.is_empty() {
        return Err(about(&arguments.bad, "nothing survives: no section is sound"));
    }
    let mut outcome = None;
    output.write(|out| match salvage(&file, &shown(&arguments.bad), out) {
        Ok(report) => {
            outcome = Some(report);
            Ok(())
        }
        Err(SalvageError::Write(error)) => Err(error),
    })?;
    let mut report = outcome.ok_or_else(|| about(output.path(), system(&std::io::ErrorKind::Other.into())))?;
    report.output = if output.is_stdout() { "stdout".to_string() } else { output.path().display().to_string() };
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        let text = render::tables::salvage(&report);
        if output.is_stdout() {
            output::remark(&text);
        } else {
            output::text(&text)?;
        }
    }
    Ok(ExitCode::from(if report.lost.is_empty() { 0 } else { DAMAGED }))
}
