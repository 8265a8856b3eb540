//! `cargo xtask gen-dumps DIR [--dumps N] [--builds N] [--of-folder N] [--seed N]`: a fleet's dumps to index.
//!
//! The same options always give the same bytes. The directory must not exist: what is there is never mixed with others.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::gendumps::{Options, generate};

/// GenDumpsArguments of `gen-dumps`.
#[derive(Debug, Args)]
pub struct GenDumpsArguments {
    /// The directory to make.
    folder: PathBuf,
    /// How many dumps.
    #[arg(long, default_value_t = 10_000)]
    dumps: u64,
    /// How many builds of the kernel they are of.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    builds: u64,
    /// Dumps of a directory.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    of_folder: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Writes the dumps.
pub fn run(arguments: &GenDumpsArguments) -> Result<ExitCode> {
    let GenDumpsArguments { folder, dumps, builds, of_folder, seed } = arguments;
    std::fs::create_dir(folder).with_context(|| format!("making {}", folder.display()))?;
    let options = Options { dumps: *dumps, builds: *builds, of_folder: *of_folder, seed: *seed };
    let bytes = generate(folder, &options)?;
    println!("{dumps} dumps, {bytes} bytes");
    Ok(ExitCode::SUCCESS)
}
