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
