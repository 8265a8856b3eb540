//! Decides which bytes a core file shows where: captured ranges without overlap, laid out in whole pages,
//! and copied nowhere but into the file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use crate::analysis::Postmortem;
use crate::model::Case;

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// Captured memory that the dead code could see, in order and without overlap; what was captured first wins.
pub(super) fn ranges<'a>(case: &Case<'a>, death: &Postmortem) -> BTreeMap<u64, &'a [u8]> {
    let mut ranges = BTreeMap::new();
    for memory in &case.memory {
        let (Some(start), Some(bytes)) = (memory.vaddr, memory.bytes) else { continue };
        let visible = memory.pid.is_none() || memory.pid == death.pid || start >> 63 == 1;
        if visible {
            add(&mut ranges, start, bytes);
        }
    }
    ranges
}

/// The ranges as runs from the start of a page, at most one in a page: elfutils rounds the address of a segment down to
/// a page, but not its offset in the file.
pub(super) fn page_runs(ranges: &BTreeMap<u64, &[u8]>) -> Vec<Range<u64>> {
    let mut runs: Vec<Range<u64>> = Vec::new();
    for (start, bytes) in ranges {
        let (page, end) = (start / PAGE * PAGE, start.saturating_add(bytes.len() as u64));
        match runs.last_mut() {
            Some(last) if last.end >= page => last.end = end,
            _ => runs.push(page..end),
        }
    }
    runs
}

/// Writes such a run. What is in front of a range and was not captured comes from the image at that address, as `fill`
/// has it, and is zero elsewhere.
///
/// # Errors
/// Those of `out`.
pub(super) fn write_run(
    ranges: &BTreeMap<u64, &[u8]>,
    run: &Range<u64>,
    fill: impl Fn(u64, &mut [u8]) -> usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut at = run.start;
    for (start, bytes) in ranges.range(run.clone()) {
        let mut gap = vec![0; usize::try_from(start - at).unwrap_or(0)];
        let found = fill(at, &mut gap);
        gap[found..].fill(0);
        out.write_all(&gap)?;
        out.write_all(bytes)?;
        at = start.saturating_add(bytes.len() as u64);
    }
    Ok(())
}

/// Removes what lies in these ranges.
pub(super) fn cut(ranges: &mut BTreeMap<u64, &[u8]>, without: impl Iterator<Item = Range<u64>>) {
    for hole in without {
        let before = ranges.range(..hole.start).next_back().map(|(start, bytes)| (*start, *bytes));
        let inside: Vec<_> = ranges.range(hole.clone()).map(|(start, bytes)| (*start, *bytes)).collect();
        for (start, bytes) in before.into_iter().chain(inside) {
            let end = start.saturating_add(bytes.len() as u64);
            if end <= hole.start {
                continue;
            }
            ranges.remove(&start);
            if start < hole.start {
                ranges.insert(start, &bytes[..(hole.start - start) as usize]);
            }
            if end > hole.end {
                ranges.insert(hole.end, &bytes[(hole.end - start) as usize..]);
            }
        }
    }
}

/// Adds bytes where none are yet, piece by piece.
pub(super) fn add<'a>(ranges: &mut BTreeMap<u64, &'a [u8]>, mut start: u64, mut bytes: &'a [u8]) {
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
        ranges.insert(start, &bytes[..length]);
        bytes = &bytes[length..];
        start = start.saturating_add(length as u64);
    }
}

/// Counts what is written to it.
pub(super) struct Counted(pub u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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

    #[test]
    fn a_hole_takes_what_lies_in_it_and_leaves_both_sides() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = || BTreeMap::from([(100, &bytes[..50]), (200, &bytes[50..100]), (u64::MAX - 9, &bytes[..9])]);
        let of = |ranges: &BTreeMap<u64, &[u8]>, addr: u64| {
            let (start, bytes) = ranges.range(..=addr).next_back()?;
            bytes.get(usize::try_from(addr - start).ok()?).copied()
        };
        let end = u64::MAX;
        for (low, high) in [(0, 100), (90, 120), (110, 120), (110, 220), (150, 200), (100, 250), (end - 20, end)] {
            let mut rest = whole();
            cut(&mut rest, std::iter::once(low..high));
            for addr in (0..300).chain(end - 30..end) {
                let expected = if (low..high).contains(&addr) { None } else { of(&whole(), addr) };
                assert_eq!(of(&rest, addr), expected, "{addr} without {low}..{high}");
            }
            assert!(rest.values().all(|bytes| !bytes.is_empty()), "{low}..{high} leaves an empty range");
        }
    }
}
