//! Decides which timers are due: an ordered set of deadlines with removal.
//!
//! Removal matters as much as expiry: most timeouts are cancelled, and a set that only forgets at expiry would grow
//! with every cancelled one.

use alloc::collections::BTreeMap;

/// Names an armed timer; unique among those ever armed in one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerKey {
    deadline: u64,
    serial: u64,
}

/// Deadlines in nanoseconds of one clock, each with a value.
#[derive(Debug)]
pub struct Timers<T> {
    armed: BTreeMap<TimerKey, T>,
    serial: u64,
}

impl<T> Default for Timers<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Timers<T> {
    /// A queue without armed timers.
    pub const fn new() -> Self {
        Self { armed: BTreeMap::new(), serial: 0 }
    }

    /// Arms a timer.
    pub fn arm(&mut self, deadline: u64, value: T) -> TimerKey {
        self.serial += 1;
        let key = TimerKey { deadline, serial: self.serial };
        self.armed.insert(key, value);
        key
    }

    /// Disarms a timer; `None` if it has expired already.
    pub fn disarm(&mut self, key: TimerKey) -> Option<T> {
        self.armed.remove(&key)
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<u64> {
        self.armed.first_key_value().map(|(key, _)| key.deadline)
    }

    /// Takes out one timer due at `now`, earliest first and equal ones in the order they were armed.
    pub fn pop_due(&mut self, now: u64) -> Option<T> {
        let entry = self.armed.first_entry()?;
        (entry.key().deadline <= now).then(|| entry.remove())
    }

    /// Number of armed timers.
    pub fn len(&self) -> usize {
        self.armed.len()
    }

    /// Whether none is armed.
    pub fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_go_off_in_order_and_cancelled_ones_do_not() {
        let mut timers = Timers::new();
        let late = timers.arm(30, 'c');
        timers.arm(10, 'a');
        let gone = timers.arm(20, 'x');
        timers.arm(10, 'b');
        assert_eq!(timers.disarm(gone), Some('x'));
        assert_eq!(timers.disarm(gone), None);
        assert_eq!(timers.next(), Some(10));
        assert_eq!((timers.pop_due(25), timers.pop_due(25), timers.pop_due(25)), (Some('a'), Some('b'), None));
        assert_eq!(timers.disarm(late), Some('c'));
        assert!(timers.is_empty());
    }
}
