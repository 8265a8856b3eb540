//! `cargo xtask image [-o FILE]`: writes the base initramfs, for booting by hand.
//!
//! The file is a newc archive, the same bytes for the same sources: BusyBox with its applets, `/etc`, and our guest
//! programs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::setup::Consent;
use crate::{image, paths};

/// ImageArguments of `image`.
#[derive(Debug, Args)]
pub struct ImageArguments {
    /// Where to write it (default: build/images/base.cpio).
    #[arg(short, long)]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &ImageArguments, consent: Consent) -> Result<ExitCode> {
    let output = match &arguments.output {
        Some(file) => file.clone(),
        None => paths::build("images")?.join("base.cpio"),
    };
    let image = image::base(consent)?;
    let archive = image.archive();
    paths::write(&output, &archive)?;
    println!("{}  {} entries, {} bytes", paths::shown(&output), image.len(), archive.len());
    Ok(ExitCode::SUCCESS)
}
