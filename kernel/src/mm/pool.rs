//! The pool of 2 MiB pages that programs ask for by name (`MAP_HUGETLB`): how many there are, who has reserved some,
//! and how a touched page becomes one.
//!
//! A page of the pool is a block of frames kept back for it. A mapping reserves what it may touch when it is made, so
//! that no touch of it finds the pool empty; one without (`MAP_NORESERVE`, a child of a fork) takes what no mapping has
//! reserved, and is refused without. A page that is given back is frames like others, and its place in the pool is
//! filled from free memory: at once, or when it is taken. Where the pool has too few, mappings may have some beyond it
//! (`vm.nr_overcommit_hugepages`), which are no longer pages of the pool when they are given back.
//!
//! Private pages are 2 MiB leaves with [`TAG_POOL`], which a fork shares as 4 KiB ones: the parent's count further, the
//! child's are ordinary memory. Linux copies 2 MiB at a write and may refuse the child one.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use kernel_logic::huge::{self, HUGE};
use kernel_logic::vma::{PAGE, VmaFlags};
use linux_abi::Errno;
use machine::addr::{HUGE_PAGES, PageRange, UserPage};
use machine::frame::{Frame, drain_magazines};
use machine::space::MapError;
use machine::sync::SpinLock;

use super::{AddressSpace, Backing, Map, TAG_ANON, TAG_POOL, Vma, frames, rights};
use crate::sched::breathe;

static POOL: SpinLock<Pool> =
    SpinLock::new(Pool { wanted: 0, beyond: 0, total: 0, free: 0, reserved: 0, blocks: Vec::new() });
/// Whether there ever was a pool, or a mapping of it.
static IN_USE: AtomicBool = AtomicBool::new(false);

struct Pool {
    /// As many as were asked for (`vm.nr_hugepages`).
    wanted: usize,
    /// The most there may be beyond that while mappings need them (`vm.nr_overcommit_hugepages`).
    beyond: usize,
    total: usize,
    /// Not touched, reserved ones among them.
    free: usize,
    reserved: usize,
    /// Blocks of free ones; where one is missing it is taken from free memory.
    blocks: Vec<Frame>,
}

/// Why a page of the pool cannot be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The range does not cover one whole.
    Range,
    /// None is left that is not promised to another.
    Page,
    /// A frame for tables.
    Frame,
}

impl From<Missing> for Errno {
    /// What a file of pages of the pool answers a fault: the end of the pool is met as the end of the file is (SIGBUS).
    fn from(missing: Missing) -> Self {
        if missing == Missing::Frame { Errno::ENOMEM } else { Errno::ENXIO }
    }
}

/// The pool's pages, as `/proc/meminfo` shows them.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// All there are.
    pub total: usize,
    /// Those that nothing has touched.
    pub free: usize,
    /// Of these, those promised to a mapping.
    pub reserved: usize,
    /// More than were asked for: they go when they are given back.
    pub surplus: usize,
}

/// What the pool has now.
pub fn counts() -> Counts {
    let pool = POOL.lock();
    let surplus = pool.total.saturating_sub(pool.wanted);
    Counts { total: pool.total, free: pool.free, reserved: pool.reserved, surplus }
}

/// Makes the pool `wanted` pages large, as far as memory is plentiful; those in use or reserved stay.
pub fn resize(wanted: usize) {
    IN_USE.store(true, Relaxed);
    POOL.lock().wanted = wanted;
    loop {
        let (total, wanted, idle) = {
            let pool = POOL.lock();
            (pool.total, pool.wanted, pool.free - pool.reserved)
        };
        if total > wanted && idle > 0 {
            drop(shrink());
        } else if total >= wanted || !grow() {
            break;
        }
        breathe();
    }
    let mut pool = POOL.lock();
    pool.wanted = pool.wanted.min(pool.total);
}

/// The most pages that mappings may have beyond those that were asked for.
pub fn overcommit() -> usize {
    POOL.lock().beyond
}

/// Sets it: pages beyond it stay until they are given back.
pub fn set_overcommit(most: usize) {
    IN_USE.store(true, Relaxed);
    POOL.lock().beyond = most;
}

/// One page more for a mapping that finds none, which goes when it is given back: [`Missing::Page`] if there may be
/// none or memory is short.
fn exceed() -> Result<(), Missing> {
    let may = |pool: &Pool| pool.total.saturating_sub(pool.wanted) < pool.beyond;
    if !may(&POOL.lock()) || !frames::is_plentiful(HUGE_PAGES) {
        return Err(Missing::Page);
    }
    let made = block().ok_or(Missing::Page)?;
    let mut pool = POOL.lock();
    if may(&pool) {
        pool.total += 1;
        pool.free += 1;
        pool.blocks.push(made);
    }
    Ok(())
}

