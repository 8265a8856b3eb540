//! The pages of a file of the pool (`memfd_create` with `MFD_HUGETLB`): 2 MiB at a time, shared by all who map it.
//!
//! A mapping has what it shows promised to the file, where it stays promised until the file is cut there or goes; a
//! page that is touched without is taken out of what the pool has promised to none. Private mappings show the file's
//! pages too, and their copies are ordinary memory, where Linux takes further pages of the pool.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;

use linux_abi::Errno;
use machine::addr::{FrameNumber, HUGE_PAGES};
use machine::frame::Frame;
use machine::sync::SpinLock;

use super::{Reservation, ReverseMap, pool};

/// The pages of one file.
pub struct PoolFile {
    /// By their number; `None` is promised.
    pages: SpinLock<BTreeMap<u64, Option<Frame>>>,
    promise: Arc<Reservation>,
    mappers: ReverseMap,
}

impl PoolFile {
    /// An empty file.
    pub fn empty() -> Self {
        Self { pages: SpinLock::new(BTreeMap::new()), promise: Reservation::none(), mappers: ReverseMap::new() }
    }

    /// Has the pages of 2 MiB `first..end` promised that it has not: ENOMEM if the pool has not as many. One caller at
    /// a time, and none that cuts meanwhile.
    pub fn reserve(&self, first: u64, end: u64) -> Result<(), Errno> {
        let there = self.pages.lock().range(first..end).count();
        let missing = (end - first) as usize - there;
        self.promise.add(missing)?;
        let mut pages = self.pages.lock();
        let before = pages.len();
        for number in first..end {
            pages.entry(number).or_insert(None);
        }
        let made = pages.len() - before;
        drop(pages);
        // Touches took some meanwhile.
        self.promise.release(missing - made);
        Ok(())
    }

    /// The frame of page `index` of 4 KiB, taken from the pool at the first touch of its 2 MiB. ENXIO where
    /// `is_in_file` says no, or the pool has none left; it is asked with the pages locked, so that none comes behind a
    /// cut.
    pub fn page(&self, index: u64, is_in_file: impl FnOnce() -> bool) -> Result<Frame, Errno> {
        let (number, piece) = (index / HUGE_PAGES as u64, index as usize % HUGE_PAGES);
        let mut pages = self.pages.lock();
        if !is_in_file() {
            return Err(Errno::ENXIO);
        }
        let taken = match pages.get(&number) {
            Some(Some(block)) => return block.sub(piece).ok_or(Errno::ENXIO),
            Some(None) => self.promise.take(),
            None => self.promise.take_free(),
        };
        let (page, block) = taken.map_err(Errno::from)?;
        page.used();
        let found = block.sub(piece).ok_or(Errno::ENXIO);
        pages.insert(number, Some(block));
        found
    }

    /// The frame of page `index` of 4 KiB, if it was touched.
    pub fn touched(&self, index: u64) -> Option<Frame> {
        let pages = self.pages.lock();
        pages.get(&(index / HUGE_PAGES as u64))?.as_ref()?.sub(index as usize % HUGE_PAGES)
    }

    /// The number of that frame, unless a stopped processor has the pages locked.
    pub fn present(&self, index: u64) -> Option<FrameNumber> {
        let pages = self.pages.try_lock()?;
        let block = pages.get(&(index / HUGE_PAGES as u64))?.as_ref()?;
        Some(FrameNumber(block.number().0 + (index % HUGE_PAGES as u64) as u32))
    }

    /// Takes the pages of 2 MiB `first..end` and what was promised of them out of the file; `unmap` then unmaps them
    /// everywhere, and the pool has them back.
    pub fn cut(&self, first: u64, end: u64, unmap: impl FnOnce(&ReverseMap)) {
        let gone = {
            let mut pages = self.pages.lock();
            let mut gone = pages.split_off(&first);
            let mut rest = gone.split_off(&end);
            pages.append(&mut rest);
            gone
        };
        let touched = gone.values().flatten().count();
        let promised = gone.len() - touched;
        drop(gone);
        unmap(&self.mappers);
        self.promise.release(promised);
        if touched > 0 {
            pool::put(touched);
        }
    }

    /// Pages of 2 MiB that were touched.
    pub fn held(&self) -> u64 {
        self.pages.lock().values().flatten().count() as u64
    }

    /// Who has mapped it.
    pub fn mappers(&self) -> &ReverseMap {
        &self.mappers
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        self.cut(0, u64::MAX, |_| ());
    }
}
