//! Takes lines apart into events and text, and puts torn events together again.
//!
//! The usual line is one event and costs one parse. Everything else goes the slow way: console text before an event,
//! several events on one line, escape sequences and NULs inside, quotes that the kernel forgot to escape, and events
//! torn by another processor's output. A torn event waits for its rest: the next pieces of text (at most
//! `PATIENCE` of them) are tried as its continuation, and one is taken only when the joined object reads completely.
//! What cannot be read is handed over as lost, with its place and the reason.

use kwab_format::record::{Stamp, TextKind};
use memchr::memmem::Finder;

use super::event::{EventSink, Extra, read_event};
use super::lines::{Line, MAX_LINE};
use super::text::clean;
use crate::text::lex::Lexer;

/// How an event begins.
const MARK: &[u8] = b"DBG {";
/// How an armoured line begins.
const ARMOUR: &[u8] = b"KW1:";
/// Pieces of text that are tried as the rest of a torn event.
const PATIENCE: u32 = 8;
/// A torn event longer than this is not waited for.
const LONGEST_TORN: usize = 16 << 10;
/// How far before the failure the foreign text may have begun.
const CUTS: usize = 64;

/// Where a piece of the log stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Offset of its first byte in the log.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
}

/// Receives what the scanner finds, in the order of the log.
pub trait LogSink: EventSink {
    /// A line begins: where the next findings stand.
    fn line(&mut self, place: Place);
    /// Which dialect an event is written in, told now and then.
    fn dialect(&mut self, json: bool);
    /// Console text: a line, or a piece of one. `ends_line` says whether a line end follows it.
    fn text(&mut self, bytes: &[u8], place: Place, ends_line: bool);
    /// Something that should have been understood and was not.
    fn lost(&mut self, kind: TextKind, bytes: &[u8], place: Place, problem: &str);
    /// A torn event was put together from pieces.
    fn rejoined(&mut self);
    /// A sound armoured line.
    fn armour(&mut self, chunk: &kwab_format::armour::Chunk);
}

/// An event whose rest has not come yet.
#[derive(Debug)]
struct Torn {
    bytes: Vec<u8>,
    place: Place,
    /// How far it could be read.
    failed_at: usize,
    tries: u32,
}

/// Buffers and the state between lines.
#[derive(Debug)]
pub struct Scanner {
    scratch: Vec<u8>,
    extra: Extra,
    torn: Option<Torn>,
    mark: Finder<'static>,
    armour: Finder<'static>,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Starts with nothing pending.
    pub fn new() -> Self {
        Self {
            scratch: vec![0; MAX_LINE + LONGEST_TORN],
            extra: Extra::default(),
            torn: None,
            mark: Finder::new(MARK),
            armour: Finder::new(ARMOUR),
        }
    }

    /// Takes one line apart.
    #[inline]
    pub fn line(&mut self, line: &Line<'_>, sink: &mut impl LogSink) {
        let place = Place { offset: line.offset, line: line.number };
        sink.line(place);
        if line.bytes.starts_with(MARK) {
            if line.number & 0xff < 8 {
                sample_dialect(line.bytes, sink);
            }
            let outcome = self.event_at(line.bytes, 0, place, sink);
            match outcome {
                Ok(end) if end == line.bytes.len() => {}
                Ok(end) => self.pieces(line, end, sink),
                Err(failed_at) => {
                    let end = self.next_mark(line.bytes, MARK.len());
                    self.torn_event(&line.bytes[..end], failed_at, place, sink);
                    self.pieces(line, end, sink);
                }
            }
        } else {
            self.pieces(line, 0, sink);
        }
    }

    /// Gives up on what is still pending; call it at the end of the log.
    pub fn finish(&mut self, sink: &mut impl LogSink) {
        self.give_up(sink);
    }

