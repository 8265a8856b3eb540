//! `kwab inspect DUMP|- [--section PART,…] [-n ROWS] [--wide] [--json]`
//!
//! The page a tired kernel developer wants first: what died, where and why, then backtrace, registers, memory map, system
//! calls, events, profiles, tasks and log, and at the end what is missing or damaged and what that weakens.

use std::process::ExitCode;

use anyhow::Result;
use kwab::model::Depth;
use kwab::report::inspect::{Options, inspect};

use super::open;
use crate::cli::{Color, Inspect};
use crate::failure::shown;
use crate::output::{self, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Inspect, color: Color) -> Result<ExitCode> {
    let dump = open(&arguments.dump, Depth::Digest)?;
    let report = inspect(&dump, &shown(&arguments.dump), Options { rows: arguments.rows.max(1) });
    if arguments.json {
        output::json(&report)?;
    } else {
        let style = Style::of_stdout(color, arguments.wide);
        let page = render::inspect::page(&report, &arguments.section, style);
        output::to_stdout(|out| out.write_all(page.as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}
