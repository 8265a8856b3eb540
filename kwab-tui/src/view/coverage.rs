//! How many bytes of a mapping records cover, and where the first of them lies: answered by bisection, so that a map of
//! many mappings beside many records takes n log n steps.

/// Ranges of addresses, asked for how much of another range they cover.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// First addresses in order, each with the sum of those before it.
    starts: Vec<(u64, u128)>,
    /// The same of the addresses behind the last.
    ends: Vec<(u64, u128)>,
    /// The greatest end of the ranges up to each one in `starts`.
    reach: Vec<u64>,
}

impl Coverage {
    /// Takes half-open ranges; an empty one covers nothing.
    pub(super) fn of(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut ranges: Vec<(u64, u64)> = ranges.into_iter().filter(|(start, end)| start < end).collect();
        ranges.sort_unstable();
        let mut ends: Vec<u64> = ranges.iter().map(|(_, end)| *end).collect();
        ends.sort_unstable();
        let reach = ranges.iter().scan(0, |reach, (_, end)| {
            *reach = (*end).max(*reach);
            Some(*reach)
        });
        let reach = reach.collect();
        Self { starts: summed(ranges.into_iter().map(|(start, _)| start)), ends: summed(ends.into_iter()), reach }
    }

    /// Bytes of `start..end` that the ranges cover; a byte that several cover counts several times.
    pub(super) fn bytes(&self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        u64::try_from(self.below(end) - self.below(start)).unwrap_or(u64::MAX)
    }

    /// The first covered address of `start..end`.
    pub(super) fn first(&self, start: u64, end: u64) -> Option<u64> {
        let behind = self.starts.partition_point(|(first, _)| *first <= start);
        let covered = behind.checked_sub(1).is_some_and(|last| self.reach[last] > start);
        let first = if covered { Some(start) } else { self.starts.get(behind).map(|(first, _)| *first) };
        first.filter(|first| *first < end)
    }

    /// Bytes that the ranges cover below an address.
    fn below(&self, addr: u64) -> u128 {
        distance(&self.starts, addr) - distance(&self.ends, addr)
    }
}

/// Addresses, each with the sum of those before it.
fn summed(addrs: impl Iterator<Item = u64>) -> Vec<(u64, u128)> {
    let mut sum = 0;
    let with_sum = addrs.map(|addr| {
        let before = sum;
        sum += u128::from(addr);
        (addr, before)
    });
    with_sum.collect()
}

/// How far the addresses below `addr` lie from it, all together.
fn distance(addrs: &[(u64, u128)], addr: u64) -> u128 {
    let count = addrs.partition_point(|(first, _)| *first < addr);
    let Some((last, before)) = count.checked_sub(1).and_then(|last| addrs.get(last)) else { return 0 };
    u128::from(addr) * count as u128 - (before + u128::from(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_first_address_are_those_of_a_scan_over_all_ranges() {
        let mut seed = 5_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % most
        };
        for count in [0, 1, 3, 40] {
            let ranges: Vec<(u64, u64)> = (0..count)
                .map(|_| {
                    let start = next(100);
                    (start, if next(10) == 0 { u64::MAX } else { start + next(20) })
                })
                .collect();
            let coverage = Coverage::of(ranges.iter().copied());
            for (start, end) in (0..120).flat_map(|start| [(start, start), (start, start + 9), (start, u64::MAX)]) {
                let overlaps = ranges.iter().map(|(from, to)| ((*from).max(start), (*to).min(end)));
                let overlaps: Vec<_> = overlaps.filter(|(from, to)| from < to).collect();
                let bytes = overlaps.iter().fold(0_u64, |sum, (from, to)| sum.saturating_add(to - from));
                assert_eq!(coverage.bytes(start, end), bytes, "{start}..{end} of {ranges:?}");
                assert_eq!(coverage.first(start, end), overlaps.iter().map(|(from, _)| *from).min(), "{start}..{end}");
            }
        }
    }
}
