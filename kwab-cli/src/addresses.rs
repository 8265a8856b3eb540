//! What can be asked about addresses: where one leads, what it is, where bytes are.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::analyses::{SymbolOptions, Which};

/// An address or number: hexadecimal behind `0x`, otherwise decimal.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    parsed.map_err(|_| "expected a number of 64 bits, as 0xffffffff80001000 or 4096".to_owned())
}

/// Which address space.
#[derive(Debug, Clone, Copy, Args)]
#[group(multiple = false)]
pub(crate) struct SpaceOptions {
    /// The address space of this process; without any of the three, that of the death.
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The address space that this processor had loaded.
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// The address space with this page-table root: a physical address, as in CR3.
    #[arg(long, value_name = "ADDRESS", value_parser = number)]
    pub cr3: Option<u64>,
}

/// Arguments of `kwab translate`.
#[derive(Debug, Args)]
pub(crate) struct Translate {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    /// The virtual address.
    #[arg(value_name = "ADDRESS", value_parser = number)]
    pub address: u64,
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub space: SpaceOptions,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// How a pattern is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PatternForm {
    /// Text, its bytes as they are.
    Text,
    /// Pairs of hexadecimal digits.
    Hex,
    /// A number of 64 bits, at multiples of 8.
    Pointer,
}

/// Arguments of `kwab search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    /// What to search for: a pointer when it begins with 0x, otherwise text.
    pub pattern: String,
    #[command(flatten)]
    pub which: Which,
    /// How to read the pattern.
    #[arg(long = "as", value_enum, value_name = "FORM")]
    pub form: Option<PatternForm>,
    /// Only hits at multiples of this many bytes.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub align: Option<u64>,
    /// Hits to list; all are counted.
    #[arg(short = 'n', long, default_value_t = 32, value_name = "N")]
    pub rows: usize,
    #[command(flatten)]
    pub symbols: SymbolOptions,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab whatis`.
#[derive(Debug, Args)]
pub(crate) struct Whatis {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    /// The address to look up.
    #[arg(value_name = "ADDRESS", value_parser = number)]
    pub address: u64,
    #[command(flatten)]
    pub which: Which,
    /// The address is a physical one.
    #[arg(long, conflicts_with_all = ["pid", "cpu", "cr3"])]
    pub physical: bool,
    #[command(flatten)]
    pub space: SpaceOptions,
    #[command(flatten)]
    pub symbols: SymbolOptions,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `kwab print`.
#[derive(Debug, Args)]
pub(crate) struct Print {
    /// The dump; - is stdin.
    pub dump: PathBuf,
    /// A variable of the frame or a static, and the way to a part: `*task.files[3].name`; without it all variables of
    /// the frame.
    #[arg(value_name = "EXPRESSION")]
    pub expression: Option<String>,
    #[command(flatten)]
    pub which: Which,
    /// The frame, 0 innermost.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub frame: usize,
    /// The stack of this thread; without it that of the death. 0 is the idle thread of a processor, of several that of
    /// the one that --cpu names.
    #[arg(long, value_name = "TID")]
    pub task: Option<u32>,
    #[command(flatten)]
    pub space: SpaceOptions,
    /// Levels of fields within fields.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub depth: u8,
    /// Elements of an array or slice.
    #[arg(short = 'n', long, default_value_t = 16, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub rows: u16,
    #[command(flatten)]
    pub symbols: SymbolOptions,
    /// Print the result as JSON; `kwab schema` prints its schema.
    #[arg(long)]
    pub json: bool,
}
