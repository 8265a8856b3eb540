//! Writes armoured lines: FORMAT.md 5.3.

use super::crc32;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The line for at most 48 bytes that stand at `position` of the dump `id`, without a line end.
#[must_use]
pub fn line(id: u64, position: u32, piece: &[u8]) -> String {
    let short = (id >> 32) as u32 ^ id as u32;
    let covered = format!("{short:08x}:{position:08x}:{}", base64(piece));
    format!("KW1:{covered}:{:08x};", crc32(covered.as_bytes()))
}

/// Bits are taken six at a time from the front; the last digit is filled up with zero bits.
fn base64(bytes: &[u8]) -> String {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |first: usize| (first..first + 6).fold(0, |value, at| value << 1 | bit(at));
    (0..bytes.len() * 8).step_by(6).map(|first| char::from(DIGITS[usize::from(digit(first))])).collect()
}

/// The lines of a dump with parity, line ends left out; armoured lines are full ones.
#[must_use]
pub fn with_parity(id: u64, dump: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    for (group, number) in dump.chunks(9216).zip(0u32..) {
        let start = number * 9216;
        lines.extend(group.chunks(48).zip((start..).step_by(48)).map(|(piece, at)| line(id, at, piece)));
        let checks: Vec<[u8; 48]> =
            (0..48).map(|column| checks(&group.iter().skip(column).step_by(48).copied().collect::<Vec<_>>())).collect();
        lines.extend((0..48).map(|row| {
            let bytes: Vec<u8> = checks.iter().map(|checks| checks[row]).collect();
            let short = (id >> 32) as u32 ^ id as u32;
            let covered = format!("{short:08x}:{:08x}:{row:02x}:{}", start as usize + group.len(), base64(&bytes));
            format!("KP1:{covered}:{:08x};", crc32(covered.as_bytes()))
        }));
    }
    lines
}

/// The rest of the column times x^48 by the generator, by long division; FORMAT.md 5.4.
fn checks(column: &[u8]) -> [u8; 48] {
    let mut generator = vec![1u8];
    let mut root = 1;
    for _ in 0..48 {
        // Times x - root, which is x + root.
        let shifted = [&generator[..], &[0]].concat();
        let scaled = [vec![0], generator.iter().map(|value| product(*value, root)).collect()].concat();
        generator = shifted.iter().zip(scaled).map(|(a, b)| a ^ b).collect();
        root = product(root, 2);
    }
    let mut rest = [column, &[0; 48]].concat();
    for at in 0..column.len() {
        let factor = rest[at];
        for (to, value) in rest[at..].iter_mut().zip(&generator) {
            *to ^= product(*value, factor);
        }
    }
    rest[column.len()..].try_into().expect("48 bytes remain")
}

/// In GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, bit by bit.
fn product(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |sum: u8, bit| {
        let doubled = sum << 1 ^ if sum & 0x80 != 0 { 0x1d } else { 0 };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}
