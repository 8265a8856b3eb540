//! Owns the records of counters and profiles.

use crate::list::List;

fields! {
    /// Event `syscall_profile`.
    record SyscallProfile {
        /// Frequency of the time-stamp counter, hertz.
        1 tsc_freq_hz: u64,
        /// One entry per system call that was made.
        2 entries: List<'a, SyscallProfileEntry<'a>>,
    }
}

fields! {
    /// A system call in a [`SyscallProfile`].
    element SyscallProfileEntry {
        /// Number.
        1 nr: i64,
        /// Name.
        2 name: &'a [u8],
        /// Calls.
        3 calls: u64,
        /// Nanoseconds in all.
        4 total_ns: u64,
        /// Mean.
        5 avg_ns: u64,
        /// Shortest.
        6 min_ns: u64,
        /// Longest.
        7 max_ns: u64,
        /// Members that have no field here, as they stood.
        8 extra: &'a [u8],
    }
}

fields! {
    /// Event `page_faults`.
    record PageFaults {
        /// Faults.
        1 count: u64,
        /// Nanoseconds in all.
        2 total_ns: u64,
        /// Mean.
        3 avg_ns: u64,
    }
}

fields! {
    /// Event `span_profile`.
    record SpanProfile {
        /// Frequency of the time-stamp counter, hertz.
        1 tsc_freq_hz: u64,
        /// One entry per kind of span that happened.
        2 entries: List<'a, SpanProfileEntry<'a>>,
    }
}

fields! {
    /// A span in a [`SpanProfile`].
    element SpanProfileEntry {
        /// Number.
        1 id: u64,
        /// Name.
        2 name: &'a [u8],
        /// Times.
        3 calls: u64,
        /// Nanoseconds in all.
        4 total_ns: u64,
        /// Mean.
        5 avg_ns: u64,
        /// Shortest.
        6 min_ns: u64,
        /// Longest.
        7 max_ns: u64,
        /// Members that have no field here, as they stood.
        8 extra: &'a [u8],
    }
}

fields! {
    /// One number with a name: memory counters, statistics, event counts of an import.
    record Counter {
        /// Which family, for example `memory` or `import`.
        1 group: &'a [u8],
        /// Which of it.
        2 name: &'a [u8],
        /// The number.
        3 value: i64,
        /// Its unit, for example `bytes`, `pages`, `ns`.
        4 unit: &'a [u8],
        /// Process, when it is about one.
        5 pid: u32,
    }
}
