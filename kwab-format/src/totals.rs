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
        /// Kind of section.
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
        /// Kind of section.
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
const KINDS: usize = 24;
/// Pairs of kind and reason that are counted one by one.
const DROPS: usize = 16;

/// What has been written and left out so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    kinds: [Count; KINDS],
    drops: [(u8, Count); DROPS],
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
        let free = |(why, c): &(u8, Count)| *why == 0 || (*why == reason.0 && c.kind == kind.0);
        let slot = self.drops.iter().position(free).unwrap_or(DROPS.saturating_sub(1));
        if let Some((why, count)) = self.drops.get_mut(slot) {
            if *why == 0 {
                (*why, count.kind) = (reason.0, kind.0);
            } else if (*why, count.kind) != (reason.0, kind.0) {
                count.kind = 0;
            }
            count.add(sections, records, bytes);
        }
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = KindTotal<'static>> {
        self.kinds.iter().filter(|c| c.sections > 0).map(|c| KindTotal {
            kind: Some(c.kind),
            sections: Some(c.sections),
            records: Some(c.records),
            bytes: Some(c.bytes),
            ..KindTotal::default()
        })
    }

    pub(crate) fn drops(&self) -> impl Iterator<Item = DroppedSection<'static>> {
        self.drops.iter().filter(|(why, _)| *why != 0).map(|(why, c)| DroppedSection {
            kind: Some(c.kind),
            reason: Some(DropReason(*why)),
            sections: Some(c.sections),
            records: Some(c.records),
            bytes: Some(c.bytes),
            ..DroppedSection::default()
        })
    }

    pub(crate) fn any_dropped(&self) -> bool {
        self.drops.iter().any(|(why, _)| *why != 0)
    }

    pub(crate) fn sum(&self) -> (u32, u64) {
        self.kinds.iter().fold((0, 0), |(sections, records), c| {
            (sections.saturating_add(c.sections), records.saturating_add(c.records))
        })
    }
}
