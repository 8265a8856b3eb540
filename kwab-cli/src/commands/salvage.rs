//! `kwab salvage BAD -o GOOD [--force] [--json]`
//!
//! Makes a fresh, valid dump of what survives in a damaged one: the sound sections as they are, a note per defect, and
//! the origin. Of a file with several dumps each goes into a file of its own. Status 0 when nothing was damaged, 3 when something was lost, 2 when nothing survives.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::DumpFile;
use kwab::report::salvage::{SalvageError, salvage};

use super::open_file;
use crate::cli::Salvage;
use crate::failure::{DAMAGED, about, shown, system};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Salvage) -> Result<ExitCode> {
    let first = open_file(&arguments.bad, arguments.number.unwrap_or(1))?;
    if arguments.number.is_some() || first.dumps == 1 {
        return one(arguments, first, &arguments.output);
    }
    let dumps = first.dumps;
    let mut damaged = one(arguments, first, &numbered(&arguments.output, 1))? != ExitCode::SUCCESS;
    for number in 2..=dumps {
        let file = open_file(&arguments.bad, number)?;
        damaged |= one(arguments, file, &numbered(&arguments.output, number))? != ExitCode::SUCCESS;
    }
    Ok(ExitCode::from(if damaged { DAMAGED } else { 0 }))
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

fn one(arguments: &Salvage, mut file: DumpFile, output: &Path) -> Result<ExitCode> {
    file.verify_all();
    if file.sections.is_empty() {
        return Err(about(&arguments.bad, "nothing survives: no section is sound"));
    }
    let mut outcome = None;
    output::to_file(output, arguments.force, |out| match salvage(&file, &shown(&arguments.bad), out) {
        Ok(report) => {
            outcome = Some(report);
            Ok(())
        }
        Err(SalvageError::Write(error)) => Err(error),
    })?;
    let mut report = outcome.ok_or_else(|| about(output, system(&std::io::ErrorKind::Other.into())))?;
    report.output = output.display().to_string();
    if arguments.json {
        output::json(&report)?;
    } else {
        let text = render::tables::salvage(&report);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(ExitCode::from(if report.lost.is_empty() { 0 } else { DAMAGED }))
}
