//! Counts what a writer has written and left out, for the index and end sections.

use crate::record::{DropReason, DroppedSection, KindTotal};
use crate::section::SectionKind;

/// Kinds of sections that are counted one by one; further kinds share the last slot.
pub(crate) const KINDS: usize = 24;
/// Pairs of kind and reason that are counted one by one.
pub(crate) const DROPS: usize = 16;

/// What has been written and left out so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    kinds: [Count; KINDS],
    drops: [Option<(DropReason, Count)>; DROPS],
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    pub(crate) kind: u16,
    pub(crate) sections: u32,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Count {
    fn add(&mut self, sections: u32, records: u64, bytes: u64) {
        self.sections = self.sections.saturating_add(sections);
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

impl Totals {
    pub(crate) fn written(&mut self, kind: SectionKind, records: u64, bytes: u64) {
        let free = |c: &Count| c.sections == 0 || c.kind == kind.0;
        let slot = self.kinds.iter().position(free).unwrap_or(KINDS.saturating_sub(1));
        if let Some(count) = self.kinds.get_mut(slot) {
            if count.sections == 0 {
                count.kind = kind.0;
            } else if count.kind != kind.0 {
                count.kind = 0;
            }
            count.add(1, records, bytes);
        }
    }

    pub(crate) fn dropped(&mut self, kind: SectionKind, reason: DropReason, sections: u32, records: u64, bytes: u64) {
        let free = |slot: &Option<(DropReason, Count)>| slot.is_none_or(|(why, c)| (why, c.kind) == (reason, kind.0));
        let slot = self.drops.iter().position(free).unwrap_or(DROPS.saturating_sub(1));
        if let Some(slot) = self.drops.get_mut(slot) {
            let (why, count) = slot.get_or_insert((reason, Count { kind: kind.0, ..Count::default() }));
            if (*why, count.kind) != (reason, kind.0) {
                count.kind = 0;
            }
            count.add(sections, records, bytes);
        }
    }

    /// What slot `slot` of the kinds has counted.
    pub(crate) fn kind(&self, slot: usize) -> Option<KindTotal<'static>> {
        self.kinds.get(slot).filter(|c| c.sections > 0).map(|c| KindTotal {
            kind: Some(c.kind),
            sections: Some(c.sections),
            records: Some(c.records),
            bytes: Some(c.bytes),
            ..KindTotal::default()
        })
    }

    /// What slot `slot` of the drops has counted.
    pub(crate) fn drop(&self, slot: usize) -> Option<DroppedSection<'static>> {
        let (reason, c) = self.drops.get(slot).copied().flatten()?;
        Some(DroppedSection {
            kind: Some(c.kind),
            reason: Some(reason),
            sections: Some(c.sections),
            records: Some(c.records),
            bytes: Some(c.bytes),
            ..DroppedSection::default()
        })
    }

    pub(crate) fn any_dropped(&self) -> bool {
        self.drops.iter().any(Option::is_some)
    }

    pub(crate) fn sum(&self) -> (u32, u64) {
        self.kinds.iter().fold((0, 0), |(sections, records), c| {
            (sections.saturating_add(c.sections), records.saturating_add(c.records))
        })
    }
}
