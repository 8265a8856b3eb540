//! One module per command; its first lines are its manual.

mod address;
pub(crate) mod analyse;
mod bisect;
mod builds;
mod capture;
mod cat;
mod check;
mod ci;
mod diff;
mod doctor;
mod export;
mod export_other;
mod export_parquet;
mod follow;
mod import;
mod index;
mod inspect;
mod list;
mod log;
mod manual;
mod mcp;
mod open;
mod oracle;
mod pack;
mod print;
mod prune;
mod redact;
mod report;
mod salvage;
mod symbols;
mod trends;
mod tui;
mod unpack;

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::memory::read_unsized;
use kwab::model::{DumpFile, DumpsOf, OpenError};

use crate::cli::{Arguments, Command};
use crate::failure::{about, is_stdio, shown, system};
use crate::{inputs, output, pager};

/// Runs a command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    kwab::model::memory::set_limit(arguments.max_mem);
    if arguments.no_pager {
        pager::never();
    }
    if let Some(path) = &arguments.json_out {
        let reports = arguments.command.as_ref().map_or_else(|| !open::browses(&arguments.paths), Command::reports);
        if !reports {
            anyhow::bail!("--json-out: this command makes no report; kwab help says which have --json");
        }
        output::set_beside(path)?;
    }
    run_command(arguments)
}

/// The same under the limit of memory that is set already.
fn run_command(arguments: Arguments) -> Result<ExitCode> {
    let (color, max_mem) = (arguments.color, arguments.max_mem);
    let Some(command) = arguments.command else { return open::run(arguments) };
    match command {
        Command::Import(arguments) => import::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments, color),
        Command::Index(arguments) => index::run(&arguments),
        Command::Analysis(analysis) => analyse::run(&analysis, color),
        Command::Bisect(arguments) => bisect::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Ci(arguments) => ci::run(&arguments, color),
        Command::Diff(arguments) => diff::run(&arguments, color),
        Command::Follow(arguments) => follow::run(&arguments),
        Command::Oracle(arguments) => oracle::run(&arguments),
        Command::Export(arguments) if export_parquet::writes(arguments.to) => export_parquet::run(&arguments),
        Command::Export(arguments) if arguments.tables.is_any() => {
            Err(anyhow::anyhow!("--table, --partition and --index apply to the form parquet only"))
        }
        Command::Export(arguments) if export_other::writes(arguments.to) => export_other::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Translate(arguments) => address::run_translate(&arguments),
        Command::Search(arguments) => address::run_search(&arguments),
        Command::Whatis(arguments) => address::run_whatis(&arguments),
        Command::Print(arguments) => print::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Salvage(arguments) => salvage::run(&arguments),
        Command::Redact(arguments) => redact::run(&arguments),
        Command::Pack(arguments) => pack::run(&arguments),
        Command::Open(arguments) => unpack::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments, color),
        Command::List(arguments) => list::run(&arguments, color),
        Command::Trends(arguments) => trends::run(&arguments, color),
        Command::Prune(arguments) => prune::run(&arguments),
        Command::Symbols(arguments) => symbols::run(&arguments),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments, max_mem),
        Command::McpCall(arguments) => mcp::run_call(arguments),
        Command::Tui(arguments) => tui::run(&arguments, color),
        Command::Schema(arguments) => manual::schema(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    }
}

/// Whether a command runs that handles signals itself.
pub(crate) fn takes_the_terminal(arguments: &Arguments) -> bool {
    match &arguments.command {
        Some(command) => matches!(command, Command::Tui(_) | Command::Follow(_)),
        None => open::browses(&arguments.paths),
    }
}

/// Opens dump `number` of a file or of stdin, or makes it of crash `number` when that is a log; errors name the file.
///
/// A log in which nothing was recognised is refused as a text, unless a line of it announces a death.
fn open_file(path: &Path, number: usize) -> Result<DumpFile> {
    match find(path, number)? {
        log::Found::Dump(file) => Ok(file),
        log::Found::Quiet(quiet) if quiet.is_doubtful() => quiet.into_dump(path),
        log::Found::Quiet(_) => Err(not_opened(path, OpenError::Text)),
    }
}

