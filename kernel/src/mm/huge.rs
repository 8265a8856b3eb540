//! 2 MiB pages of private memory: given at the first write, made on request, split before a part of one changes.
//!
//! [`kernel_logic::huge`] says which ranges get one. A read takes a 4 KiB page of zeros instead, so that a sparse table
//! that is only looked at stays small; and when memory is not plentiful everything is 4 KiB. A huge page always lies
//! within one range: each change of the set first splits at its borders ([`AddressSpace::split_edges`]), where that can
//! still be refused.

use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use kernel_logic::huge::{self, Defrag, HUGE, Policy};
use kernel_logic::vma::PAGE;
use linux_abi::Errno;
use machine::addr::{HUGE_PAGES, PageRange, UserPage};
use machine::frame::{Frame, drain_magazines};
use machine::trap::Access;

use super::{AddressSpace, Backing, TAG_ANON, Vma, frames, rights};
use crate::sched::{Sleep, breathe_or_stop};

/// A setting and its names, as its file shows it.
struct Setting<T: 'static> {
    chosen: AtomicU8,
    names: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq> Setting<T> {
    const fn new(chosen: u8, names: &'static [(&'static str, T)]) -> Self {
        Self { chosen: AtomicU8::new(chosen), names }
    }

    #[inline]
    fn get(&self) -> T {
        self.names[usize::from(self.chosen.load(Relaxed)) % self.names.len()].1
    }

    fn set(&self, text: &[u8]) -> Result<(), Errno> {
        let found = self.names.iter().position(|(name, _)| name.as_bytes() == text).ok_or(Errno::EINVAL)?;
        self.chosen.store(found as u8, Relaxed);
        Ok(())
    }

    fn text(&self) -> alloc::vec::Vec<u8> {
        let chosen = self.get();
        let mut text = alloc::vec::Vec::new();
        for (name, value) in self.names {
            let (open, close) = if *value == chosen { ("[", "] ") } else { ("", " ") };
            text.extend([open, name, close].iter().flat_map(|part| part.bytes()));
        }
        text.pop();
        text.push(b'\n');
        text
    }
}

static ENABLED: Setting<Policy> = Setting::new(0, &Policy::ALL);
static DEFRAG: Setting<Defrag> = Setting::new(3, &Defrag::ALL);

/// Huge pages given by faults, faults that found no block, and huge pages made of small ones, since boot.
static COUNTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// See [`COUNTS`].
pub fn counts() -> [usize; 3] {
    [0, 1, 2].map(|which: usize| COUNTS[which].load(Relaxed))
}

/// `transparent_hugepage=` on the command line; an unknown value changes nothing.
pub fn start(choice: Option<&[u8]>) {
    if let Some(choice) = choice
        && ENABLED.set(choice).is_err()
    {
        crate::log::warn!("transparent_hugepage={}: expected always, madvise or never", crate::log::Escaped(choice));
    }
}

/// The files of `/sys/kernel/mm/transparent_hugepage` that can be written.
#[derive(Clone, Copy, Debug)]
pub enum Control {
    /// `enabled`.
    Enabled,
    /// `defrag`.
    Defrag,
}

impl Control {
    /// The file's text.
    pub fn text(self) -> alloc::vec::Vec<u8> {
        match self {
            Self::Enabled => ENABLED.text(),
            Self::Defrag => DEFRAG.text(),
        }
    }

    /// Sets it to what was written; EINVAL for a word that it does not have.
    pub fn set(self, text: &[u8]) -> Result<(), Errno> {
        match self {
            Self::Enabled => ENABLED.set(text),
            Self::Defrag => DEFRAG.set(text),
        }
    }
}

/// Whether a mapping without a place of its own is aligned for huge pages.
#[inline]
pub(super) fn aligns(backing: &Backing, len: u64) -> bool {
    huge::is_aligned_length(len) && matches!(backing, Backing::Anonymous) && ENABLED.get() != Policy::Never
}

impl AddressSpace {
    /// Maps a huge page of zeros for a first write to `page`, if the range wants one there and a block is free.
    #[inline]
    pub(super) fn map_huge(&self, vma: &Vma, page: UserPage, access: Access) -> bool {
        // Small ranges, the usual case, go no further.
        match huge::block_around(vma.start, vma.end, page.addr()) {
            Some(block) if access == Access::Write => self.map_block(vma, block),
            _ => false,
        }
    }

