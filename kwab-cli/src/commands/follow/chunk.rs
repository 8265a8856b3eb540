//! What a reader of a console hands over.

use std::io::{self, Read};
use std::sync::mpsc::SyncSender;
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
    Failed(io::Error),
}

impl Chunk {
    /// Bytes that were read just now.
    pub(super) fn read(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes, Instant::now())
    }
}

/// How reading a stream ended.
pub(super) enum End {
    /// It has ended with this byte.
    Closed(Option<u8>),
    /// The system refused.
    Failed(io::Error),
    /// What it says is not taken any more.
    Unheard,
}

/// Hands over a stream.
pub(super) fn drain(mut stream: impl Read, sender: &SyncSender<Chunk>) -> End {
    let mut buffer = vec![0; READ];
    let mut last = None;
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return End::Closed(last),
            Ok(count) => {
                last = buffer[..count].last().copied();
                if sender.send(Chunk::read(buffer[..count].to_vec())).is_err() {
                    return End::Unheard;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A pseudo-terminal whose other side has gone.
            Err(error) if error.raw_os_error() == Some(EIO) => return End::Closed(last),
            Err(error) => return End::Failed(error),
        }
    }
}

/// Linux's number of an input/output error.
const EIO: i32 = 5;
