//! Writes results: to stdout with its width and colours, or to a file that is whole or not there.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use anyhow::Result;

use crate::cli::Color;
use crate::failure::{about, system};

/// How stdout wants its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; `usize::MAX` when nothing is to be cut.
    pub width: usize,
    /// Whether to use colours.
    pub color: bool,
}

impl Style {
    /// As stdout is. A pipe is as wide as `COLUMNS` says, or 80.
    pub(crate) fn of_stdout(color: Color, wide: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
        let measured = if terminal { crossterm::terminal::size().ok().map(|size| usize::from(size.0)) } else { None };
        let width = measured.or(columns).filter(|width| *width > 0).unwrap_or(80).max(40);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        Self { width: if wide { usize::MAX } else { width }, color }
    }
}

/// Writes `body` to stdout.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| {
        // What is still in the buffer has no reader; dropping the writer must not try again.
        let _ = out.into_parts();
        anyhow::anyhow!("stdout: {}", system(&error))
    })
}

/// Writes a value as JSON to stdout.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    to_stdout(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// Writes a file through a temporary one beside it, so that it is whole or not there.
pub(crate) fn to_file(path: &Path, force: bool, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if path.is_dir() {
        return Err(about(path, "is a directory; name a file"));
    }
    if !force && path.exists() {
        return Err(about(path, "exists; --force overwrites it"));
    }
    let folder = folder_of(path);
    let temporary = kwab::import::segment::temporary(folder).map_err(|error| about(path, system(&error)))?;
    let mut out = BufWriter::with_capacity(256 << 10, temporary);
    write(&mut out).map_err(|error| about(path, system(&error)))?;
    let temporary = out.into_inner().map_err(|error| about(path, system(error.error())))?;
    let persisted = if force { temporary.persist(path) } else { temporary.persist_noclobber(path) };
    persisted.map(drop).map_err(|error| about(path, system(&error.error)))
}

/// The folder a file lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
