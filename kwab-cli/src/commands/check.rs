//! `kwab check DUMP… [--json] [--quiet]`
//!
//! Checks every checksum and names what is damaged. Status 0: all sound; 3: damage; 2: a file that is no dump.

use std::process::ExitCode;

use anyhow::Result;
use kwab::report::check::check;

use super::open_file;
use crate::cli::Check;
use crate::failure::{DAMAGED, shown};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let mut reports = Vec::new();
    for path in &arguments.dumps {
        let mut file = open_file(path)?;
        reports.push(check(&mut file, &shown(path)));
    }
    let sound = reports.iter().all(|report| report.sound);
    if arguments.json {
        output::json(&kwab::report::check::CheckReports { schema: kwab::report::check::SCHEMA, dumps: reports })?;
    } else if !arguments.quiet {
        let text: String = reports.iter().map(render::tables::check).collect();
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
    }
    Ok(ExitCode::from(if sound { 0 } else { DAMAGED }))
}
