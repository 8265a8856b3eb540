//! Owns the records of the index and end sections: where sections are, what the dump holds, what was left out.

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
        /// Lowest physical address of the memory in it.
        6 paddr: u64,
        /// Bytes from there to behind the highest, holes included.
        7 span: u64,
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
        /// Absent when it is not known.
        1 kind: u16,
        /// Why the sections were left out.
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
        /// It was damaged in the dump that this one is a copy of.
        8 DAMAGED = "damaged before the copy",
        /// The dump that this one is a copy of has no end section.
        9 CUT = "cut before the copy",
    }
}
