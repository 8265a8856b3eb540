//! The page tables of the process that was running, and the frames they name.

use kernel_logic::vma::{PAGE, Prot, USER_END, VmaFlags};
use kwab_format::List;
use kwab_format::record::{FrameInfo, Pte, PteLevel};
use machine::addr::{FrameNumber, PhysAddr};
use machine::crash::{self, RawLeaf};
use machine::frame::Frame;

use super::memory::with_map;
use super::{Dump, Scope, Stop, Subject};
use crate::mm::TAG_FILE;

/// Entry bits as the processor has them (SDM 3, 4.5).
pub(super) mod bit {
    pub(in super::super) const PRESENT: u64 = 1;
    pub(in super::super) const WRITE: u64 = 1 << 1;
    pub(in super::super) const USER: u64 = 1 << 2;
    pub(in super::super) const ACCESSED: u64 = 1 << 5;
    pub(in super::super) const DIRTY: u64 = 1 << 6;
    pub(in super::super) const GLOBAL: u64 = 1 << 8;
    pub(in super::super) const NO_EXEC: u64 = 1 << 63;
    /// Where the kernel's own mark stands (`machine::space::Prot::tag`).
    pub(in super::super) const TAG: u32 = 9;
    pub(in super::super) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
}

/// A run of entries that differ only in consecutive addresses.
#[derive(Clone, Copy)]
struct Run {
    first: RawLeaf,
    count: u64,
    references: Option<u32>,
    copy_on_write: bool,
}

pub(super) fn entries(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let pid = subject.pid();
    let mut left = subject.amount.entries;
    let by_mapping = with_map(dump, subject, |dump, map, mm| {
        let root = mm.space.root();
        let mut at = 0;
        for vma in map.vmas.iter() {
            // What is mapped where no mapping is counts too.
            range(dump, pid, root, (at, vma.start), false, &mut left)?;
            let copies = !vma.flags.has(VmaFlags::SHARED) && vma.prot.has(Prot::WRITE);
            range(dump, pid, root, (vma.start, vma.end), copies, &mut left)?;
            at = vma.end;
        }
        range(dump, pid, root, (at, USER_END), false, &mut left)
    });
    match (by_mapping, subject.thread.and_then(|thread| thread.mm.try_with(|mm| mm.space.root()))) {
        // The map's holder was stopped in the middle of changing it, but the tables can be read all the same.
        (Err(Stop::Locked), Some(root)) => range(dump, pid, root, (0, USER_END), false, &mut left)?,
        (outcome, _) => outcome?,
    }
    if subject.death.in_kernel && subject.scope == Scope::Kernel {
        of_kernel(dump, subject)?;
    }
    Ok(())
}

/// The runs of a range; `copies` says that a page which may not be written is copied when it is.
fn range(
    dump: &mut Dump<'_>,
    pid: Option<u32>,
    root: PhysAddr,
    (start, end): (u64, u64),
    copies: bool,
    left: &mut usize,
) -> Result<(), Stop> {
    let mut run: Option<Run> = None;
    let mut outcome = Ok(());
    crash::leaves(root, start, end, &mut |leaf| {
        let next = Run {
            first: leaf,
            count: 1,
            references: references(leaf.entry),
            copy_on_write: copies && leaf.entry & bit::WRITE == 0,
        };
        match &mut run {
            Some(run) if run.goes_on_with(&next) => run.count += 1,
            open => {
                if let Some(done) = open.replace(next) {
                    outcome = take_one(left).and_then(|()| done.put(dump, pid, root));
                }
            }
        }
        outcome.is_ok()
    });
    outcome?;
    match run {
        Some(run) => take_one(left).and_then(|()| run.put(dump, pid, root)),
        None => Ok(()),
    }
}

/// Counts a record of a long list down.
pub(super) fn take_one(left: &mut usize) -> Result<(), Stop> {
    *left = left.checked_sub(1).ok_or(Stop::Enough)?;
    Ok(())
}

