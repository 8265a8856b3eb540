//! Unmapping pages of a file or of shared memory that is truncated or punched.

use kernel_logic::huge::HUGE;
use machine::addr::PageRange;

use super::{AddressSpace, Backing, TAG_FILE, TAG_SHMEM};

impl AddressSpace {
    /// Takes those pages of `start..end` out of the tables that are the own ones of `backing`; private copies stay.
    pub(crate) fn forget_own_pages(&self, backing: &Backing, start: u64, end: u64) {
        let tag = if matches!(backing, Backing::Shared { .. }) { TAG_SHMEM } else { TAG_FILE };
        if let Some(range) = PageRange::new(start, end) {
            let removed = match self.space.unmap_tagged(range, tag) {
                Ok(removed) => removed,
                // Without a table for the rest of a 2 MiB leaf it goes too: it comes back by faults.
                Err((before, _)) => {
                    self.uncount(&before);
                    let (first, last) = (start & !(HUGE - 1), end.next_multiple_of(HUGE));
                    let Some(wider) = PageRange::new(first, last) else { return };
                    let (Ok(removed) | Err((removed, _))) = self.space.unmap_tagged(wider, tag);
                    removed
                }
            };
            self.uncount(&removed);
        }
    }
}
