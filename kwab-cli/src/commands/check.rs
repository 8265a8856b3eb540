//! `kwab check DUMP… [--json] [--quiet]`
//!
//! Checks every checksum, unpacks and decodes every record, compares the totals of the end section with what is there,
//! and names what is wrong. Of a file with several dumps all are checked. Status 0: all sound; 3: damage; 2: one of the
//! files cannot be read or is not a dump; the others are checked all the same.

use std::process::ExitCode;

use anyhow::Result;
use kwab::report::check::{CheckReports, SCHEMA, check};

use super::open_all;
use crate::cli::Check;
use crate::failure::{DAMAGED, FAILED, say, shown};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let (mut reports, mut unreadable) = (Vec::new(), Vec::new());
    for path in &arguments.dumps {
        for opened in open_all(path) {
            match opened {
                Ok(mut file) => {
                    let number = file.number;
                    let name = if file.dumps > 1 { format!("{}, dump {number}", shown(path)) } else { shown(path) };
                    reports.push(check(&mut file, &name));
                }
                Err(error) => {
                    say(&error);
                    unreadable.push(error.to_string());
                }
            }
        }
    }
    let sound = reports.iter().all(|report| report.sound);
    let readable = unreadable.is_empty();
    let report = CheckReports { schema: SCHEMA, dumps: reports, unreadable };
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else if !arguments.quiet {
        output::text(&report.dumps.iter().map(render::tables::check).collect::<String>())?;
    }
    Ok(ExitCode::from(match (readable, sound) {
        (false, _) => FAILED,
        (true, false) => DAMAGED,
        (true, true) => 0,
    }))
}
