//! Exec prefault: pages of a fresh program's files that are in memory are mapped before it runs.
//!
//! Only what is in the page cache is taken, and read-only whatever the range allows: a write makes a copy as it would
//! after a read fault. A range ends at page borders here and never shares a page with another one; a page that exec
//! already gave the program (the last one of a segment, cleared behind the file's part) is mapped and stays.
//!
//! [`limit`] bounds the pages of one exec (`prefault=` on the command line, `/proc/sys/vm/prefault`), so that `kwab
//! bisect --param prefault=0..512` can search for a page that goes wrong. The pages up to the limit are those of the
//! ranges in order, the program's own first.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kernel_logic::vma::{PAGE, VmaFlags};
use machine::addr::PageRange;
use machine::frame::Frame;

use super::{AddressSpace, Backing, Map, Mapped as _, TAG_FILE, Vma, rights};
use crate::inject::{self, Fault};

/// The most pages of one exec, by default: a shell's program has them all, a large program its beginning.
const USUAL: u64 = 512;
/// Pages looked up in the file at once.
const BATCH: usize = 32;

static LIMIT: AtomicU64 = AtomicU64::new(USUAL);

/// Pages that one exec maps at most.
pub fn limit() -> u64 {
    LIMIT.load(Relaxed)
}

/// Sets how many pages one exec maps at most; 0 for none.
pub fn set_limit(pages: u64) {
    LIMIT.store(pages, Relaxed);
}

impl AddressSpace {
    /// Maps what is in memory of the files of `map`, its own, which the caller holds; its ranges were entered at their
    /// files. Returns how many pages.
    pub fn prefault(&self, map: &Map) -> u64 {
        let limit = limit();
        let mut left = limit;
        for vma in map.vmas.iter() {
            if left == 0 {
                break;
            }
            left -= self.prefault_range(vma, left);
        }
        limit - left
    }

    fn prefault_range(&self, vma: &Vma, most: u64) -> u64 {
        let Backing::File { file, offset } = &vma.backing else { return 0 };
        if vma.flags.has(VmaFlags::SHARED) {
            return 0;
        }
        let prot = rights(vma.prot, inject::is(Fault::PrefaultWritable), TAG_FILE);
        let end = vma.end.min(vma.start.saturating_add(most.saturating_mul(PAGE)));
        let (mut at, mut done) = (vma.start, 0);
        while at < end {
            let count = ((end - at) / PAGE).min(BATCH as u64);
            let stop = at + count * PAGE;
            let mut frames = [const { None::<Frame> }; BATCH];
            let frames = &mut frames[..count as usize];
            file.cached((offset + (at - vma.start)) / PAGE, frames);
            let Some(range) = PageRange::new(at, stop) else { break };
            done += self.space.map_run(range, prot, &mut |index| frames[index].take()) as u64;
            at = stop;
        }
        self.count(TAG_FILE, done as i64);
        done
    }
}
