//! Decides in which order those who wait under a key are woken: by arrival.
//!
//! A program may have tens of thousands wait, under one key or many, so neither to wake one nor to leave takes a walk
//! past the others.

use alloc::collections::BTreeMap;

/// Where a waiter stands in [`Waiters`]: under its key, in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place<K> {
    key: K,
    serial: u64,
}

impl<K: Copy> Place<K> {
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
    standing: BTreeMap<Place<K>, T>,
    /// Arrivals so far; none before the first.
    serial: u64,
}

impl<K: Copy + Ord, T> Waiters<K, T> {
    /// No waiters; allocates nothing.
    pub const fn new() -> Self {
        Self { standing: BTreeMap::new(), serial: 0 }
    }

    /// Adds one behind all others of `key`. It stands where no other ever stood here.
    pub fn push(&mut self, key: K, waiter: T) -> Place<K> {
        self.serial += 1;
        let standing = Place { key, serial: self.serial };
        self.standing.insert(standing, waiter);
        standing
    }

    /// Takes one out; `None` if it left before.
    pub fn remove(&mut self, standing: &Place<K>) -> Option<T> {
        self.standing.remove(standing)
    }

    /// Those of `key`, first come first.
    pub fn of(&self, key: K) -> impl Iterator<Item = (Place<K>, &T)> {
        self.after(Place::before(key))
    }

    /// The first of the same key behind `standing`, which may have left.
    pub fn next(&self, standing: Place<K>) -> Option<(Place<K>, &T)> {
        self.after(standing).next()
    }

    fn after(&self, standing: Place<K>) -> impl Iterator<Item = (Place<K>, &T)> {
        let from = Place { serial: standing.serial.saturating_add(1), ..standing };
        self.standing.range(from..=Place { serial: u64::MAX, ..standing }).map(|(at, waiter)| (*at, waiter))
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
        let places: Vec<_> = (0..6).map(|n| waiters.push(n % 2, n)).collect();
        let of = |waiters: &Waiters<i32, i32>, key| waiters.of(key).map(|(_, n)| *n).collect::<Vec<_>>();
        assert_eq!(
            (of(&waiters, 0), of(&waiters, 1), of(&waiters, 2)),
            ([0, 2, 4].into(), [1, 3, 5].into(), [].into())
        );
        assert_eq!(waiters.remove(&places[2]), Some(2));
        assert_eq!(waiters.remove(&places[2]), None);
        assert_eq!(waiters.next(places[2]).map(|(at, n)| (at, *n)), Some((places[4], 4)));
        assert_eq!(waiters.next(places[5]), None);
        let again = waiters.push(0, 2);
        assert_ne!(again, places[2]);
        assert_eq!(of(&waiters, 0), [0, 4, 2]);
    }
}
