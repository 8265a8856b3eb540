//! Decides what lies where in an address space: the set of mapped ranges and where a new one fits.
//!
//! A [`VmaSet`] is a sorted list of page-aligned, non-overlapping ranges ([`Vma`]). Every edit (insert, remove,
//! protect, advise) splits ranges at its borders and joins equal neighbours afterwards, so the set never holds two
//! entries where one would do. What backs a range is the caller's business ([`Backing`]); the set only asks how a
//! backing looks further in, and whether two backings continue each other.
//!
//! Invariant: a range ends where the next begins or before; `start < end`, both multiples of [`PAGE`].

mod pieces;

use pieces::{At, Pieces};

pub use pieces::Iter;

/// Bytes in a page.
pub const PAGE: u64 = 4096;

/// First address that may never be mapped by a user program (x86_64: one page below the canonical hole).
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Bytes that a range which grows down keeps from what lies below it (Linux: `stack_guard_gap`, 256 pages).
pub const STACK_GUARD: u64 = 256 * PAGE;

/// Linux's default `vm.max_map_count`.
pub const MAX_VMAS: usize = 65_530;

/// What a range permits: a set of [`Prot::READ`], [`Prot::WRITE`], [`Prot::EXEC`], with mmap(2)'s bit values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prot(pub u8);

impl Prot {
    /// No access (`PROT_NONE`).
    pub const NONE: Prot = Prot(0);
    /// Loads are allowed (`PROT_READ`).
    pub const READ: Prot = Prot(1);
    /// Stores are allowed (`PROT_WRITE`).
    pub const WRITE: Prot = Prot(2);
    /// Instruction fetches are allowed (`PROT_EXEC`).
    pub const EXEC: Prot = Prot(4);

    /// Whether every bit of `other` is in here.
    pub const fn has(self, other: Prot) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub const fn with(self, other: Prot) -> Prot {
        Prot(self.0 | other.0)
    }
}

/// Properties of a range beyond its protection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmaFlags(pub u16);

impl VmaFlags {
    /// Writes reach the backing (`MAP_SHARED`).
    pub const SHARED: VmaFlags = VmaFlags(1);
    /// Grows towards lower addresses when touched just below (`MAP_GROWSDOWN`, the stack).
    pub const GROWS_DOWN: VmaFlags = VmaFlags(2);
    /// Pages stay resident (`mlock`, `MAP_LOCKED`).
    pub const LOCKED: VmaFlags = VmaFlags(4);
    /// Not inherited by a fork (`MADV_DONTFORK`).
    pub const DONT_FORK: VmaFlags = VmaFlags(8);
    /// Empty in the child of a fork (`MADV_WIPEONFORK`).
    pub const WIPE_ON_FORK: VmaFlags = VmaFlags(16);
    /// A shared file range opened without write permission: `mprotect` may not add `WRITE`.
    pub const NO_WRITE: VmaFlags = VmaFlags(32);
    /// The program break's range.
    pub const HEAP: VmaFlags = VmaFlags(64);
    /// The initial stack.
    pub const STACK: VmaFlags = VmaFlags(128);
    /// A file on a mount without execution: `mprotect` may not add `EXEC`.
    pub const NO_EXEC: VmaFlags = VmaFlags(256);

    /// Asked for huge pages (`MADV_HUGEPAGE`).
    pub const HUGE: VmaFlags = VmaFlags(512);
    /// Declined huge pages (`MADV_NOHUGEPAGE`, `MAP_STACK`).
    pub const NO_HUGE: VmaFlags = VmaFlags(1024);

    /// Of pages of the pool (`MAP_HUGETLB`).
    pub const POOL: VmaFlags = VmaFlags(2048);

