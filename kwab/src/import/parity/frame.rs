//! Reads armoured lines and parity lines that are damaged: by what of their frame is known, and what remains of it.

use std::collections::BTreeSet;

use kwab_format::armour::LINE_BYTES;
use kwab_format::parity::{GROUP_BYTES, ROWS};

/// What a damaged line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// An armoured line.
    Data,
    /// A parity line.
    Parity,
}

/// A damaged line.
#[derive(Debug)]
pub(super) struct TornFrame {
    pub(super) kind: LineKind,
    /// The position, or the end of the group: eight digits as they came.
    number: [u8; 8],
    /// The two digits of a parity line's row.
    row: [u8; 2],
    /// The bytes; `None` where a digit cannot be one.
    pub(super) bytes: Vec<Option<u8>>,
}

/// Characters of `KW1:`, the id and the colons about the position; how many of them must be right.
const KNOWN: (usize, usize) = (14, 10);
/// Characters from the front of a line to behind the second colon.
const HEAD: usize = 22;
/// Characters of the data of a full line.
const BODY: usize = LINE_BYTES / 3 * 4;
/// How far a position may be from the expected one before damage to its digits is more likely.
const FAR: u32 = GROUP_BYTES as u32;

/// The lines of the dump with the short id `dump` that stand in `text`, damaged or not.
pub(super) fn frames(dump: u32, text: &[u8]) -> Vec<TornFrame> {
    let id = format!("{dump:08x}");
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| rest.len() > HEAD + 3) {
        match frame(id.as_bytes(), rest) {
            Some((frame, length)) => {
                frames.push(frame);
                at += length;
            }
            None => at += 1,
        }
    }
    frames
}

/// The line at the front of `text`, and its length.
fn frame(id: &[u8], text: &[u8]) -> Option<(TornFrame, usize)> {
    let head = text.first_chunk::<HEAD>()?;
    if head[12] != b':' && head[21] != b':' {
        return None;
    }
    let prefix = [head[0] == b'K', matches!(head[1], b'W' | b'P'), head[2] == b'1', head[3] == b':'];
    let id = head[4..12].iter().zip(id).map(|(a, b)| a == b);
    let colons = [head[12] == b':', head[21] == b':'];
    let right = prefix.into_iter().chain(id).chain(colons).filter(|right| *right).count();
    if right < KNOWN.1 {
        return None;
    }
    let is = |at: usize, byte: u8| usize::from(text.get(at) == Some(&byte));
    let data = usize::from(head[1] == b'W') + is(HEAD + BODY, b':') + is(HEAD + BODY + 9, b';');
    let parity = usize::from(head[1] == b'P') + is(HEAD + 2, b':') + is(HEAD + 3 + BODY, b':');
    let parity = parity + is(HEAD + 3 + BODY + 9, b';');
    let kind = if parity > data { LineKind::Parity } else { LineKind::Data };
    let (first, row) = match kind {
        LineKind::Data => (HEAD, [b'0'; 2]),
        LineKind::Parity => (HEAD + 3, *text.get(HEAD..)?.first_chunk::<2>()?),
    };
    let full = is(first + BODY, b':') + is(first + BODY + 9, b';') > 0;
    let ends = |length: &usize| is(first + length, b':') + is(first + length + 9, b';') == 2;
    let length = if full { BODY } else { (2..BODY).filter(|length| length % 4 != 1).find(ends).unwrap_or(0) };
    let digits = text.get(first..first + length).unwrap_or_default();
    let number = *head[13..21].first_chunk::<8>()?;
    let frame = TornFrame { kind, number, row, bytes: bytes(digits) };
    Some((frame, (first + length + 10).min(text.len())))
}

impl TornFrame {
    /// The position of its first byte; the lines before it let `expected` be expected.
    pub(super) fn position(&self, expected: u32) -> Option<u32> {
        let wrong = self.wrong_digits(expected);
        match hex(&self.number) {
            Some(number) if wrong > 2 || number.abs_diff(expected) <= FAR => Some(number),
            _ => (wrong <= 3).then_some(expected),
        }
    }

    /// The end of its group, one of `ends`, and its row; the lines before it let `expected` be expected.
    pub(super) fn row(&self, expected: Option<(u32, u8)>, ends: &BTreeSet<u32>) -> Option<(u32, u8)> {
        let end = *ends.iter().min_by_key(|end| self.wrong_digits(**end))?;
        if self.wrong_digits(end) > 2 {
            return None;
        }
        let row = hex(&self.row).and_then(|row| u8::try_from(row).ok());
        let row = row.or_else(|| expected.filter(|expected| expected.0 == end).map(|expected| expected.1));
        row.filter(|row| usize::from(*row) < ROWS).map(|row| (end, row))
    }

    fn wrong_digits(&self, number: u32) -> usize {
        format!("{number:08x}").bytes().zip(self.number).filter(|(a, b)| a != b).count()
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    let all = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    std::str::from_utf8(digits).ok().filter(|_| all).and_then(|digits| u32::from_str_radix(digits, 16).ok())
}

/// What base64 digits say, byte by byte.
fn bytes(digits: &[u8]) -> Vec<Option<u8>> {
    let value = |at: usize| digits.get(at).and_then(|digit| sextet(*digit));
    let byte = |number: usize| {
        let first = number / 3 * 4 + number % 3;
        let (upper, lower) = (value(first)?, value(first + 1)?);
        Some(match number % 3 {
            0 => upper << 2 | lower >> 4,
            1 => upper << 4 | lower >> 2,
            _ => upper << 6 | lower,
        })
    };
    (0..digits.len() * 3 / 4).map(byte).collect()
}

fn sextet(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
