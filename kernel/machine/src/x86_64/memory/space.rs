//! User page tables: four levels of 512 entries, walked by hand under the space's lock.
//!
//! Invariants, all kept by this module and its children:
//! - a non-zero leaf owns one reference to the frame it names (a 2 MiB leaf the only one to its block, see [`huge`]); a
//!   non-zero intermediate entry owns its table;
//! - the upper half of the root is the kernel's and never changes;
//! - beside each table its owner keeps a [`span`] of the entries in use, so that sparse tables are not searched;
//! - frames and tables taken out are released only after every processor running the space has flushed.

use alloc::sync::Arc;
use core::mem::offset_of;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::table::{self, ACCESSED, ADDRESS, DIRTY, HUGE, NO_EXEC, PRESENT, TAG_SHIFT, Table, USER, WRITE};
use crate::addr::{FrameNumber, PageRange, PhysAddr, UserPage};
use crate::frame::{Frame, OutOfFrames};
use crate::irq;
use crate::mapping::{Leaf, Prot};
use crate::sync::SpinLock;
use crate::x86_64::cpu::features::{self, Feature};
use crate::x86_64::cpu::{local, msr};
use crate::x86_64::interrupts::tlb;
use crate::x86_64::layout::kernel_root_slots;

mod change;
mod drop;
mod fork;
mod huge;
mod remove;
mod span;
mod walk;

pub use huge::huge_leaves;
use walk::{End, Slot, Tables};

/// One user address space.
pub struct UserSpace {
    root: FrameNumber,
    /// Held over every change; the tables are its value in spirit.
    lock: SpinLock<()>,
    /// Processors whose CR3 is this root.
    active: AtomicU64,
    tables: AtomicUsize,
    /// 2 MiB leaves: while there are any, edges of ranges have to be looked at.
    huge: AtomicUsize,
    /// How often rights were taken away.
    losses: AtomicU64,
}

/// Present and permissive: rights are the leaves' business.
const INNER: u64 = PRESENT | WRITE | USER;

/// Bytes a table of each level covers per entry.
const LEAF_SPAN: u64 = 1 << 12;
const HUGE_SPAN: u64 = 1 << 21;

impl UserSpace {
    /// Offset of the root table's frame number, 32 bits.
    pub const ROOT: usize = offset_of!(Self, root);

    /// An empty space.
    pub fn new() -> Result<Arc<Self>, OutOfFrames> {
        let root = new_table()?;
        // SAFETY: both are root tables for as long as used here.
        let (from, to) = unsafe {
            let kernel = table::root_address();
            (table::table(kernel), table::table(root.addr()))
        };
        for slot in kernel_root_slots() {
            to[slot].store(from[slot].load(Relaxed), Relaxed);
        }
        Ok(Arc::new(Self {
            root,
            lock: SpinLock::new(()),
            active: AtomicU64::new(0),
            tables: AtomicUsize::new(1),
            huge: AtomicUsize::new(0),
            losses: AtomicU64::new(0),
        }))
    }

    /// The lock and, through it, the tables.
    #[inline]
    #[track_caller]
    fn tables(&self) -> Tables<'_> {
        Tables::lock(self)
    }

    /// The leaf at `page`, if a frame is mapped or held there.
    #[inline]
    pub fn lookup(&self, page: UserPage) -> Option<Leaf> {
        self.tables().find(page.addr()).map(|slot| slot.leaf(page.addr()))
    }

    /// A reference to the frame mapped at `page` (futex keys, `/proc/pid/mem`): a 2 MiB leaf there is
    /// split. `None` also without a frame for that.
    pub fn frame(&self, page: UserPage) -> Option<(Frame, Leaf)> {
        let tables = self.tables();
        let leaf = tables.find_small(page.addr()).ok()??.leaf(page.addr());
        // SAFETY: the leaf owns a reference, and stays while the lock is held.
        Some((unsafe { Frame::retain(leaf.frame) }, leaf))
    }

    /// Call `visit` for each leaf in `range` in ascending order; empty tables are skipped in one step. The space's lock
    /// is held: `visit` must not call back into it (it would panic on the lock).
    pub fn for_each(&self, range: PageRange, visit: &mut dyn FnMut(UserPage, &Leaf)) {
        self.tables().for_each_slot(range, &mut |at, slot| {
            if let Some(page) = UserPage::new(at) {
                visit(page, &slot.leaf(at));
            }
        });
    }

    /// Where the root table is, for dumps.
    pub fn root(&self) -> PhysAddr {
        self.root.addr()
    }

    /// Frames used by the tables themselves, the root included.
    pub fn table_frames(&self) -> usize {
        self.tables.load(Relaxed)
    }

    /// Flush this space's translations wherever it runs.
    pub fn flush(&self) {
        self.forget(PageRange::ALL);
    }

    /// Rights in `range` were taken away: flush its translations wherever the space runs, and count that.
    #[inline]
    fn forget(&self, range: PageRange) {
        self.losses.fetch_add(1, Relaxed);
        tlb::flush_user(self.active.load(SeqCst), range);
    }
}

