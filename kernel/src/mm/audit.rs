//! Audits a new address space against its map, in the fortress profile: every page of it must agree with the range it
//! lies in ([`kernel_logic::audit`] says what that means), and as many must be there as were counted.

use kernel_logic::audit;
use machine::addr::PageRange;
use machine::space::Leaf;

use super::{AddressSpace, TAG_FILE};

impl AddressSpace {
    /// Panics when tables, map and counts contradict each other. Does nothing in other profiles.
    pub fn audit(&self, when: &str) {
        if cfg!(feature = "fortress") {
            let map = self.lock();
            let mut counts = [0i64; 4];
            self.space.for_each(PageRange::ALL, &mut |page, leaf: &Leaf| {
                counts[usize::from(leaf.prot.tag)] += if leaf.huge { 512 } else { 1 };
                let at = page.addr();
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

/// A leaf as the rules see it.
pub(crate) fn rights(leaf: &Leaf) -> audit::Leaf {
    let prot = leaf.prot;
    audit::Leaf { read: prot.read, write: prot.write, exec: prot.exec, cached: prot.tag == TAG_FILE }
}