    /// Reads the event at `at`; gives its end, or how far it could be read.
    #[inline(always)]
    fn event_at(&mut self, bytes: &[u8], at: usize, place: Place, sink: &mut impl LogSink) -> Result<usize, usize> {
        let stamp = Stamp { line: Some(place.line), ..Stamp::default() };
        let mut lexer = Lexer::new(bytes, at + MARK.len() - 1, &mut self.scratch);
        match read_event(&mut lexer, stamp, &mut self.extra, sink) {
            Ok(()) => Ok(lexer.at()),
            Err(_) => Err(lexer.at()),
        }
    }

    fn next_mark(&self, bytes: &[u8], from: usize) -> usize {
        bytes.get(from..).and_then(|rest| self.mark.find(rest)).map_or(bytes.len(), |found| from + found)
    }

    /// The slow way: everything of a line from `at` on.
    fn pieces(&mut self, line: &Line<'_>, mut at: usize, sink: &mut impl LogSink) {
        let bytes = line.bytes;
        loop {
            let mark = self.next_mark(bytes, at);
            let last = mark == bytes.len();
            if mark > at || last && at == 0 {
                let place = Place { offset: line.offset + at as u64, line: line.number };
                self.text_piece(&bytes[at..mark], place, last && line.ended, sink);
            }
            if last {
                return;
            }
            let place = Place { offset: line.offset + mark as u64, line: line.number };
            at = match self.event_at(bytes, mark, place, sink) {
                Ok(end) => end,
                Err(failed_at) => {
                    let end = self.next_mark(bytes, mark + MARK.len());
                    self.torn_event(&bytes[mark..end], failed_at - mark, place, sink);
                    end
                }
            };
            if at == bytes.len() {
                return;
            }
        }
    }

    /// Text: the rest of a torn event, armoured lines, or console output.
    fn text_piece(&mut self, bytes: &[u8], place: Place, ends_line: bool, sink: &mut impl LogSink) {
        if self.torn.is_some() && self.rejoin(bytes, place, ends_line, sink) {
            return;
        }
        if is_blank_noise(bytes) {
            return;
        }
        // A terminal reset comes from firmware or a starting kernel: what follows it is a line of its own.
        if let Some(at) = memchr::memmem::find(bytes, b"\x1bc").filter(|at| *at > 0) {
            sink.text(&bytes[..at], place, true);
            return self.text_piece(&bytes[at..], Place { offset: place.offset + at as u64, ..place }, ends_line, sink);
        }
        if self.armour.find(bytes).is_some() {
            armour_pieces(bytes, place, ends_line, sink);
        } else {
            sink.text(bytes, place, ends_line);
        }
    }

    /// An event that does not read as it stands: cleaned, with repaired quotes, or kept waiting for its rest.
    #[cold]
    fn torn_event(&mut self, segment: &[u8], failed_at: usize, place: Place, sink: &mut impl LogSink) {
        let cleaned = clean(segment);
        let bytes = cleaned.as_deref().unwrap_or(segment);
        let mut failed_at = failed_at.min(bytes.len());
        if cleaned.is_some() {
            match self.event_at(bytes, 0, place, sink) {
                Ok(end) => return self.after_repair(&bytes[end..], place, sink),
                Err(at) => failed_at = at.min(bytes.len()),
            }
        }
        if let Some(repaired) = repair_strings(bytes)
            && let Ok(end) = self.event_at(&repaired, 0, place, sink)
        {
            return self.after_repair(&repaired[end..], place, sink);
        }
        self.give_up(sink);
        let torn = Torn { bytes: bytes.to_vec(), place, failed_at, tries: 0 };
        if bytes.len() <= LONGEST_TORN {
            self.torn = Some(torn);
        } else {
            lose(&torn, sink);
        }
    }

    /// What stands behind an event that was repaired.
    fn after_repair(&mut self, rest: &[u8], place: Place, sink: &mut impl LogSink) {
        if !is_blank_noise(rest) {
            sink.text(rest, place, false);
        }
    }

