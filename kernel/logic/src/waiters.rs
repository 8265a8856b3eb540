//! Decides in which order those who wait under a key are woken: by arrival.
//!
//! A program may have tens of thousands wait, under one key or many, so neither to wake one nor to leave takes a walk
//! past the others.

use alloc::collections::BTreeMap;

/// Where a waiter stands in [`Waiters`]: under its key, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaiterSlot<K> {
    key: K,
    serial: u64,
}

impl<K: Copy> WaiterSlot<K> {
    /// Of one under `key` that has not arrived.
    pub const fn before(key: K) -> Self {
        Self { key, serial: 0 }
    }

    /// The key it stands under.
    pub const fn key(&self) -> K {
        self.key
    }
}

/// Waiters by key.
#[derive(Debug)]
pub struct Waiters<K, T> {
    standing: BTreeMap<WaiterSlot<K>, T>,
    /// Arrivals so far; none before the first.
    serial: u64,
}

impl<K: Copy + Ord, T> Waiters<K, T> {
    /// No waiters; allocates nothing.
    pub const fn new() -> Self {
        Self { standing: BTreeMap::new(), serial: 0 }
    }

    /// Adds one behind all others of `key`. It stands where no other ever stood here.
    pub fn push(&mut self, key: K, waiter: T) -> WaiterSlot<K> {
        self.serial += 1;
        let standing = WaiterSlot { key, serial: self.serial };
        self.standing.insert(standing, waiter);
        standing
    }

    /// Where the last to arrive under `key` so far stands, at most.
    pub const fn newest(&self, key: K) -> WaiterSlot<K> {
        WaiterSlot { key, serial: self.serial }
    }

    /// Takes one out; `None` if it left before.
    pub fn remove(&mut self, standing: &WaiterSlot<K>) -> Option<T> {
        self.standing.remove(standing)
    }

    /// Those of `key`, first come first.
    pub fn of(&self, key: K) -> impl Iterator<Item = (WaiterSlot<K>, &T)> {
        self.after(WaiterSlot::before(key))
    }

    /// The first of the same key behind `standing`, which may have left.
    pub fn next(&self, standing: WaiterSlot<K>) -> Option<(WaiterSlot<K>, &T)> {
        self.after(standing).next()
    }

    fn after(&self, standing: WaiterSlot<K>) -> impl Iterator<Item = (WaiterSlot<K>, &T)> {
        let from = WaiterSlot { serial: standing.serial.saturating_add(1), ..standing };
        self.standing.range(from..=WaiterSlot { serial: u64::MAX, ..standing }).map(|(at, waiter)| (*at, waiter))
    }
}

impl<K: Copy + Ord, T> Default for Waiters<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn waiters_of_one_key_are_found_by_arrival_and_leave_from_anywhere() {
        let mut waiters = Waiters::new();
        let slots: Vec<_> = (0..6).map(|n| waiters.push(n % 2, n)).collect();
        let of = |waiters: &Waiters<i32, i32>, key| waiters.of(key).map(|(_, n)| *n).collect::<Vec<_>>();
        assert_eq!(
            (of(&waiters, 0), of(&waiters, 1), of(&waiters, 2)),
            ([0, 2, 4].into(), [1, 3, 5].into(), [].into())
        );
        assert_eq!(waiters.remove(&slots[2]), Some(2));
        assert_eq!(waiters.remove(&slots[2]), None);
        assert_eq!(waiters.next(slots[2]).map(|(at, n)| (at, *n)), Some((slots[4], 4)));
        assert_eq!(waiters.next(slots[5]), None);
        let again = waiters.push(0, 2);
        assert_ne!(again, slots[2]);
        assert_eq!(of(&waiters, 0), [0, 4, 2]);
    }
}
