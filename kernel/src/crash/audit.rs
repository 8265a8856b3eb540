//! The mappings of a fresh program against its page table (`debug=audit`): one `vm_audit` event after each exec.
//!
//! What agrees with what is [`kernel_logic::audit`]'s to say. A mapping with leaves that do not agree also names the
//! rules and the first such page; leaves outside every mapping are counted beside the list.

use alloc::vec::Vec;

use kernel_logic::audit::{self, RULES, Rule};
use kernel_logic::vma::USER_END;
use machine::addr::PageRange;

use crate::mm::AddressSpace;
use crate::mm::audit::rights;
use crate::trace::event::Event;

/// Mappings of one event, so that it fits its line.
const PER_EVENT: usize = 20;

#[derive(Clone, Copy, Default)]
struct AuditTally {
    mapped: u64,
    mismatches: u64,
    /// Bit n for the n-th of [`RULES`].
    rules: u8,
    first: u64,
}

impl AuditTally {
    fn add(&mut self, at: u64, pages: u64, violated: Option<Rule>) {
        self.mapped += pages;
        let Some(rule) = violated else { return };
        if self.mismatches == 0 {
            self.first = at;
        }
        self.mismatches += pages;
        self.rules |= RULES.iter().position(|known| *known == rule).map_or(0, |bit| 1 << bit);
    }

    fn put_rules(&self, event: &mut Event) {
        if self.mismatches != 0 {
            event.address("first", self.first).array("rules", |event| {
                for (_, rule) in RULES.iter().enumerate().filter(|(bit, _)| self.rules >> bit & 1 != 0) {
                    event.string_item(rule.id().as_bytes());
                }
            });
        }
    }
}

/// Audits `mm`, which process `pid` runs now.
#[inline(never)]
pub fn audit(pid: u32, mm: &AddressSpace) {
    let map = mm.lock();
    let vmas: Vec<_> = map.vmas.iter().map(|vma| (vma.start, vma.end, vma.prot, vma.flags)).collect();
    let mut found = alloc::vec![AuditTally::default(); vmas.len()];
    let mut stray = AuditTally::default();
    if let Some(everything) = PageRange::new(0, USER_END) {
        mm.space.for_each(everything, &mut |page, leaf| {
            let at = page.addr();
            let index = vmas.partition_point(|vma| vma.1 <= at);
            let mapping = vmas.get(index).filter(|vma| vma.0 <= at);
            let violated = audit::check(mapping.map(|vma| (vma.2, vma.3)), rights(leaf));
            let pages = if leaf.huge { 512 } else { 1 };
            let to = if mapping.is_some() { &mut found[index] } else { &mut stray };
            to.add(at, pages, violated);
        });
    }
    drop(map);
    for (vmas, found) in vmas.chunks(PER_EVENT).zip(found.chunks(PER_EVENT)) {
        let mut event = Event::new("vm_audit");
        event.number("pid", u64::from(pid));
        event.array("vmas", |event| {
            for ((start, end, prot, _), found) in vmas.iter().zip(found) {
                let pages = (end - start) / kernel_logic::vma::PAGE;
                event.item(|event| {
                    event.address("start", *start).address("end", *end).number("prot", u64::from(prot.0));
                    event.number("mapped", found.mapped).number("unmapped", pages.saturating_sub(found.mapped));
                    event.number("perm_mismatch", found.mismatches);
                    found.put_rules(event);
                });
            }
        });
        event.number("strays", stray.mapped);
        stray.put_rules(&mut event);
        event.emit();
    }
}
