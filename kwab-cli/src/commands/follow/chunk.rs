//! What a reader of a console hands over.

use std::time::Instant;

/// Bytes read at once.
pub(super) const READ: usize = 64 << 10;

/// A piece of the console.
pub(super) enum Chunk {
    /// Bytes, at least one, and when they were read.
    Bytes(Vec<u8>, Instant),
    /// So many files of this name were renamed away or deleted before they could be read.
    Skipped(u64),
    /// Reading failed; nothing follows.
    Failed(std::io::Error),
}

impl Chunk {
    /// Bytes that were read just now.
    pub(super) fn read(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes, Instant::now())
    }
}
