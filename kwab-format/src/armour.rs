//! Owns the armoured form: a dump as short printable lines on a console that others write to as well.
//!
//! A line is `KW1:` dump `:` position `:` data `:` CRC `;`: the short dump id in 8 hex digits, the position in the dump
//! of the line's first byte in 8 hex digits, up to 48 bytes in base64 without padding, and the CRC32 of everything
//! between `KW1:` and the colon before the CRC, in 8 hex digits. The position is the sequence number: it orders lines,
//! exposes repeats and says how much is missing. A line may stand anywhere in a line of text; one that is torn is lost
//! alone.

use crate::section::DumpId;
use crate::sink::{Sink, SinkError};
use crate::wire::copy;

/// Bytes of the dump in a full line.
pub const LINE_BYTES: usize = 48;
/// Characters of a full line, without the line end.
pub const LINE_LEN: usize = PREFIX.len() + 8 + 1 + 8 + 1 + BODY + 1 + 8 + 1;
/// Characters of the data of a full line.
pub(crate) const BODY: usize = LINE_BYTES / 3 * 4;
/// How every line begins.
pub const PREFIX: &[u8; 4] = b"KW1:";

const CRC_TAIL: usize = 1 + 8 + 1;

/// One decoded line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The short id of the dump it belongs to.
    pub dump: u32,
    /// Offset of its first byte in the dump.
    pub position: u32,
    bytes: [u8; LINE_BYTES],
    len: usize,
}

impl Chunk {
    /// The bytes of the dump.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Writes the line for `bytes`, at most [`LINE_BYTES`] of them, and returns it with a newline at its end.
pub fn encode_line<'b>(dump: DumpId, position: u32, bytes: &[u8], out: &'b mut [u8; LINE_LEN + 1]) -> &'b [u8] {
    let mut line = Line::new(out);
    line.put(PREFIX);
    line.hex(dump.short());
    line.put(b":");
    line.hex(position);
    line.put(b":");
    line.bytes(bytes);
    line.finish(PREFIX.len())
}

/// Finds armoured lines in text; everything that is not one is skipped.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    text: &'a [u8],
    pos: usize,
}

/// What [`Lines`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A sound line, with its first byte and length in the text.
    Line {
        /// What it holds.
        chunk: Chunk,
        /// Where it begins.
        at: usize,
        /// How long it is.
        len: usize,
    },
    /// Something that begins like a line and is none.
    Torn {
        /// Where it begins.
        at: usize,
    },
}

impl<'a> Lines<'a> {
    /// Looks from the front of `text`.
    #[must_use]
    pub const fn new(text: &'a [u8]) -> Self {
        Self { text, pos: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let at = find_prefix(self.text, self.pos)?;
        let rest = self.text.get(at..)?;
        Some(match decode_line(rest) {
            Some((chunk, len)) => {
                self.pos = at.saturating_add(len);
                Found::Line { chunk, at, len }
            }
            None => {
                self.pos = at.saturating_add(PREFIX.len());
                Found::Torn { at }
            }
        })
    }
}

/// Decodes a line at the front of `text`; also says how long it is.
#[must_use]
pub fn decode_line(text: &[u8]) -> Option<(Chunk, usize)> {
    let body = text.strip_prefix(PREFIX)?;
    let (dump, rest) = take_hex(body)?;
    let (position, rest) = take_hex(rest.strip_prefix(b":")?)?;
    let data = rest.strip_prefix(b":")?;
    let mut chunk = Chunk { dump, position, bytes: [0; LINE_BYTES], len: 0 };
    let digits = data.iter().take(64).position(|&c| base64_value(c).is_none()).unwrap_or(64.min(data.len()));
    let (encoded, tail) = data.split_at_checked(digits)?;
    chunk.len = decode_base64(encoded, &mut chunk.bytes)?;
    let (stored, end) = take_hex(tail.strip_prefix(b":")?)?;
    end.strip_prefix(b";")?;
    let covered = 8usize.saturating_add(1).saturating_add(8).saturating_add(1).saturating_add(digits);
    let computed = crc32fast::hash(body.get(..covered)?);
    let len = PREFIX.len().saturating_add(covered).saturating_add(CRC_TAIL);
    (stored == computed && chunk.len > 0).then_some((chunk, len))
}

/// A sink that turns a dump into armoured lines and hands each to `emit`.
///
/// `emit` says how many bytes of the line got out; fewer than all of them is a failed line, which costs the section
/// that it belongs to and no other.
#[derive(Debug)]
pub struct ArmourSink<F> {
    dump: DumpId,
    position: u32,
    emit: F,
}

impl<F: FnMut(&[u8]) -> bool> ArmourSink<F> {
    /// Lines for the dump `dump`; `emit` gets each line with its newline and says whether it got out.
    pub const fn new(dump: DumpId, emit: F) -> Self {
        Self { dump, position: 0, emit }
    }
}

impl<F: FnMut(&[u8]) -> bool> Sink for ArmourSink<F> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let mut out = [0; LINE_LEN + 1];
        let mut failed = false;
        for piece in bytes.chunks(LINE_BYTES) {
            let line = encode_line(self.dump, self.position, piece, &mut out);
            failed |= !(self.emit)(line);
            self.position = self.position.wrapping_add(u32::try_from(piece.len()).unwrap_or(0));
        }
        // Lines behind a lost one keep their positions, so the whole section counts as written.
        if failed { Err(SinkError { written: bytes.len() as u64 }) } else { Ok(()) }
    }
}

