//! `/proc/PID/maps` and `smaps`: what a process has mapped.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use kernel_logic::vma::{Prot, VmaFlags};
use linux_abi::Errno;
use machine::addr::{HUGE_PAGES, PageRange};
use machine::frame::Frame;
use machine::space::Leaf;

use super::lines::Lines;
use super::process::escape;
use crate::fs::dev::split;
use crate::mm::{AddressSpace, Backing, TAG_FILE, TAG_SHMEM, Vma, frames, pool};
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
        let mut shown = Shown::default();
        let mut at = vma.start;
        while let Some(range) = PageRange::new(at, vma.end).filter(|_| at < vma.end) {
            at = mm.space.reach(range, PAGES_PER_LOOK);
            let Some(part) = PageRange::new(range.start(), at) else { break };
            mm.space.for_each(part, &mut |_, leaf| shown.add(leaf));
            breathe();
        }
        out.push(shown.text(&vma).as_bytes())?;
    }
    Ok(out.into_text())
}

/// What of a range is in memory, in KiB.
#[derive(Default)]
struct Shown {
    resident: u64,
    /// Each page divided among those that show it, in bytes.
    proportional: u64,
    shared_clean: u64,
    shared_dirty: u64,
    private_clean: u64,
    private_dirty: u64,
    referenced: u64,
    anonymous: u64,
    huge: u64,
    huge_of_file: u64,
}

impl Shown {
    fn add(&mut self, leaf: &Leaf) {
        // A huge page lies in one mapping whole.
        let size = if leaf.huge { 2048 } else { 4 };
        let anonymous = leaf.prot.tag != TAG_FILE && leaf.prot.tag != TAG_SHMEM;
        let references = u64::from(Frame::references_to(leaf.frame).unwrap_or(1));
        let shows = match (anonymous, leaf.huge) {
            (true, _) => references,
            // What a file or shared memory keeps itself shows no page; of a block it keeps all pieces.
            (false, true) => references.saturating_sub(HUGE_PAGES as u64),
            // A piece of a block is counted on the block: who shows this one is not known.
            (false, false) if references >= HUGE_PAGES as u64 => 1,
            (false, false) => references.saturating_sub(1),
        };
        let shows = shows.max(1);
        let sum = match (shows > 1, leaf.dirty) {
            (true, false) => &mut self.shared_clean,
            (true, true) => &mut self.shared_dirty,
            (false, false) => &mut self.private_clean,
            (false, true) => &mut self.private_dirty,
        };
        *sum += size;
        self.resident += size;
        self.proportional += size * 1024 / shows;
        self.referenced += if leaf.accessed { size } else { 0 };
        self.anonymous += if anonymous { size } else { 0 };
        if leaf.huge {
            *if leaf.prot.tag == TAG_FILE { &mut self.huge_of_file } else { &mut self.huge } += size;
        }
    }

    fn text(mut self, vma: &Vma) -> String {
        let (mut page, mut pooled) = (4, 0);
        if pool::is_of_pool(vma) {
            // Pages of the pool are no part of the resident set.
            (page, pooled) = (2048, self.resident);
            self = Self::default();
        }
        let [pool_shared, pool_private] = if vma.flags.has(VmaFlags::SHARED) { [pooled, 0] } else { [0, pooled] };
        let rows = [
            ("Size", vma.bytes() / 1024),
            ("KernelPageSize", page),
            ("MMUPageSize", page),
            ("Rss", self.resident),
            ("Pss", self.proportional / 1024),
            ("Shared_Clean", self.shared_clean),
            ("Shared_Dirty", self.shared_dirty),
            ("Private_Clean", self.private_clean),
            ("Private_Dirty", self.private_dirty),
            ("Referenced", self.referenced),
            ("Anonymous", self.anonymous),
            ("AnonHugePages", self.huge),
            ("FilePmdMapped", self.huge_of_file),
            ("Shared_Hugetlb", pool_shared),
            ("Private_Hugetlb", pool_private),
            ("Swap", 0),
        ];
        let mut text = String::new();
        for (name, value) in rows {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{:<16}{value:8} kB", format!("{name}:"));
        }
        text
    }
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
