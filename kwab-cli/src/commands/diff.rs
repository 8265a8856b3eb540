//! `kwab diff A B [--symbols PATH] [-n ROWS] [--wide] [--json]`
//!
//! What tells two dumps apart, first what is new in B: findings, cause, backtrace, registers, kernel and options,
//! mappings, page tables, tasks, calls, counters and log. Addresses under randomisation, process ids, times and counts
//! of the same magnitude are counted and not shown. Of two directories the bugs are compared that their dumps tell of.
//! Of two images, as two builds of a kernel, the functions are shown whose code differs.
//! Status 0: nothing differs but what varies from run to run; 1: something does, or of directories one has a bug that
//! the other has not; 3: nothing differs in what could be read, but parts of a dump are damaged or lost.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::analysis::Context;
use kwab::analysis::verify::Backing;
use kwab::report::catalogue::{CatalogueEntry, concluded};
use kwab::report::diff::{Subject, diff, folders};
use kwab::report::inspect::{Options, conclude};

use super::analyse::{check_sources, load_images, source_lines};
use super::inspect::inspected;
use super::{builds, list};
use crate::cli::{Color, Diff};
use crate::failure::{DAMAGED, FINDINGS, is_stdio, shown};
use crate::output::{self, Style};
use crate::render;
use crate::{inputs, pager};

/// Rows of calls and log that are compared.
const COMPARED: usize = 2000;

/// Runs the command.
pub(crate) fn run(arguments: &Diff, color: Color) -> Result<ExitCode> {
    let (left, right) = (arguments.left.as_path(), arguments.right.as_path());
    if is_stdio(left) && is_stdio(right) {
        bail!("only one of the dumps can come from stdin");
    }
    let style = Style::of_stdout(color, arguments.wide);
    if builds::is_image(left) && builds::is_image(right) {
        return builds::diff(arguments, style);
    }
    match (inputs::is_dir(left), inputs::is_dir(right)) {
        (true, true) => of_folders(arguments, style),
        (false, false) => of_dumps(arguments, style),
        _ => bail!("{} is a directory and the other is none; compare two dumps or two directories", {
            shown(if inputs::is_dir(left) { left } else { right })
        }),
    }
}

fn of_dumps(arguments: &Diff, style: Style) -> Result<ExitCode> {
    check_sources(&arguments.symbols)?;
    let (left, left_sound) = subject(&arguments.left, arguments)?;
    let (right, right_sound) = subject(&arguments.right, arguments)?;
    let found = diff(left, right);
    output::beside(&found)?;
    if arguments.json {
        output::json(&found)?;
    } else {
        pager::text(&render::diff::dumps(&found, arguments.rows.max(1), style))?;
    }
    Ok(status(found.differs(), left_sound && right_sound && found.is_complete()))
}

/// The facts of a dump, and whether it is undamaged.
fn subject(path: &Path, arguments: &Diff) -> Result<(Subject, bool)> {
    let (dump, mut report) = inspected(path, 1, Options { rows: COMPARED, ..Options::default() })?;
    let name = shown(path);
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols)?;
    let sources = &mut source_lines(&arguments.symbols);
    let triage = conclude(&mut report, &case, &images.symbols, sources, &name);
    let ctx = Context::new(&case, &images.symbols, &Backing::none());
    let entry = concluded(&dump, &name, &triage);
    let sound = report.completeness.defects.is_empty();
    Ok((Subject::of(entry, &report, &ctx, &triage), sound))
}

fn of_folders(arguments: &Diff, style: Style) -> Result<ExitCode> {
    let entries = |folder: &Path| list::entries_of(folder);
    let (left, right) = (entries(&arguments.left), entries(&arguments.right));
    let sound = left.iter().chain(&right).all(|entry: &CatalogueEntry| entry.sound);
    let found = folders(&left, &right);
    output::beside(&found)?;
    if arguments.json {
        output::json(&found)?;
    } else {
        let names = (shown(&arguments.left), shown(&arguments.right));
        pager::text(&render::diff::folders(&found, &names, style))?;
    }
    Ok(status(found.differs(), sound))
}

fn status(differs: bool, sound: bool) -> ExitCode {
    ExitCode::from(match (differs, sound) {
        (true, _) => FINDINGS,
        (false, false) => DAMAGED,
        (false, true) => 0,
    })
}
