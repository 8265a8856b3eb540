//! `kwab open PACK [-o DIR] [--json]`
//!
//! Restores what `kwab pack` packed as a new directory, checked against the digests in it: all of it or nothing.
//! Commands on the dump there find the images of the pack without a flag. Status 0: restored; 2: usage, I/O, or an
//! archive that is refused.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::pack::{UnpackError, unpack};

use crate::failure::{about, shown, system};
use crate::sharing::Unpack;
use crate::{inputs, output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Unpack) -> Result<ExitCode> {
    let pack = &arguments.pack;
    let to = arguments.output.clone().unwrap_or_else(|| named_after(pack));
    if to.as_os_str().is_empty() {
        bail!("{}: name the directory with -o", shown(pack));
    }
    let file = inputs::open(pack).map_err(|error| about(pack, system(&error)))?;
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Err(about(pack, "is not a regular file"));
    }
    let manifest = unpack(file, &to).map_err(|error| match error {
        UnpackError::Io(error) => about(&to, system(&error)),
        UnpackError::Exists => about(&to, UnpackError::Exists),
        error => about(pack, error),
    })?;
    output::beside(&manifest)?;
    if arguments.json {
        output::json(&manifest)?;
    } else {
        output::text(&render::pack::restored(&manifest, &to))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The name of the archive without its ending, in the current directory.
fn named_after(pack: &Path) -> PathBuf {
    PathBuf::from(pack.file_stem().filter(|_| pack.extension().is_some()).unwrap_or_default())
}
