//! Page faults: [`kernel_logic::fault`] decides what the faulting page becomes, and this module maps it.

use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::fault::{self, Action, Pte, Range, Source};
use kernel_logic::huge::HUGE;
use kernel_logic::vma::{PAGE, Prot, STACK_GUARD, VmaFlags};
use linux_abi::Errno;
use machine::addr::{PageRange, UserPage};
use machine::frame::Frame;
use machine::space::{Leaf, MapError};
use machine::trap::Access;

use super::map::MIN_ADDR;
use super::pool::Missing;
use super::template::Images;
use super::{
    AddressSpace, Backing, Map, Mapped as _, Owner as _, PageUse, TAG_ANON, TAG_FILE, TAG_POOL, Vma, backing_page,
    frames, page_down, rights,
};
use crate::inject::{self, Fault};
use crate::sched::{Sleep, breathe_or_stop};
use crate::upper::current;

/// Why a fault cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// SIGSEGV, nothing there.
    NotMapped,
    /// SIGSEGV, not allowed.
    Forbidden,
    /// SIGBUS: past the end of a file.
    Beyond,
    /// No frame is free: the OOM killer is asked.
    OutOfMemory,
}

/// Pages mapped around a fault on a file, as far as they are in memory anyway.
const AROUND: u64 = 16;
/// First writes to one page after the other, without a gap, that say that a program goes on so.
const IN_ORDER: u64 = 6;
/// Pages of zeros made at once for a program that does.
const AHEAD: u64 = 8;

impl AddressSpace {
    /// Resolves a fault at `addr`.
    pub fn fault(&self, addr: u64, access: Access) -> Result<(), Unresolved> {
        let page = UserPage::new(page_down(addr)).ok_or(Unresolved::NotMapped)?;
        self.fault_locked(&mut self.lock(), addr, page, access)
    }

    /// [`Self::fault`] under the map's lock, which the caller holds on to: until it lets go, the page stays as it is.
    #[inline]
    pub(super) fn fault_locked(
        &self,
        map: &mut Map,
        addr: u64,
        page: UserPage,
        access: Access,
    ) -> Result<(), Unresolved> {
        let vma = match map.vmas.find(addr) {
            Some(vma) => vma,
            None => {
                self.grow_stack(map, addr)?;
                map.vmas.find(addr).ok_or(Unresolved::NotMapped)?
            }
        };
        let zeros = matches!(vma.backing, Backing::Anonymous | Backing::Pool { .. });
        let source = if zeros { Source::Anonymous } else { Source::File };
        let pte = match self.space.lookup(page) {
            None => Pte::Absent,
            Some(leaf) => Pte::Present {
                writable: leaf.prot.write,
                executable: leaf.prot.exec,
                readable: leaf.prot.read,
                sole: false,
            },
        };
        let wanted = match access {
            Access::Read => fault::Access::Read,
            Access::Write => fault::Access::Write,
            Access::Execute => fault::Access::Exec,
        };
        let range = Range { prot: vma.prot, flags: vma.flags, source };
        self.apply(vma, page, fault::decide(Some(range), pte, wanted), access, &map.images)
    }

    /// Faults in every page of `start..end`, for `MAP_POPULATE` and `mlock`, up to one that its range does not allow.
    pub fn populate(&self, start: u64, end: u64) -> Result<(), Unresolved> {
        let mut at = start;
        while at < end {
            let range = self.lock().vmas.find(at).map(|vma| (vma.prot, vma.flags));
            let Some((prot, flags)) = range else { return Err(Unresolved::NotMapped) };
            let write = prot.has(Prot::WRITE) && !flags.has(VmaFlags::SHARED);
            self.fault(at, if write { Access::Write } else { Access::Read })?;
            at += PAGE;
            // A process that ends has no use for the rest.
            breathe_or_stop(Sleep::Killable).map_err(|_| Unresolved::OutOfMemory)?;
        }
        Ok(())
    }

    fn grow_stack(&self, map: &mut Map, addr: u64) -> Result<(), Unresolved> {
        if addr < MIN_ADDR {
            return Err(Unresolved::NotMapped);
        }
        let limits = current().memory_limits();
        let range = map.vmas.find_at_or_above(addr).ok_or(Unresolved::NotMapped)?;
        let (prot, flags, more) = (range.prot, range.flags, (range.start - page_down(addr)) / PAGE);
        let locks = flags.has(VmaFlags::LOCKED);
        if !map.may_expand(&limits, prot, flags, more) || (locks && !map.may_lock(&limits, more)) {
            return Err(Unresolved::NotMapped);
        }
        map.vmas.grow_down(addr, limits.stack, STACK_GUARD).map(|_| ()).ok_or(Unresolved::NotMapped)
    }

