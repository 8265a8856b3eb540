//! `cargo xtask linux`: fetches Debian's Linux into the cache and prints the bzImage's path.

use std::process::ExitCode;

use anyhow::Result;

use crate::debian;
use crate::setup::Consent;

/// Runs the command.
pub fn run(consent: Consent) -> Result<ExitCode> {
    println!("{}", debian::linux(consent)?.display());
    Ok(ExitCode::SUCCESS)
}
