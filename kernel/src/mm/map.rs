//! Changes of mappings: mmap, munmap, mprotect, brk, madvise.

use alloc::sync::Arc;

use kernel_logic::huge;
use kernel_logic::vma::{PAGE, Prot, USER_END, VmaFlags};
use linux_abi::Errno;

use super::{
    AddressSpace, Backing, Map, MemoryLimits, Owner, Reservation, SharedMemory, Vma, frames, page_down, page_up, pool,
    vma_errno,
};
use crate::trace::flight;

/// Lowest address a program may map (`vm.mmap_min_addr`).
pub const MIN_ADDR: u64 = 0x1_0000;

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever there is room, preferably here (0: no preference).
    Hint(u64),
    /// Exactly here, replacing what is there.
    Fixed(u64),
    /// Exactly here, if nothing is there.
    FixedIfFree(u64),
}

/// A checked request to map something.
pub struct Request {
    /// At which address.
    pub placement: Placement,
    /// Bytes, a multiple of a page.
    pub len: u64,
    /// Rights of the pages.
    pub prot: Prot,
    /// Flags of the VMA.
    pub flags: VmaFlags,
    /// What the pages are filled from.
    pub backing: Backing,
    /// No higher than this, for `MAP_32BIT`.
    pub ceiling: Option<u64>,
    /// How large the memory may become.
    pub limits: MemoryLimits,
    /// May exceed what memory could ever hold (`MAP_NORESERVE`).
    pub no_reserve: bool,
}

/// The backing of a mapping of `len` bytes of the pool: ENOMEM if it has not as many pages to promise.
pub fn pool_memory(len: u64, shared: bool, no_reserve: bool) -> Result<Backing, Errno> {
    let promise = if no_reserve { Reservation::none() } else { Reservation::of((len / huge::HUGE) as usize)? };
    Ok(match shared {
        true => Backing::Shared { memory: SharedMemory::of_pool(len / PAGE, promise), offset: 0 },
        false => Backing::Pool { promise },
    })
}

/// The backing of a shared anonymous mapping.
pub fn shared_memory(len: u64) -> Backing {
    Backing::Shared { memory: SharedMemory::new(len / PAGE), offset: 0 }
}

impl AddressSpace {
    /// Maps something; where it went.
    pub fn mmap(self: &Arc<Self>, request: Request) -> Result<u64, Errno> {
        frames::spare()?;
        let mut map = self.lock_to_change();
        if let Placement::Fixed(at) = request.placement
            && let Some(end) = at.checked_add(request.len).filter(|end| *end <= USER_END)
            && !self.is_little(&map, at, end)
        {
            drop(map);
            return self.mmap_in_parts(request);
        }
        let (start, flags) = self.judge(&mut map, &request)?;
        let end = start + request.len;
        if matches!(request.placement, Placement::Fixed(_)) {
            self.split_edges(start, end)?;
            map.vmas.remove(start, end, |vma| self.give_up_promise(vma)).map_err(vma_errno)?;
            flight::munmap(start, request.len);
            self.unmap_pages(start, end);
        }
        self.enter(&request.backing)?;
        map.vmas.insert(Vma { start, end, prot: request.prot, flags, backing: request.backing }).map_err(vma_errno)?;
        flight::mmap(start, request.len, request.prot.0);
        Ok(start)
    }

    /// Where `request` goes, and its flags, if the limits allow it.
    #[inline]
    pub(super) fn judge(&self, map: &mut Map, request: &Request) -> Result<(u64, VmaFlags), Errno> {
        let start = choose(map, request)?;
        let end = start + request.len;
        if matches!(request.placement, Placement::Fixed(_)) {
            pool::check_edges(map, start, end).map_err(|_| Errno::ENOMEM)?;
        }
        let mut flags = request.flags;
        if map.lock_future {
            flags = flags.with(VmaFlags::LOCKED);
        }
        let pages = request.len / PAGE;
        if flags.has(VmaFlags::LOCKED) && !map.may_lock(&request.limits, pages) {
            return Err(Errno::EAGAIN);
        }
        // What is replaced makes room, which is counted only where it matters.
        if !map.may_expand(&request.limits, request.prot, flags, pages)
            && !map.may_expand(&request.limits, request.prot, flags, pages - map.pages_in(start, end))
        {
            return Err(Errno::ENOMEM);
        }
        let anonymous = matches!(request.backing, Backing::Anonymous);
        if anonymous && !request.no_reserve && request.len / PAGE > frames::total() as u64 {
            let private = request.prot.has(Prot::WRITE) && !request.flags.has(VmaFlags::SHARED);
            if private {
                return Err(Errno::ENOMEM);
            }
        }
        Ok((start, flags))
    }

