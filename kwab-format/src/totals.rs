//! Owns the records of the index and end sections, and the writer's running totals behind them.

use crate::section::SectionKind;

fields! {
    /// Where a section is; optional help for large dumps.
    record IndexEntry {
        /// Kind of section.
        1 kind: u16,
        /// Its sequence number.
        2 section: u32,
        /// Bytes of the dump before its header.
        3 position: u64,
        /// Bytes of its payload.
        4 length: u64,
        /// Records in it.
        5 records: u32,
    }
}

fields! {
    /// What the dump holds of one kind of section.
    record KindTotal {
        /// Kind of section; 0 sums up the kinds beyond the twenty-third.
        1 kind: u16,
        /// Sections that reached the sink whole.
        2 sections: u32,
        /// Records in them.
        3 records: u64,
        /// Payload bytes in them.
        4 bytes: u64,
    }
}

fields! {
    /// What the writer left out.
    record DroppedSection {
        /// Kind of section; 0 is the file header, or sums up what is beyond the fifteenth pair of kind and reason.
        1 kind: u16,
        /// Why.
        2 reason: DropReason,
        /// How many sections.
        3 sections: u32,
        /// How many records, as far as known.
        4 records: u64,
        /// How many bytes, as far as known.
        5 bytes: u64,
    }
}

fields! {
    /// The last record of a dump.
    record End {
        /// Sections before the end section that reached the sink whole.
        1 sections: u32,
        /// Records in them.
        2 records: u64,
        /// Bytes of the dump before the end section.
        3 bytes: u64,
        /// Whether everything that the writer meant to write is there.
        4 complete: bool,
        /// Bytes of the dump before the first index section, when there is one.
        5 index: u64,
        /// Sections that the index does not cover.
        6 unindexed: u32,
    }
}

open_enum! {
    /// Why something was left out.
    DropReason: u8 {
        /// The sink failed.
        1 SINK_FAILED = "the sink failed",
        /// The sink has no room left.
        2 NO_ROOM = "no room in the sink",
        /// The section used up its time.
        3 TIME_BUDGET = "out of time",
        /// Collecting it faulted.
        4 FAULT = "a fault while collecting",
        /// A lock it needs was not free.
        5 LOCKED = "a lock was held",
        /// A record is longer than the writer's buffer.
        6 TOO_LONG = "a record longer than the buffer",
        /// The caller chose not to write it.
        7 SKIPPED = "skipped",
    }
}

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
