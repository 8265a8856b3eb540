//! What a reader of a console hands over.

/// Bytes read at once.
pub(super) const READ: usize = 64 << 10;

/// A piece of the console.
pub(super) enum Chunk {
    /// Bytes, at least one.
    Bytes(Vec<u8>),
    /// So many files of this name were renamed away or deleted before they could be read.
    Skipped(u64),
    /// Reading failed; nothing follows.
    Failed(std::io::Error),
}