fn references(entry: u64) -> Option<u32> {
    Frame::references_to(FrameNumber(((entry & bit::ADDRESS) >> 12) as u32))
}

impl Run {
    fn goes_on_with(&self, next: &Run) -> bool {
        let ahead = self.count * self.first.size;
        let (a, b) = (self.first.entry, next.first.entry);
        next.first.size == self.first.size
            && next.first.at == self.first.at + ahead
            && b & bit::ADDRESS == (a & bit::ADDRESS) + ahead
            && a & !bit::ADDRESS == b & !bit::ADDRESS
            && self.references == next.references
            && self.copy_on_write == next.copy_on_write
    }

    fn put(&self, dump: &mut Dump<'_>, pid: Option<u32>, root: PhysAddr) -> Result<(), Stop> {
        let leaf = self.first;
        let walk = crash::walk(root, leaf.at);
        let mut levels = [PteLevel::default(); 5];
        let above = walk.depth.saturating_sub(1);
        for (index, level) in levels.iter_mut().enumerate().take(above) {
            level.level = Some(4 - index as u8);
            level.raw = Some(walk.entries[index]);
            level.addr = Some(walk.entry_addresses[index]);
        }
        let paddr = leaf.entry & bit::ADDRESS;
        dump.put(&Pte {
            pid,
            vaddr: Some(leaf.at),
            raw: Some(leaf.entry),
            paddr: Some(paddr),
            size: Some(leaf.size),
            rights: Some(self.rights()),
            count: Some(self.count).filter(|count| *count > 1),
            refcount: self.references.map(u64::from),
            levels: Some(List::new(&levels[..above])),
            root: Some(root.0),
            ..Pte::default()
        })?;
        dump.put(&FrameInfo {
            frame: Some(paddr >> 12),
            count: Some(self.count * (leaf.size >> 12)).filter(|count| *count > 1),
            refcount: self.references.map(u64::from),
            flags: Some(self.frame_flags()),
            ..FrameInfo::default()
        })
    }

    /// Bit 0 free, bit 1 in the page cache, bit 4 the first of a huge page.
    fn frame_flags(&self) -> u32 {
        let cached = self.first.entry >> bit::TAG & 3 == u64::from(TAG_FILE) && self.first.entry & bit::USER != 0;
        let huge = self.first.size > PAGE;
        u32::from(self.references == Some(0)) | u32::from(cached) << 1 | u32::from(huge) << 4
    }

    /// As the format numbers them.
    fn rights(&self) -> u32 {
        let entry = self.first.entry;
        let has = |bit: u64, to: u32| if entry & bit != 0 { 1u32 << to } else { 0 };
        let exec = if entry & bit::NO_EXEC == 0 { 1 << 2 } else { 0 };
        let copies = if self.copy_on_write { 1 << 7 } else { 0 };
        has(bit::PRESENT, 0)
            | has(bit::WRITE, 1)
            | exec
            | has(bit::USER, 3)
            | has(bit::ACCESSED, 4)
            | has(bit::DIRTY, 5)
            | has(bit::GLOBAL, 6)
            | copies
    }
}

/// The kernel's own entries for what the death is about: instruction, stack, failed access.
fn of_kernel(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let death = subject.death;
    let root = PhysAddr(death.control.cr3 & bit::ADDRESS);
    let wanted = [Some(death.registers.rip), Some(death.registers.rsp), death.fault_addr()];
    for addr in wanted.into_iter().flatten().filter(|addr| addr >> 63 == 1) {
        let walk = crash::walk(root, addr);
        let Some(last) = walk.depth.checked_sub(1) else { continue };
        let size = 1u64 << (12 + 9 * (4 - walk.depth.min(4)));
        let first = RawLeaf { at: addr & !(size - 1), entry: walk.entries[last], size };
        let run = Run { first, count: 1, references: references(first.entry), copy_on_write: false };
        run.put(dump, None, root)?;
    }
    Ok(())
}
