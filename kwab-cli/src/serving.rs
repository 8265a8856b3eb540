//! Arguments of the server that language models ask (`kwab mcp`), and of the processes in which it answers.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `kwab mcp`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Directories with dumps and logs; nothing outside of them is read for a client.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// File, directory or initramfs with images; may be given several times. Clients cannot name others.
    #[arg(long, value_name = "PATH")]
    pub symbols: Vec<PathBuf>,
    /// Directory with sources; may be given several times. Lines of sources outside of it are not shown.
    #[arg(long, value_name = "DIR")]
    pub source: Vec<PathBuf>,
    /// Seconds that an answer may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Answers that are worked out at the same time; without it as many as there are processors, at most 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: Option<u16>,
}

/// Arguments of `kwab mcp-call`.
#[derive(Debug, Args)]
pub(crate) struct McpCall {
    /// The process of the server, with which this one ends.
    #[arg(long, value_name = "PID")]
    pub server: i32,
    /// A folder: the number of its descriptor, which the server handed down, and its name.
    #[arg(long, required = true, value_name = "FD=NAME")]
    pub root: Vec<String>,
    /// JSON pointer to the part of the report that is wanted.
    #[arg(long, default_value = "", value_name = "POINTER")]
    pub at: String,
    /// Elements or characters of it to pass over.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub offset: usize,
    /// Most elements or characters of it.
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Most bytes of JSON.
    #[arg(long, value_name = "N")]
    pub bytes: usize,
    /// Keys of the report that are wanted.
    #[arg(long, value_name = "KEY")]
    pub key: Vec<String>,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}
