//! Reads the events among the tokens of a log: the third stage of an import.
//!
//! The usual line is one event and costs one parse. Everything else goes the slow way: console text before an event,
//! several events on one line, and, through the [`Mender`], escape sequences and NULs inside, quotes that the kernel
//! forgot to escape, and events torn by another processor's output.

use std::io::{self, Read};

use kwab_format::record::Stamp;

use super::event::{EventSlot, Extra, read_event};
use super::item::LogItem;
use super::lines::{LogPosition, MAX_LINE};
use super::mend::Mender;
use super::tokens::{MARK, TokenKind, Tokens};
use crate::text::lex::Lexer;

/// Which spellings of addresses the events were seen in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spellings {
    /// Bare hexadecimal numbers.
    pub bare: bool,
    /// Hexadecimal numbers in strings, which is strict JSON.
    pub quoted: bool,
}

/// The items of a log, in its order.
#[derive(Debug)]
pub struct Events<R> {
    tokens: Tokens<R>,
    /// Bytes of the current token that are dealt with.
    taken: usize,
    scratch: Vec<u8>,
    extra: Extra,
    mender: Mender,
    spellings: Spellings,
}

impl<R: Read> Events<R> {
    /// Reads events from `tokens`, one at a time.
    pub fn new(tokens: Tokens<R>) -> Self {
        Self {
            tokens,
            taken: 0,
            scratch: vec![0; MAX_LINE],
            extra: Extra::default(),
            mender: Mender::default(),
            spellings: Spellings::default(),
        }
    }

    /// Looks at one more token and gives what it holds, an event in `slot`; `None` at the end of the log.
    ///
    /// # Errors
    /// Those of the stream.
    #[inline(always)]
    pub fn next_item<'s>(&'s mut self, slot: &mut EventSlot<'s>) -> io::Result<Option<LogItem<'s>>> {
        if self.mender.has_items() {
            return Ok(Some(self.mender.next_item(slot)));
        }
        if !self.tokens.advance(std::mem::take(&mut self.taken))? {
            return Ok(self.mender.last_item(slot));
        }
        let token = self.tokens.token();
        if token.kind == TokenKind::Text {
            self.taken = token.bytes.len();
            if self.mender.is_plain(&token) {
                let (bytes, ahead) = (token.bytes, token.ahead);
                let (position, ends_line) = (token.position, token.ends_line);
                return Ok(Some(LogItem::Text { bytes, ahead, position, ends_line }));
            }
            self.mender.text(&token);
            return Ok(Some(LogItem::Nothing));
        }
        if token.position.line & 0xff < 8 && token.position == token.line {
            self.spellings.sample(token.bytes);
        }
        let stamp = Stamp { line: Some(token.position.line), ..Stamp::default() };
        let mut lexer = Lexer::new(token.bytes, MARK.len() - 1, &mut self.scratch);
        match read_event(&mut lexer, stamp, &mut self.extra, slot) {
            Ok(()) => {
                self.taken = lexer.at();
                Ok(Some(LogItem::Event { line: token.line }))
            }
            Err(_) => {
                self.taken = self.tokens.until_next_mark();
                self.mender.torn_event(&token, self.taken, lexer.at());
                Ok(Some(LogItem::Nothing))
            }
        }
    }

    /// Where the log has been read up to.
    #[inline]
    pub fn end(&self) -> LogPosition {
        self.tokens.end()
    }

    /// What has been read of the log behind [`Self::end`]; at its beginning, what the first read gives.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn look_ahead(&mut self) -> io::Result<&[u8]> {
        self.tokens.look_ahead()
    }

    /// Events that were torn and have been put together from pieces.
    pub fn rejoined(&self) -> u64 {
        self.mender.rejoined()
    }

    /// Which spellings have been seen: a few lines in a thousand are looked at.
    pub fn spellings(&self) -> Spellings {
        self.spellings
    }
}

