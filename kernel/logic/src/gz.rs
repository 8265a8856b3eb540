//! Inflates a gzip file (RFC 1952) in pieces, so that the output needs no contiguous memory.
//!
//! The window is the 32 KiB that deflate needs; every full or final stretch of it goes to the caller's sink. The CRC
//! and the length in the trailer are checked: an archive that was cut or flipped is not silently half a file system.

use alloc::boxed::Box;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// Why the file could not be inflated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzError {
    /// No gzip header, or one with an unknown method.
    Header,
    /// The file ends early.
    Truncated,
    /// The deflate stream is damaged.
    Data,
    /// The output does not match the checksum or length in the trailer.
    Checksum,
    /// The caller's sink refused a piece.
    Sink,
}

const WINDOW: usize = 32 << 10;
const HAS_CRC: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// Whether `bytes` begins like a gzip file.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Inflates the gzip member at the start of `file` into `sink`, which answers whether to go on.
/// Returns how many bytes of `file` the member takes.
pub fn inflate(file: &[u8], sink: &mut dyn FnMut(&[u8]) -> bool) -> Result<usize, GzError> {
    let start = header_length(file)?;
    let mut state = Box::<DecompressorOxide>::default();
    let mut window = alloc::vec![0; WINDOW];
    let (mut at, mut out, mut total, mut crc) = (start, 0, 0_u32, !0_u32);
    loop {
        // Flags 0: raw deflate, the window wraps, and all input is present.
        let (status, read, written) = decompress(&mut state, &file[at..], &mut window, out, 0);
        at += read;
        let piece = &window[out..out + written];
        crc = crc32(crc, piece);
        total = total.wrapping_add(written as u32);
        if !sink(piece) {
            return Err(GzError::Sink);
        }
        out = (out + written) % WINDOW;
        match status {
            TINFLStatus::HasMoreOutput => {}
            TINFLStatus::Done => break,
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress => return Err(GzError::Truncated),
            _ => return Err(GzError::Data),
        }
    }
    let trailer = file.get(at..at + 8).ok_or(GzError::Truncated)?;
    let word =
        |from: usize| u32::from_le_bytes([trailer[from], trailer[from + 1], trailer[from + 2], trailer[from + 3]]);
    if word(0) == !crc && word(4) == total { Ok(at + 8) } else { Err(GzError::Checksum) }
}

fn header_length(file: &[u8]) -> Result<usize, GzError> {
    let header = file.get(..10).ok_or(GzError::Truncated)?;
    if !is_gzip(header) || header[2] != 8 {
        return Err(GzError::Header);
    }
    let flags = header[3];
    let mut at = 10;
    if flags & HAS_EXTRA != 0 {
        let length = file.get(at..at + 2).ok_or(GzError::Truncated)?;
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            let rest = file.get(at..).ok_or(GzError::Truncated)?;
            at += rest.iter().position(|&byte| byte == 0).ok_or(GzError::Truncated)? + 1;
        }
    }
    if flags & HAS_CRC != 0 {
        at += 2;
    }
    if at <= file.len() { Ok(at) } else { Err(GzError::Truncated) }
}

fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| CRC_TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

static CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 != 0 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use std::io::Write as _;

    fn packed(body: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::GzBuilder::new().filename("initramfs").write(Vec::new(), flate2::Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    fn body() -> Vec<u8> {
        (0..300_000_u32).flat_map(|n| (n.wrapping_mul(n) / 7).to_le_bytes()).collect()
    }

    #[test]
    fn output_larger_than_the_window_arrives_whole() {
        let (body, mut out) = (body(), Vec::new());
        let mut file = packed(&body);
        let length = file.len();
        file.extend_from_slice(b"tail");
        let taken = inflate(&file, &mut |piece| {
            out.extend_from_slice(piece);
            true
        });
        assert_eq!(taken, Ok(length));
        assert!(out == body);
    }

    #[test]
    fn every_cut_and_a_flipped_checksum_are_reported() {
        let file = packed(&body()[..5000]);
        for cut in 0..file.len() {
            assert!(inflate(&file[..cut], &mut |_| true).is_err(), "cut at {cut}");
        }
        let mut flipped = file.clone();
        let crc = flipped.len() - 8;
        flipped[crc] ^= 1;
        assert_eq!(inflate(&flipped, &mut |_| true), Err(GzError::Checksum));
        assert_eq!(inflate(b"not gzip at all", &mut |_| true), Err(GzError::Header));
    }

    #[test]
    fn a_sink_that_is_full_stops_the_work() {
        assert_eq!(inflate(&packed(&body()), &mut |_| false), Err(GzError::Sink));
    }
}
