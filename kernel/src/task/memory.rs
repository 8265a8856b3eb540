//! What a thread's memory asks of its process: faults that wait for memory, mappings of a file that was cut.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use kernel_logic::vma::PAGE;
use machine::trap::Access;

use super::{Task, oom, tree};
use crate::fs::Inode;
use crate::mm::fault::Unresolved;
use crate::mm::{Backing, page_up};

/// A fault in user mode or in a copy: resolves it for the running thread, freeing memory if that is what it takes.
pub fn resolve(me: &Task, addr: u64, access: Access) -> Result<(), Unresolved> {
    let Some(mm) = me.mm() else { return Err(Unresolved::NotMapped) };
    me.minor_faults.store(me.minor_faults.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    loop {
        match mm.fault(addr, access) {
            Err(Unresolved::OutOfMemory) if oom::relieve() => {}
            outcome => return outcome,
        }
    }
}

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
                mm.forget_pages(vma.start + first_gone.saturating_sub(*offset), vma.end);
            }
        }
    }
}
