//! Moving and resizing mappings (mremap(2)).
//!
//! A mapping of more than one part ([`super::parts`]) is moved in parts, each with its pages from the old place to the
//! new one. A program that looks at the new place before the call returns finds what is moved so far, and memory
//! without access beyond.

use kernel_logic::vma::{Backing as _, MAX_VMAS, PAGE, Prot, USER_END, VmaFlags};
use linux_abi::Errno;
use linux_abi::flags::memory::{MREMAP_DONTUNMAP, MREMAP_FIXED, MREMAP_MAYMOVE};
use machine::addr::PageRange;
use machine::space::MapError;
use machine::sync::SpinGuard;

use super::parts::{InParts, stay_down};
use super::{AddressSpace, Backing, Map, MemoryLimits, Vma, frames, pool, vma_errno};
use crate::sched::breathe;

impl AddressSpace {
    /// Resizes or moves the mapping at `old`. All lengths are whole pages; `old_len` 0 duplicates a shared mapping.
    pub fn mremap(
        &self,
        old: u64,
        old_len: u64,
        new_len: u64,
        flags: u64,
        fixed: u64,
        limits: &MemoryLimits,
    ) -> Result<u64, Errno> {
        frames::spare()?;
        if flags & MREMAP_FIXED != 0 {
            self.clear_large_target(old, fixed, new_len)?;
        }
        let map = self.lock_to_change();
        if old_len == 0 || self.is_little(&map, old, old + old_len) {
            return self.remap(map, None, (old, old_len), new_len, (flags, fixed), limits);
        }
        drop(map);
        let alone = self.in_parts();
        self.remap(self.lock(), Some(&alone), (old, old_len), new_len, (flags, fixed), limits)
    }

