//! The last lines of a console, from a place at which everything before is known.
//!
//! Lines are kept from the last bookmark but one, so that there are always as many as were asked for and a crash can be
//! imported as if the whole log had been read.

use std::collections::VecDeque;
use std::io::{self, Read};

use crate::import::crashes::Bookmark;
use crate::import::lines::MAX_LINE;

/// Bytes of a crash with the lines before it; one that is longer is closed.
pub(super) const MOST: usize = 32 << 20;
/// Bytes of lines before a crash.
const MOST_BEFORE: usize = 4 << 20;

/// Lines with their beginning's bookmark.
#[derive(Debug)]
pub(super) struct Window {
    /// Lines between two bookmarks.
    before: usize,
    start: Bookmark,
    /// The next place the window can start at, and lines and bytes before it.
    next: Option<(Bookmark, usize, usize)>,
    lines: VecDeque<Box<[u8]>>,
    /// The line that has no end yet.
    unfinished: Vec<u8>,
    /// Bytes of `lines`.
    held: usize,
    /// Lines and bytes since the last bookmark.
    since: (usize, usize),
    /// Lines and bytes of the console so far.
    total: (u64, u64),
}

impl Window {
    /// Keeps at least `before` lines.
    pub(super) fn new(before: usize, start: Bookmark) -> Self {
        let before = before.max(1);
        let (lines, unfinished) = (VecDeque::new(), Vec::new());
        Self { before, start, next: None, lines, unfinished, held: 0, since: (0, 0), total: (0, 0) }
    }

    /// Takes from `bytes` up to the end of a line; gives the line when it is complete, or too long to wait for its end.
    pub(super) fn add(&mut self, bytes: &mut &[u8]) -> Option<Box<[u8]>> {
        let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
        let (piece, rest) = bytes.split_at(end);
        *bytes = rest;
        self.unfinished.extend_from_slice(piece);
        self.total.1 += piece.len() as u64;
        let is_line = piece.ends_with(b"\n");
        if is_line || self.unfinished.len() >= MAX_LINE { self.end_line() } else { None }
    }

    /// Ends the line that has no end yet.
    pub(super) fn end_line(&mut self) -> Option<Box<[u8]>> {
        if self.unfinished.is_empty() {
            return None;
        }
        let line: Box<[u8]> = std::mem::take(&mut self.unfinished).into_boxed_slice();
        self.held += line.len();
        self.since = (self.since.0 + 1, self.since.1 + line.len());
        self.total.0 += 1;
        self.lines.push_back(line.clone());
        Some(line)
    }

    /// Whether it is time for a bookmark.
    pub(super) fn wants_bookmark(&self) -> bool {
        self.since.0 >= self.before || self.since.1 >= MOST_BEFORE / 2
    }

    /// What comes from here on can be read without what came before: the window moves on.
    pub(super) fn bookmark(&mut self, here: Bookmark) {
        if let Some((next, lines, bytes)) = self.next.take() {
            self.lines.drain(..lines.min(self.lines.len()));
            self.held = self.held.saturating_sub(bytes);
            self.start = next;
        }
        self.next = Some((here, self.lines.len(), self.held));
        self.since = (0, 0);
    }

    /// Begins behind the last line.
    pub(super) fn begin_again(&mut self, here: Bookmark) {
        self.lines.clear();
        (self.start, self.next, self.held, self.since) = (here, None, 0, (0, 0));
    }

    /// Bytes of its lines.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Whether it has no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.held >= MOST
    }

    /// Whether it has no line.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines of the console so far.
    pub(super) fn lines(&self) -> u64 {
        self.total.0
    }

    /// Bytes of the console so far.
    pub(super) fn bytes(&self) -> u64 {
        self.total.1
    }

    /// Where the window begins.
    pub(super) fn start(&self) -> &Bookmark {
        &self.start
    }

    /// Reads its lines, and what has come of the next one.
    pub(super) fn read(&self) -> impl Read + '_ {
        let lines = self.lines.iter().map(|line| &line[..]).chain([self.unfinished.as_slice()]);
        Pieces { lines, at: &[] }
    }
}

struct Pieces<'a, I> {
    lines: I,
    at: &'a [u8],
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Pieces<'a, I> {
    fn read(&mut self, mut bytes: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while !bytes.is_empty() {
            if self.at.is_empty() {
                match self.lines.next() {
                    Some(line) => self.at = line,
                    None => break,
                }
            }
            let taken = self.at.read(bytes)?;
            count += taken;
            bytes = &mut bytes[taken..];
        }
        Ok(count)
    }
}
