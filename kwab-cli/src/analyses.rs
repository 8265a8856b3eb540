//! What the analyses and the interface over them can be asked: triage, audit of mappings, verification of pages.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::suggested::{Suggested, audit_rules};

/// The commands that draw conclusions.
#[derive(Debug, Subcommand)]
pub(crate) enum Analysis {
    /// Rank hypotheses of the cause, each with its evidence and the next command to run.
    Triage(Triage),
    /// Compare mappings, page tables and frame counts by named rules.
    AuditVm(AuditVm),
    /// Compare pages with the files behind them, and identify wrong content.
    VerifyPages(VerifyPages),
}

/// Arguments of `kwab triage`.
#[derive(Debug, Args)]
pub(crate) struct Triage {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub symbols: SymbolOptions,
    /// Initramfs or directory with the files behind the pages.
    #[arg(long, value_name = "INITRAMFS|DIR")]
    pub backing: Option<PathBuf>,
    #[command(flatten)]
    pub good: GoodBuild,
    /// Show how each score is computed.
    #[arg(long)]
    pub explain: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// A build that worked.
#[derive(Debug, Args)]
pub(crate) struct GoodBuild {
    /// An earlier build that worked, of the kernel or the program that died: a file, or a build-id in the store. What
    /// was changed since is said, those functions first that the death has to do with.
    #[arg(long = "good", value_name = "IMAGE|BUILD-ID")]
    pub image: Option<PathBuf>,
}

/// Where symbols come from.
#[derive(Debug, Args)]
pub(crate) struct SymbolOptions {
    /// File, directory or initramfs with images; may be given several times. What this workspace built
    /// (kernels, guest programs) is found by build-id without it.
    #[arg(long = "symbols", value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Use an image even if its build-id differs from the dump's.
    #[arg(long)]
    pub force: bool,
    /// Directory with sources, for source paths that do not exist on this machine; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
}

/// Arguments of `kwab audit-vm`.
#[derive(Debug, Args)]
pub(crate) struct AuditVm {
    /// The dump; - is stdin.
    #[arg(required_unless_present = "rules")]
    pub dump: Option<PathBuf>,
    #[command(flatten)]
    pub which: Which,
    /// Only these rules, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "ID,…")]
    #[arg(value_parser = Suggested(audit_rules), hide_possible_values = true)]
    pub rule: Vec<String>,
    /// List the rules and exit.
    #[arg(long)]
    pub rules: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab verify-pages`.
#[derive(Debug, Args)]
pub(crate) struct VerifyPages {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    #[command(flatten)]
    pub which: Which,
    /// Initramfs or directory with the files behind the pages.
    #[arg(long, value_name = "INITRAMFS|DIR")]
    pub backing: Option<PathBuf>,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab tui`.
#[derive(Debug, Args)]
pub(crate) struct Tui {
    /// Dumps, and directories with dumps.
    #[arg(value_name = "PATH", default_value = ".")]
    pub dumps: Vec<PathBuf>,
    /// Go to this address first.
    #[arg(long, value_name = "ADDRESS")]
    pub goto: Option<String>,
    #[command(flatten)]
    pub symbols: SymbolOptions,
    #[command(flatten)]
    pub good: GoodBuild,
    /// Initramfs or directory with the files behind the pages.
    #[arg(long, value_name = "INITRAMFS|DIR")]
    pub backing: Option<PathBuf>,
    /// Do not capture the mouse: the terminal selects text.
    #[arg(long)]
    pub no_mouse: bool,
}

/// Which dump of a file.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Which {
    /// Which dump of a file with several, counted from 1.
    #[arg(long = "dump", default_value_t = 1, value_name = "N")]
    pub number: usize,
}

/// Recorded paths of two runs, for `kwab oracle`.
#[derive(Debug, Args)]
pub(crate) struct RecordedPaths {
    /// Paths through the kernel that cargo xtask boot --paths recorded of GOOD: say where those of BAD part.
    #[arg(long, value_name = "FILE", requires = "bad_paths", requires = "symbols")]
    pub good_paths: Option<PathBuf>,
    /// The same of BAD.
    #[arg(long, value_name = "FILE", requires = "good_paths")]
    pub bad_paths: Option<PathBuf>,
    /// Paths of another run of GOOD: what differs between the two is noise; may be given several times.
    #[arg(long, value_name = "FILE", requires = "good_paths")]
    pub again_paths: Vec<PathBuf>,
    /// Image of the kernel that made GOOD, if it is another.
    #[arg(long, value_name = "KERNEL", requires = "good_paths")]
    pub good_symbols: Option<PathBuf>,
}