    /// [`Self::mremap`] with the map locked to change it, of a mapping that is moved in parts if `alone`.
    fn remap<'s>(
        &'s self,
        mut map: SpinGuard<'s, Map>,
        alone: Option<&InParts<'_>>,
        (old, mut old_len): (u64, u64),
        new_len: u64,
        (flags, fixed): (u64, u64),
        limits: &MemoryLimits,
    ) -> Result<u64, Errno> {
        if flags & MREMAP_FIXED != 0 {
            map.vmas.find(old).ok_or(Errno::EFAULT)?;
            let possible = fixed >= super::map::MIN_ADDR && map.vmas.len() + SPARE_RANGES < MAX_VMAS;
            if let Some(alone) = alone.filter(|_| possible && new_len < old_len) {
                drop(map);
                self.munmap_in_parts(alone, old + new_len, old + old_len)?;
                old_len = new_len;
                map = self.lock();
            }
            self.clear_target(&mut map, (old, old_len), (fixed, new_len))?;
            old_len = old_len.min(new_len);
        }
        let vma = map.vmas.find(old).ok_or(Errno::EFAULT)?.clone();
        pool::check_edges(&map, old, old + old_len)?;
        if !reaches(&vma, old, new_len) {
            return Err(Errno::EINVAL);
        }
        if old_len == 0 && !vma.flags.has(VmaFlags::SHARED) {
            return Err(Errno::EINVAL);
        }
        if flags & MREMAP_FIXED == 0 && flags & MREMAP_DONTUNMAP == 0 && new_len <= old_len {
            if new_len < old_len {
                if let Some(alone) = alone {
                    drop(map);
                    return self.munmap_in_parts(alone, old + new_len, old + old_len).map(|()| old);
                }
                // What is cut off may be other ranges than the one at `old`.
                pool::check_edges(&map, old + new_len, old + old_len)?;
                self.split_edges(old + new_len, old + old_len)?;
                let gone = |vma: &Vma| self.give_up_promise(vma);
                map.vmas.remove(old + new_len, old + old_len, gone).map_err(vma_errno)?;
                self.unmap_pages(old + new_len, old + old_len);
            }
            return Ok(old);
        }
        if vma.end - old < old_len {
            return Err(Errno::EFAULT);
        }
        // With MREMAP_DONTUNMAP the old range stays.
        let more = if flags & MREMAP_DONTUNMAP != 0 { old_len } else { new_len.saturating_sub(old_len) } / PAGE;
        // A lock moves: what is left behind is not locked.
        let more_locked = if flags & MREMAP_DONTUNMAP != 0 { 0 } else { more };
        if vma.flags.has(VmaFlags::LOCKED) && more_locked > 0 && !map.may_lock(limits, more_locked) {
            return Err(Errno::EAGAIN);
        }
        if more > 0 && !map.may_expand(limits, vma.prot, vma.flags, more) {
            return Err(Errno::ENOMEM);
        }
        let end = old + old_len;
        let grows_in_place = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) == 0
            && old_len != 0
            && vma.end == end
            && old + new_len <= USER_END
            && map.vmas.is_free(end, old + new_len);
        if grows_in_place {
            let backing = vma.backing.advanced(end - vma.start);
            map.vmas.insert(Vma { start: end, end: old + new_len, backing, ..vma }).map_err(vma_errno)?;
            return Ok(old);
        }
        if flags & MREMAP_MAYMOVE == 0 {
            return Err(Errno::ENOMEM);
        }
        if let Some(alone) = alone {
            return self.relocate_in_parts(map, alone, &vma, (old, old_len), new_len, (flags, fixed));
        }
        self.relocate(&mut map, &vma, (old, old_len), new_len, (flags, fixed))
    }

    /// Unmaps in parts where the mapping at `old` is moved to, if there is more than one.
    fn clear_large_target(&self, old: u64, fixed: u64, new_len: u64) -> Result<(), Errno> {
        let map = self.lock_to_change();
        map.vmas.find(old).ok_or(Errno::EFAULT)?;
        let fails_anyway = fixed < super::map::MIN_ADDR || map.vmas.len() + SPARE_RANGES >= MAX_VMAS;
        if fails_anyway || self.is_little(&map, fixed, fixed + new_len) {
            return Ok(());
        }
        drop(map);
        self.munmap(fixed, fixed + new_len)
    }

    /// Unmaps where a mapping is moved to, and what of it will not be there.
    fn clear_target(
        &self,
        map: &mut Map,
        (old, old_len): (u64, u64),
        (fixed, new_len): (u64, u64),
    ) -> Result<(), Errno> {
        if fixed < super::map::MIN_ADDR {
            return Err(Errno::EPERM);
        }
        if map.vmas.len() + SPARE_RANGES >= MAX_VMAS {
            return Err(Errno::ENOMEM);
        }
        for (start, end) in [(fixed, fixed + new_len), (old + new_len, old + old_len)] {
            if start < end {
                pool::check_edges(map, start, end)?;
                self.split_edges(start, end)?;
                map.vmas.remove(start, end, |vma| self.give_up_promise(vma)).map_err(vma_errno)?;
                self.unmap_pages(start, end);
            }
        }
        Ok(())
    }

    fn relocate(
        &self,
        map: &mut Map,
        vma: &Vma,
        (old, old_len): (u64, u64),
        new_len: u64,
        (flags, fixed): (u64, u64),
    ) -> Result<u64, Errno> {
        let to = self.destination(map, (old, old_len), new_len, (flags, fixed))?;
        map.vmas.insert(moved(vma, old, to, new_len)).map_err(vma_errno)?;
        let len = old_len.min(new_len);
        let outcome = self.move_pages(old, to, len).and_then(|()| {
            give_up(map, old, old_len, flags).inspect_err(|_| {
                // None may stay where no range is. What cannot be taken back is unmapped below.
                let _ = self.move_pages(to, old, len);
            })
        });
        if let Err(error) = outcome {
            map.vmas.remove(to, to + new_len, |_| ()).map_err(vma_errno)?;
            self.unmap_pages(to, to + new_len);
            return Err(error);
        }
        if flags & MREMAP_DONTUNMAP == 0 && old_len != 0 {
            self.unmap_pages(old, old + old_len);
        }
        self.catch_up(map, to, to + new_len);
        Ok(to)
    }

    /// Where a mapping is moved to, for which there is room, and the old one's edges are no 2 MiB leaves'.
    fn destination(
        &self,
        map: &mut Map,
        (old, old_len): (u64, u64),
        new_len: u64,
        (flags, fixed): (u64, u64),
    ) -> Result<u64, Errno> {
        if map.vmas.len() + SPARE_RANGES >= MAX_VMAS {
            return Err(Errno::ENOMEM);
        }
        self.split_edges(old, old + old_len)?;
        if flags & MREMAP_FIXED != 0 {
            // Nothing is there since `clear_target`.
            return Ok(fixed);
        }
        let top = map.mmap_top;
        map.vmas.find_gap(new_len, super::map::MIN_ADDR, top).ok_or(Errno::ENOMEM)
    }

    /// [`Self::relocate`] of a mapping of many parts, all or none. `map` has been locked since the new place was
    /// cleared: a stack above could grow into it.
    #[cold]
    fn relocate_in_parts(
        &self,
        mut map: SpinGuard<'_, Map>,
        _alone: &InParts<'_>,
        vma: &Vma,
        (old, old_len): (u64, u64),
        new_len: u64,
        (flags, fixed): (u64, u64),
    ) -> Result<u64, Errno> {
        let to = self.destination(&mut map, (old, old_len), new_len, (flags, fixed))?;
        // A stack may grow meanwhile, but not to here.
        let reserved = Vma { prot: Prot::NONE, flags: VmaFlags::default(), backing: Backing::Anonymous, ..*vma };
        map.vmas.insert(Vma { start: to, end: to + new_len, ..reserved }).map_err(vma_errno)?;
        drop(map);
        let stays = flags & MREMAP_DONTUNMAP != 0;
        let mut done = 0;
        while done < new_len {
            let mut map = self.lock();
            let next = if done < old_len { self.part(&map, old + done, old + old_len) - old } else { new_len };
            let (from, into, len) = (old + done, to + done, next - done);
            // What the mapping grows by has no old place.
            let result = if done < old_len {
                self.shift(&mut map, moved(vma, from, into, len), from, stays)
            } else {
                replace(&mut map, moved(vma, from, into, len))
            };
            if let Err(error) = result {
                drop(map);
                self.shift_back(vma, (old, to), done, new_len);
                return Err(error);
            }
            if !stays && next < old_len {
                // Without room for a range more, what is left may grow down, which loses nothing.
                let _ = stay_down(&mut map, old + next, old + old_len);
            }
            self.catch_up(&map, into, into + len);
            done = next;
            drop(map);
            breathe();
        }
        if stays {
            give_up(&mut self.lock(), old, old_len, flags)?;
        } else {
            self.drop_tables(old, old + old_len);
        }
        Ok(to)
    }

    /// Frees the tables of `start..end`, where nothing is mapped any more.
    fn drop_tables(&self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let map = self.lock();
            let next = self.part(&map, at, end);
            self.unmap_pages(at, next);
            at = next;
            drop(map);
            breathe();
        }
    }

    /// Moves the pages of one part from `from` on into the place of `part`, which comes to be there; what was at `from`
    /// goes unless it `stays`.
    fn shift(&self, map: &mut Map, part: Vma, from: u64, stays: bool) -> Result<(), Errno> {
        let (into, len) = (part.start, part.bytes());
        self.move_pages(from, into, len)?;
        let mut result = replace(map, part);
        if !stays {
            result = result.and_then(|()| map.vmas.remove(from, from + len, |_| ()).map_err(vma_errno));
        }
        result.inspect_err(|_| {
            let _ = self.move_pages(into, from, len);
        })
    }

    /// Undoes the first `done` bytes of a move, as far as there is memory for that, and gives up the new place.
    #[cold]
    fn shift_back(&self, vma: &Vma, (old, to): (u64, u64), done: u64, new_len: u64) {
        let mut at = 0;
        while at < done {
            let mut map = self.lock();
            let next = self.part(&map, to + at, to + done) - to;
            let part = moved(vma, old + at, old + at, next - at);
            // What the program had there meanwhile, if the old range stays.
            self.unmap_pages(part.start, part.end);
            let _ = self.shift(&mut map, part, to + at, true);
            at = next;
            drop(map);
            breathe();
        }
        let mut map = self.lock();
        let _ = map.vmas.remove(to, to + new_len, |_| ());
        self.unmap_pages(to, to + new_len);
    }

    /// Moves the resident pages of `old..old + len`, all or none.
    fn move_pages(&self, old: u64, to: u64, len: u64) -> Result<(), Errno> {
        if len == 0 {
            return Ok(());
        }
        let (from, into) = (PageRange::new(old, old + len), PageRange::new(to, to + len));
        let (Some(from), Some(into)) = (from, into) else { return Err(Errno::EINVAL) };
        self.space.move_range(from, into).map_err(|error| match error {
            MapError::Occupied => Errno::EINVAL,
            MapError::OutOfFrames => Errno::ENOMEM,
        })
    }
}

