//! `kwab check DUMP… [--json] [--quiet]`
//!
//! Checks every checksum, unpacks and decodes every record, compares the totals of the end section with what is there, and
//! names what is wrong. Status 0: all sound; 3: damage; 2: a file that is no dump. Of a file with several dumps all are checked.

use std::process::ExitCode;

use anyhow::Result;
use kwab::report::check::check;

use super::open_file;
use crate::cli::Check;
use crate::failure::{DAMAGED, is_stdio, shown};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Check) -> Result<ExitCode> {
    let mut reports = Vec::new();
    for path in &arguments.dumps {
        let mut number = 1;
        loop {
            let mut file = open_file(path, number)?;
            let name = if file.dumps > 1 { format!("{}, dump {number}", shown(path)) } else { shown(path) };
            reports.push(check(&mut file, &name));
            number += 1;
            // What stdin held is gone; its other dumps are not read.
            if number > file.dumps || is_stdio(path) {
                break;
            }
        }
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