    fn apply(
        &self,
        vma: &Vma,
        page: UserPage,
        action: Action,
        access: Access,
        images: &Images,
    ) -> Result<(), Unresolved> {
        match action {
            Action::NotMapped => Err(Unresolved::NotMapped),
            Action::Forbidden => Err(Unresolved::Forbidden),
            Action::Retry => Ok(()),
            Action::Zero if self.map_huge(vma, page, access) => Ok(()),
            Action::Zero => {
                if let Backing::Pool { promise } = &vma.backing {
                    return self.map_pool_page(vma, page, promise).map_err(|missing| match missing {
                        Missing::Range => Unresolved::NotMapped,
                        Missing::Page => Unresolved::Beyond,
                        Missing::Frame => Unresolved::OutOfMemory,
                    });
                }
                let frame = Frame::alloc_zeroed().map_err(|_| Unresolved::OutOfMemory)?;
                self.map_frame(vma, page, frame, true, TAG_ANON)?;
                if access == Access::Write {
                    self.go_on(vma, page);
                }
                Ok(())
            }
            Action::FileFrame { writable: true } => {
                let (frame, tag) = written_page(vma, page)?;
                self.map_frame(vma, page, frame, true, tag)
            }
            Action::FileFrame { writable: false } => {
                self.miss(vma, images);
                self.map_around(vma, page)
            }
            Action::FileCopy => {
                self.miss(vma, images);
                let (cached, tag) = file_page(vma, page, PageUse::Read)?;
                if inject::is(Fault::CacheWritable) {
                    return self.map_frame(vma, page, cached, true, tag);
                }
                let frame = Frame::alloc().map_err(|_| Unresolved::OutOfMemory)?;
                frame.copy_page_from(&cached);
                self.map_frame(vma, page, frame, true, TAG_ANON)
            }
            Action::CopyMapped | Action::Reclaim => self.make_private(vma, page),
            Action::MakeWritable => self.make_writable(vma, page),
            Action::Reprotect { writable } => {
                let prot = vma.prot;
                self.reprotect(page, &mut |leaf| rights(prot, writable, leaf.prot.tag))
            }
        }
    }

    /// Makes the next pages of zeros too for a program that has written to one fresh page after the other up to `page`.
    /// It is the fault that is dear, and such a program is about to have the next one; of one that stops, at most
    /// [`AHEAD`] pages are not used.
    #[inline]
    fn go_on(&self, vma: &Vma, page: UserPage) {
        // The page that would be next, and in the bits that such an address has not, how many came in order.
        let before = self.in_order.load(Relaxed);
        let next = page.addr() + PAGE;
        let came = if before & !(PAGE - 1) == page.addr() { (before & (PAGE - 1)) + 1 } else { 1 };
        let (next, came) = if came < IN_ORDER { (next, came) } else { (self.map_ahead(vma, next), IN_ORDER - 1) };
        self.in_order.store(next | came, Relaxed);
    }

    /// Maps pages of zeros from `start` on, within its range and its page table. Returns where they end.
    fn map_ahead(&self, vma: &Vma, start: u64) -> u64 {
        let end = (start + AHEAD * PAGE).min(vma.end).min(start.next_multiple_of(HUGE));
        let Some(range) = PageRange::new(start, end).filter(|_| start < end && frames::is_plentiful(AHEAD as usize))
        else {
            return start;
        };
        let zeros = &mut |_| Frame::alloc_zeroed().ok();
        let made = self.space.map_run(range, rights(vma.prot, true, TAG_ANON), zeros);
        self.count(TAG_ANON, made as i64);
        end
    }

    /// Exec did not map a page in advance: next time it does, if it is one of the program's.
    fn miss(&self, vma: &Vma, images: &Images) {
        if images.have(&vma.backing) {
            self.learns.store(true, Relaxed);
        }
    }

