//! `kwab FILE|LOG|DIR…`
//!
//! Does what fits: judges one dump or serial log as `kwab triage` does; opens `kwab tui` on a directory or on several
//! dumps, and prints `kwab list` of them when one is a log, or stdin or stdout not a terminal. The status is that of
//! the command.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{CommandFactory as _, Parser as _};

use super::log::Beginning;
use crate::cli::Arguments;
use crate::failure::{is_stdio, shown};

/// Runs the command that fits the paths.
pub(super) fn run(given: Arguments) -> Result<ExitCode> {
    let paths = given.paths;
    if let [name, others @ ..] = paths.as_slice()
        && !is_stdio(name)
        && !name.exists()
        && (others.is_empty() || is_word(name))
    {
        bail!(unknown(name));
    }
    let command = match (paths.as_slice(), browses(&paths)) {
        ([path], _) if !path.is_dir() => "triage",
        (_, true) => "tui",
        (_, false) => "list",
    };
    let words = ["kwab", command, "--"].map(PathBuf::from).into_iter().chain(paths);
    let mut arguments = Arguments::try_parse_from(words)?;
    (arguments.color, arguments.max_mem) = (given.color, given.max_mem);
    super::run(arguments)
}

/// Whether the interface opens for these paths: it browses dumps, not logs.
pub(super) fn browses(paths: &[PathBuf]) -> bool {
    let many = paths.len() > 1 || paths.first().is_some_and(|path| path.is_dir());
    many && io::stdin().is_terminal() && io::stdout().is_terminal() && !paths.iter().any(|path| is_log(path))
}

/// Whether a file begins as no dump does.
fn is_log(path: &Path) -> bool {
    path.is_file() && matches!(super::log::beginning(path), Ok(Beginning::Other(_)))
}

/// Whether a name may have been meant for a command: dumps and logs have a folder or an ending.
fn is_word(name: &Path) -> bool {
    !shown(name).contains(['/', '.'])
}

/// What to say of a word that is neither a file nor a command.
fn unknown(name: &Path) -> String {
    let (name, is_word) = (shown(name), is_word(name));
    if !is_word {
        return format!("{name}: no such file or directory");
    }
    let commands = Arguments::command();
    let names = commands.get_subcommands().map(clap::Command::get_name);
    let near = names.max_by(|a, b| strsim::jaro(a, &name).total_cmp(&strsim::jaro(b, &name)));
    match near.filter(|near| strsim::jaro(near, &name) > 0.7) {
        Some(near) => format!("{name}: no such file or command; did you mean kwab {near}?"),
        None => format!("{name}: no such file or command; kwab --help lists the commands"),
    }
}
