//! What becomes of mappings whose file loses pages: truncate(2), and holes (fallocate(2)).

use alloc::sync::Arc;
use alloc::vec::Vec;

use kernel_logic::vma::PAGE;
use machine::addr::PageRange;

use super::{AddressSpace, Backing, TAG_FILE, page_up};
use crate::fs::Inode;
use crate::task::tree;

/// Pages `first..last` of a file are a hole now: mappings that show the file's own page there see zeros from now on. What was
/// copied on a write to a private mapping stays (fallocate(2)).
pub fn file_was_punched(file: &dyn Inode, first: u64, last: u64) {
    let this = core::ptr::from_ref(file).cast::<()>();
    for process in tree::all_processes() {
        let Some(mm) = process.any_thread().and_then(|thread| thread.mm()) else { continue };
        let map = mm.lock();
        for vma in map.vmas.iter() {
            let Backing::File { file, offset } = &vma.backing else { continue };
            let (begin, end) = (offset / PAGE, (offset + vma.bytes()) / PAGE);
            if Arc::as_ptr(file.inode()).cast::<()>() == this && first < end && begin < last {
                let at = |index: u64| vma.start + (index - begin) * PAGE;
                mm.forget_file_pages(at(first.max(begin)), at(last.min(end)));
            }
        }
    }
}

/// A file was cut to `size` bytes: nobody keeps a page of it beyond that mapped (truncate(2): SIGBUS from then on).
pub fn file_was_cut(file: &dyn Inode, size: u64) {
    let Some(first_gone) = page_up(size) else { return };
    let this = core::ptr::from_ref(file).cast::<()>();
    for process in tree::all_processes() {
        let Some(mm) = process.any_thread().and_then(|thread| thread.mm()) else { continue };
        let map = mm.lock();
        for vma in map.vmas.iter() {
            let Backing::File { file, offset } = &vma.backing else { continue };
            if Arc::as_ptr(file.inode()).cast::<()>() == this && offset + vma.bytes() > first_gone {
                mm.unmap_pages(vma.start + first_gone.saturating_sub(*offset), vma.end);
            }
        }
    }
}

impl AddressSpace {
    /// Takes those pages of `start..end` out of the tables that are a file's own.
    fn forget_file_pages(&self, start: u64, end: u64) {
        let Some(range) = PageRange::new(start, end) else { return };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        self.space.for_each(range, &mut |page, leaf| {
            let at = page.addr();
            match runs.last_mut() {
                _ if leaf.prot.tag != TAG_FILE => {}
                Some((_, end)) if *end == at => *end += PAGE,
                _ => runs.push((at, at + PAGE)),
            }
        });
        for (start, end) in runs {
            self.unmap_pages(start, end);
        }
    }
}
