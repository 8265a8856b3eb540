//! Anonymous memory that several processes share: frames by page number, made when first touched.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use linux_abi::Errno;
use machine::frame::Frame;
use machine::sync::SpinLock;

use super::ReverseMap;

/// Anonymous pages that several address spaces map (`MAP_SHARED | MAP_ANONYMOUS`).
pub struct SharedMemory {
    pages: SpinLock<BTreeMap<u64, Frame>>,
    /// Number of pages it may have.
    limit: u64,
    id: u64,
    mappers: ReverseMap,
}

/// The next number of [`SharedMemory::id`].
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl SharedMemory {
    /// Room for `limit` pages.
    pub fn new(limit: u64) -> Arc<Self> {
        let id = NEXT_ID.fetch_add(1, Relaxed);
        Arc::new(Self { pages: SpinLock::new(BTreeMap::new()), limit, id, mappers: ReverseMap::new() })
    }

    /// A number that no other shared memory ever has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The page with this number, zeros if it was not touched yet.
    pub fn page(&self, index: u64) -> Result<Frame, Errno> {
        if index >= self.limit {
            return Err(Errno::ENXIO);
        }
        let mut pages = self.pages.lock();
        if let Some(frame) = pages.get(&index) {
            return Ok(frame.clone());
        }
        let frame = Frame::alloc_zeroed().map_err(|_| Errno::ENOMEM)?;
        pages.insert(index, frame.clone());
        Ok(frame)
    }

    /// Pages it has.
    pub fn held_pages(&self) -> u64 {
        self.pages.lock().len() as u64
    }

    /// Who has mapped it.
    pub(super) fn mappers(&self) -> &ReverseMap {
        &self.mappers
    }

    /// Pages `first..last` are a hole now, for all that have mapped it (`MADV_REMOVE`). No address space is locked.
    pub fn punch(&self, first: u64, last: u64) {
        self.forget(first, last);
        self.mappers.punch(first, last);
    }

    fn forget(&self, first: u64, last: u64) {
        let mut pages = self.pages.lock();
        let mut tail = pages.split_off(&first);
        let mut rest = tail.split_off(&last);
        pages.append(&mut rest);
        drop(pages);
        drop(tail);
    }
}
