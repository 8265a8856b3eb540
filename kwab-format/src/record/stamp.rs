//! Owns what every record may carry beside its own fields: when, where, and which input it was made from.

/// The lowest number of a stamp field; the numbers up to 30 belong to the stamp in every record.
pub const FIRST_STAMP_NUMBER: u8 = 24;

fields! {
    /// When and where an event happened, and where an importer found it. What the source did not say is absent.
    element Stamp {
        /// Sequence number among the source's events.
        24 seq: u64,
        /// Processor on which it happened.
        25 cpu: u32,
        /// Monotonic nanoseconds since boot.
        26 ns: u64,
        /// Time-stamp counter ticks.
        27 tsc: u64,
        /// Byte offset in the imported input.
        28 offset: u64,
        /// Line of the imported input, from 1.
        29 line: u64,
        /// Members of an imported event that its record has no field for: `"name":value` pairs as they stood.
        30 extra: &'a [u8],
    }
}
