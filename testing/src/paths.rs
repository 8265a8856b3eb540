//! Says where things are: the workspace, what cargo builds, and what is fetched or generated.
//!
//! Everything generated lies under `build/` of the workspace, which git ignores. `KWAB_CACHE` moves the part that is
//! costly to make again (downloads, built test suites) somewhere that outlives a checkout.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, fs};

use anyhow::{Context as _, Result};

/// A file that only the root of a checkout has.
const LANDMARK: &str = "testing/layers.toml";

/// The workspace's root folder, found at run time: a checkout that was copied or moved together with its `target`
/// folder works on itself, not on the directory where its programs were compiled.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let (current, program) = (env::current_dir().ok(), env::current_exe().ok());
        find_root([package.as_deref(), current.as_deref(), program.as_deref()])
            .unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")))
    });
    &ROOT
}

/// The nearest folder above the package that cargo runs, then above the current folder, then above the program itself
/// (`target` of a checkout that was moved), that is a checkout's root.
fn find_root(starts: [Option<&Path>; 3]) -> Option<PathBuf> {
    let mut above = starts.iter().flatten().flat_map(|start| start.ancestors());
    above.find(|folder| folder.join(LANDMARK).is_file()).map(Path::to_path_buf)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_checkout_cargo_runs_and_not_the_compiled_one() {
        let moved = tempfile::tempdir().unwrap();
        let (testing, other) = (moved.path().join("testing"), tempfile::tempdir().unwrap());
        fs::create_dir(&testing).unwrap();
        fs::write(moved.path().join(LANDMARK), "").unwrap();
        let program = moved.path().join("target/debug/xtask");
        let other = Some(other.path());
        assert_eq!(find_root([Some(&testing), other, None]).as_deref(), Some(moved.path()));
        assert_eq!(find_root([None, Some(&testing), None]).as_deref(), Some(moved.path()));
        assert_eq!(find_root([None, other, Some(&program)]).as_deref(), Some(moved.path()));
        assert_eq!(find_root([None, other, None]), None);
        assert_eq!(find_root([None; 3]), None);
    }
}