    /// Whether every bit of `other` is in here.
    pub const fn has(self, other: VmaFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub const fn with(self, other: VmaFlags) -> VmaFlags {
        VmaFlags(self.0 | other.0)
    }

    /// Whether a range with these may never have the protection `prot`.
    pub const fn forbids(self, prot: Prot) -> bool {
        (prot.has(Prot::WRITE) && self.has(VmaFlags::NO_WRITE)) || (prot.has(Prot::EXEC) && self.has(VmaFlags::NO_EXEC))
    }

    /// This set less `other`.
    pub const fn without(self, other: VmaFlags) -> VmaFlags {
        VmaFlags(self.0 & !other.0)
    }
}

/// What stands behind a range.
pub trait Backing: Clone {
    /// The backing of the part that begins `bytes` further in.
    fn advanced(&self, bytes: u64) -> Self;
    /// Whether `next` is exactly what this backing continues as after `bytes`.
    fn continues_as(&self, bytes: u64, next: &Self) -> bool;
}

/// One mapped range.
#[derive(Clone, Debug)]
pub struct Vma<B> {
    /// Address of the first byte, a multiple of the page size.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// What the program may do here.
    pub prot: Prot,
    /// Everything else about it.
    pub flags: VmaFlags,
    /// Where its pages come from.
    pub backing: B,
}

impl<B> Vma<B> {
    /// Whether `addr` lies inside.
    pub fn contains(&self, addr: u64) -> bool {
        self.start <= addr && addr < self.end
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.end - self.start
    }

    /// Where it begins, or the distance that it keeps from what is placed below it.
    fn start_with_guard(&self) -> u64 {
        if self.flags.has(VmaFlags::GROWS_DOWN) { self.start.saturating_sub(STACK_GUARD) } else { self.start }
    }
}

/// Why an edit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmaError {
    /// Part of the range is not mapped, or there is no room (`ENOMEM`).
    NoMemory,
    /// The range may not have that protection (`EACCES`).
    Access,
}

/// A process's mapped ranges.
#[derive(Debug)]
pub struct VmaSet<B> {
    vmas: Pieces<B>,
    pages: u64,
    hint: Hint,
}

/// Where a top-down search may begin: no gap between `top` and `ceiling` holds `len` bytes.
#[derive(Clone, Copy, Debug)]
struct Hint {
    len: u64,
    top: u64,
    ceiling: u64,
}

impl Hint {
    const NONE: Hint = Hint { len: u64::MAX, top: 0, ceiling: 0 };
}

impl<B> Default for VmaSet<B> {
    fn default() -> Self {
        Self { vmas: Pieces::new(), pages: 0, hint: Hint::NONE }
    }
}

