//! User address spaces: page tables that own the frames they map.
//!
//! A mapping holds one [`Frame`] reference. Intermediate entries are permissive, leaves are restrictive. All operations
//! take `&self` and an internal lock, so they are sound whatever the kernel's own locking; each is atomic to the others.
//! Changes that take rights away flush this processor's TLB, and shoot down the TLBs of others running the space, before the
//! frames are released: one flush per call, so pass ranges. Interrupts must be on when other processors may have to be
//! shot down, or they are let in while waiting.
//!
//! A leaf may be *held*: it owns a frame but grants nothing (`PROT_NONE` over touched pages).

use alloc::sync::Arc;

use crate::addr::{FrameNumber, PageRange, UserPage};
use crate::frame::{Frame, OutOfFrames};

/// What a leaf allows. `read: false, write: false, exec: false` holds the frame without access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prot {
    /// Loads.
    pub read: bool,
    /// Stores (implies loads on every supported processor).
    pub write: bool,
    /// Instruction fetch.
    pub exec: bool,
    /// The kernel's own mark on this page, 0–3: kept in the leaf, never interpreted here.
    pub tag: u8,
}

/// A leaf as found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The frame mapped.
    pub frame: FrameNumber,
    /// Rights and tag.
    pub prot: Prot,
    /// The processor has used it for any access.
    pub accessed: bool,
    /// The processor has written through it.
    pub dirty: bool,
    /// A 2 MiB leaf.
    pub huge: bool,
}

/// A page-table walk with the raw entries of each level, root first, for audits and dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walk {
    /// Raw entries; those past `depth` are 0.
    pub entries: [u64; 5],
    /// Levels visited.
    pub depth: usize,
}

/// How [`UserSpace::fork_range`] treats present pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForkMode {
    /// Private memory: both sides lose write access and share the frames.
    CopyOnWrite,
    /// Shared memory: both sides keep their rights.
    Share,
}

/// Why a page could not be mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// Something is mapped (or held) there already.
    Occupied,
    /// No frame for a table.
    OutOfFrames,
}

impl From<OutOfFrames> for MapError {
    fn from(_: OutOfFrames) -> Self {
        Self::OutOfFrames
    }
}

/// One user address space.
pub struct UserSpace {
    root: Frame,
}

impl UserSpace {
    /// An empty space.
    pub fn new() -> Result<Arc<Self>, OutOfFrames> {
        todo!()
    }

    /// Map `frame` at `page`. On error the frame is handed back.
    #[inline]
    pub fn map(&self, page: UserPage, frame: Frame, prot: Prot) -> Result<(), (MapError, Frame)> {
        let _ = (page, frame, prot);
        todo!()
    }

    /// Map a run of pages from `start`: `next(i)` gives the frame of the `i`th page; `None` skips that page, and so does a
    /// page already mapped. Table walks are done once per table. Returns pages mapped; stops early without table frames.
    /// This is the fault-around and prefault path.
    pub fn map_run(&self, range: PageRange, prot: Prot, next: &mut dyn FnMut(usize) -> Option<Frame>) -> usize {
        let _ = (range, prot, next);
        todo!()
    }

    /// Map the 512-frame block `frame` (order 9 or a larger block's aligned piece) as one 2 MiB leaf.
    pub fn map_huge(&self, page: UserPage, frame: Frame, prot: Prot) -> Result<(), (MapError, Frame)> {
        let _ = (page, frame, prot);
        todo!()
    }

    /// Replace what is mapped at `page` (CoW break, upgrade): the old frame is released after the flush. `expected` must
    /// still be mapped there, else nothing happens and the frame comes back: another thread resolved the same fault.
    pub fn replace(&self, page: UserPage, expected: FrameNumber, frame: Frame, prot: Prot) -> Result<(), Frame> {
        let _ = (page, expected, frame, prot);
        todo!()
    }

