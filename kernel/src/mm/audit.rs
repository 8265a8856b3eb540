//! Audits a new address space against its map, in the fortress profile: every page of it must agree with the range it
//! lies in ([`kernel_logic::audit`] says what that means), and as many must be there as were counted.

use kernel_logic::audit;
use kernel_logic::huge::HUGE;
use machine::addr::{FrameNumber, HUGE_PAGES, PageRange};
use machine::frame::{self, FrameState};
use machine::space::Leaf;

use super::{AddressSpace, TAG_FILE};

impl AddressSpace {
    /// Panics when tables, map and counts contradict each other. Does nothing in other profiles.
    pub fn audit(&self, when: &str) {
        if cfg!(feature = "fortress") {
            let map = self.lock();
            let mut counts = [0i64; 4];
            self.space.for_each(PageRange::ALL, &mut |page, leaf: &Leaf| {
                counts[usize::from(leaf.prot.tag)] += if leaf.huge { HUGE_PAGES as i64 } else { 1 };
                let at = page.addr();
                if leaf.huge {
                    let inside = map.vmas.find(at).is_some_and(|vma| vma.start <= at && vma.end >= at + HUGE);
                    assert!(inside, "after {when}: a huge page at {at:#x} reaches beyond its mapping");
                    check_block(leaf, when);
                }
                let vma = map.vmas.find(at).map(|vma| (vma.prot, vma.flags));
                if let Some(rule) = audit::check(vma, rights(leaf)) {
                    panic!("after {when}: {} at {at:#x}: {:?} in {vma:?}", rule.id(), leaf.prot);
                }
            });
            for (tag, (count, resident)) in counts.iter().zip(&self.resident).enumerate() {
                let counted = resident.load(core::sync::atomic::Ordering::Relaxed);
                assert!(*count == counted, "after {when}: {count} pages of kind {tag}, {counted} counted");
            }
        }
    }
}

/// Each frame of a huge page is of one block. The leaf has the only reference to it, unless it is a file's, which may
/// not be written.
fn check_block(leaf: &Leaf, when: &str) {
    let (head, order) = (leaf.frame, HUGE_PAGES.ilog2() as u8);
    let shared = leaf.prot.tag == TAG_FILE && !leaf.prot.write;
    for piece in (head.0..).take(HUGE_PAGES).map(FrameNumber) {
        let state = frame::state(piece);
        let is_of_block = match state {
            FrameState::Used { count, order: found, head: of } => {
                (found, of) == (order, head) && (shared || count == 1)
            }
            _ => false,
        };
        assert!(is_of_block, "after {when}: frame {:#x} of a huge page is {state:?}", piece.0);
    }
}

/// A leaf as the rules see it.
pub(crate) fn rights(leaf: &Leaf) -> audit::Leaf {
    let prot = leaf.prot;
    audit::Leaf { read: prot.read, write: prot.write, exec: prot.exec, cached: prot.tag == TAG_FILE }
}
