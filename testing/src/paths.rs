//! Says where things are: the workspace, what cargo builds, and what is fetched or generated.
//!
//! Everything generated lies under `build/` of the workspace, which git ignores. `KWAB_CACHE` moves the part that is
//! costly to make again (downloads, built test suites) somewhere that outlives a checkout.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context as _, Result};

/// The workspace's root folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where cargo puts what it builds, as cargo itself decides it.
pub fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A folder for generated files of one kind (`build/<name>`), created when missing.
pub fn build(name: &str) -> Result<PathBuf> {
    created(root().join("build").join(name))
}

/// A folder for fetched things, created when missing: `$KWAB_CACHE/<name>` or `build/cache/<name>`.
pub fn cache(name: &str) -> Result<PathBuf> {
    let base = env::var_os("KWAB_CACHE").map_or_else(|| root().join("build/cache"), |folder| root().join(folder));
    created(base.join(name))
}

/// A path as a user reads it: relative to the workspace where that is possible.
pub fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Reads a text file, naming it in the error.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", shown(path)))
}

/// Writes a file by way of a temporary beside it, so that no reader sees half of it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = part(path);
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| format!("cannot write {}", shown(path)))
}

/// The name under which a file is made before it takes its place: its own with this process's id behind it.
pub fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".part-{}", std::process::id()));
    name.into()
}

fn created(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", shown(&folder)))?;
    Ok(folder)
}
