//! `kwab report DUMP|LOG|- [-o FILE|-] [--md] [--symbols PATH] [--good OLD] [-n ROWS] [--force]`
//!
//! An inspection to send to a colleague who has no kwab: one HTML file of less than 2 MB that needs no network and no
//! other file, with triage, backtraces, registers, a timeline with a lane per processor, address space, calls and log;
//! searchable, dark and light, printable. `--md` writes Markdown for an issue or a mail. Without `-o` the file has the
//! dump's name with `.html` or `.md` and lies in the current directory; its name is printed. Every string of the dump
//! is escaped, and the page's own policy lets no script run but its own.
//! Status 0: written; 2: usage or I/O; 3: written, but parts of the dump are damaged.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use kwab::causes::Causes;
use kwab::report::command;
use kwab::report::html::{Contents, Held, html};
use kwab::report::inspect::{Options, conclude_since};
use kwab::report::markdown::markdown;

use super::analyse::{check_sources, load_images, source_lines};
use super::builds;
use super::inspect::inspected;
use crate::analyses::SymbolOptions;
use crate::cli::ReportFile;
use crate::failure::{DAMAGED, is_stdio};
use crate::output::{self, Output};

/// Mappings of the address space, those nearest to the fault.
const MAPPINGS: usize = 2000;

/// Runs the command.
pub(crate) fn run(arguments: &ReportFile) -> Result<ExitCode> {
    let (paths, source) = (arguments.symbols.clone(), arguments.source.clone());
    let symbols = &SymbolOptions { paths, force: false, source };
    check_sources(symbols)?;
    let path = arguments.output.clone().unwrap_or_else(|| named_after(&arguments.dump, arguments.md));
    let output = Output::of(Some(&path), arguments.force, [arguments.dump.as_path()])?;
    let (number, rows) = (arguments.which.number, arguments.rows.max(1));
    let (dump, mut report) = inspected(&arguments.dump, number, Options { rows, mappings: MAPPINGS })?;
    let case = dump.case();
    let images = load_images(&case, symbols)?;
    let named = command::arguments(&arguments.dump, number);
    let sources = &mut source_lines(symbols);
    let changes = builds::since(&arguments.good, &case, &images.symbols)?;
    let triage = &conclude_since(&mut report, &case, &images.symbols, changes.as_ref(), sources, &named);
    let causes = (!arguments.md).then(|| Causes::of(&dump));
    let contents = Contents { report: &report, triage, causes: causes.as_ref(), held: Held::of(&dump), rows };
    let text = if arguments.md { markdown(&contents) } else { html(&contents) };
    output.write(|out| out.write_all(text.as_bytes()))?;
    if !output.is_stdout() {
        output::text(&format!("{}\n", kwab::plain::line(&output.path().display().to_string())))?;
    }
    Ok(ExitCode::from(if report.completeness.defects.is_empty() { 0 } else { DAMAGED }))
}

/// The dump's name in the current directory, with the ending of the form.
fn named_after(dump: &Path, md: bool) -> PathBuf {
    let stem = dump.file_stem().filter(|_| !is_stdio(dump)).unwrap_or("report".as_ref());
    let mut name = stem.to_os_string();
    name.push(if md { ".md" } else { ".html" });
    PathBuf::from(name)
}