/// A line that is being written; what does not fit is left out.
pub(crate) struct Line<'b> {
    out: &'b mut [u8],
    len: usize,
}

impl<'b> Line<'b> {
    pub(crate) fn new(out: &'b mut [u8]) -> Self {
        Self { out, len: 0 }
    }

    /// At most [`LINE_BYTES`] bytes in base64.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for group in bytes.get(..bytes.len().min(LINE_BYTES)).unwrap_or_default().chunks(3) {
            self.base64(group);
        }
    }

    /// Appends the CRC of everything from `from` on and the end; gives the whole line.
    pub(crate) fn finish(mut self, from: usize) -> &'b [u8] {
        let crc = crc32fast::hash(self.out.get(from..self.len).unwrap_or_default());
        self.put(b":");
        self.hex(crc);
        self.put(b";\n");
        self.out.get(..self.len).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        if let Some(to) = self.out.get_mut(self.len..end) {
            copy(to, bytes);
            self.len = end;
        }
    }

    pub(crate) fn hex(&mut self, value: u32) {
        self.put(&[28, 24, 20, 16, 12, 8, 4, 0].map(|shift| hex_digit(value, shift)));
    }

    pub(crate) fn hex_byte(&mut self, value: u8) {
        self.put(&[4, 0].map(|shift| hex_digit(u32::from(value), shift)));
    }

    /// One to three bytes become two to four digits.
    fn base64(&mut self, group: &[u8]) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = |shift: u32| BASE64.get((word.wrapping_shr(shift) & 63) as usize).copied().unwrap_or(b'A');
        let digits = [18, 12, 6, 0].map(digit);
        self.put(digits.get(..group.len().saturating_add(1)).unwrap_or(&digits));
    }
}

fn hex_digit(value: u32, shift: u32) -> u8 {
    HEX.get((value.wrapping_shr(shift) & 15) as usize).copied().unwrap_or(b'0')
}

/// The bytes of a full line's data.
pub(crate) fn take_bytes(digits: &[u8]) -> Option<[u8; LINE_BYTES]> {
    let mut bytes = [0; LINE_BYTES];
    (decode_base64(digits, &mut bytes)? == LINE_BYTES).then_some(bytes)
}

pub(crate) fn take_hex(text: &[u8]) -> Option<(u32, &[u8])> {
    let (digits, rest) = text.split_first_chunk::<8>()?;
    let mut value = 0u32;
    for &c in digits {
        let digit = match c {
            b'0'..=b'9' => c.wrapping_sub(b'0'),
            b'a'..=b'f' => c.wrapping_sub(b'a').wrapping_add(10),
            _ => return None,
        };
        value = value << 4 | u32::from(digit);
    }
    Some((value, rest))
}

fn base64_value(c: u8) -> Option<u32> {
    let value = match c {
        b'A'..=b'Z' => c.wrapping_sub(b'A'),
        b'a'..=b'z' => c.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => c.wrapping_sub(b'0').wrapping_add(52),
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

fn decode_base64(digits: &[u8], out: &mut [u8; LINE_BYTES]) -> Option<usize> {
    let mut len = 0usize;
    for group in digits.chunks(4) {
        let mut word = 0u32;
        for (i, &c) in group.iter().enumerate() {
            let shift = 18u32.wrapping_sub(u32::try_from(i).ok()?.wrapping_mul(6));
            word |= base64_value(c)?.wrapping_shl(shift);
        }
        let [_, bytes @ ..] = word.to_be_bytes();
        let count = group.len().checked_sub(1).filter(|&n| n > 0)?;
        let end = len.checked_add(count)?;
        copy(out.get_mut(len..end)?, bytes.get(..count)?);
        len = end;
    }
    Some(len)
}

fn find_prefix(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        let skip = rest.iter().position(|&b| b == b'K')?;
        at = at.saturating_add(skip);
        if text.get(at..)?.starts_with(PREFIX) {
            return Some(at);
        }
        at = at.saturating_add(1);
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
