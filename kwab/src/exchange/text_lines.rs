//! Reads the text of another tool line by line, of a line as much as is looked at.

use std::io::{BufRead as _, BufReader, Read};

use crate::import::ImportError;

/// Bytes of a line; what is longer is read as several.
const LONGEST_LINE: u64 = 64 << 10;
/// Lines between two calls of `progress`.
const TOLD_EVERY: u64 = 1 << 16;

/// How far a text was read.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TextPosition {
    /// Lines, the one that is looked at among them.
    pub lines: u64,
    /// Bytes up to the end of the last of them.
    pub bytes: u64,
}

/// Calls `take` with every line; gives how far the text goes.
///
/// # Errors
/// [`ImportError::Read`] when the input fails, and what `take` gives.
pub(super) fn for_each_line(
    input: impl Read,
    progress: &mut dyn FnMut(u64),
    mut take: impl FnMut(&str, TextPosition) -> Result<(), ImportError>,
) -> Result<TextPosition, ImportError> {
    let mut input = BufReader::new(input);
    let (mut at, mut line) = (TextPosition::default(), Vec::new());
    loop {
        line.clear();
        let read = Read::take(&mut input, LONGEST_LINE).read_until(b'\n', &mut line);
        let read = read.map_err(|error| ImportError::Read { offset: at.bytes, error })?;
        if read == 0 {
            return Ok(at);
        }
        at = TextPosition { lines: at.lines + 1, bytes: at.bytes + read as u64 };
        if at.lines % TOLD_EVERY == 0 {
            progress(at.bytes);
        }
        take(&String::from_utf8_lossy(&line), at)?;
    }
}
