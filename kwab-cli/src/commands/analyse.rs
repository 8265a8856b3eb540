//! `kwab triage DUMP`, `kwab audit-vm DUMP`, `kwab verify-pages DUMP`
//!
//! Status 0: nothing found in a sound dump; 1: a bug, a violated rule or a wrong page; 2: it could not be done; 3:
//! nothing found, but parts of the dump are damaged or lost. `--json` prints the same as values. Triage of a dump that
//! was asked for (SysRq, live) finds nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};
use kwab::analysis::audit::RULES;
use kwab::analysis::forms::{AuditReport, TriageReport, VerifyReport};
use kwab::analysis::verify::Backing;
use kwab::analysis::{images, triage_since};
use kwab::model::{Depth, Dump};
use kwab::plain;
use kwab::report::command;
use kwab::symbols::{Finder, IndexCache, SourceLines};
use serde::Serialize;

use super::{builds, find, log, open_file, tell_others};
use crate::analyses::{Analysis, AuditVm, SymbolOptions, Triage as TriageArguments, VerifyPages};
use crate::cli::Color;
use crate::failure::{DAMAGED, FINDINGS, about, shown, system};
use crate::output::{self, Style};
use crate::render;
use crate::{inputs, pager};

/// Runs one of the commands.
pub(crate) fn run(analysis: &Analysis, color: Color) -> Result<ExitCode> {
    match analysis {
        Analysis::Triage(arguments) => run_triage(arguments, color),
        Analysis::AuditVm(arguments) => run_audit(arguments, color),
        Analysis::VerifyPages(arguments) => run_verify(arguments, color),
    }
}

/// Reads the records of a dump that are needed; errors are those of every other command.
pub(super) fn open_dump(path: &Path, number: usize, depth: Depth) -> Result<Dump> {
    let file = open_file(path, number)?;
    tell_others(&file, path);
    Ok(Dump::load(file, depth))
}

/// Finds the images of a dump; what could not be found is said on stderr when the user named paths to search.
///
/// # Errors
/// When one of the paths does not exist.
pub(super) fn load_images(case: &kwab::model::Case<'_>, options: &SymbolOptions) -> Result<images::Images> {
    check_sources(options)?;
    // What came with the dump counts before what happens to be built here.
    let by_id = if inputs::is_confined() { Vec::new() } else { built() };
    let finder = Finder::new(options.paths.clone(), options.force);
    let mut finder = finder.and_beside(inputs::images_beside()).and_by_id(by_id);
    if inputs::is_confined() {
        finder = finder.offline();
    }
    let found = images::load(case, &mut finder, &IndexCache::of_user());
    if finder.took_beside() {
        FOREIGN.store(true, Ordering::Relaxed);
    }
    inputs::were_read(options.paths.iter().map(PathBuf::as_path).chain(finder.taken().iter().map(PathBuf::as_path)));
    if !options.paths.is_empty() {
        // Every dump of a directory lacks the same images: each is told once.
        static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        for problem in &found.problems {
            if told.insert(problem.clone()) {
                output::remark(&format!("kwab: {}\n", plain::line(problem)));
            }
        }
    }
    Ok(found)
}

/// Whether an image was used that came with a dump and that the user did not name.
static FOREIGN: AtomicBool = AtomicBool::new(false);

/// The sources that may be shown, once the images are loaded. The paths that an image records are its maker's choice:
/// in a confined process, and with an image that came with a dump, only files below the given directories count, since
/// a report would take lines of any other file of the user along.
pub(super) fn source_lines(options: &SymbolOptions) -> SourceLines {
    match inputs::is_confined() || FOREIGN.load(Ordering::Relaxed) {
        true => SourceLines::below(options.source.clone()),
        false => SourceLines::new(options.source.clone()),
    }
}

/// Refuses paths of symbols and sources that do not exist, before a dump is read.
pub(super) fn check_sources(options: &SymbolOptions) -> Result<()> {
    for path in &options.paths {
        let meta = std::fs::metadata(path).map_err(|error| about(path, format!("--symbols: {}", system(&error))))?;
        if !meta.is_file() && !meta.is_dir() {
            return Err(about(path, "--symbols: is neither a file nor a directory"));
        }
    }
    for path in &options.source {
        let meta = std::fs::metadata(path).map_err(|error| about(path, format!("--source: {}", system(&error))))?;
        if !meta.is_dir() {
            return Err(about(path, "--source: is not a directory"));
        }
    }
    Ok(())
}

