//! Builds the program `kwab` that the judges run.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::paths;
use crate::process::Call;

/// Builds `kwab` and returns the program; nothing is built if nothing has changed since `cargo xtask` was entered.
pub fn kwab() -> Result<PathBuf> {
    let mut call = Call::cargo().args(["build", "--locked"]).args(stage::CHOSEN).folder(paths::root());
    if is_quick() {
        call = call.args(["--profile", stage::QUICK]);
    }
    call.build("building kwab")?;
    Ok(path())
}

/// Where the program lies once it is built.
pub fn path() -> PathBuf {
    paths::target().join(if is_quick() { stage::QUICK } else { "debug" }).join("kwab")
}

/// Whether this program was built with the profile of a first demonstration, and so `kwab` is.
fn is_quick() -> bool {
    let this = env::current_exe().and_then(|program| program.canonicalize());
    this.is_ok_and(|program| program.parent().and_then(Path::file_name).is_some_and(|name| name == stage::QUICK))
}