    /// Maps a frame of the space's own.
    pub(crate) fn map_private(&self, page: UserPage, frame: Frame, prot: Prot, tag: u8) -> Result<(), Unresolved> {
        match self.space.map(page, frame, rights(prot, true, tag)) {
            Ok(()) => {
                self.count(tag, 1);
                Ok(())
            }
            Err((MapError::Occupied, _)) => Ok(()),
            Err((MapError::OutOfFrames, _)) => Err(Unresolved::OutOfMemory),
        }
    }

    fn reprotect(&self, page: UserPage, rule: &mut dyn FnMut(&Leaf) -> machine::space::Prot) -> Result<(), Unresolved> {
        self.space.protect(PageRange::one(page), rule).map_err(|_| Unresolved::OutOfMemory)
    }

    fn map_frame(&self, vma: &Vma, page: UserPage, frame: Frame, writable: bool, tag: u8) -> Result<(), Unresolved> {
        match self.space.map(page, frame, rights(vma.prot, writable, tag)) {
            Ok(()) => {
                self.count(tag, 1);
                Ok(())
            }
            Err((MapError::Occupied, _)) => Ok(()),
            Err((MapError::OutOfFrames, _)) => Err(Unresolved::OutOfMemory),
        }
    }

    fn make_private(&self, vma: &Vma, page: UserPage) -> Result<(), Unresolved> {
        if inject::is(Fault::StaleLeaf) {
            return Ok(());
        }
        let tag = self.space.lookup(page).map_or(TAG_ANON, |leaf| leaf.prot.tag);
        if inject::is(Fault::CacheWritable) && tag == TAG_FILE {
            return self.reprotect(page, &mut |_| rights(vma.prot, true, tag));
        }
        let kept = if tag == TAG_POOL { TAG_POOL } else { TAG_ANON };
        match self.space.make_private(page, rights(vma.prot, true, kept)) {
            Ok(true) if tag != kept => {
                self.count(tag, -1);
                self.count(TAG_ANON, 1);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(_) => Err(Unresolved::OutOfMemory),
        }
    }

    /// A shared page is written for the first time: the file may want another frame for that than it gave for reading.
    fn make_writable(&self, vma: &Vma, page: UserPage) -> Result<(), Unresolved> {
        let (frame, tag) = written_page(vma, page)?;
        let prot = rights(vma.prot, true, tag);
        let Some(leaf) = self.space.lookup(page) else { return Ok(()) };
        if leaf.frame == frame.number() {
            return self.reprotect(page, &mut |_| prot);
        }
        // Lost to another thread that resolved the same fault: nothing to do.
        drop(self.space.replace(page, leaf.frame, frame, prot));
        Ok(())
    }

    /// Maps the file's frame for the page, and those of its neighbours that cost nothing more.
    fn map_around(&self, vma: &Vma, page: UserPage) -> Result<(), Unresolved> {
        let at = page.addr();
        let (frame, tag) = file_page(vma, page, PageUse::Read)?;
        let window = at & !(AROUND * PAGE - 1);
        let (start, end) = (window.max(vma.start), (window + AROUND * PAGE).min(vma.end));
        let Some(range) = PageRange::new(start, end) else { return Err(Unresolved::NotMapped) };
        let mut wanted = Some(frame);
        let prot = rights(vma.prot, false, tag);
        let mapped = self.space.map_run(range, prot, &mut |index| {
            let addr = start + index as u64 * PAGE;
            if addr == at {
                return wanted.take();
            }
            backing_page(&vma.backing, addr - vma.start, PageUse::Read).ok().map(|(frame, _)| frame)
        });
        self.count(tag, mapped as i64);
        if self.space.lookup(page).is_none() { Err(Unresolved::OutOfMemory) } else { Ok(()) }
    }
}

fn file_page(vma: &Vma, page: UserPage, usage: PageUse) -> Result<(Frame, u8), Unresolved> {
    backing_page(&vma.backing, page.addr() - vma.start, usage).map_err(|errno| match errno {
        Errno::ENOMEM => Unresolved::OutOfMemory,
        _ => Unresolved::Beyond,
    })
}

/// The page of a shared file mapping, to be written: the file counts as modified from here on (mmap(2)).
fn written_page(vma: &Vma, page: UserPage) -> Result<(Frame, u8), Unresolved> {
    let found = file_page(vma, page, PageUse::Write)?;
    if let Backing::File { file, .. } = &vma.backing {
        file.wrote();
    }
    Ok(found)
}
