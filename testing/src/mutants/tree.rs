//! The scratch checkout that mutants are built in: a copy of the workspace below `build/`, with a target folder of its own.
//!
//! The working tree is only read. Files are copied when their bytes differ, so that cargo builds again no more than what
//! changed; [`Tree::build`] puts a mutation in and [`Tree::restore`] takes it out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::list::Mutant;
use crate::paths;
use crate::process::{Call, Error};
use crate::setup;

/// The cargo profile: incremental, without link-time optimisation.
const PROFILE: &str = "kernel-mutants";
const TARGET: &str = "x86_64-unknown-none";

/// What the copy needs: the workspace's own files and folders with sources.
const PARTS: &[&str] = &[
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "kernel",
    "kwab",
    "kwab-cli",
    "kwab-format",
    "kwab-tui",
    "rust-toolchain.toml",
    "testing/Cargo.toml",
    "testing/src",
];

/// Folders in them that no build of the kernel reads.
const SKIPPED: &[&str] = &["target", "fuzz"];

/// A build that takes longer is one that does not build.
const LONGEST: Duration = Duration::from_secs(600);

/// The checkout.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
    target: PathBuf,
}

impl Tree {
    /// Makes the copy, or brings the one that is there up to date.
    pub fn prepare() -> Result<Self> {
        setup::require_targets()?;
        let folder = paths::build("mutants")?;
        let tree = Self { root: folder.join("tree"), target: folder.join("target") };
        let mut wanted = BTreeSet::new();
        for part in PARTS {
            tree.copy(Path::new(part), &mut wanted)?;
        }
        tree.prune(&wanted)?;
        Ok(tree)
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn copy(&self, part: &Path, wanted: &mut BTreeSet<PathBuf>) -> Result<()> {
        let skipped = |name: &std::ffi::OsStr| SKIPPED.iter().any(|skipped| name == *skipped);
        let entries = walkdir::WalkDir::new(paths::root().join(part)).into_iter();
        for entry in entries.filter_entry(|entry| !skipped(entry.file_name())) {
            let entry = entry?;
            if !entry.file_type().is_file() {
                continue;
            }
            let name = entry.path().strip_prefix(paths::root())?.to_path_buf();
            let (from, to) = (fs::read(entry.path())?, self.root.join(&name));
            if fs::read(&to).ok().as_ref() != Some(&from) {
                fs::create_dir_all(to.parent().context("a file without a folder")?)?;
                fs::write(&to, &from).with_context(|| format!("cannot write {}", paths::shown(&to)))?;
            }
            wanted.insert(name);
        }
        Ok(())
    }

    /// Removes what is not in the workspace any more: a module file may have become a folder.
    fn prune(&self, wanted: &BTreeSet<PathBuf>) -> Result<()> {
        for entry in walkdir::WalkDir::new(&self.root) {
            let entry = entry?;
            let name = entry.path().strip_prefix(&self.root)?;
            if entry.file_type().is_file() && !wanted.contains(name) {
                fs::remove_file(entry.path())
                    .with_context(|| format!("cannot remove {}", paths::shown(entry.path())))?;
            }
        }
        Ok(())
    }

    /// Builds the kernel as it is; its ELF.
    pub fn baseline(&self) -> Result<PathBuf> {
        self.cargo().capture().context("building the kernel without a mutation")?;
        Ok(self.program())
    }

    /// Builds the kernel with a mutation; the compiler's complaint when it does not build.
    pub fn build(&self, mutant: &Mutant) -> Result<Result<PathBuf, String>> {
        let file = self.root.join(&mutant.file);
        let text = paths::read(&paths::root().join(&mutant.file))?;
        let changed = mutant.applied(&text).with_context(|| format!("{}: its place is not there", mutant.name))?;
        ensure!(changed != text, "{}: it changes nothing", mutant.name);
        fs::write(&file, changed).with_context(|| format!("cannot write {}", paths::shown(&file)))?;
        match self.cargo().capture() {
            Ok(_) => Ok(Ok(self.program())),
            Err(Error::Failed { stderr, .. }) => Ok(Err(stderr)),
            Err(error @ Error::TimedOut { .. }) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a mutation out.
    pub fn restore(&self, mutant: &Mutant) -> Result<()> {
        let to = self.root.join(&mutant.file);
        fs::copy(paths::root().join(&mutant.file), &to)
            .with_context(|| format!("cannot write {}", paths::shown(&to)))?;
        Ok(())
    }

    fn cargo(&self) -> Call {
        Call::cargo()
            .args(["build", "--quiet", "--locked", "-p", "kernel", "--profile", PROFILE, "--target", TARGET])
            .args(["--bin", "kernel"])
            .env("CARGO_TARGET_DIR", &self.target)
            .folder(&self.root)
            .limit(LONGEST)
    }

    fn program(&self) -> PathBuf {
        self.target.join(TARGET).join(PROFILE).join("kernel")
    }
}