/// What of `vma` begins at `from` as a range of `len` bytes at `to`.
fn moved(vma: &Vma, from: u64, to: u64, len: u64) -> Vma {
    let backing = vma.backing.advanced(from - vma.start);
    Vma { start: to, end: to + len, prot: vma.prot, flags: vma.flags, backing }
}

/// Puts a range where another is, or none. It joins the one before if it continues that.
fn replace(map: &mut Map, part: Vma) -> Result<(), Errno> {
    map.vmas.remove(part.start, part.end, |_| ()).map_err(vma_errno)?;
    map.vmas.insert(part).map_err(vma_errno)
}

/// Takes the old range away, or with `MREMAP_DONTUNMAP` its lock.
fn give_up(map: &mut Map, old: u64, old_len: u64, flags: u64) -> Result<(), Errno> {
    if flags & MREMAP_DONTUNMAP != 0 {
        let unlock = |vma: &mut Vma| vma.flags = vma.flags.without(VmaFlags::LOCKED);
        return map.vmas.edit(old, old + old_len, unlock).map_err(vma_errno);
    }
    if old_len == 0 { Ok(()) } else { map.vmas.remove(old, old + old_len, |_| ()).map_err(vma_errno) }
}

/// Whether `len` bytes from `old` on end before offset 2^64: none comes round to the beginning of what is mapped.
fn reaches(vma: &Vma, old: u64, len: u64) -> bool {
    match &vma.backing {
        Backing::File { offset, .. } | Backing::Shared { offset, .. } => {
            (offset + (old - vma.start)).checked_add(len).is_some()
        }
        Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. } => true,
    }
}

/// Ranges a move may need beside those there are (Linux: `sysctl_max_map_count - 3`).
const SPARE_RANGES: usize = 3;
