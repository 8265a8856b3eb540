//! How large a program's memory may become (setrlimit(2)): checked, under the map's lock, by each operation that
//! enlarges it.
//!
//! Linux's rules: `RLIMIT_AS` bounds all that is mapped, `RLIMIT_DATA` what is private, writable and does not grow
//! down, `RLIMIT_MEMLOCK` what is locked unless the program has `CAP_IPC_LOCK`.

use kernel_logic::vma::{PAGE, Prot, VmaFlags};
use linux_abi::Errno;

use super::{AddressSpace, Map, Owner as _, Vma, frames};
use crate::upper::current;

/// The limits of a program's memory, in bytes; `u64::MAX` for none.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// Address space in bytes (`RLIMIT_AS`).
    pub space: u64,
    /// Private writable memory in bytes (`RLIMIT_DATA`).
    pub data: u64,
    /// The stack in bytes (`RLIMIT_STACK`).
    pub stack: u64,
    /// `RLIMIT_MEMLOCK`, which does not bind a program with `CAP_IPC_LOCK`.
    pub locked: u64,
}

/// Whether a range counts against `RLIMIT_DATA`.
pub(super) fn is_data(prot: Prot, flags: VmaFlags) -> bool {
    prot.has(Prot::WRITE) && !flags.has(VmaFlags::SHARED) && !flags.has(VmaFlags::GROWS_DOWN)
}

impl Map {
    /// Whether `pages` more with this protection and these flags stay within `RLIMIT_AS` and `RLIMIT_DATA`.
    #[inline]
    pub(super) fn may_expand(&self, limits: &MemoryLimits, prot: Prot, flags: VmaFlags, pages: u64) -> bool {
        self.vmas.pages() + pages <= limits.space / PAGE
            && (limits.data == u64::MAX || !is_data(prot, flags) || self.data_pages() + pages <= limits.data / PAGE)
    }

    /// Whether the ranges in `start..end` may become private writable memory. `ENOMEM` beyond `RLIMIT_DATA`.
    pub(super) fn may_become_data(&self, limits: &MemoryLimits, start: u64, end: u64) -> Result<(), Errno> {
        if limits.data == u64::MAX {
            return Ok(());
        }
        let becomes = |vma: &&Vma| !is_data(vma.prot, vma.flags) && is_data(Prot::WRITE, vma.flags);
        let more: u64 = self.vmas.overlapping(start, end).filter(becomes).map(|vma| inside(vma, start, end)).sum();
        if more > 0 && self.data_pages() + more > limits.data / PAGE { Err(Errno::ENOMEM) } else { Ok(()) }
    }

    /// Whether `pages` more may be locked.
    pub(super) fn may_lock(&self, limits: &MemoryLimits, pages: u64) -> bool {
        limits.locked == u64::MAX || self.locked_pages() + pages <= limits.locked / PAGE || current().locks_any_memory()
    }

    /// Whether the limits allow for the program that is being loaded.
    pub fn fits(&self, limits: &MemoryLimits) -> bool {
        self.vmas.pages() <= limits.space / PAGE && (limits.data == u64::MAX || self.data_pages() <= limits.data / PAGE)
    }

    /// Mapped pages of `start..end`.
    pub(super) fn pages_in(&self, start: u64, end: u64) -> u64 {
        self.vmas.overlapping(start, end).map(|vma| inside(vma, start, end)).sum()
    }

    fn data_pages(&self) -> u64 {
        self.vmas.iter().filter(|vma| is_data(vma.prot, vma.flags)).map(|vma| vma.bytes() / PAGE).sum()
    }

    fn locked_pages(&self) -> u64 {
        self.vmas.iter().filter(|vma| vma.flags.has(VmaFlags::LOCKED)).map(|vma| vma.bytes() / PAGE).sum()
    }
}

/// Pages of a range that lie in `start..end`.
fn inside(vma: &Vma, start: u64, end: u64) -> u64 {
    (vma.end.min(end) - vma.start.max(start)) / PAGE
}

impl AddressSpace {
    /// Locks `start..end` (mlock(2)). `ENOMEM` beyond the limit, and over a hole, after the ranges around it were
    /// locked.
    pub fn lock_range(&self, start: u64, end: u64, limits: &MemoryLimits) -> Result<(), Errno> {
        frames::spare()?;
        let map = self.lock_to_change();
        let allowed = |map: &mut Map| {
            let locked = map.vmas.overlapping(start, end).filter(|vma| vma.flags.has(VmaFlags::LOCKED));
            // What is locked already counts once.
            let known: u64 = locked.map(|vma| inside(vma, start, end)).sum();
            let more = ((end - start) / PAGE).saturating_sub(known);
            if map.may_lock(limits, more) { Ok(()) } else { Err(Errno::ENOMEM) }
        };
        let covered = map.vmas.is_covered(start, end);
        self.edit(map, start, end, allowed, |vma| vma.flags = vma.flags.with(VmaFlags::LOCKED))?;
        if covered { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// `mlockall` and, with neither, `munlockall`. `ENOMEM` when everything there is exceeds the limit.
    pub fn lock_all(&self, everything: bool, future: bool, limits: &MemoryLimits) -> Result<(), Errno> {
        let mut map = self.lock_to_change();
        // In one step: of two calls that fail none leaves what the other had set for a moment.
        let allowed = |map: &mut Map| {
            if everything && map.vmas.pages() > limits.locked / PAGE && !current().locks_any_memory() {
                return Err(Errno::ENOMEM);
            }
            map.lock_future = future;
            Ok(())
        };
        let none = VmaFlags::default();
        let (add, remove) = if everything { (VmaFlags::LOCKED, none) } else { (none, VmaFlags::LOCKED) };
        if everything || !future {
            let change = |vma: &mut Vma| vma.flags = vma.flags.with(add).without(remove);
            return self.edit(map, 0, kernel_logic::vma::USER_END, allowed, change);
        }
        allowed(&mut map)
    }
}
