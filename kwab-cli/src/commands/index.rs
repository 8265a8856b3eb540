//! `kwab index DIR [--index FILE] [--json]`
//!
//! Keeps what `kwab list` shows of each dump below a directory in an SQLite file, `.kwab-index.db` in the directory or
//! the one that `--index` names, with its hypotheses, the kernel's build-id and commit, and the key of its group. Only
//! files whose length, time of modification or inode differ are read again; those that vanished are removed. Files
//! that are damaged or no dumps are rows that say so. It may be interrupted, and run twice at once.
//! Status 0: up to date; 2: the directory or the index cannot be used.

use std::process::ExitCode;

use anyhow::Result;

use crate::catalogue;
use crate::cli::Index;
use crate::failure::{about_folder, shown};
use crate::output;

/// Runs the command.
pub(crate) fn run(arguments: &Index) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::read_dir(folder).map_err(|error| about_folder(folder, &error))?;
    let index = catalogue::index_of(folder, arguments.index.as_deref());
    let done = catalogue::refresh(folder, &index)?;
    output::beside(&done)?;
    if arguments.json {
        output::json(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    let catalogue::Changes { read, kept, removed, .. } = done;
    output::text(&format!("{}: {read} files read, {kept} unchanged, {removed} removed\n", shown(&index)))?;
    Ok(ExitCode::SUCCESS)
}
