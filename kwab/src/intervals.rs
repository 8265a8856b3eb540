//! Finds the first of many ranges of addresses that holds an address, by bisection.
//!
//! Page checks, stack walks and symbol lookups ask for one address after another. A scan over all records for each of
//! them is quadratic: a dump of a megabyte, made for it, costs hours. [`IntervalMap`] is built once in O(n log n) and
//! asked in O(log n). [`ByProcess`] keeps one map per process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A range with its number: first address, last address (included), number.
pub(crate) type Range = (u64, u64, u32);

/// A piece of the address space in which no range holds an address.
const NONE: u32 = u32::MAX;

/// For every address the lowest number among the ranges that hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntervalMap {
    /// First address of a piece, and the lowest number there; a piece ends where the next one begins.
    pieces: Vec<(u64, u32)>,
}

impl IntervalMap {
    /// Builds the map; a range whose last address lies before its first holds nothing.
    pub(crate) fn of(ranges: impl IntoIterator<Item = Range>) -> Self {
        let mut ranges: Vec<Range> = ranges.into_iter().filter(|(first, last, _)| first <= last).collect();
        ranges.sort_unstable();
        let mut ends: Vec<u64> = ranges.iter().filter_map(|(_, last, _)| last.checked_add(1)).collect();
        ends.sort_unstable();
        let (mut starts, mut ends) = (ranges.into_iter().peekable(), ends.into_iter().peekable());
        // The ranges that hold the address at hand, and perhaps some that ended before it: number and last address.
        let mut open: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
        let mut pieces: Vec<(u64, u32)> = Vec::new();
        while let Some(at) = starts.peek().map(|(first, ..)| *first).into_iter().chain(ends.peek().copied()).min() {
            while let Some((_, last, number)) = starts.next_if(|(first, ..)| *first == at) {
                open.push(Reverse((number, last)));
            }
            while ends.next_if_eq(&at).is_some() {}
            while open.peek().is_some_and(|Reverse((_, last))| *last < at) {
                open.pop();
            }
            let lowest = open.peek().map_or(NONE, |Reverse((number, _))| *number);
            if pieces.last().is_none_or(|(_, before)| *before != lowest) {
                pieces.push((at, lowest));
            }
        }
        pieces.shrink_to_fit();
        Self { pieces }
    }

    /// The lowest number of the ranges that hold an address.
    pub(crate) fn at(&self, addr: u64) -> Option<u32> {
        let behind = self.pieces.partition_point(|(first, _)| {
            work::count();
            *first <= addr
        });
        let (_, number) = *self.pieces.get(behind.checked_sub(1)?)?;
        (number != NONE).then_some(number)
    }
}

/// Ranges of many processes; one without a process is seen by all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByProcess {
    all: IntervalMap,
    of: BTreeMap<Option<u32>, IntervalMap>,
}

impl ByProcess {
    /// Builds the maps from ranges with their process.
    pub(crate) fn of(ranges: impl IntoIterator<Item = (Option<u32>, Range)>) -> Self {
        let mut of: BTreeMap<Option<u32>, Vec<Range>> = BTreeMap::new();
        let mut all = Vec::new();
        for (pid, range) in ranges {
            all.push(range);
            of.entry(pid).or_default().push(range);
        }
        let of = of.into_iter().map(|(pid, ranges)| (pid, IntervalMap::of(ranges))).collect();
        Self { all: IntervalMap::of(all), of }
    }

    /// The lowest number of the ranges of any process that hold an address.
    pub(crate) fn anywhere(&self, addr: u64) -> Option<u32> {
        self.all.at(addr)
    }

    /// The same among those of exactly this process.
    pub(crate) fn owned_by(&self, pid: Option<u32>, addr: u64) -> Option<u32> {
        self.of.get(&pid)?.at(addr)
    }

    /// The same among those of this process and those without a process.
    pub(crate) fn seen_by(&self, pid: Option<u32>, addr: u64) -> Option<u32> {
        let shared = self.owned_by(None, addr);
        let own = if pid.is_some() { self.owned_by(pid, addr) } else { None };
        shared.into_iter().chain(own).min()
    }
}

/// Counts comparisons in tests: what a lookup costs is asserted as a number, not as a time.
pub(crate) mod work {
    #[cfg(test)]
    thread_local! {
        static DONE: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// A comparison is made.
    pub(crate) fn count() {
        #[cfg(test)]
        DONE.with(|done| done.set(done.get() + 1));
    }

    /// The comparisons of this thread while `act` runs.
    #[cfg(test)]
    pub(crate) fn of<R>(act: impl FnOnce() -> R) -> (R, u64) {
        let before = DONE.with(std::cell::Cell::get);
        let result = act();
        (result, DONE.with(std::cell::Cell::get) - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowest number by a scan over all ranges.
    fn scanned(ranges: &[Range], addr: u64) -> Option<u32> {
        let holds = ranges.iter().filter(|(first, last, _)| (*first..=*last).contains(&addr));
        holds.map(|(.., number)| *number).min()
    }

    #[test]
    fn overlapping_nested_and_empty_ranges_are_found_as_a_scan_finds_them() {
        let mut seed = 11_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for count in [0, 1, 2, 5, 60] {
            for _ in 0..40 {
                let range = |number| {
                    let first = next(90);
                    // Some are empty, some reach the end of the address space.
                    let last = if next(20) == 0 { u64::MAX } else { (first + next(30)).saturating_sub(4) };
                    (first, last, number)
                };
                let ranges: Vec<Range> = (0..count).map(range).collect();
                let map = IntervalMap::of(ranges.iter().copied());
                for addr in (0..130).chain([u64::MAX]) {
                    assert_eq!(map.at(addr), scanned(&ranges, addr), "{addr} in {ranges:?}");
                }
            }
        }
    }

    #[test]
    fn a_lookup_among_a_hundred_thousand_ranges_makes_at_most_twenty_comparisons() {
        let ranges = (0..100_000_u32).map(|number| (u64::from(number) * 64, u64::from(number) * 64 + 200, number));
        let map = IntervalMap::of(ranges);
        let (found, comparisons) = work::of(|| map.at(64 * 70_000 + 63));
        assert_eq!(found, Some(69_998));
        assert!(comparisons <= 20, "{comparisons}");
    }

    #[test]
    fn a_process_sees_its_own_ranges_and_those_of_nobody() {
        let ranges = [(Some(1), (0, 9, 0)), (None, (5, 20, 1)), (Some(2), (0, 30, 2))];
        let map = ByProcess::of(ranges);
        assert_eq!(
            [map.seen_by(Some(1), 7), map.seen_by(Some(1), 12), map.seen_by(Some(1), 25)],
            [Some(0), Some(1), None]
        );
        assert_eq!([map.seen_by(None, 7), map.owned_by(Some(2), 7), map.anywhere(25)], [Some(1), Some(2), Some(2)]);
    }
}
