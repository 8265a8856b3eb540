//! Mends what does not read as it stands: torn events, and text that holds more than text.
//!
//! A torn event waits for its rest: the next pieces of text (at most `PATIENCE` of them) are tried as its continuation,
//! and one is taken only when the joined object reads completely. What cannot be mended is lost, with its position and
//! the reason. The results are queued, since one piece may give several items.

use std::borrow::Cow;
use std::collections::VecDeque;

use kwab_format::armour::Chunk;
use kwab_format::record::{Stamp, TextKind};
use memchr::memmem::Finder;

use super::event::{EventSlot, Extra, read_event};
use super::item::LogItem;
use super::lines::{LogPosition, MAX_LINE};
use super::text::clean;
use super::tokens::{ARMOUR, MARK, RESET, Token};
use crate::text::lex::Lexer;

/// Pieces of text that are tried as the rest of a torn event.
const PATIENCE: u32 = 8;
/// A torn event longer than this is not waited for.
const LONGEST_TORN: usize = 16 << 10;
/// How far before the failure the foreign text may have begun.
const CUTS: usize = 64;

/// An event whose rest has not come yet.
#[derive(Debug)]
struct Torn {
    bytes: Vec<u8>,
    position: LogPosition,
    /// How far it could be read.
    failed_at: usize,
    tries: u32,
}

/// An item that waits to be lent, with what it lends.
#[derive(Debug)]
enum Owned {
    Event { bytes: Vec<u8>, position: LogPosition, line: LogPosition },
    Text { bytes: Vec<u8>, position: LogPosition, ends_line: bool },
    Armour { chunk: Chunk, line: LogPosition },
    Lost { kind: TextKind, bytes: Vec<u8>, position: LogPosition, problem: Cow<'static, str> },
}

/// A piece of text and where it stands.
#[derive(Debug, Clone, Copy)]
struct TornPiece<'a> {
    bytes: &'a [u8],
    position: LogPosition,
    line: LogPosition,
    ends_line: bool,
}

impl<'a> TornPiece<'a> {
    /// The rest of it from byte `at` on.
    fn from(self, at: usize) -> Self {
        let position = LogPosition { offset: self.position.offset + at as u64, ..self.position };
        Self { bytes: self.bytes.get(at..).unwrap_or_default(), position, ..self }
    }
}

/// The torn event that waits, and the queue of what was mended.
#[derive(Debug)]
pub struct Mender {
    torn: Option<Torn>,
    queue: VecDeque<Owned>,
    /// The item that is lent.
    lent: Option<Owned>,
    armour: Finder<'static>,
    scratch: Vec<u8>,
    extra: Extra,
    rejoined: u64,
}

impl Default for Mender {
    fn default() -> Self {
        Self {
            torn: None,
            queue: VecDeque::new(),
            lent: None,
            armour: Finder::new(ARMOUR),
            scratch: Vec::new(),
            extra: Extra::default(),
            rejoined: 0,
        }
    }
}