/// One page more; `false` without a block for it.
fn grow() -> bool {
    if !frames::is_plentiful(HUGE_PAGES) {
        return false;
    }
    let Some(made) = block() else { return false };
    let mut pool = POOL.lock();
    if pool.total < pool.wanted {
        pool.total += 1;
        pool.free += 1;
        pool.blocks.push(made);
    }
    true
}

/// One page less that is neither used nor reserved: its block, if it has one. `None` if there is none too many.
fn shrink() -> Option<Option<Frame>> {
    let mut pool = POOL.lock();
    if pool.free == pool.reserved || pool.total <= pool.wanted {
        return None;
    }
    pool.free -= 1;
    pool.total -= 1;
    Some(pool.blocks.pop())
}

fn block() -> Option<Frame> {
    let order = HUGE_PAGES.ilog2() as u8;
    Frame::alloc_block(order).ok().or_else(|| {
        drain_magazines();
        Frame::alloc_block(order).ok()
    })
}

/// Gives touched pages back, whose frames are free already or soon.
pub(super) fn put(count: usize) {
    let short = {
        let mut pool = POOL.lock();
        let surplus = pool.total.saturating_sub(pool.wanted).min(count);
        pool.total -= surplus;
        pool.free += count - surplus;
        pool.free - pool.blocks.len().min(pool.free)
    };
    for _ in 0..short {
        if frames::is_low() {
            return;
        }
        let Ok(block) = Frame::alloc_block(HUGE_PAGES.ilog2() as u8) else { return };
        let mut pool = POOL.lock();
        if pool.blocks.len() < pool.free {
            pool.blocks.push(block);
        }
    }
}

/// Pages promised to a mapping that it has not touched yet.
pub struct Reservation {
    left: AtomicUsize,
}

impl Reservation {
    /// Reserves so many pages: ENOMEM if there are not as many.
    pub fn of(pages: usize) -> Result<Arc<Self>, Errno> {
        let promise = Self::none();
        promise.add(pages)?;
        Ok(promise)
    }

    /// Reserves so many more, with pages beyond what was asked for where there may be: ENOMEM without. No lock is held.
    pub(super) fn add(&self, pages: usize) -> Result<(), Errno> {
        loop {
            let mut pool = POOL.lock();
            if pool.free - pool.reserved >= pages {
                pool.reserved += pages;
                break;
            }
            let possible = pages <= pool.wanted.saturating_add(pool.beyond).max(pool.total);
            drop(pool);
            if !possible || exceed().is_err() {
                while let Some(block) = shrink() {
                    drop(block);
                }
                return Err(Errno::ENOMEM);
            }
            breathe();
        }
        self.left.fetch_add(pages, Relaxed);
        Ok(())
    }

    /// No page: each is taken as it is touched, if there is one.
    pub fn none() -> Arc<Self> {
        IN_USE.store(true, Relaxed);
        Arc::new(Self { left: AtomicUsize::new(0) })
    }

    /// The count of a page and 2 MiB of zeros for a touch, out of what was promised first.
    pub(super) fn take(&self) -> Result<(Taken<'_>, Frame), Missing> {
        let promised = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        self.take_one(promised)
    }

    /// The same, out of what is promised to none.
    pub(super) fn take_free(&self) -> Result<(Taken<'_>, Frame), Missing> {
        self.take_one(false)
    }

    fn take_one(&self, promised: bool) -> Result<(Taken<'_>, Frame), Missing> {
        let kept = loop {
            let mut pool = POOL.lock();
            if promised || pool.free > pool.reserved {
                pool.reserved -= usize::from(promised);
                pool.free -= 1;
                break pool.blocks.pop();
            }
            drop(pool);
            exceed()?;
        };
        // Given back if there is no block for it.
        let taken = Taken { from: self, promised, used: false };
        let block = kept.or_else(block).ok_or(Missing::Frame)?;
        block.zero(0, HUGE as usize);
        Ok((taken, block))
    }

    /// Takes back the promise of up to so many pages.
    pub(super) fn release(&self, pages: usize) {
        let most = |left: usize| Some(left.saturating_sub(pages));
        // The closure never declines.
        let before = self.left.fetch_update(Relaxed, Relaxed, most).unwrap_or_else(|left| left);
        let released = before.min(pages);
        POOL.lock().reserved -= released;
        // Of a pool that was made smaller meanwhile, what nothing touched goes as what is given back does.
        for _ in 0..released {
            let Some(block) = shrink() else { break };
            drop(block);
        }
    }
}

/// A page that was taken out of the pool's counts. Unless it is used it goes back, and the promise with it: what fails
/// for want of a frame is tried again, and finds what the mapping was promised.
#[must_use]
pub(super) struct Taken<'a> {
    from: &'a Reservation,
    promised: bool,
    used: bool,
}

impl Taken<'_> {
    /// The page is in use, and given back with [`put`].
    pub(super) fn used(mut self) {
        self.used = true;
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.used {
            return;
        }
        if self.promised {
            let mut pool = POOL.lock();
            pool.free += 1;
            pool.reserved += 1;
            drop(pool);
            self.from.left.fetch_add(1, Relaxed);
            put(0);
        } else {
            put(1);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(usize::MAX);
    }
}

