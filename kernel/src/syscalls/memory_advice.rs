//! madvise(2): advice about pages, and holes in shared memory.

use alloc::sync::Arc;
use core::ops::RangeInclusive;

use kernel_logic::vma::{PAGE, Prot, VmaFlags};
use linux_abi::Errno;
use linux_abi::flags::file::{FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE};
use linux_abi::flags::memory as abi;
use linux_abi::syscalls::nr;

use super::{Call, Calls, SysResult};
use crate::fs::MappedFile;
use crate::mm::fault::Unresolved;
use crate::mm::{AddressSpace, Backing, SharedMemory, Vma, pool};

/// This area's calls.
pub const CALLS: Calls = &[(nr::madvise, madvise)];

fn madvise(call: &mut Call<'_>) -> SysResult {
    if !ADVICE.iter().any(|range| range.contains(&call.word(2))) {
        return Err(Errno::EINVAL);
    }
    let (start, end) = call.range(Errno::EINVAL)?;
    if start == end {
        return Ok(0);
    }
    let mm = call.mm()?;
    let none = VmaFlags::default();
    match call.word(2) {
        abi::MADV_FREE if !mm.lock().vmas.overlapping(start, end).all(is_private) => return Err(Errno::EINVAL),
        abi::MADV_DONTNEED | abi::MADV_FREE => mm.discard(start, end)?,
        abi::MADV_REMOVE => remove_shared(&mm, start, end)?,
        abi::MADV_DONTFORK => mm.set_flags(start, end, VmaFlags::DONT_FORK, none)?,
        abi::MADV_DOFORK => mm.set_flags(start, end, none, VmaFlags::DONT_FORK)?,
        abi::MADV_WIPEONFORK => {
            if !mm.lock().vmas.overlapping(start, end).all(is_private) {
                return Err(Errno::EINVAL);
            }
            mm.set_flags(start, end, VmaFlags::WIPE_ON_FORK, none)?;
        }
        abi::MADV_KEEPONFORK => mm.set_flags(start, end, none, VmaFlags::WIPE_ON_FORK)?,
        abi::MADV_HUGEPAGE => mm.set_flags(start, end, VmaFlags::HUGE, VmaFlags::NO_HUGE)?,
        abi::MADV_NOHUGEPAGE => mm.set_flags(start, end, VmaFlags::NO_HUGE, VmaFlags::HUGE)?,
        abi::MADV_COLLAPSE => mm.collapse(start, end)?,
        advice @ (abi::MADV_POPULATE_READ | abi::MADV_POPULATE_WRITE) => {
            let needed = if advice == abi::MADV_POPULATE_READ { Prot::READ } else { Prot::WRITE };
            if mm.lock().vmas.overlapping(start, end).any(|vma| !vma.prot.has(needed)) {
                return Err(Errno::EINVAL);
            }
            mm.populate(start, end).map_err(populate_error)?;
        }
        // Hints about the future and about dumps: none of them changes what a program can see.
        _ if mm.lock().vmas.is_covered(start, end) => {}
        _ => return Err(Errno::ENOMEM),
    }
    Ok(0)
}

/// Whether a range is private memory of no file.
fn is_private(vma: &Vma) -> bool {
    matches!(vma.backing, Backing::Anonymous)
}

/// Kinds of advice there are.
const ADVICE: [RangeInclusive<u64>; 5] = [
    abi::MADV_NORMAL..=abi::MADV_DONTNEED,
    abi::MADV_FREE..=abi::MADV_DOFORK,
    abi::MADV_HUGEPAGE..=abi::MADV_PAGEOUT,
    abi::MADV_POPULATE_READ..=abi::MADV_POPULATE_WRITE,
    abi::MADV_COLLAPSE..=abi::MADV_COLLAPSE,
];

/// What `MADV_REMOVE` finds at an address, to be punched without the lock on the mappings.
enum Removal {
    /// Shared memory, from this page on.
    Shared(Arc<SharedMemory>, u64),
    /// A part of a file.
    File(MappedFile, u64),
}

/// `MADV_REMOVE`: a hole, which only shared mappings with the right to write may punch; ENOMEM, at the end, over one of
/// those.
fn remove_shared(mm: &AddressSpace, start: u64, end: u64) -> Result<(), Errno> {
    let (mut at, mut holes) = (start, Ok(()));
    while at < end {
        let (first, last, removal) = {
            let map = mm.lock();
            let Some(vma) = map.vmas.find_at_or_above(at).filter(|vma| vma.start < end) else {
                return Err(Errno::ENOMEM);
            };
            let (first, last) = (at.max(vma.start), end.min(vma.end));
            if first > at {
                holes = Err(Errno::ENOMEM);
            }
            (first, last, remove_of(vma, first)?)
        };
        match removal {
            Removal::Shared(memory, page) => memory.punch(page, page + (last - first) / PAGE),
            Removal::File(file, offset) => {
                file.inode().allocate(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offset, last - first)?;
            }
        }
        at = last;
    }
    holes
}

fn remove_of(vma: &Vma, first: u64) -> Result<Removal, Errno> {
    if vma.flags.has(VmaFlags::LOCKED)
        || pool::is_of_pool(vma) && matches!(vma.backing, Backing::Shared { .. })
        || matches!(vma.backing, Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. })
    {
        return Err(Errno::EINVAL);
    }
    // That it may not be written now does not matter, if it could be made writable.
    let may_write = match &vma.backing {
        Backing::File { file, .. } => file.is_writable() && !vma.flags.has(VmaFlags::NO_WRITE),
        _ => true,
    };
    if !vma.flags.has(VmaFlags::SHARED) || !may_write {
        return Err(Errno::EACCES);
    }
    match &vma.backing {
        Backing::Shared { memory, offset } => {
            Ok(Removal::Shared(memory.clone(), (offset + (first - vma.start)) / PAGE))
        }
        Backing::File { file, offset } => Ok(Removal::File(file.clone(), offset + (first - vma.start))),
        Backing::Anonymous | Backing::Pool { .. } | Backing::Vdso { .. } => Err(Errno::EINVAL),
    }
}

fn populate_error(error: Unresolved) -> Errno {
    match error {
        Unresolved::NotMapped | Unresolved::OutOfMemory => Errno::ENOMEM,
        Unresolved::Forbidden | Unresolved::Beyond => Errno::EFAULT,
    }
}