impl Spellings {
    #[cold]
    fn sample(&mut self, bytes: &[u8]) {
        if let Some(at) = memchr::memchr_iter(b'x', bytes).find(|at| *at > 1 && bytes[at - 1] == b'0') {
            let quoted = bytes[at - 2] == b'"';
            self.quoted |= quoted;
            self.bare |= !quoted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Lines;
    use super::*;

    /// Every item of a log in a few words.
    fn all(log: &[u8]) -> Vec<String> {
        let mut events = Events::new(Tokens::new(Lines::new(log)));
        let mut out = Vec::new();
        loop {
            let mut slot = EventSlot::default();
            let Some(item) = events.next_item(&mut slot).expect("a slice does not fail") else { break };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            match item {
                LogItem::Event { line } => {
                    out.push(format!("{} at {}", slot.kind().expect("an event").name(), line.line));
                }
                LogItem::Text { bytes, position, ends_line, .. } => {
                    out.push(format!(
                        "text {:?} at {}{}",
                        text(bytes),
                        position.offset,
                        if ends_line { "" } else { ".." }
                    ));
                }
                LogItem::Armour { chunk, line } => out.push(format!("armour {} at {}", chunk.position, line.line)),
                LogItem::Lost { kind, bytes, position, problem } => {
                    out.push(format!("lost {kind:?} {:?} at {}: {problem}", text(bytes), position.offset));
                }
                LogItem::Nothing => {}
            }
        }
        out
    }

    const EXIT: &str = r#"DBG {"type":"process_exit","pid":3,"status":0}"#;

    #[test]
    fn events_and_text_come_in_the_order_of_the_log() {
        let log = format!("booting\n{EXIT}\nprompt> {EXIT}{EXIT} tail\n\r\nlast");
        let found = all(log.as_bytes());
        let expected = [
            "text \"booting\" at 0",
            "process_exit at 2",
            "text \"prompt> \" at 55..",
            "process_exit at 3",
            "process_exit at 3",
            "text \" tail\" at 155",
            "text \"last\" at 163..",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_event_torn_by_another_line_is_put_together_and_the_line_is_kept() {
        let (front, back) = EXIT.split_at(27);
        let found = all(format!("{front}\n{back}\n").as_bytes());
        assert_eq!(found, ["process_exit at 2"]);
        let found = all(format!("{front}console\n{back}\nnext\n").as_bytes());
        assert_eq!(found, ["process_exit at 2", "text \"console\" at 27", "text \"next\" at 55"]);
    }

    #[test]
    fn an_event_whose_rest_never_comes_is_lost_with_its_place_and_the_reason() {
        let found = all(b"x\nDBG {\"type\":\"process_exit\",\"pid\":\n");
        assert_eq!(found[0], "text \"x\" at 0");
        assert!(found[1].starts_with("lost TextKind"), "{found:?}");
        assert!(found[1].ends_with("at 2: the event ends before its object does"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn escape_sequences_and_bare_quotes_inside_an_event_are_mended() {
        let found = all(b"DBG {\"type\":\"process_\x1b[0mexit\",\"pid\":3}\n");
        assert_eq!(found, ["process_exit at 1"]);
        let found = all(b"DBG {\"type\":\"process_exec\",\"pid\":3,\"argv0\":\"a \"b\" c\"}\n");
        assert_eq!(found, ["process_exec at 1"]);
    }

    #[test]
    fn spellings_are_told_from_samples() {
        let log =
            b"DBG {\"type\":\"signal\",\"pid\":1,\"ip\":0x10}\nDBG {\"type\":\"signal\",\"pid\":1,\"ip\":\"0x10\"}\n";
        let mut events = Events::new(Tokens::new(Lines::new(&log[..])));
        assert!(events.next_item(&mut EventSlot::default()).is_ok_and(|item| item.is_some()));
        assert_eq!(events.spellings(), Spellings { bare: true, quoted: false });
        assert!(events.next_item(&mut EventSlot::default()).is_ok_and(|item| item.is_some()));
        assert_eq!(events.spellings(), Spellings { bare: true, quoted: true });
    }
}
