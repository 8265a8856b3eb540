//! Arguments of the commands that write completions and manual pages.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `kwab completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell to write completions for.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Arguments of `kwab man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory for one page per command; without it the main page goes to stdout.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Overwrite existing pages.
    #[arg(short, long, requires = "output")]
    pub force: bool,
}