/// Whether there may be mappings of the pool.
#[inline]
pub(super) fn is_in_use() -> bool {
    IN_USE.load(Relaxed)
}

/// EINVAL if an edge of `start..end` lies inside a page of the pool, which is never cut.
#[inline]
pub(super) fn check_edges(map: &Map, start: u64, end: u64) -> Result<(), Errno> {
    if is_in_use() { check_edges_now(map, start, end) } else { Ok(()) }
}

#[cold]
fn check_edges_now(map: &Map, start: u64, end: u64) -> Result<(), Errno> {
    let cuts = |at: u64| !at.is_multiple_of(HUGE) && map.vmas.find(at).is_some_and(is_of_pool);
    if cuts(start) || cuts(end) { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Whether a range's pages are the pool's.
pub fn is_of_pool(vma: &Vma) -> bool {
    vma.flags.has(VmaFlags::POOL)
}

impl AddressSpace {
    /// Maps a page of zeros of the pool around `page`.
    #[cold]
    pub(super) fn map_pool_page(&self, vma: &Vma, page: UserPage, from: &Reservation) -> Result<(), Missing> {
        let around = huge::block_around(vma.start, vma.end, page.addr());
        let first = around.and_then(UserPage::new).ok_or(Missing::Range)?;
        let (taken, block) = from.take()?;
        let prot = rights(vma.prot, true, TAG_POOL);
        match self.space.map_huge(first, block, prot) {
            Ok(()) => self.count(TAG_POOL, HUGE_PAGES as i64),
            Err((MapError::OutOfFrames, block)) => {
                drop(block);
                return Err(Missing::Frame);
            }
            // An empty table of small pages stands there.
            Err((MapError::Occupied, block)) => self.map_pieces(first, &block, prot)?,
        }
        taken.used();
        Ok(())
    }

    /// Maps a block as small pages, all or none. With the map locked and an empty table there none is missing, so that
    /// it cannot fail: but a part that stayed would be found occupied ever after, and its page counted by nothing.
    fn map_pieces(&self, first: UserPage, block: &Frame, prot: machine::space::Prot) -> Result<(), Missing> {
        for index in 0..HUGE_PAGES {
            let at = first.addr() + index as u64 * PAGE;
            let mapped = match (UserPage::new(at), block.sub(index)) {
                (Some(page), Some(piece)) => self.space.map(page, piece, prot).is_ok(),
                _ => false,
            };
            if !mapped {
                self.unmap_pages(first.addr(), at);
                return Err(Missing::Frame);
            }
            self.count(TAG_POOL, 1);
        }
        Ok(())
    }

    /// Small pages with [`TAG_POOL`] are gone from the tables.
    #[cold]
    pub(super) fn put_pool_pages(&self, pages: usize) {
        if pages != 0 && self.owns_pool_pages.load(Relaxed) {
            put(pages / HUGE_PAGES);
        }
    }

    /// Makes the pages that a fork shared with this space ordinary memory of it: they count as its parent's.
    #[inline]
    pub(super) fn disown_pool_pages(&self) {
        if self.resident[usize::from(TAG_POOL)].load(Relaxed) != 0 {
            self.disown_pool_pages_now();
        }
        self.owns_pool_pages.store(true, Relaxed);
    }

    #[cold]
    fn disown_pool_pages_now(&self) {
        let ranges: Vec<(u64, u64)> =
            self.lock().vmas.iter().filter(|vma| is_of_pool(vma)).map(|vma| (vma.start, vma.end)).collect();
        for (mut at, end) in ranges {
            while let Some(range) = PageRange::new(at, end).filter(|_| at < end) {
                at = self.space.reach(range, HUGE_PAGES);
                let Some(part) = PageRange::new(range.start(), at) else { break };
                let mut count = 0;
                // Small pages since the fork: no right changes, so none is split.
                let _ = self.space.protect(part, &mut |leaf| {
                    count += i64::from(leaf.prot.tag == TAG_POOL);
                    let tag = if leaf.prot.tag == TAG_POOL { TAG_ANON } else { leaf.prot.tag };
                    machine::space::Prot { tag, ..leaf.prot }
                });
                self.count(TAG_POOL, -count);
                self.count(TAG_ANON, count);
                breathe();
            }
        }
    }

    /// Takes the promise of what of `vma` nothing has touched back, before the range goes.
    pub(super) fn give_up_promise(&self, vma: &Vma) {
        let Backing::Pool { promise } = &vma.backing else { return };
        let Some(range) = PageRange::new(vma.start, vma.end) else { return };
        let mut touched = 0;
        self.space.for_each(range, &mut |_, leaf| touched += if leaf.huge { HUGE_PAGES } else { 1 });
        promise.release(((vma.bytes() / HUGE) as usize).saturating_sub(touched.div_ceil(HUGE_PAGES)));
    }
}
