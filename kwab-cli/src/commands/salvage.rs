//! `kwab salvage BAD -o GOOD|- [--force] [--json]`
//!
//! Makes a fresh, valid dump of what survives in a damaged one: the sound sections as they are, a note per defect, and
//! the origin. With `-o -` the dump goes to stdout and the report to stderr. Status 0 when nothing was damaged, 3 when something was lost, 2 when nothing survives.

use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::report::salvage::{SalvageError, salvage};

use super::open_file;
use crate::cli::Salvage;
use crate::failure::{DAMAGED, about, shown, system};
use crate::output::{self, Output};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Salvage) -> Result<ExitCode> {
    let inputs = [arguments.bad.as_path()];
    let output = Output::of(Some(&arguments.output), arguments.force, inputs)?.of_binary()?;
    if output.is_stdout() && arguments.json {
        bail!("--json and the dump would both go to stdout; name a file with -o");
    }
    let mut file = open_file(&arguments.bad)?;
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
    let mut report = outcome.ok_or_else(|| about(&arguments.output, system(&std::io::ErrorKind::Other.into())))?;
    report.output = if output.is_stdout() { "stdout".to_string() } else { arguments.output.display().to_string() };
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