    /// Unmaps `start..end` (page-aligned).
    pub fn munmap(&self, start: u64, end: u64) -> Result<(), Errno> {
        let mut map = self.lock_to_change();
        pool::check_edges(&map, start, end)?;
        let splits = |vma: &Vma| vma.start < start && vma.end > end;
        if frames::is_low() && map.vmas.overlapping(start, end).any(splits) {
            return Err(Errno::ENOMEM);
        }
        if !self.is_little(&map, start, end) {
            drop(map);
            return self.munmap_in_parts(&self.in_parts(), start, end);
        }
        self.split_edges(start, end)?;
        let mut any = false;
        let gone = |vma: &Vma| {
            any = true;
            self.give_up_promise(vma);
        };
        map.vmas.remove(start, end, gone).map_err(vma_errno)?;
        if any {
            flight::munmap(start, end - start);
            self.unmap_pages(start, end);
        }
        Ok(())
    }

    /// Changes the protection of `start..end`, for a thread of `owner`'s process.
    pub fn mprotect(&self, start: u64, end: u64, prot: Prot, owner: &impl Owner) -> Result<(), Errno> {
        frames::spare()?;
        let limits = owner.memory_limits();
        let allowed = |map: &Map| {
            if prot.has(Prot::WRITE) { map.may_become_data(&limits, start, end) } else { Ok(()) }
        };
        let mut map = self.lock_to_change();
        pool::check_edges(&map, start, end)?;
        if !self.is_little(&map, start, end) {
            drop(map);
            let alone = self.in_parts();
            // Others may have changed it since: two threads must not share what is left of one limit.
            allowed(&self.lock())?;
            return self.protect_in_parts(&alone, start, end, prot);
        }
        allowed(&map)?;
        self.split_edges(start, end)?;
        self.protect(&mut map, start, end, prot)
    }

    /// Moves the program break of `owner`'s process; where it is afterwards.
    pub fn set_brk(&self, wanted: u64, owner: &impl Owner) -> u64 {
        let mut map = self.lock_to_change();
        if wanted < map.brk_start || wanted >= USER_END {
            return map.brk;
        }
        let (Some(old_end), Some(new_end)) = (page_up(map.brk), page_up(wanted)) else { return map.brk };
        if new_end < old_end {
            if !self.is_little(&map, new_end, old_end) {
                drop(map);
                return self.lower_brk_in_parts(wanted);
            }
            // Pages of the pool may have been mapped over a part of it.
            let gone = |vma: &Vma| self.give_up_promise(vma);
            if pool::check_edges(&map, new_end, old_end).is_ok()
                && self.split_edges(new_end, old_end).is_ok()
                && map.vmas.remove(new_end, old_end, gone).is_ok()
            {
                flight::munmap(new_end, old_end - new_end);
                self.unmap_pages(new_end, old_end);
                map.brk = wanted;
            }
            return map.brk;
        }
        if new_end > old_end {
            let more = (new_end - old_end) / PAGE;
            let flags = if map.lock_future { VmaFlags::HEAP.with(VmaFlags::LOCKED) } else { VmaFlags::HEAP };
            let prot = Prot::READ.with(Prot::WRITE);
            let limits = owner.memory_limits();
            let too_much = wanted - map.brk_start > limits.data
                || !map.may_expand(&limits, prot, flags, more)
                || (map.lock_future && !map.may_lock(&limits, more))
                || more > frames::total() as u64;
            if too_much || !map.vmas.is_clear(old_end, new_end + PAGE) {
                return map.brk;
            }
            let vma = Vma { start: old_end, end: new_end, prot, flags, backing: Backing::Anonymous };
            if map.vmas.insert(vma).is_err() {
                return map.brk;
            }
            flight::mmap(old_end, new_end - old_end, prot.0);
            if map.heap_ahead != 0 {
                self.heap_ahead(&mut map, new_end);
            }
        }
        map.brk = wanted;
        wanted
    }

