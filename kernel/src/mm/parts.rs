//! Changes of so much memory that they are made in parts, with others running in between.
//!
//! The map's lock is a spin lock. A change whose length a program chooses holds it for one *part* at a time: about
//! [`PAGES`] pages and tables in at most [`RANGES`] ranges. Within a part the set and the tables change together, so
//! faults in between see each page as it was or as it will be. Further changes wait until the whole one is done
//! ([`InParts`]): to them, and to forks, it is one step.

use alloc::sync::Arc;
use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::vma::{Backing as _, MAX_VMAS, PAGE, Prot, USER_END, VmaFlags};
use linux_abi::Errno;
use machine::addr::PageRange;
use machine::space::{ForkMode, Leaf, UserSpace};
use machine::sync::SpinGuard;

use super::map::Request;
use super::{AddressSpace, Map, TAG_POOL, Vma, leave_out, page_up, pool, rights, vma_errno};
use crate::sched::breathe;
use crate::sync::mutex::MutexGuard;
use crate::trace::flight;

/// Pages and tables of a part: some ten microseconds.
const PAGES: usize = 1024;
/// Ranges of a part.
const RANGES: usize = 512;
/// A space is small that is no more than so many parts: all of it is changed at once.
const FEW: usize = 4;
/// Ranges that a change in parts may need beside those there are.
const SPARE: usize = 3;
/// No part of this length has more than that.
const SMALL: u64 = RANGES as u64 * PAGE;

/// A change in parts: until it is dropped other changes of the space wait.
pub(super) struct InParts<'s> {
    space: &'s AddressSpace,
    _alone: MutexGuard<'s, ()>,
}

impl Drop for InParts<'_> {
    fn drop(&mut self) {
        self.space.lock().in_parts = false;
    }
}

