//! `kwab salvage BAD -o GOOD [--force] [--json]`
//!
//! Makes a fresh, valid dump of what survives in a damaged one: the sound sections as they are, a note per defect, and
//! the origin. Status 0 when nothing was damaged, 3 when something was lost, 2 when nothing survives.

use std::process::ExitCode;

use anyhow::Result;
use kwab::report::salvage::{SalvageError, salvage};

use super::open_file;
use crate::cli::Salvage;
use crate::failure::{DAMAGED, about, shown, system};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Salvage) -> Result<ExitCode> {
    let mut file = open_file(&arguments.bad)?;
    file.verify_all();
    if file.sections.is_empty() {
        return Err(about(&arguments.bad, "nothing survives: no section is sound"));
    }
    let mut outcome = None;
    output::to_file(&arguments.output, arguments.force, |out| match salvage(&file, &shown(&arguments.bad), out) {
        Ok(report) => {
            outcome = Some(report);
            Ok(())
        }
        Err(SalvageError::Write(error)) => Err(error),
    })?;
    let mut report = outcome.ok_or_else(|| about(&arguments.output, system(&std::io::ErrorKind::Other.into())))?;
    report.output = arguments.output.display().to_string();
    if arguments.json {
        output::json(&report)?;
    } else {
        let text = render::tables::salvage(&report);
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(ExitCode::from(if report.lost.is_empty() { 0 } else { DAMAGED }))
}