impl<B: Backing> VmaSet<B> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy; `NoMemory` when there is none for it.
    pub fn try_clone(&self) -> Result<Self, VmaError> {
        Ok(Self { vmas: self.vmas.try_clone()?, pages: self.pages, hint: self.hint })
    }

    /// All ranges in address order.
    pub fn iter(&self) -> Iter<'_, B> {
        self.vmas.iter()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.vmas.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of pages in all ranges, resident or not.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The range that holds `addr`.
    #[inline]
    pub fn find(&self, addr: u64) -> Option<&Vma<B>> {
        self.vmas.get(self.first_ending_after(addr)).filter(|vma| vma.start <= addr)
    }

    /// The first range that ends after `addr`, whether or not it holds it.
    pub fn find_at_or_above(&self, addr: u64) -> Option<&Vma<B>> {
        self.vmas.get(self.first_ending_after(addr))
    }

    /// The ranges that overlap `start..end`, whole.
    pub fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = &Vma<B>> {
        self.vmas.from(self.first_ending_after(start)).take_while(move |vma| vma.start < end)
    }

    /// Whether nothing is mapped in `start..end`.
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.overlapping(start, end).next().is_none()
    }

    /// Whether all of `start..end` is mapped.
    pub fn is_covered(&self, start: u64, end: u64) -> bool {
        let mut at = start;
        for vma in self.overlapping(start, end) {
            if vma.start > at {
                return false;
            }
            at = vma.end;
        }
        at >= end
    }

    /// Adds a range where nothing is mapped. The caller has checked that with [`VmaSet::is_free`] or removed what was
    /// there.
    pub fn insert(&mut self, vma: Vma<B>) -> Result<(), VmaError> {
        // One more than a split may bring it to, as on Linux.
        if self.vmas.len() > MAX_VMAS {
            return Err(VmaError::NoMemory);
        }
        debug_assert!(self.is_free(vma.start, vma.end));
        let at = self.first_ending_after(vma.start);
        let pages = vma.bytes() / PAGE;
        let left = self.vmas.before(at).filter(|left| self.vmas.get(*left).is_some_and(|left| joins(left, &vma)));
        let right_end = self.vmas.get(at).filter(|right| joins(&vma, right)).map(|right| right.end);
        match (left, right_end) {
            (Some(left), _) => {
                if right_end.is_some() {
                    self.vmas.remove(at);
                }
                self.set_end_at(left, right_end.unwrap_or(vma.end));
            }
            (None, Some(_)) => {
                if let Some(right) = self.vmas.get_mut(at) {
                    right.start = vma.start;
                    right.backing = vma.backing;
                }
            }
            (None, None) => self.vmas.insert(at, vma)?,
        }
        self.pages += pages;
        Ok(())
    }

    /// Unmaps `start..end`; `gone` sees each removed piece in order. Holes are fine.
    pub fn remove(&mut self, start: u64, end: u64, mut gone: impl FnMut(&Vma<B>)) -> Result<(), VmaError> {
        let (first, last) = self.split_around(start, end)?;
        if first == last {
            return Ok(());
        }
        let mut at = first;
        while at != last
            && let Some(vma) = self.vmas.get(at)
        {
            self.pages -= vma.bytes() / PAGE;
            gone(vma);
            at = self.vmas.after(at);
        }
        self.vmas.remove_all(first, last);
        if end > self.hint.top {
            self.hint = Hint::NONE;
        }
        Ok(())
    }

    /// Gives every page of `start..end` the protection `prot`; `changed` sees each piece with its former protection. On
    /// a hole the pieces before it have changed, as mprotect(2) does it.
    pub fn protect(
        &mut self,
        start: u64,
        end: u64,
        prot: Prot,
        mut changed: impl FnMut(&Vma<B>, Prot),
    ) -> Result<(), VmaError> {
        let first = self.first_ending_after(start);
        if let Some(vma) = self.vmas.get_mut(first)
            && (vma.start, vma.end) == (start, end)
            && !vma.flags.forbids(prot)
        {
            // Nothing to split.
            let old = core::mem::replace(&mut vma.prot, prot);
            changed(vma, old);
            self.join(first, end);
            return Ok(());
        }
        let mut stop = end;
        let mut outcome = Ok(());
        let mut at = start;
        for vma in self.overlapping(start, end) {
            if vma.start > at {
                break;
            }
            if vma.flags.forbids(prot) {
                (stop, outcome) = (at, Err(VmaError::Access));
                break;
            }
            at = vma.end;
        }
        if outcome.is_ok() && at < end {
            (stop, outcome) = (at, Err(VmaError::NoMemory));
        }
        if stop > start {
            self.edit(start, stop, |vma| {
                let old = vma.prot;
                vma.prot = prot;
                changed(vma, old);
            })?;
        }
        outcome
    }

    /// Applies `change` to every piece in `start..end` (split at the borders) and joins equal neighbours again.
    pub fn edit(&mut self, start: u64, end: u64, mut change: impl FnMut(&mut Vma<B>)) -> Result<(), VmaError> {
        let (first, last) = self.split_around(start, end)?;
        let mut at = first;
        while at != last
            && let Some(vma) = self.vmas.get_mut(at)
        {
            change(vma);
            at = self.vmas.after(at);
        }
        self.join(first, end);
        Ok(())
    }

    /// Joins what continues each other from the entry before `first` up to the border at `end`.
    fn join(&mut self, first: At, end: u64) {
        let mut at = self.vmas.before(first).unwrap_or(first);
        loop {
            let next = self.vmas.after(at);
            let (Some(left), Some(right)) = (self.vmas.get(at), self.vmas.get(next)) else { return };
            if right.start > end {
                return;
            }
            if joins(left, right) {
                let joined_end = right.end;
                self.vmas.remove(next);
                self.set_end_at(at, joined_end);
            } else {
                at = next;
            }
        }
    }

    /// Whether `start..end` is free and a placement there would leave a range that grows down above it its distance.
    pub fn is_clear(&self, start: u64, end: u64) -> bool {
        self.find_at_or_above(start).is_none_or(|next| next.start_with_guard() >= end)
    }

    /// The highest gap of `len` bytes within `floor..ceiling`, allocated from its top; [`STACK_GUARD`] bytes below a
    /// range that grows down belong to none.
    pub fn find_gap(&mut self, len: u64, floor: u64, ceiling: u64) -> Option<u64> {
        if len == 0 || ceiling.checked_sub(len)? < floor {
            return None;
        }
        if ceiling != self.hint.ceiling {
            self.hint = Hint { ceiling, ..Hint::NONE };
        }
        let mut top = if len >= self.hint.len { self.hint.top } else { ceiling };
        let mut at = self.vmas.partition(|vma| vma.start < top);
        top = self.vmas.get(at).map_or(top, |above| top.min(above.start_with_guard()));
        loop {
            let before = self.vmas.before(at);
            let lower = before.and_then(|before| self.vmas.get(before));
            let below = lower.map_or(floor, |lower| lower.end.max(floor));
            if top > below && top - below >= len {
                if len <= self.hint.len {
                    self.hint = Hint { len, top, ceiling };
                }
                return Some(top - len);
            }
            let (Some(before), Some(lower)) = (before, lower) else { return None };
            if lower.end <= floor {
                return None;
            }
            at = before;
            top = top.min(lower.start_with_guard());
        }
    }

    /// Extends the growing range above `addr` down to the page of `addr`. `limit` is the largest allowed size in bytes;
    /// `guard` the distance to keep from a range below (Linux: 256 pages). `None` when nothing above grows or it may
    /// not.
    pub fn grow_down(&mut self, addr: u64, limit: u64, guard: u64) -> Option<u64> {
        let at = self.first_ending_after(addr);
        let page = addr & !(PAGE - 1);
        let lower = self.vmas.before(at).and_then(|lower| self.vmas.get(lower));
        let floor = lower.map_or(0, |lower| lower.end);
        let open_below = lower.is_none_or(|lower| lower.prot == Prot::NONE);
        let vma = self.vmas.get_mut(at)?;
        if !vma.flags.has(VmaFlags::GROWS_DOWN) || vma.end - page > limit {
            return None;
        }
        if page < floor || (!open_below && page - floor < guard) {
            return None;
        }
        self.pages += (vma.start - page) / PAGE;
        vma.start = page;
        Some(page)
    }

    /// Moves the end of the range that starts at or holds `start` to `end`; used by `brk` and `mremap` in place.
    pub fn set_end(&mut self, holds: u64, end: u64) -> bool {
        let at = self.first_ending_after(holds);
        let next = self.vmas.get(self.vmas.after(at)).map_or(u64::MAX, |vma| vma.start);
        let Some(vma) = self.vmas.get_mut(at) else { return false };
        if vma.start > holds || end <= vma.start || end > next {
            return false;
        }
        self.pages = self.pages + end / PAGE - vma.end / PAGE;
        vma.end = end;
        self.hint = Hint::NONE;
        true
    }

    #[inline]
    fn first_ending_after(&self, addr: u64) -> At {
        self.vmas.partition(|vma| vma.end <= addr)
    }

    fn set_end_at(&mut self, at: At, end: u64) {
        if let Some(vma) = self.vmas.get_mut(at) {
            vma.end = end;
        }
    }

    /// Splits so that whole entries cover what is mapped of `start..end`; the first of them and the one after the last.
    fn split_around(&mut self, start: u64, end: u64) -> Result<(At, At), VmaError> {
        let mut first = self.first_ending_after(start);
        if self.vmas.get(first).is_some_and(|vma| vma.start < start) {
            self.split(first, start)?;
            first = self.first_ending_after(start);
        }
        let mut last = first;
        while self.vmas.get(last).is_some_and(|vma| vma.end <= end) {
            last = self.vmas.after(last);
        }
        if self.vmas.get(last).is_some_and(|vma| vma.start < end) {
            self.split(last, end)?;
            first = self.first_ending_after(start);
            last = self.first_ending_after(end);
        }
        Ok((first, last))
    }

    fn split(&mut self, at: At, border: u64) -> Result<(), VmaError> {
        if self.len() >= MAX_VMAS {
            return Err(VmaError::NoMemory);
        }
        let Some(vma) = self.vmas.get(at) else { return Ok(()) };
        let mut upper = vma.clone();
        upper.backing = vma.backing.advanced(border - vma.start);
        upper.start = border;
        self.vmas.insert(self.vmas.after(at), upper)?;
        let lower = self.first_ending_after(border - 1);
        self.set_end_at(lower, border);
        Ok(())
    }
}

fn joins<B: Backing>(left: &Vma<B>, right: &Vma<B>) -> bool {
    left.end == right.start
        && left.prot == right.prot
        && left.flags == right.flags
        && !left.flags.has(VmaFlags::GROWS_DOWN)
        && left.backing.continues_as(left.bytes(), &right.backing)
}

#[cfg(test)]
mod tests;
