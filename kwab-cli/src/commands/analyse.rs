//! `kwab triage DUMP`, `kwab audit-vm DUMP`, `kwab verify-pages DUMP`
//!
//! Status 0: nothing found; 1: a bug, a violated rule or a wrong page; 2: it could not be done; 3: nothing found, but the
//! analysis rests on sections that are damaged or lost. `--json` prints the same as values. Triage of a dump that somebody asked for (SysRq, live) finds nothing.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::analysis::audit::RULES;
use kwab::analysis::forms::{AuditReport, TriageReport, VerifyReport};
use kwab::analysis::verify::Backing;
use kwab::analysis::{Dump, Needs, images, triage};
use kwab::symbols::{Finder, IndexCache};
use serde::Serialize;

use super::{open_file, tell_others};
use crate::analyses::{Analysis, AuditVm, SymbolOptions, Triage as TriageArguments, VerifyPages};
use crate::cli::Color;
use crate::failure::{DAMAGED, FINDINGS, shown};
use crate::output::{self, Style};
use crate::render;

/// Runs one of the commands.
pub(crate) fn run(analysis: &Analysis, color: Color) -> Result<ExitCode> {
    match analysis {
        Analysis::Triage(arguments) => run_triage(arguments, color),
        Analysis::AuditVm(arguments) => run_audit(arguments, color),
        Analysis::VerifyPages(arguments) => run_verify(arguments, color),
    }
}

/// Reads the records of a dump that are needed; errors are those of every other command.
pub(super) fn open_dump(path: &Path, number: usize, needs: Needs) -> Result<Dump> {
    let file = open_file(path, number)?;
    tell_others(&file, path);
    Ok(Dump::of_file(file, needs))
}

/// Finds the images of a dump; what could not be found is said on stderr when the user gave places to look.
pub(super) fn load_images(case: &kwab::analysis::Case<'_>, options: &SymbolOptions) -> images::Images {
    let mut finder = Finder::new(options.paths.clone(), options.force).and_by_id(built());
    let found = images::load(case, &mut finder, &IndexCache::of_user());
    if !options.paths.is_empty() {
        for problem in &found.problems {
            // Nothing can be done about a closed stderr.
            let _ = writeln!(io::stderr(), "kwab: {problem}");
        }
    }
    found
}

/// What a build of this workspace leaves behind: kernels of every profile, then the guest's programs and the host's. A
/// whole build tree is not searched: that takes longer than everything else.
fn built() -> Vec<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let profiles = files(&target.join("x86_64-unknown-none"), Path::is_dir);
    let mut built: Vec<PathBuf> = profiles.into_iter().map(|profile| profile.join("kernel")).collect();
    built.retain(|path| path.is_file());
    let is_program = |path: &Path| path.extension().is_none() && path.is_file();
    for folder in [PathBuf::from("build/guest"), target.join("release"), target.join("debug")] {
        built.extend(files(&folder, is_program));
    }
    built
}

/// What lies in a folder itself, in order.
fn files(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| wanted(path)).collect();
    files.sort();
    files
}

fn backing(path: Option<&PathBuf>) -> Result<Backing> {
    Ok(match path {
        Some(path) => Backing::open(path)?,
        None => Backing::none(),
    })
}

/// A finding is the first thing to know; without one, an analysis that rests on what is lost may have missed it.
fn status(found: bool, weakened: &[String]) -> ExitCode {
    ExitCode::from(match (found, weakened) {
        (true, _) => FINDINGS,
        (false, []) => 0,
        (false, _) => DAMAGED,
    })
}

fn print<T: Serialize>(json: bool, report: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
    if json {
        return output::json(report);
    }
    let text = text(report);
    output::to_stdout(|out| out.write_all(text.as_bytes()))
}

fn run_triage(arguments: &TriageArguments, color: Color) -> Result<ExitCode> {
    let file = shown(&arguments.dump);
    let dump = open_dump(&arguments.dump, arguments.which.number, Needs::Rules)?;
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols);
    let triage = triage(&case, &images.symbols, &backing(arguments.backing.as_ref())?, &file);
    let report = TriageReport::of(triage, &file);
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::triage(&report.triage, arguments.explain, style))?;
    Ok(status(report.triage.has_findings(), &report.triage.weakened))
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
    let dump = open_dump(path, arguments.which.number, Needs::Rules)?;
    let report = AuditReport::of(&dump.case(), &arguments.rule, &shown(path));
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::audit(report, style))?;
    Ok(status(!report.findings.is_empty(), &report.weakened))
}

fn run_verify(arguments: &VerifyPages, color: Color) -> Result<ExitCode> {
    let files = backing(arguments.backing.as_ref())?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Needs::Rules)?;
    let report = VerifyReport::of(&dump.case(), &files, &shown(&arguments.dump));
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::verify(report, style))?;
    Ok(status(!report.wrong.is_empty(), &report.weakened))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use kwab::analysis::rules;

    use super::*;
    use crate::cli::{Arguments, Command};

    /// Parses a command that a report tells the user to run.
    fn parsed(command: &str) -> Command {
        let words = command.split(' ').map(|word| match word {
            "FILE" | "DUMP" => "crash.kwab",
            word => word,
        });
        let parsed = Arguments::try_parse_from(words);
        parsed.unwrap_or_else(|error| panic!("{command}: {error}")).command
    }

    #[test]
    fn every_command_that_a_rule_tells_to_run_next_exists_with_its_options_and_sections() {
        let mut commands = 0;
        for command in rules::RULES.iter().flat_map(|rule| rule.next) {
            let names: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
            let about = if command.contains("RULE") { names.as_slice() } else { &[""] };
            for name in about {
                let parsed = parsed(&command.replace("RULE", name));
                if let Command::Analysis(Analysis::AuditVm(arguments)) = parsed {
                    assert!(arguments.rule.iter().all(|id| names.contains(&id.as_str())), "{command}: {name}");
                }
                commands += 1;
            }
        }
        assert!(commands >= rules::RULES.len(), "the table lists too few commands");
    }

    #[test]
    fn what_other_reports_tell_to_run_exists() {
        for command in ["kwab cat DUMP kept", "kwab salvage DUMP -o good.kwab", "kwab inspect DUMP", "kwab check DUMP"]
        {
            parsed(command);
        }
    }
}
