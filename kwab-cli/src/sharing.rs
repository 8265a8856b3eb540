//! Arguments of what is done with dumps before they leave a machine: `kwab redact`, `kwab pack`, `kwab doctor`.

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
    /// List each field, what it may hold and what happens to it, and exit.
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

/// Arguments of `kwab pack`.
#[derive(Debug, Args)]
pub(crate) struct Pack {
    /// The dump; with --redact a serial log too.
    #[arg(value_hint = ValueHint::FilePath)]
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Output file, a ZIP archive; - is stdout.
    #[arg(short, long, value_name = "PACK.zip", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// File, directory or initramfs with images; may be given several times. What this workspace built is found
    /// without it.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub symbols: Vec<PathBuf>,
    /// A file that the machine was given: initramfs, disk, test; may be given several times.
    #[arg(long = "input", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub inputs: Vec<PathBuf>,
    /// The command that ran the machine.
    #[arg(long, value_name = "COMMAND")]
    pub qemu: Option<String>,
    /// Pack the dump redacted, by this policy.
    #[arg(long, value_enum, value_name = "POLICY")]
    pub redact: Option<Keep>,
    /// Overwrite an existing file.
    #[arg(short, long)]
    pub force: bool,
    /// Print the list of the pack as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab open`.
#[derive(Debug, Args)]
pub(crate) struct Unpack {
    /// The archive that kwab pack made.
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pub pack: PathBuf,
    /// The directory to make; without it the archive's name without its ending, in the current directory.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// Print the list of the pack as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}
