//! Names the kernels that are judged, ours and Debian's Linux, and builds ours for the bare machine.
//!
//! The safety profiles are the same code with more or fewer checks (`kernel/Cargo.toml` says which); each is a cargo
//! profile of its own, so that their kernels lie side by side.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::process::Call;
use crate::setup::{self, Consent};
use crate::{debian, kept, paths};

/// Which kernel a command is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// The kernel of this workspace.
    #[default]
    Ours,
    /// Debian's Linux, the kernel of comparison.
    Linux,
}

/// How much the kernel checks itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Safety {
    /// Every check: arithmetic, assertions, poisoned frames, stack canaries, an audit of each new address space.
    Fortress,
    /// What is shipped.
    #[default]
    Balanced,
    /// Without the checks that another check repeats.
    Performance,
    /// Without any check that safe code does not need.
    Ludicrous,
}

impl Safety {
    /// All of them, the strictest first.
    pub const ALL: [Self; 4] = [Self::Fortress, Self::Balanced, Self::Performance, Self::Ludicrous];

    /// Its name in tables and options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fortress => "fortress",
            Self::Balanced => "balanced",
            Self::Performance => "performance",
            Self::Ludicrous => "ludicrous",
        }
    }

    /// The cargo profile it is built with, and the kernel's features.
    fn build(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Fortress => ("kernel-fortress", &["--features", "fortress"]),
            Self::Balanced => ("kernel", &[]),
            Self::Performance => ("kernel-performance", &["--features", "performance"]),
            // Faults cannot be planted in it.
            Self::Ludicrous => ("kernel-ludicrous", &["--no-default-features", "--features", "recorders,ludicrous"]),
        }
    }
}

/// Which kernels a comparison is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Selection {
    /// Both, ours first.
    #[default]
    Both,
    /// The kernel of this workspace alone.
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

    /// Options that every boot of it gets. On a busy host Linux would otherwise distrust an emulated timer that comes
    /// late, and give up at boot.
    pub fn options(self) -> &'static str {
        match self {
            Self::Ours => "console=ttyS0 panic=-1",
            Self::Linux => "console=ttyS0 panic=-1 tsc=reliable no_timer_check",
        }
    }
}

/// Builds the kernel with its usual checks and returns the ELF.
pub fn build() -> Result<PathBuf> {
    build_with(Safety::Balanced)
}

/// Builds the kernel of a safety profile and returns the ELF.
pub fn build_with(safety: Safety) -> Result<PathBuf> {
    let (profile, options) = safety.build();
    build_program("kernel", profile, options).context("building our kernel (`--kernel linux` boots Debian's instead)")
}

/// Builds the second kernel that holds the machine crate's bootable tests, with the checks of a safety profile.
pub fn build_selftest(safety: Safety) -> Result<PathBuf> {
    let (profile, options) = safety.build();
    let options = [options, &["--features", "selftest"]].concat();
    build_program("selftest", profile, &options).context("building the machine's self tests")
}

/// Builds the kernel without its always-on recorders, to measure what they cost, in a folder of its own: neither build
/// undoes the other.
pub fn build_without_recorders() -> Result<PathBuf> {
    let folder = paths::target().join("without-recorders");
    let option = folder.to_str().context("the build folder's name is not text")?;
    build_program("kernel", "kernel", &["--no-default-features", "--features", "inject", "--target-dir", option])
        .context("building our kernel without recorders")?;
    Ok(folder.join(stage::BARE).join("kernel").join("kernel"))
}

fn build_program(name: &str, profile: &str, options: &[&str]) -> Result<PathBuf> {
    setup::require_targets()?;
    // Captured: what the compiler warns about is clippy's step to show, not every boot's.
    Call::cargo()
        .args(stage::KERNEL)
        .args(["--profile", profile, "--bin", name])
        .args(options)
        // Incremental builds inline other functions: the figures of a bench would depend on the shell that asked.
        .env("CARGO_INCREMENTAL", "0")
        .folder(paths::root())
        .stage(&format!("building the {}", if name == "kernel" { "kernel" } else { "kernel's self tests" }))?;
    let image = paths::target().join(stage::BARE).join(profile).join(name);
    kept::keep(&image);
    Ok(image)
}
