//! Reverse mappings: from a file, or shared memory, to the address spaces that may have pages of it.
//!
//! A file keeps one [`ReverseMap`] beside its pages. A space is entered before a page of the file can be mapped in it
//! and leaves when it is gone, so that cutting the file visits those that may have mapped it, not every process.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kernel_logic::vma::PAGE;
use linux_abi::Errno;
use machine::sync::SpinLock;

use super::{AddressSpace, Backing, Map, Vma, page_up};
use crate::sched::breathe;

/// The address spaces that may have pages of one file.
pub struct ReverseMap {
    spaces: SpinLock<Vec<Weak<AddressSpace>>>,
    /// What is being unmapped everywhere: pages that come to a place that was visited already are unmapped there.
    cuts: SpinLock<Vec<Cut>>,
}

/// Files and shared memory that are being cut now, of all. Raised before the spaces to visit are listed: who enters
/// later, or changes a map after its visit, finds it raised while the visit lasts.
static CUTS: AtomicUsize = AtomicUsize::new(0);

/// Pages of a file that its mappings are to lose.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// All from this offset in bytes on, private copies included: the file was truncated.
    From(u64),
    /// The file's own among the pages with these numbers: they are a hole.
    Hole { first: u64, last: u64 },
}

impl Cut {
    /// What `vma` shows of it, a range whose first byte has this offset in the file.
    fn shown_by(self, vma: &Vma, offset: u64) -> Option<(u64, u64)> {
        let (begin, end) = (offset / PAGE, (offset + vma.bytes()) / PAGE);
        let (first, last) = match self {
            Self::From(first_gone) => (first_gone / PAGE, end),
            Self::Hole { first, last } => (first, last),
        };
        let at = |index: u64| vma.start + (index - begin) * PAGE;
        // A hole inside of one page has none: its first is behind its last.
        (first < last && first < end && begin < last).then(|| (at(first.max(begin)), at(last.min(end))))
    }

    /// Unmaps it in `start..end`, which `vma` of `space` shows. The map is locked.
    fn apply(self, space: &AddressSpace, vma: &Vma, (start, end): (u64, u64)) {
        match self {
            Self::From(_) => space.unmap_pages(start, end),
            Self::Hole { .. } => space.forget_own_pages(&vma.backing, start, end),
        }
    }
}

impl ReverseMap {
    /// No address space has mapped the file.
    pub const fn new() -> Self {
        Self { spaces: SpinLock::new(Vec::new()), cuts: SpinLock::new(Vec::new()) }
    }

    /// Enters a space; once is enough, and the last one entered is not entered again. ENOMEM if there is no room.
    fn add(&self, space: &Arc<AddressSpace>) -> Result<(), Errno> {
        let mut spaces = self.spaces.lock();
        if spaces.last().is_some_and(|last| core::ptr::eq(last.as_ptr(), Arc::as_ptr(space))) {
            return Ok(());
        }
        if spaces.len() == spaces.capacity() {
            // Spaces that are gone, and further entries of one, make room first: the list is at most twice as long as
            // there ever were mappers at once, however often they map.
            spaces.retain(|space| space.strong_count() > 0);
            spaces.sort_unstable_by_key(|space| space.as_ptr().addr());
            spaces.dedup_by(|one, other| Weak::ptr_eq(one, other));
            let room = spaces.len().max(FEWEST);
            spaces.try_reserve(room).map_err(|_| Errno::ENOMEM)?;
        }
        spaces.push(Arc::downgrade(space));
        Ok(())
    }

    /// The file was cut to `size` bytes: no space keeps a page beyond that mapped (truncate(2): SIGBUS from then on).
    pub fn cut(&self, size: u64) {
        if let Some(first_gone) = page_up(size) {
            self.everywhere(Cut::From(first_gone));
        }
    }

    /// Pages `first..last` of the file are a hole now: mappings that show the file's own page there see zeros from now
    /// on. What was copied on a write to a private mapping stays (fallocate(2)).
    pub fn punch(&self, first: u64, last: u64) {
        self.everywhere(Cut::Hole { first, last });
    }

