//! Cuts a file into the dumps that it holds (FORMAT.md 4.1): usually one, several when dumps were put behind each
//! other.

use std::collections::HashMap;
use std::ops::Range;

use kwab_format::FileHeader;
use kwab_format::section::FILE_HEADER_LEN;
use kwab_format::stream::Dumps;

/// Where each dump of a file begins and ends; together they cover all bytes. Empty when nothing in them looks like a
/// dump.
#[must_use]
pub fn extents(bytes: &[u8]) -> Vec<Range<usize>> {
    let begins = |bytes: &[u8]| bytes.first_chunk::<FILE_HEADER_LEN>().is_some_and(|h| FileHeader::decode(h).is_ok());
    let mut starts: Vec<usize> = Vec::new();
    // A dump whose sections come again behind a file header was not over: that header lies in a damaged payload of it.
    let mut last_seen: HashMap<u64, usize> = HashMap::new();
    for found in Dumps::new(bytes).filter(|found| !begins(found.bytes)) {
        last_seen.insert(found.dump_id.0, found.offset);
    }
    let mut current = None;
    for found in Dumps::new(bytes) {
        let goes_on = |id: u64| last_seen.get(&id).is_some_and(|at| *at > found.offset);
        let first = starts.is_empty();
        if first || (begins(found.bytes) && current.is_none_or(|id| !goes_on(id))) {
            starts.push(if first { 0 } else { found.offset });
            current = Some(found.dump_id.0);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}
