//! Unmapping pages of a file that is truncated or punched.

use kernel_logic::vma::PAGE;
use machine::addr::PageRange;

use super::{AddressSpace, TAG_FILE};

/// Ranges that are found before they are unmapped: memory for all of them may be short when a hole is made.
const RUNS: usize = 64;

impl AddressSpace {
    /// Takes those pages of `start..end` out of the tables that are a file's own; private copies stay.
    pub(crate) fn forget_file_pages(&self, start: u64, end: u64) {
        let mut from = start;
        while let Some(range) = PageRange::new(from, end).filter(|_| from < end) {
            let mut runs = [(0, 0); RUNS];
            let mut count = 0;
            let mut next = end;
            self.space.for_each(range, &mut |page, leaf| {
                let at = page.addr();
                if leaf.prot.tag != TAG_FILE || at >= next {
                    return;
                }
                match runs[..count].last_mut() {
                    Some((_, end)) if *end == at => *end += PAGE,
                    _ if count == RUNS => next = at,
                    _ => {
                        runs[count] = (at, at + PAGE);
                        count += 1;
                    }
                }
            });
            for (start, end) in &runs[..count] {
                self.unmap_pages(*start, *end);
            }
            from = next;
        }
    }
}
