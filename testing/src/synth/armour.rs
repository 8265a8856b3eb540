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