impl Mender {
    /// Whether an item waits in the queue.
    #[inline(always)]
    pub fn has_items(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Events that have been put together from pieces.
    pub fn rejoined(&self) -> u64 {
        self.rejoined
    }

    /// The next item of the queue; an event goes into `slot`.
    #[cold]
    pub fn next_item<'s>(&'s mut self, slot: &mut EventSlot<'s>) -> LogItem<'s> {
        self.lent = self.queue.pop_front();
        match &self.lent {
            Some(Owned::Event { bytes, position, line }) => {
                match read_event(&mut lexer(bytes, &mut self.scratch), stamp(*position), &mut self.extra, slot) {
                    Ok(()) => LogItem::Event { line: *line },
                    Err(_) => LogItem::Nothing,
                }
            }
            Some(Owned::Text { bytes, position, ends_line }) => {
                LogItem::Text { bytes, ahead: &[], position: *position, ends_line: *ends_line }
            }
            Some(Owned::Armour { chunk, line }) => LogItem::Armour { chunk, line: *line },
            Some(Owned::Lost { kind, bytes, position, problem }) => {
                LogItem::Lost { kind: *kind, bytes, position: *position, problem }
            }
            None => LogItem::Nothing,
        }
    }

    /// The next item behind the end of the log: a torn event will not get its rest any more.
    pub fn last_item<'s>(&'s mut self, slot: &mut EventSlot<'s>) -> Option<LogItem<'s>> {
        self.give_up();
        self.has_items().then(|| self.next_item(slot))
    }

    /// Whether a text is console output and nothing else, the usual case.
    #[inline]
    pub fn is_plain(&self, token: &Token<'_>) -> bool {
        let bytes = token.bytes;
        let whole = !token.mixed
            || memchr::memmem::find(bytes, RESET).is_none_or(|at| at == 0) && self.armour.find(bytes).is_none();
        whole && self.torn.is_none() && !is_blank_noise(bytes)
    }

    /// Takes text that is not plain: the rest of a torn event, armoured lines, or console output.
    #[cold]
    pub fn text(&mut self, token: &Token<'_>) {
        let (bytes, position, line, ends_line) = (token.bytes, token.position, token.line, token.ends_line);
        self.piece(TornPiece { bytes, position, line, ends_line });
    }

    fn piece(&mut self, piece: TornPiece<'_>) {
        if self.torn.is_some() && self.rejoin(piece) || is_blank_noise(piece.bytes) {
            return;
        }
        if let Some(at) = memchr::memmem::find(piece.bytes, RESET).filter(|at| *at > 0) {
            self.put_text(&piece.bytes[..at], piece.position, true);
            return self.piece(piece.from(at));
        }
        if self.armour.find(piece.bytes).is_some() {
            self.armour_pieces(piece);
        } else {
            self.put_text(piece.bytes, piece.position, piece.ends_line);
        }
    }

    /// Takes the first `len` bytes of an event token, which could be read up to `failed_at`: they are cleaned, or their
    /// quotes repaired, or they wait for their rest.
    #[cold]
    pub fn torn_event(&mut self, token: &Token<'_>, len: usize, failed_at: usize) {
        let segment = token.bytes.get(..len).unwrap_or_default();
        let cleaned = clean(segment);
        let bytes = cleaned.as_deref().unwrap_or(segment);
        let mut failed_at = failed_at.min(bytes.len());
        if cleaned.is_some() {
            match self.try_event(bytes) {
                Ok(end) => return self.repaired(bytes, end, token),
                Err(at) => failed_at = at.min(bytes.len()),
            }
        }
        if let Some(repaired) = repair_strings(bytes)
            && let Ok(end) = self.try_event(&repaired)
        {
            return self.repaired(&repaired, end, token);
        }
        self.give_up();
        let torn = Torn { bytes: bytes.to_vec(), position: token.position, failed_at, tries: 0 };
        if bytes.len() <= LONGEST_TORN {
            self.torn = Some(torn);
        } else {
            self.lose(torn);
        }
    }

    /// An event that was repaired ends at `end`; what stands behind it is text.
    fn repaired(&mut self, bytes: &[u8], end: usize, token: &Token<'_>) {
        let (event, rest) = bytes.split_at(end);
        self.queue.push_back(Owned::Event { bytes: event.to_vec(), position: token.position, line: token.line });
        if !is_blank_noise(rest) {
            self.put_text(rest, token.position, false);
        }
    }

    /// Tries a piece as the rest of the torn event; `true` when it was.
    #[cold]
    fn rejoin(&mut self, piece: TornPiece<'_>) -> bool {
        let Some(mut torn) = self.torn.take() else { return false };
        torn.tries += 1;
        let cleaned = clean(piece.bytes);
        let rest = cleaned.as_deref().unwrap_or(piece.bytes);
        if rest.len() <= LONGEST_TORN && rest.contains(&b'}') {
            let first_cut = torn.failed_at.saturating_sub(CUTS).max(MARK.len());
            // The whole of what came first, then ever less of it: the tail may be another processor's text.
            let cuts =
                std::iter::once(torn.bytes.len()).chain((first_cut..=torn.failed_at.min(torn.bytes.len())).rev());
            for cut in cuts {
                for glue in [&b""[..], b"\\n"] {
                    let mut joined = [&torn.bytes[..cut], glue, rest].concat();
                    if let Ok(end) = self.try_event(&joined) {
                        let used = end - cut - glue.len();
                        joined.truncate(end);
                        self.put_rejoined(&torn, cut, joined, piece);
                        if !is_blank_noise(&rest[used..]) {
                            self.piece(TornPiece { bytes: &rest[used..], ..piece });
                        }
                        return true;
                    }
                }
            }
        }
        if torn.tries < PATIENCE {
            self.torn = Some(torn);
        } else {
            self.lose(torn);
        }
        false
    }

    /// Queues an event that was joined from `torn`, cut at `cut`, and `piece`; what was cut off is text.
    fn put_rejoined(&mut self, torn: &Torn, cut: usize, joined: Vec<u8>, piece: TornPiece<'_>) {
        self.rejoined += 1;
        self.queue.push_back(Owned::Event { bytes: joined, position: torn.position, line: piece.line });
        let foreign = &torn.bytes[cut..];
        if !is_blank_noise(foreign) {
            let offset = torn.position.offset + cut as u64;
            self.put_text(foreign, LogPosition { offset, ..torn.position }, true);
        }
    }

    /// Reads an event on trial; gives its end, or how far it could be read.
    fn try_event(&mut self, bytes: &[u8]) -> Result<usize, usize> {
        let mut lexer = lexer(bytes, &mut self.scratch);
        match read_event(&mut lexer, Stamp::default(), &mut self.extra, &mut EventSlot::default()) {
            Ok(()) => Ok(lexer.at()),
            Err(_) => Err(lexer.at()),
        }
    }

    fn put_text(&mut self, bytes: &[u8], position: LogPosition, ends_line: bool) {
        self.queue.push_back(Owned::Text { bytes: bytes.to_vec(), position, ends_line });
    }

    fn give_up(&mut self) {
        if let Some(torn) = self.torn.take() {
            self.lose(torn);
        }
    }

    fn lose(&mut self, torn: Torn) {
        let (kind, problem) = if torn.failed_at >= torn.bytes.len() {
            (TextKind::TORN, Cow::Borrowed("the event ends before its object does"))
        } else {
            (TextKind::MALFORMED, format!("not an object from byte {} of the event on", torn.failed_at).into())
        };
        self.queue.push_back(Owned::Lost { kind, bytes: torn.bytes, position: torn.position, problem });
    }

    /// Splits text that holds armoured lines.
    fn armour_pieces(&mut self, piece: TornPiece<'_>) {
        use kwab_format::armour::{Found, Lines};
        let mut at = 0;
        let mut torn = false;
        for found in Lines::new(piece.bytes) {
            match found {
                Found::Line { chunk, at: start, len } => {
                    let between = &piece.bytes[at..start];
                    if !is_blank_noise(between) {
                        let between = TornPiece { bytes: between, ends_line: false, ..piece.from(at) };
                        self.between_armour(between, std::mem::take(&mut torn));
                    }
                    self.queue.push_back(Owned::Armour { chunk, line: piece.line });
                    at = start + len;
                }
                Found::Torn { .. } => torn = true,
            }
        }
        let rest = piece.from(at);
        if !is_blank_noise(rest.bytes) {
            self.between_armour(rest, torn);
        }
    }

    /// Text beside armoured lines, or an armoured line that is damaged.
    fn between_armour(&mut self, piece: TornPiece<'_>, torn: bool) {
        if torn {
            let (kind, problem) = (TextKind::ARMOUR, Cow::Borrowed("an armoured line is damaged"));
            self.queue.push_back(Owned::Lost { kind, bytes: piece.bytes.to_vec(), position: piece.position, problem });
        } else {
            self.put_text(piece.bytes, piece.position, piece.ends_line);
        }
    }
}

fn stamp(position: LogPosition) -> Stamp<'static> {
    Stamp { line: Some(position.line), ..Stamp::default() }
}

