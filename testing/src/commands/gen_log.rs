//! `cargo xtask gen-log [-o FILE] [--size MB] [--seed N] [--dialect D] [--damage PPM] [--crashes N]`: a serial log to
//! import.
//!
//! The same options always give the same bytes. What was written is counted on stderr, for comparison with what an
//! importer accounts for.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use crate::genlog::{Dialect, Options, generate};

/// GenLogArguments of `gen-log`.
#[derive(Debug, Args)]
pub struct GenLogArguments {
    /// Where the log goes; without it, stdout.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Megabytes (of 1,000,000 bytes).
    #[arg(long, default_value_t = 500)]
    size: u64,
    /// Where the random numbers start.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How numbers are written.
    #[arg(long, value_enum, default_value_t)]
    dialect: DialectName,
    /// Lines in a million that are torn, interleaved, glued or soiled.
    #[arg(long, default_value_t = 100)]
    damage: u32,
    /// Processes that die of SIGSEGV, spread over the log.
    #[arg(long, default_value_t = 0)]
    crashes: u32,
}

/// Names of the dialects on the command line.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum DialectName {
    /// Bare hexadecimal numbers.
    Hex,
    /// JSON as RFC 8259 has it: addresses are strings.
    Json,
    /// Both in one log.
    #[default]
    Mixed,
}

/// Writes the log.
pub fn run(arguments: &GenLogArguments) -> Result<ExitCode> {
    let options = Options {
        size: arguments.size * 1_000_000,
        seed: arguments.seed,
        dialect: match arguments.dialect {
            DialectName::Hex => Dialect::Hex,
            DialectName::Json => Dialect::Json,
            DialectName::Mixed => Dialect::Mixed,
        },
        damage: arguments.damage,
        crashes: arguments.crashes,
    };
    let written = match &arguments.output {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let written = generate(&mut out, &options)?;
            out.flush()?;
            written
        }
        None => generate(&mut BufWriter::with_capacity(1 << 20, io::stdout().lock()), &options)?,
    };
    eprintln!(
        "{} bytes, {} whole events, {} torn in two, {} cut for good",
        written.bytes, written.whole, written.interleaved, written.cut
    );
    Ok(ExitCode::SUCCESS)
}
