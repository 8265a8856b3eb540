//! Architecture-neutral types of page-table contents: protections, leaves, walks.

use crate::addr::FrameNumber;
use crate::frame::{Frame, OutOfFrames};

/// What a leaf allows. `read: false, write: false, exec: false` holds the frame without access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Prot {
    /// Loads from the page succeed.
    pub read: bool,
    /// Stores (implies loads on every supported processor).
    pub write: bool,
    /// Instruction fetches succeed; false sets no-execute in the leaf.
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

/// A frame with the number of its page, in a numbering of its owner's.
#[derive(Debug)]
pub struct NumberedFrame {
    /// Which page it is.
    pub number: u32,
    /// A reference to its frame.
    pub frame: Frame,
}

/// A page-table walk with the raw entries of each level, root first, for audits and dumps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walk {
    /// Raw entries; those past `depth` are 0.
    pub entries: [u64; 5],
    /// Where each entry lies in physical memory.
    pub entry_addresses: [u64; 5],
    /// Number of entries read, root first; the last is a leaf, not present, or names a table outside RAM.
    pub depth: usize,
}

/// How [`UserSpace::fork_range`](crate::space::UserSpace::fork_range) treats present pages.
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

/// Pages affected, in total and by the kernel's tag (index = tag).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Small pages; a 2 MiB leaf counts 512.
    pub pages: usize,
    /// The same by tag.
    pub by_tag: [usize; 4],
}

impl Removed {
    /// Count one leaf of `pages` pages.
    #[inline]
    pub(crate) fn add(&mut self, tag: u8, pages: usize) {
        self.pages += pages;
        self.by_tag[tag as usize & 3] += pages;
    }
}
