//! Reads the files of an initramfs: `newc` archives, plain or gzip, several behind each other.
//!
//! Format: Linux, `Documentation/driver-api/early-userspace/buffer-format.rst`.

use std::io::{self, Read};
use std::path::Path;

use super::regular;
use crate::model::memory;

/// The largest initramfs that is unpacked.
pub const MAX_UNPACKED: u64 = 1 << 30;

/// A file of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveFile<'a> {
    /// Path, without a leading slash.
    pub name: &'a str,
    /// Mode bits as `stat` has them.
    pub mode: u32,
    /// Contents of the file; empty for a directory.
    pub data: &'a [u8],
}

impl ArchiveFile<'_> {
    /// Whether it is a regular file.
    #[must_use]
    pub const fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// The most that an archive is unpacked to; one that holds more is not an initramfs.
#[must_use]
pub fn most_unpacked(bytes: &[u8]) -> u64 {
    if is_packed(bytes) { memory::most_unpacked(bytes.len() as u64, MAX_UNPACKED) } else { bytes.len() as u64 }
}

fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Unpacks gzip members and leaves plain archives as they are; what cannot be unpacked ends the result, and so does a
/// byte more than [`most_unpacked`].
#[must_use]
pub fn unpack(bytes: &[u8]) -> Vec<u8> {
    if !is_packed(bytes) {
        return bytes.to_vec();
    }
    let mut out = Vec::new();
    // An error leaves what was unpacked before it, which is what a damaged archive still holds.
    let _ = flate2::read::MultiGzDecoder::new(bytes).take(most_unpacked(bytes) + 1).read_to_end(&mut out);
    out
}

/// The first bytes of a file: enough for [`is_archive`]. Only a regular file is opened, because a device or a pipe may
/// have no end.
///
/// # Errors
/// Those of the system, and for what is not a regular file.
pub fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    regular::open(path)?.take(6).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether the bytes begin an archive that [`unpack`] and [`entries`] understand.
#[must_use]
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"070701") || bytes.starts_with(b"070702") || bytes.starts_with(&[0x1f, 0x8b])
}

/// The entries of unpacked archives; ends at the first one that is not whole.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = ArchiveFile<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            // Archives are padded with zeros, and a further one may follow.
            at += bytes.get(at..)?.iter().position(|&byte| byte != 0)?;
            let (entry, next) = entry(bytes, at)?;
            at = next;
            if entry.name != "TRAILER!!!" {
                return Some(entry);
            }
        }
    })
}

fn entry(bytes: &[u8], at: usize) -> Option<(ArchiveFile<'_>, usize)> {
    let header = bytes.get(at..at.checked_add(110)?)?;
    if !matches!(header.get(..6)?, b"070701" | b"070702") {
        return None;
    }
    let field = |number: usize| {
        let text = std::str::from_utf8(header.get(6 + number * 8..14 + number * 8)?).ok()?;
        u32::from_str_radix(text, 16).ok()
    };
    let (mode, size, name_size) = (field(1)?, field(6)? as usize, field(11)? as usize);
    let name_at = at + 110;
    let name = bytes.get(name_at..name_at.checked_add(name_size)?)?;
    let name = std::str::from_utf8(name.split(|&byte| byte == 0).next()?).ok()?;
    let data_at = (name_at + name_size).next_multiple_of(4);
    let data = bytes.get(data_at..data_at.checked_add(size)?)?;
    let name = name.trim_start_matches("./").trim_start_matches('/');
    Some((ArchiveFile { name, mode, data }, (data_at + size).next_multiple_of(4)))
}
