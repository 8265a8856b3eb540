//! Arguments of `kwab follow`, which reads a console while it is written.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `kwab follow`.
#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// A file that grows, a FIFO, a terminal or a Unix socket; tcp:127.0.0.1:PORT; - is stdin.
    #[arg(value_name = "SOURCE", required_unless_present = "exec")]
    pub source: Option<PathBuf>,
    /// Run this command and follow what it prints; words as a shell splits them, without a shell.
    #[arg(long, value_name = "COMMAND", conflicts_with = "source")]
    pub exec: Option<String>,
    /// Directory of the dumps; it is made when it is absent.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
    /// Lines of log to keep before each crash, at least.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub before: u32,
    /// Milliseconds of silence that end a crash report without a closing line.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(50..=600_000))]
    pub quiet_after: u64,
    /// Report it, and keep the last lines, when the console is silent for this long.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub silence: Option<u64>,
    /// Run this command for each crash with its dump as last argument, and for silence; no shell is involved.
    #[arg(long, value_name = "COMMAND")]
    pub on_crash: Option<String>,
    /// End after the first crash, or when the console has fallen silent.
    #[arg(long)]
    pub once: bool,
    /// Wait for a socket that is not there yet, and connect again when it closes: the machine is started again.
    #[arg(long, conflicts_with = "exec")]
    pub reconnect: bool,
    /// Keep the last lines in a dump while nothing has crashed too: NAME-live.kwab, at most a second old.
    #[arg(long)]
    pub live: bool,
    /// Follow only what is added to a file from now on.
    #[arg(long)]
    pub new: bool,
    /// TOML file with further dialects of kernels' crash reports (kwab import --help).
    #[arg(long, value_name = "FILE")]
    pub dialects: Option<PathBuf>,
    /// Print one line of JSON per event; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}
