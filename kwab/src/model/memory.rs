//! How much memory reading one dump may take: 64 MiB and four times the file, unless the user says otherwise.
//!
//! A dump of 263 KB can claim to unpack to gigabytes, and four bytes can be a record that takes half a kilobyte when it
//! is decoded. [`Budget`] counts what is held: the file's bytes when they are in memory, unpacked payloads for as long
//! as they live ([`Payload`]), and decoded records. A reader that finds it used up leaves the rest out and notes
//! [`DefectKind::NotRead`].

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kwab_format::{Defect, DefectKind};

use super::SectionInfo;
use crate::units;

/// What reading a dump of any size may take.
const BASE: u64 = 64 << 20;
/// What it may take for each byte of the file.
const PER_BYTE: u64 = 4;
/// What of that is not counted: the program, its report, buffers of the output.
const RESERVED: u64 = 32 << 20;
/// The least that is left for decoding, however low the limit is.
const LEAST: u64 = 1 << 20;
/// What is held of a stream without a limit of the user's.
const LONGEST_STREAM: u64 = 1 << 30;
/// What is read of a character device: what a person types, not `/dev/zero`.
const LONGEST_DEVICE: u64 = 16 << 20;

/// The limit of this process in bytes; 0 means by the size of the file.
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// Sets the limit for dumps that are opened from now on; `None` goes by the size of the file.
pub fn set_limit(bytes: Option<u64>) {
    LIMIT.store(bytes.unwrap_or(0), Ordering::Relaxed);
}

/// Reads a stream, whose length nothing tells before its end, up to the limit that the user has set, or 1 GiB.
///
/// # Errors
/// Those of the stream, and when it goes on behind the limit.
pub fn read_stream(stream: impl Read) -> io::Result<Vec<u8>> {
    let limit = match LIMIT.load(Ordering::Relaxed) {
        0 => LONGEST_STREAM,
        set => set.saturating_sub(RESERVED).max(LEAST),
    };
    let more =
        |limit| format!("a stream of more than {limit}, which is all that --max-mem lets be held; give it as a file");
    read_most(stream, limit, more)
}

/// Reads an open file that is not a regular one: a pipe as [`read_stream`] does, and less of a character device, which
/// may have no end.
///
/// # Errors
/// As [`read_stream`].
pub fn read_unsized(file: File) -> io::Result<Vec<u8>> {
    if file.metadata()?.file_type().is_char_device() {
        return read_most(file, LONGEST_DEVICE, |limit| format!("a device that gives more than {limit}; name a file"));
    }
    read_stream(file)
}

fn read_most(stream: impl Read, limit: u64, more: impl Fn(String) -> String) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(more(units::bytes(limit))));
    }
    Ok(bytes)
}

/// The most that a compressed file of `length` bytes is unpacked to in memory: what images and archives grow by, and
/// not a bomb of zeros.
#[must_use]
pub fn most_unpacked(length: u64, most: u64) -> u64 {
    /// Images with debug information shrink to a fifth, archives of text to a tenth.
    const GROWTH: u64 = 40;
    let limit = match LIMIT.load(Ordering::Relaxed) {
        0 => u64::MAX,
        set => set,
    };
    BASE.saturating_add(length.saturating_mul(GROWTH)).min(most).min(limit)
}

/// What decoding a dump may hold.
#[derive(Debug)]
pub struct Budget {
    left: AtomicU64,
    total: u64,
}

impl Budget {
    /// The budget of a dump whose file has `length` bytes, `held` of which are in memory.
    #[must_use]
    pub fn of(length: u64, held: u64) -> Self {
        let limit = match LIMIT.load(Ordering::Relaxed) {
            0 => BASE.saturating_add(length.saturating_mul(PER_BYTE)),
            set => set,
        };
        let total = limit.saturating_sub(RESERVED).saturating_sub(held).max(LEAST);
        Self { left: AtomicU64::new(total), total }
    }

    /// What is left, bytes.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// What there was in the beginning, bytes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Takes `bytes`, or nothing when less is left.
    #[must_use]
    pub fn take(&self, bytes: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Gives back what was taken.
    pub fn give(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The records of a section in memory; counted in the budget of their dump while they live.
#[derive(Debug, Default)]
pub struct Payload {
    bytes: Vec<u8>,
    taken: u64,
    budget: Option<Arc<Budget>>,
}

impl Payload {
    /// Takes room for `length` bytes, which `fill` then provides.
    ///
    /// # Errors
    /// That of `fill`, or [`DefectKind::NotRead`] when the budget has no room.
    pub(super) fn new(
        budget: &Arc<Budget>,
        info: &SectionInfo,
        length: usize,
        fill: impl FnOnce() -> Result<Vec<u8>, Defect>,
    ) -> Result<Self, Defect> {
        if !budget.take(length as u64) {
            return Err(not_read(info, 0, info.header.total_len()));
        }
        let mut payload = Self { bytes: Vec::new(), taken: length as u64, budget: Some(Arc::clone(budget)) };
        payload.bytes = fill()?;
        Ok(payload)
    }

    /// Drops what is behind the first `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.bytes.shrink_to_fit();
        let kept = (length as u64).min(self.taken);
        if let Some(budget) = &self.budget {
            budget.give(self.taken - kept);
        }
        self.taken = kept;
    }

    /// Holds these bytes instead, which are counted as far as there is room.
    pub(crate) fn replace(&mut self, bytes: Vec<u8>) {
        let length = bytes.len() as u64;
        self.bytes = bytes;
        self.bytes.shrink_to_fit();
        if let Some(budget) = &self.budget {
            budget.give(self.taken);
            self.taken = if budget.take(length) { length } else { 0 };
        }
    }
}

impl Deref for Payload {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give(self.taken);
        }
    }
}

/// A sound section of which only the first `records` were read, and `bytes` were not.
pub(crate) fn not_read(info: &SectionInfo, records: u32, bytes: u64) -> Defect {
    let header = &info.header;
    let kind = DefectKind::NotRead { records, claimed: header.records.max(records) };
    Defect::new(kind, info.offset, bytes).blame(header.seq, header.seq, Some(header.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_missing_until_it_is_given_back() {
        let budget = Budget::of(1 << 20, 1 << 20);
        assert_eq!(budget.left(), BASE + 4 * (1 << 20) - RESERVED - (1 << 20));
        let left = budget.left();
        assert!(budget.take(left) && !budget.take(1));
        budget.give(10);
        assert_eq!(budget.left(), 10);
    }
}
