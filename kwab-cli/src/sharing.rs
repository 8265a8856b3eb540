//! Arguments of what is done with dumps before they leave a machine: `kwab redact`, `kwab doctor`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use crate::analyses::Which;

/// Arguments of `kwab redact`.
#[derive(Debug, Args)]
pub(crate) struct Redact {
    /// A dump or serial log; - is stdin.
    #[arg(required_unless_present = "rules", value_hint = ValueHint::FilePath)]
    pub dump: Option<PathBuf>,
    #[command(flatten)]
    pub which: Which,
    /// Output file; - is stdout.
    #[arg(short, long, value_name = "FILE", required_unless_present = "rules", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// What stays of the dump.
    #[arg(long, value_enum, value_name = "POLICY", required_unless_present = "rules")]
    pub keep: Option<Keep>,
    /// List of every field what it may hold and what becomes of it, and exit.
    #[arg(long)]
    pub rules: bool,
    /// Overwrite an existing file.
    #[arg(short, long)]
    pub force: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// What stays of a redacted dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    /// The kernel's memory and names; nothing of users.
    Kernel,
    /// Kinds, sizes, addresses and how they relate; no memory, no text but fixed words.
    Structure,
}

/// Arguments of `kwab doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// An index to look at; without it .kwab-index.db in the current directory, if there is one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub index: Option<PathBuf>,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}
