//! `kwab triage DUMP`, `kwab audit-vm DUMP`, `kwab verify-pages DUMP`
//!
//! Status 0: nothing found; 1: a bug, a violated rule or a wrong page; 2: it could not be done. `--json` prints the same as
//! values. Triage of a dump that somebody asked for (SysRq, live) finds nothing.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::analysis::audit::{Finding, RULES, audit, scope};
use kwab::analysis::verify::{Backing, Verified, WrongPage, verified, verify};
use kwab::analysis::{Dump, Triage, images, triage};
use kwab::symbols::{Finder, IndexCache};
use serde::Serialize;

use super::{open_bytes, open_file};
use crate::analyses::{Analysis, AuditVm, SymbolOptions, Triage as TriageArguments, VerifyPages};
use crate::cli::Color;
use crate::failure::{FINDINGS, about, is_stdio, shown};
use crate::output::{self, Style};
use crate::render;

/// The version of the JSON forms.
const SCHEMA: u32 = 1;

/// A report as JSON.
#[derive(Serialize)]
struct Report<'r, T: Serialize> {
    schema: u32,
    file: &'r str,
    #[serde(flatten)]
    report: T,
}

/// Runs one of the commands.
pub(crate) fn run(analysis: &Analysis, color: Color) -> Result<ExitCode> {
    match analysis {
        Analysis::Triage(arguments) => run_triage(arguments, color),
        Analysis::AuditVm(arguments) => run_audit(arguments, color),
        Analysis::VerifyPages(arguments) => run_verify(arguments, color),
    }
}

/// Reads a whole dump; errors are those of every other command.
pub(super) fn open_dump(path: &Path) -> Result<Dump> {
    let bytes = if is_stdio(path) {
        open_bytes(path)?
    } else {
        // Says what is wrong with a file that is no dump.
        open_file(path)?;
        open_bytes(path)?
    };
    Dump::open(bytes).map_err(|error| about(path, error))
}

/// Finds the images of a dump; what could not be found is said on stderr when the user gave places to look.
pub(super) fn load_images(case: &kwab::analysis::Case<'_>, options: &SymbolOptions) -> images::Images {
    let mut paths = options.paths.clone();
    let built = PathBuf::from("target/x86_64-unknown-none");
    if built.is_dir() {
        paths.push(built);
    }
    let mut finder = Finder::new(paths, options.force);
    let found = images::load(case, &mut finder, &IndexCache::of_user());
    if !options.paths.is_empty() {
        for problem in &found.problems {
            // Nothing can be done about a closed stderr.
            let _ = writeln!(io::stderr(), "kwab: {problem}");
        }
    }
    found
}

fn backing(path: Option<&PathBuf>) -> Result<Backing> {
    Ok(match path {
        Some(path) => Backing::open(path)?,
        None => Backing::none(),
    })
}

fn status(found: bool) -> ExitCode {
    ExitCode::from(if found { FINDINGS } else { 0 })
}

fn print<T: Serialize>(json: bool, file: &str, report: T, text: impl FnOnce(&T) -> String) -> Result<()> {
    if json {
        return output::json(&Report { schema: SCHEMA, file, report });
    }
    let text = text(&report);
    output::to_stdout(|out| out.write_all(text.as_bytes()))
}

fn run_triage(arguments: &TriageArguments, color: Color) -> Result<ExitCode> {
    let file = shown(&arguments.dump);
    let dump = open_dump(&arguments.dump)?;
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols);
    let report: Triage = triage(&case, &images.symbols, &backing(arguments.backing.as_ref())?, &file);
    let found = report.has_findings();
    let style = Style::of_stdout(color, false);
    print(arguments.json, &file, report, |report| render::analysis::triage(report, arguments.explain, style))?;
    Ok(status(found))
}

#[derive(Serialize)]
pub(crate) struct AuditReport {
    pub mappings: usize,
    pub entries: usize,
    pub frames: usize,
    pub findings: Vec<Finding>,
    pub losses: Vec<String>,
}

fn run_audit(arguments: &AuditVm, color: Color) -> Result<ExitCode> {
    let Some(path) = arguments.dump.as_ref().filter(|_| !arguments.rules) else {
        let text = render::analysis::rules();
        output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        return Ok(ExitCode::SUCCESS);
    };
    for wanted in &arguments.rule {
        if !RULES.iter().any(|rule| rule.id == wanted) {
            bail!("{wanted} is no rule of the audit; kwab audit-vm --rules lists them");
        }
    }
    let dump = open_dump(path)?;
    let case = dump.case();
    let (mappings, entries, frames) = scope(&case);
    let wanted = |finding: &Finding| arguments.rule.is_empty() || arguments.rule.iter().any(|id| id == finding.rule);
    let findings: Vec<Finding> = audit(&case).into_iter().filter(wanted).collect();
    let found = !findings.is_empty();
    let report = AuditReport { mappings, entries, frames, findings, losses: case.losses() };
    let style = Style::of_stdout(color, false);
    print(arguments.json, &shown(path), report, |report| render::analysis::audit(report, style))?;
    Ok(status(found))
}

#[derive(Serialize)]
pub(crate) struct VerifyReport {
    #[serde(flatten)]
    pub verified: Verified,
    pub wrong: Vec<WrongPage>,
    pub losses: Vec<String>,
}

fn run_verify(arguments: &VerifyPages, color: Color) -> Result<ExitCode> {
    let files = backing(arguments.backing.as_ref())?;
    let dump = open_dump(&arguments.dump)?;
    let case = dump.case();
    let wrong = verify(&case, &files);
    let found = !wrong.is_empty();
    let report = VerifyReport { verified: verified(&case, &files), wrong, losses: case.losses() };
    let style = Style::of_stdout(color, false);
    print(arguments.json, &shown(&arguments.dump), report, |report| render::analysis::verify(report, style))?;
    Ok(status(found))
}
