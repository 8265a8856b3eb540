//! Writes the rows that are shown as text that can be grepped and pasted: full width, one row per line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use kwab::output::{Inputs, OutputError};
use kwab::plain;

use crate::list::ListState;
use crate::text::{pad, width};
use crate::view::View;

/// Writes a text so that the file is whole or as it was; a device, a socket, a symbolic link or one of `inputs` is
/// never replaced.
///
/// # Errors
/// Why there is no such file, in a few words.
pub fn write(path: &Path, text: &str, inputs: &[PathBuf]) -> Result<(), OutputError> {
    kwab::output::replace(path, text.as_bytes(), &Inputs::of(inputs.iter().map(PathBuf::as_path)))
}

/// Rows that are looked at for the width of columns.
const MEASURED: usize = 1_000;

/// All rows that a list shows, under the names of the columns, separated by two spaces.
#[must_use]
pub fn text(view: &dyn View, list: &ListState) -> String {
    let columns = view.columns();
    let len = view.len();
    let count = list.count(len);
    let mut widths: Vec<usize> = columns.iter().map(|column| width(column.name)).collect();
    for position in 0..count.min(MEASURED) {
        let row = view.row(list.row_at(position), &list.look);
        for (known, (_, cell)) in widths.iter_mut().zip(&row.cells) {
            *known = (*known).max(width(cell));
        }
    }
    let mut out = String::new();
    if let Some(summary) = view.summary() {
        let _ = writeln!(out, "# {}", summary.text().trim_end());
    }
    if !list.filter.is_empty() {
        let _ = writeln!(out, "# filter: {}", plain::line(&list.filter));
    }
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let padded: Vec<String> = cells
            .zip(columns.iter().zip(&widths))
            .map(|(cell, of)| (plain::line(&cell).into_owned(), of))
            .map(|(cell, (column, wide))| if width(&cell) > *wide { cell } else { pad(&cell, *wide, column.right) })
            .collect();
        padded.join("  ").trim_end().to_string()
    };
    let _ = writeln!(out, "{}", line(&mut columns.iter().map(|column| column.name.to_string())));
    for position in 0..count {
        let row = view.row(list.row_at(position), &list.look);
        let _ = writeln!(out, "{}", line(&mut row.cells.into_iter().map(|cell| cell.1)));
    }
    out
}