/// A lexer over an event that begins with its mark, with scratch space of its length.
fn lexer<'a>(bytes: &'a [u8], scratch: &'a mut Vec<u8>) -> Lexer<'a> {
    if scratch.len() < bytes.len() {
        scratch.resize(bytes.len(), 0);
    }
    Lexer::new(bytes, MARK.len() - 1, scratch)
}

/// Whether there is nothing to keep: line noise around an event, such as a `\r` or a colour reset.
fn is_blank_noise(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | 0 | b' '))
        || bytes.starts_with(b"\x1b") && clean(bytes).is_some_and(|cleaned| cleaned.trim_ascii().is_empty())
}

/// Escapes quotes and control characters inside strings, for kernels that print some strings as they are.
///
/// A quote ends a string only where JSON may go on: before `,` `:` `}` `]` or the end. `None` when nothing was amiss.
fn repair_strings(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 16);
    let mut inside = false;
    let mut repaired = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if !inside {
            inside = byte == b'"';
            out.push(byte);
        } else if byte == b'\\' && matches!(bytes.get(at + 1), Some(b'"' | b'\\' | b'n' | b'r' | b't' | b'u' | b'/')) {
            out.extend_from_slice(&bytes[at..at + 2]);
            at += 1;
        } else if byte == b'"' && !matches!(bytes.get(at + 1), Some(b',' | b':' | b'}' | b']') | None) {
            out.extend_from_slice(b"\\\"");
            repaired = true;
        } else if byte < 0x20 {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            repaired = true;
        } else {
            inside = byte != b'"';
            out.push(byte);
        }
        at += 1;
    }
    (repaired && out.len() <= MAX_LINE).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: LogPosition = LogPosition { offset: 100, line: 7 };

    fn token<'a>(kind: super::super::tokens::TokenKind, bytes: &'a [u8]) -> Token<'a> {
        Token { kind, bytes, ahead: bytes, position: LINE, line: LINE, ends_line: true, mixed: true }
    }

    fn texts(mender: &mut Mender) -> Vec<String> {
        let mut out = Vec::new();
        while mender.has_items() {
            let mut slot = EventSlot::default();
            out.push(match mender.next_item(&mut slot) {
                LogItem::Event { .. } => slot.kind().expect("an event").name().to_owned(),
                LogItem::Text { bytes, position, ends_line, .. } => {
                    format!("{:?} {} {ends_line}", String::from_utf8_lossy(bytes), position.offset)
                }
                LogItem::Armour { chunk, .. } => format!("armour {}", chunk.position),
                LogItem::Lost { problem, .. } => problem.to_owned(),
                LogItem::Nothing => "nothing".to_owned(),
            });
        }
        out
    }

    #[test]
    fn a_terminal_reset_begins_a_line_of_its_own() {
        let mut mender = Mender::default();
        let plain = |mender: &Mender, bytes| mender.is_plain(&token(super::super::tokens::TokenKind::Text, bytes));
        assert!(plain(&mender, b"\x1bcSeaBIOS") && !plain(&mender, b"old\x1bcSeaBIOS"));
        mender.text(&token(super::super::tokens::TokenKind::Text, b"old\x1bcSeaBIOS"));
        assert_eq!(texts(&mut mender), ["\"old\" 100 true", "\"\\u{1b}cSeaBIOS\" 103 true"]);
    }

    #[test]
    fn an_event_waits_for_eight_pieces_and_is_then_lost_before_the_next_one() {
        use super::super::tokens::TokenKind;
        let mut mender = Mender::default();
        let torn = b"DBG {\"type\":\"process_exit\",\"pid\":";
        mender.torn_event(&token(TokenKind::Event, torn), torn.len(), torn.len());
        for _ in 0..7 {
            mender.text(&token(TokenKind::Text, b"other"));
        }
        assert_eq!(texts(&mut mender), ["\"other\" 100 true"; 7]);
        mender.text(&token(TokenKind::Text, b"other"));
        assert_eq!(texts(&mut mender), ["the event ends before its object does", "\"other\" 100 true"]);
        assert!(mender.is_plain(&token(TokenKind::Text, b"other")));
    }

    #[test]
    fn armoured_lines_are_cut_out_of_text_and_damaged_ones_are_lost() {
        use kwab_format::DumpId;
        use kwab_format::armour::{LINE_LEN, encode_line};

        use super::super::tokens::TokenKind;
        let mut out = [0; LINE_LEN + 1];
        let line = encode_line(DumpId(7), 48, &[1; 48], &mut out).trim_ascii_end().to_vec();
        let mut mender = Mender::default();
        mender.text(&token(TokenKind::Text, &[b"before ", &line[..]].concat()));
        assert_eq!(texts(&mut mender), ["\"before \" 100 false", "armour 48"]);
        let mut damaged = line;
        damaged[20] ^= 1;
        mender.text(&token(TokenKind::Text, &damaged));
        assert_eq!(texts(&mut mender), ["an armoured line is damaged"]);
    }

    #[test]
    fn quotes_and_control_characters_inside_strings_are_escaped_once() {
        assert_eq!(repair_strings(b"{\"a\":\"x\"y\",\"b\":1}").as_deref(), Some(&b"{\"a\":\"x\\\"y\",\"b\":1}"[..]));
        assert_eq!(repair_strings(b"{\"a\":\"\x01\"}").as_deref(), Some(&b"{\"a\":\"\\u0001\"}"[..]));
        assert_eq!(repair_strings(b"{\"a\":\"b\"}"), None);
    }
}
