//! Arguments of the commands about a directory of many dumps: `kwab prune`, `kwab trends`, `kwab export --to parquet`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::since::Since;
use crate::suggested::{Suggested, tables};

/// What is compared with an index before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Look {
    /// Size, times and inode of each file.
    Files,
    /// Times of each directory: what was added, removed or renamed.
    Folders,
}

/// Arguments of `kwab export --to parquet`.
#[derive(Debug, Args)]
pub(crate) struct Tables {
    /// For parquet: catalogue (of a directory), events, calls, mappings, tasks, or a type of records.
    #[arg(long, value_name = "TABLE")]
    #[arg(value_parser = Suggested(tables), hide_possible_values = true)]
    pub table: Option<String>,
    /// For parquet: a new directory with a file per value, in folders that are named KEY=VALUE.
    #[arg(long, value_enum, value_name = "KEY")]
    pub partition: Option<Partition>,
    /// For parquet: the index of the directory; without it .kwab-index.db in the directory, if there is one.
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
}

impl Tables {
    /// Whether one of them was given.
    pub(crate) const fn is_any(&self) -> bool {
        self.table.is_some() || self.partition.is_some() || self.index.is_some()
    }
}

/// What tells the files of a partitioned catalogue apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Partition {
    /// The name of the symptom.
    Signature,
    /// The day in UTC on which it happened.
    Day,
    /// The build-id, else the commit, else the kernel.
    Build,
}

/// Arguments of `kwab prune`.
#[derive(Debug, Args)]
pub(crate) struct Prune {
    /// The directory with dumps.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Dumps to keep per signature, and of each bug behind it: the first, and the newest of the rest.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub keep: Option<u32>,
    /// Total size of the dumps to keep, such as 500M or 10G; the oldest are removed.
    #[arg(long, value_name = "SIZE", value_parser = crate::since::size)]
    pub max_size: Option<u64>,
    /// Remove them; without it, only print what would be removed.
    #[arg(long)]
    pub yes: bool,
    /// The index; without it .kwab-index.db in the directory.
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
    /// Name every file.
    #[arg(short, long)]
    pub wide: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab trends`.
#[derive(Debug, Args)]
pub(crate) struct Trends {
    /// The directory with dumps.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Count only dumps that happened since then: 2026-11-25, 2026-11-25T14:30:00Z, or an age as 90m, 36h, 14d.
    #[arg(long, value_name = "WHEN")]
    pub since: Option<Since>,
    /// The index of the directory; without it .kwab-index.db in the directory, if there is one.
    #[arg(long, value_name = "FILE")]
    pub index: Option<PathBuf>,
    /// What is compared with an index before it answers; without it each file of up to 10,000, else directories.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub check: Option<Look>,
    /// Show every build, and do not cut rows at the width of the terminal.
    #[arg(short, long)]
    pub wide: bool,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}
