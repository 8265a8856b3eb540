//! `/proc/PID/maps` and `smaps`: what a process has mapped.

use alloc::format;
use alloc::vec::Vec;

use kernel_logic::vma::{Prot, VmaFlags};
use linux_abi::Errno;
use machine::addr::PageRange;

use super::lines::Lines;
use super::process::escape;
use crate::fs::dev::split;
use crate::mm::{AddressSpace, Backing, TAG_FILE, Vma, frames, pool};
use crate::sched::breathe;
use crate::task;

pub(super) fn maps(mm: &AddressSpace) -> Result<Vec<u8>, Errno> {
    let mut out = Lines::new();
    let mut at = 0;
    while let Some(vma) = next(mm, &mut at) {
        line(&mut out, &vma)?;
        breathe();
    }
    Ok(out.into_text())
}

pub(super) fn smaps(mm: &AddressSpace) -> Result<Vec<u8>, Errno> {
    let mut out = Lines::new();
    let mut at = 0;
    while let Some(vma) = next(mm, &mut at) {
        line(&mut out, &vma)?;
        let (mut resident, mut huge, mut of_file) = (0_u64, 0_u64, 0_u64);
        let mut at = vma.start;
        while let Some(range) = PageRange::new(at, vma.end).filter(|_| at < vma.end) {
            at = mm.space.reach(range, PAGES_PER_LOOK);
            let Some(part) = PageRange::new(range.start(), at) else { break };
            mm.space.for_each(part, &mut |_, leaf| {
                // A huge page lies in one mapping whole.
                resident += if leaf.huge { 2048 } else { 4 };
                let more = if leaf.huge { 2048 } else { 0 };
                *if leaf.prot.tag == TAG_FILE { &mut of_file } else { &mut huge } += more;
            });
            breathe();
        }
        let size = vma.bytes() / 1024;
        // Pages of the pool are no part of the resident set.
        let (page, pooled) = if pool::is_of_pool(&vma) { (2048, core::mem::take(&mut resident)) } else { (4, 0) };
        if page > 4 {
            huge = 0;
        }
        let [pool_shared, pool_private] = if vma.flags.has(VmaFlags::SHARED) { [pooled, 0] } else { [0, pooled] };
        let text = format!(
            "Size:           {size:8} kB\nKernelPageSize: {page:8} kB\nMMUPageSize:    {page:8} kB\n\
             Rss:            {resident:8} kB\nPss:            {resident:8} kB\nShared_Clean:          0 kB\n\
             Shared_Dirty:          0 kB\nPrivate_Clean:         0 kB\nPrivate_Dirty:  {resident:8} kB\n\
             Referenced:     {resident:8} kB\nAnonymous:             0 kB\nAnonHugePages:  {huge:8} kB\n\
             FilePmdMapped:  {of_file:8} kB\n\
             Shared_Hugetlb: {pool_shared:8} kB\nPrivate_Hugetlb:{pool_private:8} kB\nSwap:                  0 kB\n"
        );
        out.push(text.as_bytes())?;
    }
    Ok(out.into_text())
}

/// The range at or above `at`, copied so that its name is made without the map's lock; moves `at` behind it.
fn next(mm: &AddressSpace, at: &mut u64) -> Option<Vma> {
    let found = mm.lock().vmas.find_at_or_above(*at).cloned()?;
    *at = found.end;
    Some(found)
}

/// Pages that are looked at before others run.
const PAGES_PER_LOOK: usize = 4096;
/// The longest text: more is ENOMEM rather than cut.
const LONGEST: usize = 1 << 21;

fn line(out: &mut Lines, vma: &Vma) -> Result<(), Errno> {
    // Also where there is room left in the text: many programs may do this at once.
    frames::spare()?;
    if out.len() >= LONGEST {
        return Err(Errno::ENOMEM);
    }
    let right = |right, letter| if vma.prot.has(right) { letter } else { '-' };
    let shared = if vma.flags.has(VmaFlags::SHARED) { 's' } else { 'p' };
    let (offset, dev, ino) = match &vma.backing {
        Backing::File { file, offset } => (*offset, file.inode().attr().dev, file.inode().attr().ino),
        Backing::Shared { offset, .. } => (*offset, 0, 0),
        _ => (0, 0, 0),
    };
    let (major, minor) = split(dev);
    let mut text = format!(
        "{:08x}-{:08x} {}{}{}{shared} {offset:08x} {major:02x}:{minor:02x} {ino} ",
        vma.start,
        vma.end,
        right(Prot::READ, 'r'),
        right(Prot::WRITE, 'w'),
        right(Prot::EXEC, 'x'),
    )
    .into_bytes();
    let name = name_of(vma);
    if !name.is_empty() {
        // The kernel pads to this column before the name.
        text.resize(text.len().max(73), b' ');
        // A newline in a name begins no line.
        escape(&mut text, &name, b"\n");
    }
    text.push(b'\n');
    out.push(&text)
}

fn name_of(vma: &Vma) -> Vec<u8> {
    match &vma.backing {
        Backing::File { file, .. } => file.path.display(&task::current().fs().root()),
        _ if pool::is_of_pool(vma) => b"/anon_hugepage (deleted)".to_vec(),
        Backing::Pool { .. } => Vec::new(),
        Backing::Shared { .. } => b"/dev/zero (deleted)".to_vec(),
        Backing::Vdso { index: 0 } => b"[vvar]".to_vec(),
        Backing::Vdso { .. } => b"[vdso]".to_vec(),
        Backing::Anonymous if vma.flags.has(VmaFlags::HEAP) => b"[heap]".to_vec(),
        Backing::Anonymous if vma.flags.has(VmaFlags::STACK) => b"[stack]".to_vec(),
        Backing::Anonymous => Vec::new(),
    }
}
