//! Knows the times of which the ring of a processor has lost its events.

/// Times without events of some processor, each from behind the first to before the second number.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Disjoint and ascending once [`sort`](Self::sort) ran.
    lost: Vec<(u64, u64)>,
}

impl Gaps {
    /// Notes that events between two times are lost.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        if from < to {
            self.lost.push((from, to));
        }
    }

    /// Joins those that overlap.
    pub(super) fn sort(&mut self) {
        self.lost.sort_unstable();
        self.lost.dedup_by(|next, before| {
            let joined = next.0 <= before.1;
            if joined {
                before.1 = before.1.max(next.1);
            }
            joined
        });
    }

    /// Whether events may be lost between two moments.
    pub(super) fn between(&self, from: u64, to: u64) -> bool {
        let begun = self.lost.partition_point(|gap| gap.0 < to);
        from < to && begun.checked_sub(1).is_some_and(|last| self.lost[last].1 > from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_spans_a_gap_only_when_it_has_time_in_common_with_it() {
        let mut gaps = Gaps::default();
        [(0, 100), (300, 400), (350, 500), (700, 700)].iter().for_each(|(from, to)| gaps.add(*from, *to));
        gaps.sort();
        for (from, to, lost) in [
            (50, 60, true),
            (100, 300, false),
            (99, 101, true),
            (200, 301, true),
            (450, 600, true),
            (500, 900, false),
            (0, u64::MAX, true),
            (310, 310, false),
        ] {
            assert_eq!(gaps.between(from, to), lost, "{from} to {to}");
        }
    }
}
