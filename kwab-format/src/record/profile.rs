//! Owns the records of counters and profiles.

use crate::list::List;

fields! {
    /// Event `syscall_profile`: time spent in each system call.
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
        /// Number of the system call.
        1 nr: i64,
        /// Name of the system call as the source printed it.
        2 name: &'a [u8],
        /// Number of calls.
        3 calls: u64,
        /// Nanoseconds in all.
        4 total_ns: u64,
        /// Mean nanoseconds per call.
        5 avg_ns: u64,
        /// Nanoseconds of the shortest call.
        6 min_ns: u64,
        /// Nanoseconds of the longest call.
        7 max_ns: u64,
        /// Members that have no field here, as they stood.
        8 extra: &'a [u8],
    }
}

fields! {
    /// Event `page_faults`: time spent in page faults.
    record PageFaults {
        /// Number of page faults.
        1 count: u64,
        /// Nanoseconds in all.
        2 total_ns: u64,
        /// Mean nanoseconds per fault.
        3 avg_ns: u64,
    }
}

fields! {
    /// Event `span_profile`: time spent in each kind of span.
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
        /// Number of the span's kind.
        1 id: u64,
        /// Name of the span's kind.
        2 name: &'a [u8],
        /// Number of spans of the kind.
        3 calls: u64,
        /// Nanoseconds in all.
        4 total_ns: u64,
        /// Mean nanoseconds per span.
        5 avg_ns: u64,
        /// Nanoseconds of the shortest span.
        6 min_ns: u64,
        /// Nanoseconds of the longest span.
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
        /// The value, in `unit`.
        3 value: i64,
        /// Its unit, for example `bytes`, `pages`, `ns`.
        4 unit: &'a [u8],
        /// Process, when it is about one.
        5 pid: u32,
    }
}