    /// Unmaps it from every range that shows the file. Programs choose how many spaces and ranges these are, so others
    /// run in between; what is moved or copied behind the visit is unmapped by [`AddressSpace::catch_up`].
    fn everywhere(&self, cut: Cut) {
        let said = {
            let mut cuts = self.cuts.lock();
            // Without room to say so the visit is all there is.
            let room = cuts.try_reserve(1).is_ok();
            if room {
                cuts.push(cut);
                CUTS.fetch_add(1, Relaxed);
            }
            room
        };
        self.each(cut);
        if said {
            let mut cuts = self.cuts.lock();
            if let Some(at) = cuts.iter().position(|other| *other == cut) {
                cuts.swap_remove(at);
                CUTS.fetch_sub(1, Relaxed);
            }
        }
    }

    fn each(&self, cut: Cut) {
        let spaces: Vec<Arc<AddressSpace>> = self.spaces.lock().iter().filter_map(Weak::upgrade).collect();
        for space in spaces {
            let mut at = 0;
            while let Some(next) = self.visit_next(&space, at, cut) {
                at = next;
                breathe();
            }
            // The last reference to a space frees it.
            drop(space);
            breathe();
        }
    }

    /// Visits a part of the first range of `space` from `at` on that shows the file; where to go on, if there may be
    /// more.
    fn visit_next(&self, space: &AddressSpace, at: u64, cut: Cut) -> Option<u64> {
        let map = space.lock();
        let mut at = at;
        for _ in 0..RANGES {
            let vma = map.vmas.find_at_or_above(at)?;
            let from = at;
            at = vma.end;
            if let Some((mappers, offset)) = vma.backing.mappers()
                && core::ptr::eq(mappers, self)
            {
                if let Some((start, end)) = cut.shown_by(vma, offset)
                    && from < end
                {
                    let start = start.max(from);
                    let next = space.part(&map, start, end);
                    cut.apply(space, vma, (start, next));
                    if next < end {
                        at = next;
                    }
                }
                break;
            }
        }
        Some(at)
    }
}

/// Ranges of other files that are looked at before others run.
const RANGES: usize = 1024;
/// Room for this many spaces is made at least.
const FEWEST: usize = 8;

impl AddressSpace {
    /// Pages came to `start..end` from elsewhere, this map or one that is forked: unmaps those that files are losing at
    /// the moment, since the visit may have passed here. Every map concerned is locked since before the pages came.
    #[inline]
    pub(super) fn catch_up(&self, map: &Map, start: u64, end: u64) {
        if CUTS.load(Relaxed) != 0 {
            self.catch_up_now(map, start, end);
        }
    }

    #[cold]
    fn catch_up_now(&self, map: &Map, start: u64, end: u64) {
        for vma in map.vmas.overlapping(start, end) {
            let Some((mappers, offset)) = vma.backing.mappers() else { continue };
            for cut in mappers.cuts.lock().iter() {
                if let Some(shown) = cut.shown_by(vma, offset) {
                    cut.apply(self, vma, shown);
                }
            }
        }
    }

    /// Enters this space at the file behind `backing`, if there is one: before a page of it can be mapped.
    #[inline]
    pub(super) fn enter(self: &Arc<Self>, backing: &Backing) -> Result<(), Errno> {
        backing.mappers().map_or(Ok(()), |(mappers, _)| mappers.add(self))
    }

    /// Enters this space at every file of `map`, its own, which the caller holds.
    pub fn enter_all(self: &Arc<Self>, map: &Map) -> Result<(), Errno> {
        let mut entered: Option<&ReverseMap> = None;
        for vma in map.vmas.iter() {
            let Some((mappers, _)) = vma.backing.mappers() else { continue };
            // The segments of a program lie side by side.
            if entered.is_none_or(|last| !core::ptr::eq(last, mappers)) {
                mappers.add(self)?;
                entered = Some(mappers);
            }
        }
        Ok(())
    }
}
