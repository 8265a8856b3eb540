//! `kwab check DUMP… [--json] [--quiet]`
//!
//! Checks every checksum and names what is damaged. Status 0: all sound; 3: damage; 2: one of the
//! files cannot be read or is not a dump; the others are checked all the same.

use std::process::ExitCode;

use anyhow::Result;
use kwab::report::check::{CheckReports, SCHEMA, check};

use super::open_file;
use crate::cli::Check;
use crate::failure::{DAMAGED, FAILED, say, shown};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let (mut reports, mut unreadable) = (Vec::new(), Vec::new());
    for path in &arguments.dumps {
        match open_file(path) {
            Ok(mut file) => reports.push(check(&mut file, &shown(path))),
            Err(error) => {
                say(&error);
                unreadable.push(error.to_string());
            }
        }
    }
    let sound = reports.iter().all(|report| report.sound);
    let readable = unreadable.is_empty();
    if arguments.json {
        output::json(&CheckReports { schema: SCHEMA, dumps: reports, unreadable })?;
    } else if !arguments.quiet {
        output::text(&reports.iter().map(render::tables::check).collect::<String>())?;
    }
    Ok(ExitCode::from(match (readable, sound) {
        (false, _) => FAILED,
        (true, false) => DAMAGED,
        (true, true) => 0,
    }))
}
