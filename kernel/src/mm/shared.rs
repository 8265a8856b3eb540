//! Anonymous memory that several processes share: frames by page number, made when first touched.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use linux_abi::Errno;
use machine::addr::HUGE_PAGES;
use machine::frame::Frame;
use machine::sync::SpinLock;

use super::{Reservation, ReverseMap, pool};

/// Anonymous pages that several address spaces map (`MAP_SHARED | MAP_ANONYMOUS`).
pub struct SharedMemory {
    pages: SpinLock<BTreeMap<u64, Frame>>,
    /// Number of pages it may have.
    limit: u64,
    /// Its pages are the pool's: what it was promised, and how many it has taken.
    pool: Option<Arc<Reservation>>,
    taken: AtomicUsize,
    id: u64,
    mappers: ReverseMap,
}

/// Pages of all shared memory but the pool's.
static PAGES: AtomicUsize = AtomicUsize::new(0);

/// The next number of [`SharedMemory::id`].
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl SharedMemory {
    /// Room for `limit` pages.
    pub fn new(limit: u64) -> Arc<Self> {
        Self::made_of(limit, None)
    }

    /// Room for `limit` pages of the pool.
    pub fn of_pool(limit: u64, promise: Arc<Reservation>) -> Arc<Self> {
        Self::made_of(limit, Some(promise))
    }

    fn made_of(limit: u64, pool: Option<Arc<Reservation>>) -> Arc<Self> {
        let id = NEXT_ID.fetch_add(1, Relaxed);
        let (pages, mappers) = (SpinLock::new(BTreeMap::new()), ReverseMap::new());
        Arc::new(Self { pages, limit, pool, taken: AtomicUsize::new(0), id, mappers })
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
        if let Some(promise) = &self.pool {
            let (page, block) = promise.take().map_err(Errno::from)?;
            page.used();
            self.taken.fetch_add(1, Relaxed);
            let first = index - index % HUGE_PAGES as u64;
            pages.extend((0..HUGE_PAGES).filter_map(|at| Some((first + at as u64, block.sub(at)?))));
            return pages.get(&index).cloned().ok_or(Errno::ENXIO);
        }
        let frame = Frame::alloc_zeroed().map_err(|_| Errno::ENOMEM)?;
        pages.insert(index, frame.clone());
        PAGES.fetch_add(1, Relaxed);
        Ok(frame)
    }

    /// Pages of all shared memory; those of the pool are counted there.
    pub fn pages() -> usize {
        PAGES.load(Relaxed)
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
        if self.pool.is_none() {
            PAGES.fetch_sub(tail.len(), Relaxed);
        }
        drop(tail);
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        if taken > 0 {
            self.pages.get_mut().clear();
            pool::put(taken);
        } else if self.pool.is_none() {
            PAGES.fetch_sub(self.pages.get_mut().len(), Relaxed);
        }
    }
}