    /// Break copy-on-write at `page`: if this space holds the frame's only reference the leaf just becomes `prot`,
    /// otherwise a copy is mapped. `Ok(false)`: nothing (or something else) is mapped there now.
    pub fn make_private(&self, page: UserPage, prot: Prot) -> Result<bool, OutOfFrames> {
        let _ = (page, prot);
        todo!()
    }

    /// Remove every mapping in `range`; frames are released after the flush. A 2 MiB leaf only partly inside is split.
    /// Returns pages removed, and of those how many carried each tag.
    pub fn unmap(&self, range: PageRange) -> Removed {
        let _ = range;
        todo!()
    }

    /// Remove the mapping of one page and hand its frame over, after the flush.
    pub fn take(&self, page: UserPage) -> Option<(Frame, Leaf)> {
        let _ = page;
        todo!()
    }

    /// Change rights in `range`: `rule` maps each leaf's present state to its new [`Prot`]. Only leaves that exist are
    /// visited; the flush happens only if a right was taken away.
    pub fn protect(&self, range: PageRange, rule: &mut dyn FnMut(&Leaf) -> Prot) {
        let _ = (range, rule);
        todo!()
    }

    /// Move the mappings of `from` to the same-sized `to`, which must be empty and not overlap (mremap). Without a frame for a
    /// table nothing has moved.
    pub fn move_range(&self, from: PageRange, to: PageRange) -> Result<(), MapError> {
        let _ = (from, to);
        todo!()
    }

    /// Give `child` this space's pages in `range`, table by table: the copy is bulk, then counts and rights are fixed up. The
    /// child's range must be empty. This processor's TLB (and others') is flushed by the caller's one
    /// [`flush`](Self::flush) after the last range. Returns pages copied, by tag.
    pub fn fork_range(&self, child: &Self, range: PageRange, mode: ForkMode) -> Result<Removed, OutOfFrames> {
        let _ = (child, range, mode);
        todo!()
    }

    /// Flush this space's translations wherever it runs.
    pub fn flush(&self) {
        todo!()
    }

    /// The leaf at `page`, if a frame is mapped or held there.
    #[inline]
    pub fn lookup(&self, page: UserPage) -> Option<Leaf> {
        let _ = page;
        todo!()
    }

    /// A reference to the frame mapped at `page` (futex keys, `/proc/pid/mem`).
    pub fn frame(&self, page: UserPage) -> Option<(Frame, Leaf)> {
        let _ = page;
        todo!()
    }

    /// Call `visit` for each leaf in `range` in ascending order; empty tables are skipped in one step. The space's lock is
    /// held: `visit` must not call back into it (it would panic on the lock).
    pub fn for_each(&self, range: PageRange, visit: &mut dyn FnMut(UserPage, &Leaf)) {
        let _ = (range, visit);
        todo!()
    }

    /// Read and clear the accessed and dirty marks of the leaf at `page`: `(accessed, dirty)`.
    pub fn test_and_clear_marks(&self, page: UserPage) -> Option<(bool, bool)> {
        let _ = page;
        todo!()
    }

    /// Raw entries on the way to `addr`, without the lock and without faulting: for dumps.
    pub fn walk(&self, addr: u64) -> Walk {
        let _ = addr;
        todo!()
    }

    /// Frames used by the tables themselves, the root included.
    pub fn table_frames(&self) -> usize {
        let _ = &self.root;
        todo!()
    }
}

/// Run this processor in `space`: user addresses now mean its mappings. The processor keeps a reference, so the tables
/// outlive their use. Threads keep their own: [`crate::thread::Thread::set_space`] makes a switch do this.
pub fn activate(space: &Arc<UserSpace>) {
    let _ = space;
    todo!()
}

/// Run this processor without user mappings, releasing the space it had: idle, kernel threads, exit.
pub fn deactivate() {
    todo!()
}

/// Pages affected, in total and by the kernel's tag (index = tag).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Small pages; a 2 MiB leaf counts 512.
    pub pages: usize,
    /// The same by tag.
    pub by_tag: [usize; 4],
}