impl AddressSpace {
    /// Locks the map to change it: after a change in parts.
    #[inline]
    #[track_caller]
    pub(super) fn lock_to_change(&self) -> SpinGuard<'_, Map> {
        loop {
            let map = self.lock();
            if !map.in_parts {
                return map;
            }
            drop(map);
            drop(self.alone.lock());
        }
    }

    /// Begins a change in parts.
    pub(super) fn in_parts(&self) -> InParts<'_> {
        let alone = self.alone.lock();
        self.lock().in_parts = true;
        InParts { space: self, _alone: alone }
    }

    /// Whether `start..end` is changed at once.
    #[inline]
    pub(super) fn is_little(&self, map: &Map, start: u64, end: u64) -> bool {
        end - start <= SMALL || self.is_small(map) || part_of(map, &self.space, start, end) == end
    }

    /// Where the first part of `start..end` ends.
    #[inline]
    pub(super) fn part(&self, map: &Map, start: u64, end: u64) -> u64 {
        if end - start <= SMALL { end } else { part_of(map, &self.space, start, end) }
    }

    /// Whether all of it is changed at once.
    #[inline]
    pub(super) fn is_small(&self, map: &Map) -> bool {
        let of_pool = self.resident[usize::from(TAG_POOL)].load(Relaxed).max(0) as usize;
        let pages = self.resident().total() as usize + of_pool + self.space.table_frames();
        map.vmas.len() <= FEW * RANGES && pages <= FEW * PAGES
    }

    /// Unmaps `start..end` in parts, from the lower end on. EINVAL if that would cut a page of the pool.
    #[cold]
    pub(super) fn munmap_in_parts(&self, _alone: &InParts<'_>, start: u64, end: u64) -> Result<(), Errno> {
        pool::check_edges(&self.lock(), start, end)?;
        let mut at = start;
        while at < end {
            let mut map = self.lock();
            let next = self.part(&map, at, end);
            self.remove(&mut map, at, next, end)?;
            stay_down(&mut map, next, end)?;
            at = next;
            drop(map);
            breathe();
        }
        Ok(())
    }

    /// Unmaps the part `start..next` of what ends at `end`.
    fn remove(&self, map: &mut Map, start: u64, next: u64, end: u64) -> Result<(), Errno> {
        self.split_edges(start, end)?;
        map.vmas.remove(start, next, |vma| self.give_up_promise(vma)).map_err(vma_errno)?;
        flight::munmap(start, next - start);
        self.unmap_pages(start, next);
        Ok(())
    }

    /// Maps `request` over what is at its fixed place.
    #[cold]
    pub(super) fn mmap_in_parts(self: &Arc<Self>, request: Request) -> Result<u64, Errno> {
        let _alone = self.in_parts();
        let (start, flags) = self.judge(&mut self.lock(), &request)?;
        self.enter(&request.backing)?;
        let (mut at, end) = (start, start + request.len);
        while at < end {
            let mut map = self.lock();
            let next = self.part(&map, at, end);
            self.remove(&mut map, at, next, end)?;
            let backing = request.backing.advanced(at - start);
            // Joins the part before.
            let vma = Vma { start: at, end: next, prot: request.prot, flags, backing };
            map.vmas.insert(vma).map_err(vma_errno)?;
            at = next;
            drop(map);
            breathe();
        }
        flight::mmap(start, request.len, request.prot.0);
        Ok(start)
    }

    /// Moves the program break down to `wanted`; where it is afterwards.
    #[cold]
    pub(super) fn lower_brk_in_parts(&self, wanted: u64) -> u64 {
        let alone = self.in_parts();
        let brk = self.lock().brk;
        if let (Some(old_end), Some(new_end)) = (page_up(brk), page_up(wanted))
            && new_end < old_end
            && self.munmap_in_parts(&alone, new_end, old_end).is_err()
        {
            return brk;
        }
        let mut map = self.lock();
        if wanted <= brk {
            map.brk = wanted;
        }
        map.brk
    }

    /// Throws the pages of `start..end` away.
    #[cold]
    pub(super) fn discard_in_parts(&self, _alone: &InParts<'_>, start: u64, end: u64) -> Result<(), Errno> {
        // Another thread may have mapped pages of the pool since.
        pool::check_edges(&self.lock(), start, end)?;
        let mut at = start;
        while at < end {
            let map = self.lock();
            let next = self.part(&map, at, end);
            self.split_edges(at, end)?;
            self.unmap_pages(at, next);
            at = next;
            drop(map);
            breathe();
        }
        Ok(())
    }

    /// Changes the protection of `start..end` up to a hole or a range that may not have it.
    #[cold]
    pub(super) fn protect_in_parts(&self, _alone: &InParts<'_>, start: u64, end: u64, prot: Prot) -> Result<(), Errno> {
        pool::check_edges(&self.lock(), start, end)?;
        let mut at = start;
        while at < end {
            let mut map = self.lock();
            let next = self.part(&map, at, end);
            self.split_edges(at, end)?;
            self.protect(&mut map, at, next, prot)?;
            at = next;
            drop(map);
            breathe();
        }
        Ok(())
    }

    /// Runs `change` on the ranges of `start..end` if the map is `allowed` then, with others running in between if
    /// there are very many. `map` is locked to change it. What fails later has changed the ranges before.
    pub(super) fn edit(
        &self,
        mut map: SpinGuard<'_, Map>,
        start: u64,
        end: u64,
        allowed: impl Fn(&mut Map) -> Result<(), Errno>,
        change: impl Fn(&mut Vma),
    ) -> Result<(), Errno> {
        pool::check_edges(&map, start, end)?;
        if map.vmas.len() <= FEW * RANGES {
            allowed(&mut map)?;
            self.split_edges(start, end)?;
            return map.vmas.edit(start, end, change).map_err(vma_errno);
        }
        drop(map);
        let _alone = self.in_parts();
        // Others may have changed it since: two threads must not share what is left of one limit.
        allowed(&mut self.lock())?;
        pool::check_edges(&self.lock(), start, end)?;
        let mut at = start;
        while at < end {
            let mut map = self.lock();
            let next = ranges_of(&map, at, end);
            self.split_edges(at, end)?;
            map.vmas.edit(at, next, &change).map_err(vma_errno)?;
            at = next;
            drop(map);
            breathe();
        }
        Ok(())
    }

    /// Changes the protection of `start..end`, whose edges are split, with the map locked.
    pub(super) fn protect(&self, map: &mut Map, start: u64, end: u64, prot: Prot) -> Result<(), Errno> {
        let mut reached = start;
        let outcome = map.vmas.protect(start, end, prot, |vma, _| reached = vma.end);
        if let Some(range) = PageRange::new(start, reached)
            && reached > start
        {
            flight::mprotect(start, reached - start, prot.0);
            // A page gains write access only through a fault, which knows whether it is shared.
            let rule = &mut |leaf: &Leaf| rights(prot, leaf.prot.write, leaf.prot.tag);
            self.space.protect(range, rule).map_err(|_| Errno::ENOMEM)?;
        }
        outcome.map_err(vma_errno)
    }

    /// [`Self::fork`] of a large space into `space`: the set at once, the pages in parts.
    #[cold]
    pub(super) fn fork_in_parts(&self, space: Arc<UserSpace>) -> Result<Arc<Self>, Errno> {
        let _alone = self.in_parts();
        let copy = {
            let mut copy = self.lock().try_clone()?;
            leave_out(&mut copy)?;
            copy
        };
        let child = Self::around(space, copy);
        child.owns_pool_pages.store(false, Relaxed);
        child.enter_all(&child.lock())?;
        let mut at = 0;
        while at < USER_END {
            at = self.fork_part(&child, at)?;
            breathe();
        }
        Ok(child)
    }

    /// Copies the pages of one part from `start` on; where it ends.
    fn fork_part(&self, child: &Self, start: u64) -> Result<u64, Errno> {
        // Faults are all that may come between two parts.
        let map = self.lock();
        let copy = child.lock();
        let next = part_of(&copy, &self.space, start, USER_END);
        let mut outcome = Ok(());
        for vma in copy.vmas.overlapping(start, next).filter(|vma| !vma.flags.has(VmaFlags::WIPE_ON_FORK)) {
            let mode = if vma.flags.has(VmaFlags::SHARED) { ForkMode::Share } else { ForkMode::CopyOnWrite };
            let Some(range) = PageRange::new(vma.start.max(start), vma.end.min(next)) else { continue };
            match self.space.fork_range(&child.space, range, mode) {
                Ok(copied) => {
                    for (tag, count) in copied.by_tag.into_iter().enumerate() {
                        child.count(tag as u8, count as i64);
                    }
                }
                Err(_) => {
                    outcome = Err(Errno::ENOMEM);
                    break;
                }
            }
        }
        child.catch_up(&copy, start, next);
        // Taking write access away from the parent is done whether or not the copy was completed.
        self.space.flush();
        drop(copy);
        drop(map);
        outcome.map(|()| next)
    }
}

