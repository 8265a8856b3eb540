//! What becomes of mappings whose file loses pages in its middle.

use alloc::vec::Vec;

use kernel_logic::vma::PAGE;
use machine::addr::PageRange;

use super::{AddressSpace, TAG_FILE};

impl AddressSpace {
    /// Takes those pages of `start..end` out of the tables that are a file's own.
    pub(crate) fn forget_file_pages(&self, start: u64, end: u64) {
        let Some(range) = PageRange::new(start, end) else { return };
        let mut runs: Vec<(u64, u64)> = Vec::new();
        self.space.for_each(range, &mut |page, leaf| {
            let at = page.addr();
            match runs.last_mut() {
                _ if leaf.prot.tag != TAG_FILE => {}
                Some((_, end)) if *end == at => *end += PAGE,
                _ => runs.push((at, at + PAGE)),
            }
        });
        for (start, end) in runs {
            self.unmap_pages(start, end);
        }
    }
}
