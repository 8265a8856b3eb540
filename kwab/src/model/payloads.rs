//! Sections of a dump on demand: read and checked when they are asked for, a bounded number of bytes of them kept.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use kwab_format::{Defect, RawRecord, Records};

use super::DumpFile;
use super::memory::Payload;

/// Bytes of payloads that are kept.
const KEPT: usize = 16 << 20;
/// Payloads that are kept, however small: each look goes through them.
const MOST_KEPT: usize = 64;

/// A dump whose sections are read as they are needed; may be shared between threads.
#[derive(Debug)]
pub struct Payloads<F = Arc<DumpFile>> {
    file: F,
    /// The payloads that were asked for last, the newest at the end.
    recent: Mutex<Vec<(usize, Arc<Payload>)>>,
}

impl<F: Deref<Target = DumpFile>> Payloads<F> {
    /// Reads the sections of `file`.
    #[must_use]
    pub fn new(file: F) -> Self {
        Self { file, recent: Mutex::new(Vec::new()) }
    }

    /// The open dump whose payloads these are.
    #[must_use]
    pub fn file(&self) -> &DumpFile {
        &self.file
    }

    /// The records of section `index`.
    ///
    /// # Errors
    /// The defect that makes them unusable, as [`DumpFile::payload`]; an index that the dump does not have counts as an
    /// empty section.
    pub fn get(&self, index: usize) -> Result<Arc<Payload>, Defect> {
        if let Some(payload) = self.kept(index) {
            return Ok(payload);
        }
        if index >= self.file.sections.len() {
            return Ok(Arc::default());
        }
        // Read without the lock: a pass over everything in the background must not delay other readers.
        let payload = Arc::new(self.file.payload(index)?);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(number, _)| *number != index);
        recent.push((index, Arc::clone(&payload)));
        let mut bytes: usize = recent.iter().map(|(_, payload)| payload.len()).sum();
        while (bytes > KEPT || recent.len() > MOST_KEPT) && recent.len() > 1 {
            bytes -= recent.remove(0).1.len();
        }
        Ok(payload)
    }

    /// A section that was read lately, which makes it the newest.
    fn kept(&self, index: usize) -> Option<Arc<Payload>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let at = recent.iter().position(|(number, _)| *number == index)?;
        let found = recent.remove(at);
        let payload = Arc::clone(&found.1);
        recent.push(found);
        Some(payload)
    }

    /// Calls `look` with the record that begins at `offset` of section `index`; `None` when there is none.
    pub fn record<R>(&self, index: usize, offset: usize, look: impl FnOnce(RawRecord<'_>) -> R) -> Option<R> {
        let payload = self.get(index).ok()?;
        Records::new(payload.get(offset..)?).next().map(look)
    }
}
