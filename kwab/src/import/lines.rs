//! Cuts a stream of any size into lines, holding one window of it in memory: the first stage of an import.
//!
//! A line is what lies between two `\n`; a final line without one is a line too. A line longer than [`MAX_LINE`] comes
//! in pieces of that size, so that a gigabyte without a newline costs no more memory than any other log: each piece but
//! the first says that it continues its predecessor. Offsets are in bytes from the start of the stream, lines count
//! from 1.

use std::io::{self, Read};

use serde::Serialize;

/// The longest line that is looked at as one: the longest event of a real log is a few kilobytes.
pub const MAX_LINE: usize = 1 << 20;
/// Bytes asked of the stream at once.
const READ_SIZE: usize = 512 << 10;

/// The position of a piece of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LogPosition {
    /// Offset of its first byte in the log.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
}

/// One line, or a piece of an overlong one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The bytes without the line end; a `\r` before it is kept, the reader of the line decides.
    pub bytes: &'a [u8],
    /// Offset of the first byte in the stream.
    pub offset: u64,
    /// Number of the line, from 1.
    pub number: u64,
    /// Whether the bytes continue the piece before.
    pub continued: bool,
    /// Whether a line end follows; false for the last line of a stream that stops inside one, and for pieces.
    pub ended: bool,
}

/// The window over the stream.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    window: Vec<u8>,
    /// The part of the window that has been read, from the first byte of the current line on.
    start: usize,
    end: usize,
    /// Offset in the stream of `window[start]`.
    offset: u64,
    number: u64,
    continued: bool,
    finished: bool,
    /// Length of the current line, and whether a line end follows it.
    len: usize,
    ended: bool,
}

impl<R: Read> Lines<R> {
    /// Starts at the current position of `input`, which is called offset 0.
    pub fn new(input: R) -> Self {
        Self {
            input,
            window: vec![0; MAX_LINE + READ_SIZE],
            start: 0,
            end: 0,
            offset: 0,
            number: 1,
            continued: false,
            finished: false,
            len: 0,
            ended: false,
        }
    }

    /// Starts in the middle of a log: `input` goes on at `position`.
    pub fn starting_at(input: R, position: LogPosition) -> Self {
        Self { offset: position.offset, number: position.line, ..Self::new(input) }
    }

    /// Where the lines up to the current one end: bytes handed out, line ends included, and the line that comes next.
    #[inline]
    pub fn end(&self) -> LogPosition {
        let taken = self.len + usize::from(self.ended);
        let begun = !self.ended && (self.len > 0 || self.continued);
        LogPosition { offset: self.offset + taken as u64, line: self.number + u64::from(self.ended) + u64::from(begun) }
    }

    /// Goes to the next line; `false` at the end, where the current line is empty.
    ///
    /// # Errors
    /// Those of the stream; an interrupted read is tried again.
    #[inline]
    pub fn advance(&mut self) -> io::Result<bool> {
        let taken = self.len + usize::from(self.ended);
        self.start += taken;
        self.offset += taken as u64;
        self.number += u64::from(self.ended);
        // A line that was handed out in part or without its end goes on; the state before the first has neither.
        self.continued = !self.ended && (self.len > 0 || self.continued);
        (self.len, self.ended) = (0, false);
        let Some((len, ended)) = self.find_end()? else { return Ok(false) };
        (self.len, self.ended) = (len, ended);
        Ok(true)
    }

    /// The current line; an empty one before the first [`Lines::advance`].
    #[inline(always)]
    pub fn line(&self) -> Line<'_> {
        Line {
            bytes: self.window.get(self.start..self.start + self.len).unwrap_or_default(),
            offset: self.offset,
            number: self.number,
            continued: self.continued,
            ended: self.ended,
        }
    }

    /// What has been read from the first byte of the current line on: the line, its end, and what lies behind it.
    #[inline]
    pub fn ahead(&self) -> &[u8] {
        self.window.get(self.start..self.end).unwrap_or_default()
    }

    /// What has been read behind the current line; nothing has been before the first, so that this reads once.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn look_ahead(&mut self) -> io::Result<&[u8]> {
        if self.end == 0 && !self.finished {
            self.fill()?;
        }
        let taken = self.len + usize::from(self.ended);
        Ok(self.window.get(self.start + taken..self.end).unwrap_or_default())
    }

    /// Length of the next line and whether a line end follows it.
    #[inline]
    fn find_end(&mut self) -> io::Result<Option<(usize, bool)>> {
        let mut searched = 0;
        loop {
            let pending = &self.window[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &pending[searched..]) {
                let len = searched + at;
                return Ok(Some(if len > MAX_LINE { (MAX_LINE, false) } else { (len, true) }));
            }
            searched = pending.len();
            if searched >= MAX_LINE {
                return Ok(Some((MAX_LINE, false)));
            }
            if self.finished {
                return Ok((searched > 0).then_some((searched, false)));
            }
            self.fill()?;
        }
    }

    /// Reads once more behind what is pending, moving that to the front first when room is short.
    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        if self.window.len() - self.end < READ_SIZE {
            self.window.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        loop {
            match self.input.read(&mut self.window[self.end..]) {
                Ok(0) => self.finished = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<(Vec<u8>, u64, u64, bool, bool)> {
        let mut lines = Lines::new(input);
        let mut out = Vec::new();
        while lines.advance().expect("a slice does not fail") {
            let line = lines.line();
            out.push((line.bytes.to_vec(), line.offset, line.number, line.continued, line.ended));
        }
        out
    }

    #[test]
    fn lines_know_their_place_and_the_last_needs_no_line_end() {
        assert_eq!(
            all(b"a\n\nbc\r\nd"),
            [
                (b"a".to_vec(), 0, 1, false, true),
                (b"".to_vec(), 2, 2, false, true),
                (b"bc\r".to_vec(), 3, 3, false, true),
                (b"d".to_vec(), 7, 4, false, false),
            ]
        );
        assert!(all(b"").is_empty());
    }

    #[test]
    fn a_line_of_three_megabytes_comes_in_pieces_that_say_so() {
        let mut input = vec![b'x'; 3 * MAX_LINE + 5];
        input.extend_from_slice(b"\nnext\n");
        let pieces = all(&input);
        assert_eq!(pieces.iter().map(|piece| piece.0.len()).collect::<Vec<_>>(), [MAX_LINE, MAX_LINE, MAX_LINE, 5, 4]);
        assert_eq!(pieces.iter().map(|piece| piece.3).collect::<Vec<_>>(), [false, true, true, true, false]);
        assert_eq!(pieces.iter().map(|piece| piece.2).collect::<Vec<_>>(), [1, 1, 1, 1, 2]);
        assert_eq!(pieces[4].1, 3 * MAX_LINE as u64 + 6);
    }
}