/// How often rights were taken away from the space that this processor runs, other than by resolving a fault; 0 without
/// one. While the number stays, a fault that was resolved has no reason to come again.
#[must_use]
pub fn losses_here() -> u64 {
    let _off = irq::off();
    let space = local::here().space.load(Relaxed).cast::<UserSpace>();
    // SAFETY: interrupts are off, so the thread that owns the space runs here until the end of this function.
    unsafe { space.as_ref() }.map_or(0, |space| space.losses.load(Relaxed))
}

/// Make `space` the one user addresses mean on this processor; null for none.
///
/// # Safety
/// Interrupts are off. The thread that runs here from now on owns `space` until the next call.
#[inline]
pub(crate) unsafe fn switch_to(space: *mut UserSpace) {
    let local = local::here();
    let old = local.space.load(Relaxed).cast::<UserSpace>();
    if old == space {
        return;
    }
    let bit = 1 << local.id.load(Relaxed);
    // SAFETY: the new space is owned by the caller's thread; the old one by the thread before, which releases it only
    // later. The bit is set before translations can be cached, and cleared after they are gone.
    unsafe {
        match space.as_ref() {
            Some(space) => {
                space.active.fetch_or(bit, SeqCst);
                msr::set_cr3(space.root.addr().0);
            }
            None => msr::set_cr3(table::root_address().0),
        }
        if let Some(old) = old.as_ref() {
            old.active.fetch_and(!bit, SeqCst);
        }
    }
    local.space.store(space.cast(), Relaxed);
}

/// A zeroed table.
fn new_table() -> Result<FrameNumber, OutOfFrames> {
    let number = Frame::alloc_cleared()?.into_number();
    span::clear(number);
    Ok(number)
}

/// A leaf's bits for `prot`; no rights at all hold the frame without being present.
#[inline]
fn encode(frame: FrameNumber, prot: Prot) -> u64 {
    let mut entry = frame.addr().0 | u64::from(prot.tag & 3) << TAG_SHIFT;
    if prot.read || prot.write || prot.exec {
        entry |= PRESENT | USER;
    }
    if prot.write {
        entry |= WRITE;
    }
    if !prot.exec && features::has(Feature::Nx) {
        entry |= NO_EXEC;
    }
    entry
}

#[inline]
fn decode(entry: u64, at: u64) -> Leaf {
    let huge = entry & HUGE != 0;
    let inside = if huge { table::index(at, 0) as u32 } else { 0 };
    let present = entry & PRESENT != 0;
    Leaf {
        frame: FrameNumber(table::frame(entry).0 + inside),
        prot: Prot {
            read: present,
            write: present && entry & WRITE != 0,
            exec: present && entry & NO_EXEC == 0,
            tag: table::tag(entry),
        },
        accessed: entry & ACCESSED != 0,
        dirty: entry & DIRTY != 0,
        huge,
    }
}

/// Whether going from `old` to `new` takes anything away that a processor may have cached.
#[inline]
fn needs_flush(old: u64, new: u64) -> bool {
    let lost = old & !new & (PRESENT | WRITE) != 0;
    let lost_exec = new & !old & NO_EXEC != 0;
    old & PRESENT != 0 && (lost || lost_exec || (old ^ new) & ADDRESS != 0)
}
