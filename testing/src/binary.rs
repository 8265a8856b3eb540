//! Builds the program `kwab` that the judges run.

use std::path::PathBuf;

use anyhow::Result;

use crate::paths;
use crate::process::Call;

/// Builds `kwab` and returns the program. `testing` is chosen with it, so that the library is built with the features
/// that `cargo xtask` has it with, and only once.
pub fn kwab() -> Result<PathBuf> {
    let chosen = ["--package", "testing", "--package", "kwab-cli", "--bin", "kwab"];
    Call::cargo().args(["build", "--locked"]).args(chosen).folder(paths::root()).build("building kwab")?;
    Ok(paths::target().join("debug/kwab"))
}
