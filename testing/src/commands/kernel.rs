//! `cargo xtask kernel [--safety PROFILE]`: builds our kernel for the bare machine and prints the ELF's path.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::kernel::{self, Safety};

/// The arguments of `cargo xtask kernel`.
#[derive(Debug, Args)]
pub struct KernelArguments {
    /// How much it checks itself.
    #[arg(long, value_enum, default_value_t)]
    safety: Safety,
}

/// Runs the command.
pub fn run(arguments: &KernelArguments) -> Result<ExitCode> {
    println!("{}", kernel::build_with(arguments.safety)?.display());
    Ok(ExitCode::SUCCESS)
}