    #[cold]
    fn map_block(&self, vma: &Vma, at: u64) -> bool {
        let Some(first) = UserPage::new(at).filter(|_| self.wants_huge(vma)) else { return false };
        if !self.space.is_vacant(first) {
            return false;
        }
        let Some(block) = block(DEFRAG.get().tries(vma.flags)) else {
            COUNTS[1].fetch_add(1, Relaxed);
            return false;
        };
        if self.space.map_huge(first, block, rights(vma.prot, true, TAG_ANON)).is_err() {
            return false;
        }
        self.count(TAG_ANON, HUGE_PAGES as i64);
        COUNTS[0].fetch_add(1, Relaxed);
        true
    }

    fn wants_huge(&self, vma: &Vma) -> bool {
        ENABLED.get().grants(vma.flags) && !self.no_huge.load(Relaxed)
    }

    /// Makes the pages in memory of each aligned 2 MiB of `start..end` one huge page (`MADV_COLLAPSE`), whatever the
    /// policy. `EINVAL` for a range that cannot have one, and where nothing is in memory; `ENOMEM` over a hole, at the
    /// end, and without a block.
    pub fn collapse(&self, start: u64, end: u64) -> Result<(), Errno> {
        let (mut at, mut holes) = (start, Ok(()));
        while at < end {
            let found = self.lock().vmas.find_at_or_above(at).map(|vma| (vma.start, vma.end));
            let Some((from, to)) = found.filter(|(from, _)| *from < end) else { return Err(Errno::ENOMEM) };
            if from > at {
                holes = Err(Errno::ENOMEM);
            }
            if huge::blocks_within(from, to).is_none() {
                return Err(Errno::EINVAL);
            }
            let (first, last) = huge::blocks_within(at.max(from), end.min(to)).unwrap_or((0, 0));
            let mut outcome = Ok(());
            for block in (first..last).step_by(HUGE as usize) {
                outcome = self.collapse_block(block).and(outcome);
                breathe_or_stop(Sleep::Killable).map_err(|_| Errno::EINTR)?;
            }
            outcome?;
            at = to;
        }
        holes
    }

    fn collapse_block(&self, at: u64) -> Result<(), Errno> {
        let map = self.lock();
        let vma = map.vmas.find(at).ok_or(Errno::ENOMEM)?;
        let anonymous = matches!(vma.backing, Backing::Anonymous);
        // The policy of faults does not bind a request, what the range and the process declined does.
        let declined = !Policy::Always.grants(vma.flags) || self.no_huge.load(Relaxed);
        let page = UserPage::new(at).ok_or(Errno::EINVAL)?;
        if !anonymous || declined || huge::block_around(vma.start, vma.end, at) != Some(at) {
            return Err(Errno::EINVAL);
        }
        if self.space.lookup(page).is_some_and(|leaf| leaf.huge) {
            return Ok(());
        }
        let range = PageRange::new(at, at + HUGE).ok_or(Errno::EINVAL)?;
        let mut any = false;
        self.space.for_each(range, &mut |_, _| any = true);
        if !any {
            return Err(Errno::EINVAL);
        }
        let block = block(true).ok_or(Errno::ENOMEM)?;
        let prot = rights(vma.prot, true, TAG_ANON);
        let before = self.space.collapse(page, block, prot).map_err(|_| Errno::EINVAL)?;
        self.count(TAG_ANON, HUGE_PAGES as i64 - before.by_tag[usize::from(TAG_ANON)] as i64);
        COUNTS[2].fetch_add(1, Relaxed);
        Ok(())
    }

    /// Splits the huge pages that `start..end` begins or ends inside of. Asked before the set changes at these borders,
    /// so that no huge page ever reaches over one: `ENOMEM` changes nothing.
    #[inline(always)]
    pub(super) fn split_edges(&self, start: u64, end: u64) -> Result<(), Errno> {
        if self.space.has_huge() { self.split_edges_now(start, end) } else { Ok(()) }
    }

    #[cold]
    fn split_edges_now(&self, start: u64, end: u64) -> Result<(), Errno> {
        match PageRange::new(start, end) {
            Some(range) => self.space.split_edges(range).map_err(|_| Errno::ENOMEM),
            None => Ok(()),
        }
    }
}

/// 2 MiB of zeros for a program, while memory is plentiful.
fn block(tries_harder: bool) -> Option<Frame> {
    if !frames::is_plentiful(HUGE_PAGES) {
        return None;
    }
    let order = HUGE_PAGES.ilog2() as u8;
    let first = Frame::alloc_zeroed_block(order).ok();
    if first.is_some() || !tries_harder {
        return first;
    }
    // Frames that wait for their next use one by one may be what keeps their neighbours apart.
    drain_magazines();
    Frame::alloc_zeroed_block(order).ok()
}

const _: () = assert!(HUGE == HUGE_PAGES as u64 * PAGE);