/// The same, but a log in which nothing was recognised is not refused.
fn find(path: &Path, number: usize) -> Result<log::Found> {
    let once = |bytes: Vec<u8>| {
        let text = log::may_be(&bytes).then(|| bytes.clone());
        (DumpFile::number_of(bytes, number), text)
    };
    let (opened, text) = if is_stdio(path) {
        once(stdin().map_err(|error| not_opened(path, error))?)
    } else {
        match inputs::open_dump(path).and_then(|file| Ok((file.metadata()?.file_type(), file))) {
            // What a pipe holds can be read once only, also when it turns out to be a log.
            Ok((kind, file)) if !kind.is_file() && !kind.is_dir() => {
                once(read_unsized(file).map_err(|error| not_opened(path, error.into()))?)
            }
            Ok((_, file)) => (DumpFile::of_file(file, number), None),
            Err(error) => (Err(error.into()), None),
        }
    };
    match opened {
        Ok(file) => Ok(log::Found::Dump(file)),
        Err(
            error @ (OpenError::Text
            | OpenError::Foreign { .. }
            | OpenError::NotADump(_)
            | OpenError::NoSuchDump { .. }),
        ) => match log::crash(path, text, number)? {
            // What has the first bytes of a file format, or none that are text, is not a log for having no crash.
            Some(log::Found::Quiet(quiet)) if !matches!(error, OpenError::Text) && !quiet.is_doubtful() => {
                Err(not_opened(path, error))
            }
            Some(found) => Ok(found),
            None => Err(not_opened(path, error)),
        },
        Err(error) => Err(not_opened(path, error)),
    }
}

/// Opens every dump of a file or of stdin; errors name the file, and one that concerns the whole file is the only item.
fn open_all(path: &Path) -> impl Iterator<Item = Result<DumpFile>> {
    let opened = match is_stdio(path) {
        true => stdin().and_then(DumpsOf::within),
        false => inputs::open_dump(path).map_err(OpenError::Io).and_then(DumpsOf::of_file),
    };
    each(path, opened)
}

/// The dumps in these bytes, which were read from a pipe or stdin.
fn within(path: &Path, bytes: Vec<u8>) -> Vec<Result<DumpFile>> {
    each(path, DumpsOf::within(bytes)).collect()
}

fn each(path: &Path, opened: Result<DumpsOf, OpenError>) -> impl Iterator<Item = Result<DumpFile>> {
    let (dumps, error) = match opened {
        Ok(dumps) => (Some(dumps), None),
        Err(error) => (None, Some(Err(error))),
    };
    dumps.into_iter().flatten().chain(error).map(|dump| dump.map_err(|error| not_opened(path, error)))
}

fn stdin() -> Result<Vec<u8>, OpenError> {
    Ok(kwab::model::memory::read_stream(std::io::stdin().lock())?)
}

/// The text of a file that a person writes: a table of dialects, a baseline. More than that is not one.
fn written_text(path: &Path) -> std::io::Result<String> {
    const MOST: u64 = 16 << 20;
    let mut text = String::new();
    inputs::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(std::io::Error::other("is longer than 16 MiB"));
    }
    Ok(text)
}

fn not_opened(path: &Path, error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Io(error) => about(path, system(&error)),
        error => about(path, error),
    }
}

/// Says on stderr when a file holds more dumps than the one that is looked at.
fn tell_others(file: &DumpFile, path: &Path) {
    if file.dumps > 1 {
        let (name, number, dumps) = (shown(path), file.number, file.dumps);
        let text = format!("kwab: {name}: holds {dumps} dumps; this is dump {number} (--dump N chooses)\n");
        // Nothing can be done about a closed stderr.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