    /// Tries `piece` as the rest of the torn event; `true` when it was.
    #[cold]
    fn rejoin(&mut self, piece: &[u8], place: Place, ends_line: bool, sink: &mut impl LogSink) -> bool {
        let Some(mut torn) = self.torn.take() else { return false };
        torn.tries += 1;
        let cleaned = clean(piece);
        let rest = cleaned.as_deref().unwrap_or(piece);
        if rest.len() <= LONGEST_TORN && rest.contains(&b'}') {
            let first_cut = torn.failed_at.saturating_sub(CUTS).max(MARK.len());
            // The whole of what came first, then ever less of it: the tail may be somebody else's text.
            let cuts =
                std::iter::once(torn.bytes.len()).chain((first_cut..=torn.failed_at.min(torn.bytes.len())).rev());
            for cut in cuts {
                for glue in [&b""[..], b"\\n"] {
                    let joined = [&torn.bytes[..cut], glue, rest].concat();
                    if let Ok(end) = self.event_at(&joined, 0, torn.place, sink) {
                        sink.rejoined();
                        let foreign = torn.bytes[cut..].to_vec();
                        if !is_blank_noise(&foreign) {
                            let offset = torn.place.offset + cut as u64;
                            sink.text(&foreign, Place { offset, ..torn.place }, true);
                        }
                        let used = end - cut - glue.len();
                        if !is_blank_noise(&rest[used..]) {
                            self.text_piece(&rest[used..], place, ends_line, sink);
                        }
                        return true;
                    }
                }
            }
        }
        if torn.tries < PATIENCE {
            self.torn = Some(torn);
        } else {
            lose(&torn, sink);
        }
        false
    }

    fn give_up(&mut self, sink: &mut impl LogSink) {
        if let Some(torn) = self.torn.take() {
            lose(&torn, sink);
        }
    }
}

/// Looks which dialect a line is in: a few lines in a thousand are enough to tell.
fn sample_dialect(bytes: &[u8], sink: &mut impl LogSink) {
    if let Some(at) = memchr::memmem::find(bytes, b"0x").filter(|at| *at > 0) {
        sink.dialect(bytes[at - 1] == b'"');
    }
}

fn lose(torn: &Torn, sink: &mut impl LogSink) {
    let cut = torn.failed_at >= torn.bytes.len();
    if cut {
        sink.lost(TextKind::TORN, &torn.bytes, torn.place, "the event ends before its object does");
    } else {
        let problem = format!("not an object from byte {} of the event on", torn.failed_at);
        sink.lost(TextKind::MALFORMED, &torn.bytes, torn.place, &problem);
    }
}

/// Whether there is nothing to keep: line noise around an event, such as a `\r` or a colour reset.
fn is_blank_noise(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'\r' | 0 | b' '))
        || bytes.starts_with(b"\x1b") && clean(bytes).is_some_and(|cleaned| cleaned.trim_ascii().is_empty())
}

/// Splits text that holds armoured lines.
fn armour_pieces(bytes: &[u8], place: Place, ends_line: bool, sink: &mut impl LogSink) {
    use kwab_format::armour::{Found, Lines};
    let mut at = 0;
    let mut torn_from = None;
    for found in Lines::new(bytes) {
        match found {
            Found::Line { chunk, at: start, len } => {
                let piece = Place { offset: place.offset + at as u64, ..place };
                if !is_blank_noise(&bytes[at..start]) {
                    lose_or_keep(&bytes[at..start], torn_from.take().is_some(), piece, sink);
                }
                sink.armour(&chunk);
                at = start + len;
            }
            Found::Torn { at: start } => torn_from = torn_from.or(Some(start)),
        }
    }
    let rest = &bytes[at..];
    if !is_blank_noise(rest) {
        let piece = Place { offset: place.offset + at as u64, ..place };
        if torn_from.is_some() {
            lose_or_keep(rest, true, piece, sink);
        } else {
            sink.text(rest, piece, ends_line);
        }
    }
}

fn lose_or_keep(bytes: &[u8], torn: bool, place: Place, sink: &mut impl LogSink) {
    if torn {
        sink.lost(TextKind::ARMOUR, bytes, place, "an armoured line is damaged");
    } else {
        sink.text(bytes, place, false);
    }
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