impl AddressSpace {
    /// Gives up in parts what is more than one; the rest goes with the tables.
    pub(super) fn empty_in_parts(&self) {
        let mut at = 0;
        loop {
            let mut map = self.lock();
            if self.is_small(&map) || at >= USER_END {
                return;
            }
            let next = self.part(&map, at, USER_END);
            // Ends at a border of the tables: there is nothing to split, but perhaps no room for a range more.
            let _ = map.vmas.remove(at, next, |_| ());
            self.unmap_pages(at, next);
            at = next;
            drop(map);
            breathe();
        }
    }
}

/// What is left of `start..end`, which is being unmapped from its lower end on, does not grow down over what is gone.
pub(super) fn stay_down(map: &mut Map, start: u64, end: u64) -> Result<(), Errno> {
    match map.vmas.find_at_or_above(start) {
        Some(vma) if vma.start < end && vma.flags.has(VmaFlags::GROWS_DOWN) => {
            let (from, to) = (vma.start.max(start), vma.end.min(end));
            let stay = |vma: &mut Vma| vma.flags = vma.flags.without(VmaFlags::GROWS_DOWN);
            map.vmas.edit(from, to, stay).map_err(vma_errno)
        }
        _ => Ok(()),
    }
}

/// See [`AddressSpace::part`], of a map and the tables that hold its pages.
#[cold]
fn part_of(map: &Map, space: &UserSpace, start: u64, end: u64) -> u64 {
    let last = ranges_of(map, start, end);
    let at = PageRange::new(start, last).map_or(end, |range| space.reach(range, PAGES));
    if map.vmas.len() + SPARE < MAX_VMAS {
        return at;
    }
    // A part that ends inside a range takes one range more for a while.
    map.vmas.find(at - 1).map_or(at, |vma| vma.end.min(end))
}

/// Where the ranges of one part of `start..end` end, whatever pages they have.
fn ranges_of(map: &Map, start: u64, end: u64) -> u64 {
    map.vmas.overlapping(start, end).nth(RANGES - 1).map_or(end, |vma| vma.end.min(end))
}
