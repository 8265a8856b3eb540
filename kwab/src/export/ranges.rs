//! Decides which bytes a core file shows where: captured ranges without overlap, laid out in whole pages.

use std::collections::BTreeMap;

use crate::analysis::Postmortem;
use crate::model::Case;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// Captured memory that the dead code could see, in order and without overlap; what was captured first wins.
pub(super) fn ranges(case: &Case<'_>, death: &Postmortem) -> BTreeMap<u64, Vec<u8>> {
    let mut ranges: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for memory in &case.memory {
        let (Some(start), Some(bytes)) = (memory.vaddr, memory.bytes) else { continue };
        let visible = memory.pid.is_none() || memory.pid == death.pid || start >> 63 == 1;
        if visible {
            add(&mut ranges, start, bytes);
        }
    }
    ranges
}

/// The ranges, each from the start of a page and at most one in a page: elfutils rounds the address of a segment down
/// to a page, but not its offset in the file. What is in front of a range and was not captured comes from the image at
/// that address, as `fill` has it, and is zero elsewhere.
pub(super) fn from_page_starts(
    ranges: BTreeMap<u64, Vec<u8>>,
    fill: impl Fn(u64, &mut [u8]) -> usize,
) -> Vec<(u64, Vec<u8>)> {
    let gap = |from: u64, to: u64| {
        let mut bytes = vec![0; usize::try_from(to - from).unwrap_or(0)];
        let found = fill(from, &mut bytes);
        bytes[found..].fill(0);
        bytes
    };
    let mut pages: Vec<(u64, Vec<u8>)> = Vec::new();
    for (start, bytes) in ranges {
        let page = start / PAGE * PAGE;
        match pages.last_mut() {
            Some((first, known)) if *first + known.len() as u64 >= page => {
                known.extend(gap(*first + known.len() as u64, start));
                known.extend(bytes);
            }
            _ => {
                let mut whole = gap(page, start);
                whole.extend(bytes);
                pages.push((page, whole));
            }
        }
    }
    pages
}

/// Adds bytes where none are yet, piece by piece.
pub(super) fn add(ranges: &mut BTreeMap<u64, Vec<u8>>, mut start: u64, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let inside = ranges
            .range(..=start)
            .next_back()
            .map_or(0, |(first, known)| first.saturating_add(known.len() as u64).saturating_sub(start));
        let skip = usize::try_from(inside).unwrap_or(usize::MAX).min(bytes.len());
        bytes = &bytes[skip..];
        start = start.saturating_add(skip as u64);
        let next = ranges.range(start..).next().map_or(u64::MAX, |(next, _)| *next);
        let length = bytes.len().min(usize::try_from(next - start).unwrap_or(usize::MAX));
        if length == 0 {
            // The next range touches the one before: it is skipped in turn. Behind the last address nothing is.
            if next == u64::MAX {
                break;
            }
            continue;
        }
        ranges.insert(start, bytes[..length].to_vec());
        bytes = &bytes[length..];
        start = start.saturating_add(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_two_ranges_that_touch_is_added_too() {
        let mut ranges = BTreeMap::new();
        add(&mut ranges, 10, &[1; 10]);
        add(&mut ranges, 20, &[2; 10]);
        add(&mut ranges, 0, &[3; 50]);
        let found: Vec<_> = ranges.iter().map(|(start, bytes)| (*start, bytes.len(), bytes[0])).collect();
        assert_eq!(found, [(0, 10, 3), (10, 10, 1), (20, 10, 2), (30, 20, 3)]);
        add(&mut ranges, u64::MAX - 4, &[4; 10]);
        assert_eq!(ranges.last_key_value().map(|(start, bytes)| (*start, bytes.len())), Some((u64::MAX - 4, 4)));
    }
}
