//! One module per command; its first lines are its manual.

pub(crate) mod analyse;
mod bisect;
mod cat;
mod check;
mod export;
mod export_other;
mod import;
mod inspect;
mod list;
mod manual;
mod salvage;
mod tui;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use kwab::model::{Depth, Dump, DumpFile, OpenError};

use crate::cli::{Arguments, Command};
use crate::failure::{about, is_stdio, system};

/// Runs a command.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode> {
    let color = arguments.color;
    match arguments.command {
        Command::Import(arguments) => import::run(&arguments),
        Command::Inspect(arguments) => inspect::run(&arguments, color),
        Command::Analysis(analysis) => analyse::run(&analysis, color),
        Command::Bisect(arguments) => bisect::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Salvage(arguments) => salvage::run(&arguments),
        Command::List(arguments) => list::run(&arguments, color),
        Command::Cat(arguments) => cat::run(&arguments),
        Command::Tui(arguments) => tui::run(&arguments, color),
        Command::Schema(arguments) => manual::schema(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
    }
}

/// Opens a dump or stdin; errors name the file.
fn open_file(path: &Path) -> Result<DumpFile> {
    let opened = if is_stdio(path) {
        let mut bytes = Vec::new();
        match std::io::stdin().lock().read_to_end(&mut bytes) {
            Ok(_) => DumpFile::from_bytes(bytes),
            Err(error) => Err(OpenError::Io(error)),
        }
    } else {
        DumpFile::open(path)
    };
    opened.map_err(|error| match error {
        OpenError::Io(error) => about(path, system(&error)),
        error => about(path, error),
    })
}

/// All bytes of a file or of stdin.
fn open_bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if is_stdio(path) {
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| about(path, system(&error)))
}

/// Opens a dump and loads as much as is asked for.
fn open(path: &Path, depth: Depth) -> Result<Dump> {
    Ok(Dump::load(open_file(path)?, depth))
}
