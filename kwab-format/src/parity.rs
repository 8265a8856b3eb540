//! Owns parity lines: what mends an armoured dump whose lines were lost or damaged on the way.
//!
//! The bytes of a dump are cut into groups of [`GROUP_BYTES`] by their positions. In a group, the bytes whose positions
//! leave the same rest by 48 are one *column*, and each column gets 48 check bytes ([`crate::reed_solomon`]). Any 48
//! bytes in a row lie in 48 columns, so a lost line costs each column one byte, wherever lines begin. Behind the lines
//! of a group stand 48 parity lines; number R has check byte R of every column. A group loses nothing while the lost
//! lines and twice the wrong bytes of a column are together at most 48 of its 240.
//!
//! A line is `KP1:` dump `:` end `:` row `:` data `:` CRC `;`. The end is the position behind the last byte of the
//! group. Readers that know only [`crate::armour`] skip it as text.

use crate::armour::{BODY, LINE_BYTES, Line, take_bytes, take_hex};
use crate::reed_solomon::{CHECKS, Checks, MOST_DATA};
use crate::section::DumpId;
use crate::sink::{Sink, SinkError};

/// Bytes of a dump that share their parity lines.
pub const GROUP_BYTES: usize = MOST_DATA * LINE_BYTES;
/// Parity lines of a group.
pub const ROWS: usize = CHECKS;
/// How every parity line begins.
pub const PREFIX: &[u8; 4] = b"KP1:";
/// Characters of a parity line, without the line end.
pub const LINE_LEN: usize = PREFIX.len() + 8 + 1 + 8 + 1 + 2 + 1 + BODY + 1 + 8 + 1;

/// One decoded parity line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The short id of the dump it belongs to.
    pub dump: u32,
    /// The position behind the last byte of its group; not 0.
    pub end: u32,
    /// Which check byte of the columns it has, below [`ROWS`].
    pub row: u8,
    /// The check bytes by column.
    pub bytes: [u8; LINE_BYTES],
}

/// The position of the first byte of the group that ends before `end`.
#[must_use]
pub const fn group_start(end: u32) -> u32 {
    let last = end.saturating_sub(1);
    last.saturating_sub((last as usize % GROUP_BYTES) as u32)
}

/// Decodes a parity line at the front of `text`; also says how long it is.
#[must_use]
pub fn decode_line(text: &[u8]) -> Option<(Row, usize)> {
    let body = text.get(..LINE_LEN)?.strip_prefix(PREFIX)?;
    let (dump, rest) = take_hex(body)?;
    let (end, rest) = take_hex(rest.strip_prefix(b":")?)?;
    let (&[upper, lower], rest) = rest.strip_prefix(b":")?.split_first_chunk::<2>()?;

    let padded = [b'0', b'0', b'0', b'0', b'0', b'0', upper, lower];
    let row = u8::try_from(take_hex(&padded)?.0).ok().filter(|&row| usize::from(row) < ROWS)?;
    let (encoded, rest) = rest.strip_prefix(b":")?.split_at_checked(BODY)?;
    let bytes = take_bytes(encoded)?;
    let covered = body.len().checked_sub(rest.len())?;
    let (stored, last) = take_hex(rest.strip_prefix(b":")?)?;
    let sound = last == b";" && stored == crc32fast::hash(body.get(..covered)?) && end > 0;
    sound.then_some((Row { dump, end, row, bytes }, LINE_LEN))
}

/// Writes the line for `row` and returns it with a newline at its end.
pub fn encode_line<'b>(row: &Row, out: &'b mut [u8; LINE_LEN + 1]) -> &'b [u8] {
    let mut line = Line::new(out);
    line.put(PREFIX);
    line.hex(row.dump);
    line.put(b":");
    line.hex(row.end);
    line.put(b":");
    line.hex_byte(row.row);
    line.put(b":");
    line.bytes(&row.bytes);
    line.finish(PREFIX.len())
}

