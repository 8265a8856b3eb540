//! What a program's file says of itself, kept beside its pages: read and checked once for all executions.
//!
//! [`Headers`] hold for one generation of the file's contents, noted before they were read. While a file is executed it
//! cannot be written, so one that was is of another generation by the next execution.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernel_logic::elf::{Header, Image};
use linux_abi::Errno;
use machine::sync::SpinLock;

use crate::mm::frames;

/// Loadable segments of headers that are kept; linkers make four or five.
const MOST_SEGMENTS: usize = 16;
/// Bytes of the interpreter's path in headers that are kept.
const LONGEST_PATH: usize = 128;

/// The checked headers of an ELF file.
#[derive(Debug)]
pub struct Headers {
    generation: u64,
    /// The file header.
    pub header: Header,
    /// The loadable segments.
    pub image: Image,
    /// The path of the interpreter, without its NUL, or why the file cannot be run; `None` for one that needs none.
    pub interpreter: Option<Result<Vec<u8>, Errno>>,
}

impl Headers {
    /// Those of a file that was of this generation before it was read.
    pub fn new(generation: u64, header: Header, image: Image, interpreter: Option<Result<Vec<u8>, Errno>>) -> Self {
        Self { generation, header, image, interpreter }
    }
}

/// A file's headers, beside its pages.
pub struct HeaderSlot {
    held: SpinLock<Option<Arc<Headers>>>,
}

impl HeaderSlot {
    /// For a file that was not executed yet.
    pub const fn new() -> Self {
        Self { held: SpinLock::new(None) }
    }

    /// Those of the contents of this generation, if they are kept.
    pub fn get(&self, generation: u64) -> Option<Arc<Headers>> {
        let mut held = self.held.lock();
        let headers = held.as_ref()?;
        if headers.generation != generation || frames::is_low() {
            drop(held.take());
            COUNTS[2].fetch_add(1, Relaxed);
            return None;
        }
        COUNTS[0].fetch_add(1, Relaxed);
        Some(headers.clone())
    }

    /// Keeps them for the next execution, while memory is not low and if they are as small as those of programs are:
    /// kept headers are charged to none, and a file may be full of them.
    pub fn put(&self, headers: &Arc<Headers>) {
        COUNTS[1].fetch_add(1, Relaxed);
        let path = headers.interpreter.as_ref().and_then(|path| path.as_ref().ok()).map_or(0, Vec::len);
        let is_small = headers.image.segments.len() <= MOST_SEGMENTS && path <= LONGEST_PATH;
        if is_small && !frames::is_low() {
            *self.held.lock() = Some(headers.clone());
        }
    }
}

impl Default for HeaderSlot {
    fn default() -> Self {
        Self::new()
    }
}

/// Headers that were there, that were read, and that were over when they were asked for, since boot.
static COUNTS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// [`COUNTS`] and their names.
pub fn counts() -> [(&'static str, u64); 3] {
    let [hits, read, stale] = [0, 1, 2].map(|which: usize| COUNTS[which].load(Relaxed));
    [("hits", hits), ("read", read), ("stale", stale)]
}
