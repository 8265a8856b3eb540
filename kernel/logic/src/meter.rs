//! Counts durations in four numbers that any processor adds to without a lock ([`Meter`]); and limits work that
//! may take only a share of the time ([`Share`]).

use core::sync::atomic::{AtomicU64, Ordering};

/// Counts durations: how many, their sum, the shortest and the longest. The unit is the caller's.
pub struct Meter {
    calls: AtomicU64,
    total: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

/// What a meter showed, in the unit it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Times; not 0.
    pub calls: u64,
    /// Sum of all durations.
    pub total: u64,
    /// The shortest duration.
    pub min: u64,
    /// The longest duration.
    pub max: u64,
}

impl Meter {
    /// A meter that has counted nothing.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "meant for statics")]
    pub const fn new() -> Self {
        Self {
            calls: AtomicU64::new(0),
            total: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }

    /// Adds one that took `amount`.
    pub fn add(&self, amount: u64) {
        self.total.fetch_add(amount, Ordering::Relaxed);
        self.min.fetch_min(amount, Ordering::Relaxed);
        self.max.fetch_max(amount, Ordering::Relaxed);
        // Last: a reading that counts it has the rest of it too.
        self.calls.fetch_add(1, Ordering::Release);
    }

    /// Reads it and leaves it as it is; `None` if nothing was counted. What is added meanwhile may be in it in part.
    pub fn read(&self) -> Option<Reading> {
        let calls = self.calls.load(Ordering::Acquire);
        (calls != 0).then(|| Reading {
            calls,
            total: self.total.load(Ordering::Relaxed),
            min: self.min.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        })
    }

    /// Reads it and sets it back; `None` if nothing was counted. What is added meanwhile is in this reading or the
    /// next.
    pub fn take(&self) -> Option<Reading> {
        let calls = self.calls.swap(0, Ordering::Acquire);
        (calls != 0).then(|| Reading {
            calls,
            total: self.total.swap(0, Ordering::Relaxed),
            min: self.min.swap(u64::MAX, Ordering::Relaxed),
            max: self.max.swap(0, Ordering::Relaxed),
        })
    }
}

impl Reading {
    /// Each time converted.
    #[must_use]
    pub fn map(self, convert: impl Fn(u64) -> u64) -> Self {
        Self { calls: self.calls, total: convert(self.total), min: convert(self.min), max: convert(self.max) }
    }

    /// The mean duration, rounded down.
    #[must_use]
    pub const fn mean(&self) -> u64 {
        self.total / self.calls
    }
}

/// Bounds the share of time that optional work takes: after work of some length, none is done for that length times a
/// factor.
#[derive(Debug)]
pub struct Share {
    factor: u64,
    /// When work may be done again.
    next: AtomicU64,
}

impl Share {
    /// Work may take one part in `factor` of the time that it does not take.
    #[must_use]
    pub const fn new(factor: u64) -> Self {
        Self { factor, next: AtomicU64::new(0) }
    }

    /// Whether work may begin at `now`.
    pub fn admits(&self, now: u64) -> bool {
        now >= self.next.load(Ordering::Relaxed)
    }

    /// Notes work from `begun` to `now`.
    pub fn spent(&self, begun: u64, now: u64) {
        let pause = now.saturating_sub(begun).saturating_mul(self.factor);
        self.next.store(now.saturating_add(pause), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_grows_with_what_there_is_takes_a_bounded_share_of_the_time() {
        let (share, mut now, mut worked, mut times) = (Share::new(16), 0, 0, 0);
        for closed in 0..4000 {
            now += 3;
            if share.admits(now) {
                let begun = now;
                now += 4000 - closed;
                worked += now - begun;
                times += 1;
                share.spent(begun, now);
            }
        }
        assert!(worked * 16 <= now + 4000 * 16, "{worked} of {now}");
        assert!((1..10).contains(&times), "{times}");
    }

    #[test]
    fn cheap_work_is_not_put_off_for_long() {
        let share = Share::new(16);
        share.spent(100, 102);
        assert!(!share.admits(133));
        assert!(share.admits(134));
    }

    #[test]
    fn a_reading_has_everything_since_the_last_and_nothing_twice() {
        let meter = Meter::new();
        assert_eq!(meter.take(), None);
        [5, 2, 11].into_iter().for_each(|amount| meter.add(amount));
        let reading = meter.take().expect("three were added");
        assert_eq!(reading, Reading { calls: 3, total: 18, min: 2, max: 11 });
        assert_eq!((reading.mean(), reading.map(|t| t * 2).max), (6, 22));
        meter.add(7);
        assert_eq!(meter.take(), Some(Reading { calls: 1, total: 7, min: 7, max: 7 }));
    }

    #[test]
    fn processors_that_add_at_once_lose_nothing() {
        let meter = Meter::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (1..=10_000).for_each(|amount| meter.add(amount)));
            }
        });
        let reading = meter.take().expect("there were some");
        assert_eq!(reading, Reading { calls: 40_000, total: 4 * 50_005_000, min: 1, max: 10_000 });
    }
}
