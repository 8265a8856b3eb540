//! `cargo xtask demo`: a crash from its log to its page, with the commands one would type.
//!
//! It builds `kwab`, imports the serial log of a kernel that died in a socket call (`testing/data/logs`), and inspects the
//! dump. Every command is shown before it runs, so that the same can be done by hand with any other log.

use std::process::ExitCode;

use anyhow::Result;

use crate::paths;
use crate::process::Call;

/// The log that is imported: a real one.
const LOG: &str = "testing/data/logs/kevlar-panic-socket.log";

/// Runs the command.
pub fn run() -> Result<ExitCode> {
    Call::cargo().args(["build", "--quiet", "--locked", "-p", "kwab-cli"]).folder(paths::root()).show()?;
    let dump = paths::shown(&paths::build("demo")?.join("socket.kwab"));
    kwab(&["import", "--force", LOG, "-o", &dump])?;
    println!();
    kwab(&["inspect", &dump])?;
    Ok(ExitCode::SUCCESS)
}

fn kwab(words: &[&str]) -> Result<()> {
    println!("$ kwab {}", words.join(" "));
    Ok(Call::new(paths::target().join("debug/kwab")).args(words).folder(paths::root()).show()?)
}
