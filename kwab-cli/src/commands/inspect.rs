//! `kwab inspect DUMP|- [--section PART,…] [--symbols PATH] [--good OLD] [-n ROWS] [--wide] [--json]`
//!
//! The page a tired kernel developer wants first: the first hypotheses of the triage, what died, where and why, then
//! backtrace, code, registers, memory map, system calls, events, profiles, tasks and log, and at the end what is
//! missing or damaged and what that weakens. The page of a damaged dump is printed as far as it goes, and the command
//! ends with the status of damage.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::{Depth, Dump, DumpFile};
use kwab::report::command;
use kwab::report::inspect::{Options, Report, conclude_since, inspect};

use super::analyse::{check_sources, load_images, source_lines};
use super::{builds, open_file, tell_others};
use crate::cli::{Color, Inspect};
use crate::failure::{DAMAGED, shown};
use crate::output::{self, Style};
use crate::{pager, render};

/// A dump no longer than this is judged whole; of a longer one, what inspection reads anyway.
const JUDGED_WHOLE: u64 = 8 << 20;

/// Runs the command.
pub(crate) fn run(arguments: &Inspect, color: Color) -> Result<ExitCode> {
    let report = report(arguments)?;
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        let style = Style::of_stdout(color, arguments.wide);
        let page = render::inspect::page(&report, &arguments.section, style);
        pager::text(&page)?;
    }
    Ok(ExitCode::from(if report.completeness.defects.is_empty() { 0 } else { DAMAGED }))
}

/// A dump as conclusions need it, and what its records say.
pub(super) fn inspected(path: &Path, number: usize, options: Options) -> Result<(Dump, Report)> {
    let file = open_file(path, number)?;
    tell_others(&file, path);
    Ok(inspected_file(file, &shown(path), options))
}

/// The same of an open dump; `name` is how the user names it.
pub(super) fn inspected_file(file: DumpFile, name: &str, options: Options) -> (Dump, Report) {
    let dump = Dump::load(file, Depth::Digest);
    let mut report = inspect(&dump, name, options);
    let whole = dump.file.len <= JUDGED_WHOLE && dump.left_out > 0;
    let mut dump = if whole { dump.with_the_rest() } else { dump };
    dump.file.release();
    report.completeness.leave_out(dump.defects());
    (dump, report)
}

/// What the records say, and what follows from them.
fn report(arguments: &Inspect) -> Result<Report> {
    let symbols = &arguments.symbols;
    check_sources(symbols)?;
    let options = Options { rows: arguments.rows.max(1), ..Options::default() };
    let (dump, mut report) = inspected(&arguments.dump, arguments.which.number, options)?;
    let case = dump.case();
    let images = load_images(&case, symbols)?;
    let named = command::arguments(&arguments.dump, arguments.which.number);
    let changes = builds::since(&arguments.good, &case, &images.symbols)?;
    let sources = &mut source_lines(symbols);
    conclude_since(&mut report, &case, &images.symbols, changes.as_ref(), sources, &named);
    Ok(report)
}
