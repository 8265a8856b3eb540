//! Arguments of `kwab symbols`: what is kept in the user's store of images.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Arguments of `kwab symbols`.
#[derive(Debug, Args)]
pub(crate) struct Symbols {
    #[command(subcommand)]
    pub what: StoreCommand,
}

/// What is done with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Keep images by their build-ids, with compressed debug sections.
    Add {
        /// ELF images, directories and initramfs archives with some.
        #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
        paths: Vec<PathBuf>,
        /// Print the result as JSON; `kwab schema` prints its schema.
        #[arg(long)]
        json: bool,
    },
    /// Write small symbol files for one dump, into a folder beside it where every command finds them: all names and
    /// unwind tables, lines and variables of the functions that its stacks can pass, and statics with their types.
    Slim {
        /// A dump; its images are found as by other commands.
        dump: PathBuf,
        /// Output directory; without it `symbols` beside the dump.
        #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: Option<PathBuf>,
        /// File, directory or initramfs with images; may be given several times.
        #[arg(long, value_name = "PATH")]
        symbols: Vec<PathBuf>,
        /// Directory above source files, which their paths lose; may be given several times.
        #[arg(long, value_name = "DIR")]
        source: Vec<PathBuf>,
        /// Overwrite existing files.
        #[arg(short, long)]
        force: bool,
        /// Print the result as JSON; `kwab schema` prints its schema.
        #[arg(long)]
        json: bool,
    },
    /// Write a copy of a dump that carries such small symbol files itself.
    Embed {
        /// A dump; its images are found as by other commands.
        dump: PathBuf,
        /// Output file; `-` is stdout.
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: PathBuf,
        /// Carry the images whole, with types and all lines, not the small files.
        #[arg(long)]
        whole: bool,
        /// File, directory or initramfs with images; may be given several times.
        #[arg(long, value_name = "PATH")]
        symbols: Vec<PathBuf>,
        /// Directory above source files, which their paths lose; may be given several times.
        #[arg(long, value_name = "DIR")]
        source: Vec<PathBuf>,
        /// Overwrite an existing file.
        #[arg(short, long)]
        force: bool,
        /// Print the result as JSON; `kwab schema` prints its schema.
        #[arg(long)]
        json: bool,
    },
    /// List the images, the latest first.
    List {
        /// Print the result as JSON; `kwab schema` prints its schema.
        #[arg(long)]
        json: bool,
    },
    /// Remove the images that were added first, until the rest fits.
    Prune {
        /// Total size of the images to keep, such as 500M or 2G.
        #[arg(long, value_name = "SIZE", value_parser = crate::since::size)]
        max_size: u64,
        /// Remove them; without it, only print what would be removed.
        #[arg(long)]
        yes: bool,
        /// Print the result as JSON; `kwab schema` prints its schema.
        #[arg(long)]
        json: bool,
    },
}