/// What a build of this workspace leaves behind: kernels of every profile, then the guest's programs and the host's. A
/// whole build tree is not searched: that takes longer than everything else.
pub(super) fn built() -> Vec<PathBuf> {
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
        Some(path) => {
            let meta =
                std::fs::metadata(path).map_err(|error| about(path, format!("--backing: {}", system(&error))))?;
            if !meta.is_file() && !meta.is_dir() {
                return Err(about(path, "--backing: is neither a file nor a directory"));
            }
            Backing::open(path)?
        }
        None => Backing::none(),
    })
}

/// A finding is the first thing to know; without one, an analysis of a dump with losses may have missed it.
fn status(found: bool, losses: &[String]) -> ExitCode {
    ExitCode::from(match (found, losses) {
        (true, _) => FINDINGS,
        (false, []) => 0,
        (false, _) => DAMAGED,
    })
}

fn print<T: Serialize>(json: bool, report: &T, text: impl FnOnce(&T) -> String) -> Result<()> {
    output::beside(report)?;
    if json {
        return output::json(report);
    }
    pager::text(&text(report))
}

fn run_triage(arguments: &TriageArguments, color: Color) -> Result<ExitCode> {
    let file = shown(&arguments.dump);
    check_sources(&arguments.symbols)?;
    let backing = backing(arguments.backing.as_ref())?;
    let mut is_doubtful = false;
    let dump = match find(&arguments.dump, arguments.which.number)? {
        log::Found::Quiet(quiet) if !arguments.json && !output::has_beside() => {
            output::text(&quiet.text())?;
            return Ok(ExitCode::from(if quiet.is_doubtful() { FINDINGS } else { 0 }));
        }
        log::Found::Quiet(quiet) => {
            is_doubtful = quiet.is_doubtful();
            quiet.into_dump(&arguments.dump)?
        }
        log::Found::Dump(file) => {
            tell_others(&file, &arguments.dump);
            file
        }
    };
    let dump = Dump::load(dump, Depth::Rules);
    let case = dump.case();
    let images = load_images(&case, &arguments.symbols)?;
    let named = command::arguments(&arguments.dump, arguments.which.number);
    let changes = builds::since(&arguments.good, &case, &images.symbols)?;
    let triage = triage_since(&case, &images.symbols, &backing, changes.as_ref(), &named);
    let report = TriageReport::of(triage, &file);
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::triage(&report.triage, arguments.explain, style))?;
    Ok(status(is_doubtful || report.triage.has_findings(), &report.triage.losses))
}

fn run_audit(arguments: &AuditVm, color: Color) -> Result<ExitCode> {
    let Some(path) = arguments.dump.as_ref().filter(|_| !arguments.rules) else {
        pager::text(&render::analysis::rules())?;
        return Ok(ExitCode::SUCCESS);
    };
    for wanted in &arguments.rule {
        if !RULES.iter().any(|rule| rule.id == wanted) {
            bail!("unknown audit rule {wanted}; kwab audit-vm --rules lists them");
        }
    }
    let dump = open_dump(path, arguments.which.number, Depth::Rules)?;
    let report = AuditReport::of(&dump.case(), &arguments.rule, &shown(path));
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::audit(report, style))?;
    Ok(status(!report.findings.is_empty(), &report.losses))
}

fn run_verify(arguments: &VerifyPages, color: Color) -> Result<ExitCode> {
    let files = backing(arguments.backing.as_ref())?;
    let dump = open_dump(&arguments.dump, arguments.which.number, Depth::Rules)?;
    let report = VerifyReport::of(&dump.case(), &files, &shown(&arguments.dump));
    let style = Style::of_stdout(color, false);
    print(arguments.json, &report, |report| render::analysis::verify(report, style))?;
    Ok(status(!report.wrong.is_empty(), &report.losses))
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
        let arguments = parsed.unwrap_or_else(|error| panic!("{command}: {error}"));
        arguments.command.unwrap_or_else(|| panic!("{command}: names no command"))
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
