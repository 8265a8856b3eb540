//! The dump of a console on which nothing has crashed, and how often a dump that grows is written.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The least time between two writes of a dump that grows.
const WRITE_EVERY: Duration = Duration::from_millis(500);
/// A write takes at most this part of the time, as `1 / n`, while that leaves the dump at most [`OLDEST`] old.
const WRITE_SHARE: u32 = 5;
/// The pause between two writes that is not exceeded: with a write of 0.2 s the dump is at most a second old. Writes
/// that take longer take a third of the time.
const OLDEST: Duration = Duration::from_millis(800);

/// When a dump is written again.
#[derive(Debug)]
pub(super) struct Pace {
    began: Instant,
    last: Option<Instant>,
    cost: Duration,
}

impl Pace {
    /// A dump that has not been written yet.
    pub(super) const fn new(began: Instant) -> Self {
        Self { began, last: None, cost: Duration::ZERO }
    }

    /// A write began at `now` and took `cost`.
    pub(super) const fn wrote(&mut self, now: Instant, cost: Duration) {
        (self.last, self.cost) = (Some(now), cost);
    }

    /// When it may be written next.
    pub(super) fn next(&self) -> Instant {
        let pause = WRITE_EVERY.max((self.cost * WRITE_SHARE).min(OLDEST.max(self.cost * 2)));
        self.last.map_or(self.began, |last| last + pause)
    }
}

/// The last lines of a console between crashes, as a dump that is replaced.
#[derive(Debug)]
pub(super) struct Live {
    /// Where it is.
    pub path: PathBuf,
    /// Whether bytes came after the last write.
    pub dirty: bool,
    /// When it was written.
    pub pace: Pace,
}
