//! Cuts lines at the marks of events: the second stage of an import.
//!
//! A token is either the text up to the next mark, or a mark and everything behind it on its line. Where an event ends
//! is known only to its reader, so the reader says with the next [`Tokens::advance`] how much of a token it took; the
//! rest of the line is cut again.

use std::io::{self, Read};

use memchr::memmem::Finder;

use super::lines::{Lines, LogPosition};
use super::scout::Scout;

/// How an event begins.
pub const MARK: &[u8] = b"DBG {";
/// How a line of an armoured dump begins.
pub const ARMOUR: &[u8] = b"KW1:";
/// A terminal reset: it comes from firmware or a starting kernel, and what follows it is a line of its own.
pub const RESET: &[u8] = b"\x1bc";

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// An event's mark and the rest of the line.
    Event,
    /// Text up to the next mark or the end of the line.
    Text,
}

/// A piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind,
    /// Bytes of the token.
    pub bytes: &'a [u8],
    /// What has been read from its first byte on.
    pub ahead: &'a [u8],
    /// Where its first byte stands.
    pub position: LogPosition,
    /// Where its line begins.
    pub line: LogPosition,
    /// Whether a line end follows its last byte.
    pub ends_line: bool,
    /// Whether armour or the reset of a terminal may stand in its line.
    pub mixed: bool,
}

/// A cursor over the tokens of a stream.
#[derive(Debug)]
pub struct Tokens<R> {
    lines: Lines<R>,
    /// The current token: its first byte in the line, and the byte behind it.
    at: usize,
    end: usize,
    /// Length of the current line.
    len: usize,
    kind: TokenKind,
    mark: Finder<'static>,
    marks: Scout,
    armour: Scout,
    resets: Scout,
    mixed: bool,
}

impl<R: Read> Tokens<R> {
    /// Cuts the lines of a log into tokens.
    pub fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            at: 0,
            end: 0,
            len: 0,
            kind: TokenKind::Text,
            mark: Finder::new(MARK),
            marks: Scout::new(MARK),
            armour: Scout::new(ARMOUR),
            resets: Scout::new(RESET),
            mixed: false,
        }
    }

    /// Steps over `taken` bytes of the current token and goes to the next; `false` at the end of the stream.
    ///
    /// # Errors
    /// Those of the stream.
    #[inline(always)]
    pub fn advance(&mut self, taken: usize) -> io::Result<bool> {
        self.at += taken;
        if self.at >= self.len {
            (self.at, self.len) = (0, 0);
            if !self.lines.advance()? {
                return Ok(false);
            }
            let bytes = self.lines.line().bytes;
            self.len = bytes.len();
            if bytes.starts_with(MARK) {
                self.kind = TokenKind::Event;
                self.end = self.len;
                self.mixed = true;
                return Ok(true);
            }
            self.mixed = self.armour.may_stand_in(&self.lines) || self.resets.may_stand_in(&self.lines);
            if !self.marks.may_stand_in(&self.lines) {
                (self.kind, self.end) = (TokenKind::Text, self.len);
                return Ok(true);
            }
        }
        self.cut();
        Ok(true)
    }

    fn cut(&mut self) {
        let mark = self.next_mark(self.at);
        (self.kind, self.end) =
            if mark > self.at || mark == self.len { (TokenKind::Text, mark) } else { (TokenKind::Event, self.len) };
    }

    /// Where in the current line, from byte `from` on, the next mark stands; its length when there is none.
    fn next_mark(&self, from: usize) -> usize {
        let bytes = self.lines.line().bytes;
        bytes.get(from..).and_then(|rest| self.mark.find(rest)).map_or(bytes.len(), |found| from + found)
    }

    /// The current token; an empty text before the first [`Tokens::advance`].
    #[inline(always)]
    pub fn token(&self) -> Token<'_> {
        let line = self.lines.line();
        let position = LogPosition { offset: line.offset + self.at as u64, line: line.number };
        Token {
            kind: self.kind,
            bytes: line.bytes.get(self.at..self.end).unwrap_or_default(),
            ahead: self.lines.ahead().get(self.at..).unwrap_or_default(),
            position,
            line: LogPosition { offset: line.offset, line: line.number },
            ends_line: line.ended && self.end == self.len,
            mixed: self.mixed,
        }
    }

    /// Length of the current event token up to the mark behind its own.
    pub fn until_next_mark(&self) -> usize {
        self.next_mark(self.at + MARK.len()) - self.at
    }

    /// What has been read behind [`Self::end`] ([`Lines::look_ahead`]).
    ///
    /// # Errors
    /// Those of the stream.
    pub fn look_ahead(&mut self) -> io::Result<&[u8]> {
        self.lines.look_ahead()
    }

    /// Where the stream has been cut up to.
    #[inline]
    pub fn end(&self) -> LogPosition {
        self.lines.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tokens; of an event token, `take` bytes are taken.
    fn all(input: &[u8], take: impl Fn(&Token<'_>) -> usize) -> Vec<(TokenKind, String, u64, bool)> {
        let mut tokens = Tokens::new(Lines::new(input));
        let mut out = Vec::new();
        let mut taken = 0;
        while tokens.advance(taken).expect("a slice does not fail") {
            let token = tokens.token();
            taken = if token.kind == TokenKind::Event { take(&token) } else { token.bytes.len() };
            let text = String::from_utf8_lossy(&token.bytes[..taken]).into_owned();
            out.push((token.kind, text, token.position.offset, token.ends_line));
        }
        out
    }

    #[test]
    fn text_and_events_of_one_line_are_cut_at_the_marks() {
        use TokenKind::{Event, Text};
        let close = |token: &Token<'_>| token.bytes.iter().position(|byte| *byte == b'}').map_or(0, |at| at + 1);
        let found = all(b"a\n\nxDBG {1}DBG {2} y\nDBG {3}\nz", close);
        let expected = [
            (Text, "a", 0, true),
            (Text, "", 2, true),
            (Text, "x", 3, false),
            (Event, "DBG {1}", 4, true),
            (Event, "DBG {2}", 11, true),
            (Text, " y", 18, true),
            (Event, "DBG {3}", 21, true),
            (Text, "z", 29, false),
        ];
        assert_eq!(found, expected.map(|(kind, text, at, ends)| (kind, text.to_owned(), at, ends)));
    }

    #[test]
    fn an_event_token_holds_marks_inside_it_and_knows_where_the_next_one_is() {
        let mut tokens = Tokens::new(Lines::new(&b"DBG {\"a\":\"DBG {\"} b\n"[..]));
        assert!(tokens.advance(0).expect("a slice does not fail"));
        assert_eq!(tokens.token().bytes, b"DBG {\"a\":\"DBG {\"} b");
        assert_eq!(tokens.until_next_mark(), 10);
        assert!(tokens.advance(17).expect("a slice does not fail"));
        assert_eq!(tokens.token().bytes, b" b");
        assert!(!tokens.advance(2).expect("a slice does not fail"));
        assert_eq!(tokens.end(), LogPosition { offset: 20, line: 2 });
    }
}
