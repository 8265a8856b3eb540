//! `cargo xtask kernel`: builds our kernel for the bare machine and prints the ELF's path.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::process::Call;
use crate::setup::{self, Consent};
use crate::{debian, paths};

/// Which kernel a command is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The kernel of this workspace.
    #[default]
    Ours,
    /// Debian's Linux.
    Linux,
}

/// Which kernels a comparison is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Selection {
    /// Both, ours first.
    #[default]
    Both,
    /// Ours alone.
    Ours,
    /// Debian's Linux alone.
    Linux,
}

impl Selection {
    /// The kernels, ours first.
    pub fn kernels(self) -> &'static [Which] {
        match self {
            Self::Both => &[Which::Ours, Which::Linux],
            Self::Ours => &[Which::Ours],
            Self::Linux => &[Which::Linux],
        }
    }
}

impl Which {
    /// The image to boot, built or fetched.
    pub fn image(self, consent: Consent) -> Result<PathBuf> {
        match self {
            Self::Ours => build(),
            Self::Linux => debian::linux(consent),
        }
    }

    /// Its name in tables and file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Linux => "linux",
        }
    }

    /// Options that every boot of it gets. Linux would otherwise wait for devices and print hundreds of lines.
    pub fn options(self) -> &'static str {
        match self {
            Self::Ours => "console=ttyS0 panic=-1",
            Self::Linux => "console=ttyS0 panic=-1 tsc=reliable",
        }
    }
}

/// Runs the command.
pub fn run() -> Result<ExitCode> {
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// Builds the kernel with its own profile and returns the ELF.
pub fn build() -> Result<PathBuf> {
    build_program("kernel", &[]).context("building our kernel (`--kernel linux` boots Debian's instead)")
}

/// Builds the second kernel that holds the machine crate's bootable tests.
pub fn build_selftest() -> Result<PathBuf> {
    build_program("selftest", &["--features", "selftest"]).context("building the machine's self tests")
}

fn build_program(name: &str, options: &[&str]) -> Result<PathBuf> {
    const TARGET: &str = "x86_64-unknown-none";
    setup::require_targets()?;
    // Captured: what the compiler warns about is clippy's step to show, not every boot's.
    Call::cargo()
        .args(["build", "--quiet", "--locked", "-p", "kernel", "--profile", "kernel", "--target", TARGET])
        .args(["--bin", name])
        .args(options)
        .folder(paths::root())
        .capture()?;
    Ok(paths::target().join(TARGET).join("kernel").join(name))
}
