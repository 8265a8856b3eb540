//! Builds the program `kwab` that the judges run.

use std::path::PathBuf;

use anyhow::Result;

use crate::paths;
use crate::process::Call;

/// Builds `kwab` and returns the program; nothing is built if nothing has changed since `cargo xtask` was entered.
pub fn kwab() -> Result<PathBuf> {
    let call = Call::cargo().args(["build", "--locked"]).args(stage::CHOSEN).folder(paths::root());
    call.build("building kwab")?;
    Ok(paths::target().join("debug/kwab"))
}