/// The check bytes of the group that is being printed: 2.3 KiB, which a kernel best keeps in a static.
#[derive(Clone, Debug)]
pub struct Parity {
    columns: [Checks; LINE_BYTES],
    /// The position of the next byte.
    next: u32,
    /// Whether every byte of the group has been seen.
    whole: bool,
}

impl Default for Parity {
    fn default() -> Self {
        Self::new()
    }
}

impl Parity {
    /// That of a dump of which nothing was printed.
    #[must_use]
    pub const fn new() -> Self {
        Self { columns: [Checks::NONE; LINE_BYTES], next: 0, whole: true }
    }

    /// Takes bytes of the dump `dump` that were printed at `position`; `emit` gets the parity lines of each group that
    /// they end, and says whether a line got out. Returns whether all did.
    ///
    /// A position that is not the next one begins again there, and a group without its front gets no parity lines.
    pub fn push(&mut self, dump: DumpId, position: u32, bytes: &[u8], emit: &mut impl FnMut(&[u8]) -> bool) -> bool {
        if position != self.next {
            self.columns.fill(Checks::NONE);
            (self.next, self.whole) = (position, position.is_multiple_of(GROUP_BYTES as u32));
        }
        let mut all = true;
        for &byte in bytes {
            if let Some(checks) = self.columns.get_mut(self.next as usize % LINE_BYTES) {
                checks.push(byte);
            }
            self.next = self.next.wrapping_add(1);
            if self.next.is_multiple_of(GROUP_BYTES as u32) {
                all &= self.print(dump, emit);
            }
        }
        all
    }

    /// The parity lines of the last group, at the end of the dump; again, they are none.
    pub fn finish(&mut self, dump: DumpId, emit: &mut impl FnMut(&[u8]) -> bool) -> bool {
        self.next.is_multiple_of(GROUP_BYTES as u32) || self.print(dump, emit)
    }

    /// The lines of the group; what follows begins another.
    fn print(&mut self, dump: DumpId, emit: &mut impl FnMut(&[u8]) -> bool) -> bool {
        let mut out = [0; LINE_LEN + 1];
        let mut all = true;
        for row in (0..ROWS as u8).filter(|_| self.whole) {
            let mut bytes = [0; LINE_BYTES];
            for (byte, checks) in bytes.iter_mut().zip(&self.columns) {
                *byte = checks.get(usize::from(row));
            }
            all &= emit(encode_line(&Row { dump: dump.short(), end: self.next, row, bytes }, &mut out));
        }
        self.columns.fill(Checks::NONE);
        self.whole = self.next.is_multiple_of(GROUP_BYTES as u32);
        all
    }
}

/// [`ArmourSink`](crate::armour::ArmourSink) with parity lines.
#[derive(Debug)]
pub struct ParitySink<'p, F> {
    dump: DumpId,
    position: u32,
    parity: &'p mut Parity,
    emit: F,
}

impl<'p, F: FnMut(&[u8]) -> bool> ParitySink<'p, F> {
    /// Lines for the dump `dump`; `emit` gets each line with its newline and says whether it got out.
    pub const fn new(dump: DumpId, parity: &'p mut Parity, emit: F) -> Self {
        Self { dump, position: 0, parity, emit }
    }
}

impl<F: FnMut(&[u8]) -> bool> Sink for ParitySink<'_, F> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SinkError> {
        let mut out = [0; crate::armour::LINE_LEN + 1];
        let mut all = true;
        for piece in bytes.chunks(LINE_BYTES) {
            all &= (self.emit)(crate::armour::encode_line(self.dump, self.position, piece, &mut out));
            // A parity line that is lost costs nothing by itself.
            let _ = self.parity.push(self.dump, self.position, piece, &mut self.emit);
            self.position = self.position.wrapping_add(u32::try_from(piece.len()).unwrap_or(0));
        }
        if all { Ok(()) } else { Err(SinkError { written: bytes.len() as u64 }) }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if self.parity.finish(self.dump, &mut self.emit) { Ok(()) } else { Err(SinkError { written: 0 }) }
    }
}
