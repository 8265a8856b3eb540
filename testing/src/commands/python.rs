//! `cargo xtask python [--release]`: builds the wheel of the Python package, installs it in a virtual environment and
//! runs its tests.
//!
//! The tools (`kwab-python/tests/requirements.txt`: maturin, pytest, mypy, pyarrow) come from PyPI into
//! `build/python/venv`, once as long as the list stays the same. The wheel lies in `build/python/wheels`; with
//! `--release` it is the one to keep, otherwise it is built without optimisation: maturin finds nothing of what is
//! built already whatever the profile, and this one takes a third of the time. The tests compare the package with
//! `kwab`, check its types and run the examples of `docs/python.md`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::process::Call;
use crate::setup::{self, Consent, Tool};
use crate::{binary, paths};

/// PythonArguments of `python`.
#[derive(Debug, Default, Args)]
pub struct PythonArguments {
    /// Build the wheel optimised, to keep it.
    #[arg(long)]
    release: bool,
}

/// Runs the command.
pub fn run(arguments: &PythonArguments, consent: Consent) -> Result<ExitCode> {
    setup::require(&[Tool::Python], consent)?;
    let package = paths::root().join("kwab-python");
    let tools = environment(&package)?;
    let program = binary::kwab()?;
    let wheel = wheel(&package, &tools, arguments.release)?;
    Call::new(tools.join("pip")).args(["install", "--quiet", "--force-reinstall", "--no-deps"]).arg(&wheel).show()?;
    let tests = Call::new(tools.join("python")).args(["-m", "pytest", "-p", "no:cacheprovider"]).folder(&package);
    tests.env("KWAB_PROGRAM", program).env("PYTHONDONTWRITEBYTECODE", "1").show()?;
    println!("{}", paths::shown(&wheel));
    Ok(ExitCode::SUCCESS)
}

/// The folder with the programs of a virtual environment that has the tools.
fn environment(package: &Path) -> Result<PathBuf> {
    let folder = paths::build("python")?.join("venv");
    let (tools, installed) = (folder.join("bin"), folder.join("installed.txt"));
    let list = package.join("tests/requirements.txt");
    let wanted = paths::read(&list)?;
    if paths::read(&installed).is_ok_and(|have| have == wanted) {
        return Ok(tools);
    }
    let make = Call::new("python3").args(["-m", "venv", "--clear"]).arg(&folder);
    make.stage("making a virtual environment").context("making a virtual environment (Debian: python3-venv)")?;
    let install = Call::new(tools.join("pip")).args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    install.arg(&list).stage("fetching the tools from PyPI").context("fetching the tools from PyPI")?;
    paths::write(&installed, wanted.as_bytes())?;
    Ok(tools)
}

/// Builds the wheel; it is alone in its folder.
fn wheel(package: &Path, tools: &Path, release: bool) -> Result<PathBuf> {
    let folder = paths::build("python/wheels")?;
    std::fs::remove_dir_all(&folder).and_then(|()| std::fs::create_dir(&folder)).context("clearing build/python")?;
    let call = Call::new(tools.join("maturin")).args(["build", "--quiet", "--locked", "--out"]).arg(&folder);
    let call = call.arg("--interpreter").arg(tools.join("python")).folder(package);
    let call = call.args(["--profile", if release { "release" } else { "quick" }]);
    call.stage("building the wheel").context("building the wheel")?;
    let mut files = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    files.find(|path| path.extension().is_some_and(|end| end == "whl")).context("maturin left no wheel")
}
