//! Unmapping pages of a file or of shared memory that is truncated or punched.

use machine::addr::PageRange;

use super::{AddressSpace, Backing, TAG_FILE, TAG_SHMEM};

impl AddressSpace {
    /// Takes those pages of `start..end` out of the tables that are the own ones of `backing`; private copies stay.
    pub(crate) fn forget_own_pages(&self, backing: &Backing, start: u64, end: u64) {
        let tag = if matches!(backing, Backing::Shared { .. }) { TAG_SHMEM } else { TAG_FILE };
        if let Some(range) = PageRange::new(start, end) {
            // No 2 MiB leaf is a file's or shared, so there is none to split.
            let (Ok(removed) | Err((removed, _))) = self.space.unmap_tagged(range, tag);
            self.uncount(&removed);
        }
    }
}