    /// Throws the pages of `start..end` away; private ones read as zeros, file pages as the file says
    /// (`MADV_DONTNEED`).
    pub fn discard(&self, start: u64, mut end: u64) -> Result<(), Errno> {
        let map = self.lock_to_change();
        if pool::check_edges(&map, start, end).is_err() {
            pool::check_edges(&map, start, start)?;
            // What of a page of the pool is not thrown away whole stays.
            end -= end % huge::HUGE;
        }
        let is_locked = |map: &Map| map.vmas.overlapping(start, end).any(|vma| vma.flags.has(VmaFlags::LOCKED));
        let covered = map.vmas.is_covered(start, end);
        if is_locked(&map) {
            return Err(Errno::EINVAL);
        }
        flight::munmap(start, end.saturating_sub(start));
        if !self.is_little(&map, start, end) {
            drop(map);
            let alone = self.in_parts();
            // Another thread may have locked some of it since.
            if is_locked(&self.lock()) {
                return Err(Errno::EINVAL);
            }
            self.discard_in_parts(&alone, start, end)?;
        } else {
            self.split_edges(start, end)?;
            self.unmap_pages(start, end);
        }
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Adds and removes flags of the ranges in `start..end`; `ENOMEM` over a hole.
    pub fn set_flags(&self, start: u64, end: u64, add: VmaFlags, remove: VmaFlags) -> Result<(), Errno> {
        frames::spare()?;
        let map = self.lock_to_change();
        let covered = map.vmas.is_covered(start, end);
        self.edit(map, start, end, |_| Ok(()), |vma| vma.flags = vma.flags.with(add).without(remove))?;
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// For each page of `start..end` whether it is in memory; `ENOMEM` over a hole.
    pub fn in_core(&self, start: u64, end: u64, mut tell: impl FnMut(usize, bool)) -> Result<(), Errno> {
        let map = self.lock();
        if !map.vmas.is_covered(start, end) {
            return Err(Errno::ENOMEM);
        }
        for (index, at) in (start..end).step_by(PAGE as usize).enumerate() {
            let page = machine::addr::UserPage::new(at);
            tell(index, page.is_some_and(|page| self.space.lookup(page).is_some()));
        }
        Ok(())
    }
}

fn choose(map: &mut Map, request: &Request) -> Result<u64, Errno> {
    let len = request.len;
    let fits = |start: u64| start.checked_add(len).is_some_and(|end| end <= USER_END);
    match request.placement {
        Placement::Fixed(at) | Placement::FixedIfFree(at) => {
            if !fits(at) {
                return Err(Errno::ENOMEM);
            }
            if at < MIN_ADDR {
                return Err(Errno::EPERM);
            }
            if request.flags.has(VmaFlags::POOL) && !at.is_multiple_of(huge::HUGE) {
                return Err(Errno::EINVAL);
            }
            if matches!(request.placement, Placement::FixedIfFree(_)) && !map.vmas.is_free(at, at + len) {
                return Err(Errno::EEXIST);
            }
            Ok(at)
        }
        Placement::Hint(hint) => {
            let pooled = request.flags.has(VmaFlags::POOL);
            // One at the very end of addresses is none.
            let hint = if pooled { hint.checked_next_multiple_of(huge::HUGE).unwrap_or(0) } else { page_down(hint) };
            if hint >= MIN_ADDR && fits(hint) && map.vmas.is_clear(hint, hint + len) {
                return Ok(hint);
            }
            let ceiling = request.ceiling.unwrap_or(map.mmap_top);
            if (pooled || super::huge::aligns(&request.backing, len))
                && let Some(room) = huge::room_to_align(len)
                && let Some(at) = map.vmas.find_gap(room, MIN_ADDR, ceiling)
            {
                return Ok(huge::placed_in(at));
            }
            if pooled {
                return Err(Errno::ENOMEM);
            }
            let found = map.vmas.find_gap(len, MIN_ADDR, ceiling);
            found.or_else(|| map.vmas.find_gap(len, MIN_ADDR, USER_END)).ok_or(Errno::ENOMEM)
        }
    }
}
