//! A directory's names: found by hash, listed in a stable order.
//!
//! Entries live in numbered slots; the slot number is the `d_off` cookie of getdents64, so a listing survives removals
//! and additions between two calls: an entry that stays is listed exactly once (readdir(3)). An open-addressing index
//! over the name hashes finds a slot in one or two probes; up to eight entries, no index exists and the hashes are
//! compared in turn.
//!
//! Slots lie in chunks, so that no allocation grows with the directory but the index, and that is bounded by
//! [`MOST_NAMES`].

use alloc::boxed::Box;
use alloc::vec::Vec;

#[derive(Debug)]
struct Slot<T> {
    hash: u32,
    name: Box<[u8]>,
    value: T,
}

/// Slots in chunks of [`CHUNK`].
#[derive(Debug)]
struct Slots<T> {
    chunks: Vec<Vec<Option<Slot<T>>>>,
    len: usize,
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }

    #[inline]
    fn get(&self, at: usize) -> Option<&Slot<T>> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)?.as_ref()
    }

    #[inline]
    fn get_mut(&mut self, at: usize) -> Option<&mut Option<Slot<T>>> {
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    fn push(&mut self, slot: Slot<T>) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::new());
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(Some(slot));
        }
        self.len += 1;
    }

    fn from(&self, start: usize) -> impl Iterator<Item = (usize, &Slot<T>)> {
        (start..self.len).filter_map(|at| Some((at, self.get(at)?)))
    }
}

/// Names with what they stand for.
#[derive(Debug)]
pub struct DirMap<T> {
    slots: Slots<T>,
    free: Vec<u32>,
    /// Slot numbers, `EMPTY` or `GONE`; a power of two long, or empty while there are few slots.
    index: Vec<u32>,
    index_used: usize,
    /// Random and secret: mixed into every hash, so that a program cannot choose names whose hashes collide.
    key: u64,
}

const EMPTY: u32 = u32::MAX;
const GONE: u32 = u32::MAX - 1;
const WITHOUT_INDEX: usize = 8;
const CHUNK: usize = 256;
/// Buckets of the largest index (4 MiB).
const LARGEST_INDEX: usize = 1 << 20;
/// The most names of one directory.
pub const MOST_NAMES: usize = 600_000;

impl<T> Default for DirMap<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T> DirMap<T> {
    /// An empty directory whose hashes depend on `key`.
    pub const fn new(key: u64) -> Self {
        Self { slots: Slots::new(), free: Vec::new(), index: Vec::new(), index_used: 0, key }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.slots.len - self.free.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no further name fits.
    pub fn is_full(&self) -> bool {
        self.len() >= MOST_NAMES
    }

    /// What `name` stands for.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&T> {
        let slot = self.find(hash(self.key, name), name)?;
        self.slots.get(slot).map(|slot| &slot.value)
    }

    /// Adds `name`; gives `value` back if the name exists or the directory is full.
    pub fn insert(&mut self, name: &[u8], value: T) -> Result<(), T> {
        let hash = hash(self.key, name);
        if self.find(hash, name).is_some() || self.is_full() {
            return Err(value);
        }
        let slot = Slot { hash, name: name.into(), value };
        let free = self.free.pop();
        let at = match free.and_then(|at| Some((at, self.slots.get_mut(at as usize)?))) {
            Some((at, free)) => {
                *free = Some(slot);
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len - 1) as u32
            }
        };
        self.add_to_index(hash, at);
        Ok(())
    }

    /// Makes the existing `name` stand for `value` and returns what it stood for.
    pub fn replace(&mut self, name: &[u8], value: T) -> Option<T> {
        let at = self.find(hash(self.key, name), name)?;
        self.slots.get_mut(at)?.as_mut().map(|slot| core::mem::replace(&mut slot.value, value))
    }

    /// Removes `name` and returns what it stood for.
    pub fn remove(&mut self, name: &[u8]) -> Option<T> {
        let hash = hash(self.key, name);
        let at = self.find(hash, name)?;
        if let Some(bucket) = self.index_bucket(hash, at as u32) {
            self.index[bucket] = GONE;
        }
        let slot = self.slots.get_mut(at)?.take()?;
        self.free.push(at as u32);
        if self.is_empty() {
            *self = Self::new(self.key);
        }
        Some(slot.value)
    }

    /// The entries from cookie `from` on, each with the cookie of the one behind it.
    pub fn entries_from(&self, from: u64) -> impl Iterator<Item = (u64, &[u8], &T)> {
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(self.slots.len);
        self.slots.from(start).map(|(at, slot)| ((at + 1) as u64, &slot.name[..], &slot.value))
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        core::mem::replace(self, Self::new(self.key))
            .slots
            .chunks
            .into_iter()
            .flatten()
            .flatten()
            .map(|slot| slot.value)
    }

    #[inline]
    fn find(&self, hash: u32, name: &[u8]) -> Option<usize> {
        let here = |at: usize| self.slots.get(at).is_some_and(|slot| slot.hash == hash && *slot.name == *name);
        if self.index.is_empty() {
            return (0..self.slots.len).find(|&at| here(at));
        }
        let mask = self.index.len() - 1;
        let mut bucket = hash as usize & mask;
        loop {
            match self.index[bucket] {
                EMPTY => return None,
                GONE => {}
                at if here(at as usize) => return Some(at as usize),
                _ => {}
            }
            bucket = (bucket + 1) & mask;
        }
    }

    fn index_bucket(&self, hash: u32, at: u32) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        let mut bucket = hash as usize & mask;
        while self.index[bucket] != at {
            if self.index[bucket] == EMPTY {
                return None;
            }
            bucket = (bucket + 1) & mask;
        }
        Some(bucket)
    }

    fn add_to_index(&mut self, hash: u32, at: u32) {
        if self.slots.len <= WITHOUT_INDEX {
            return;
        }
        if (self.index_used + 1) * 4 > self.index.len() * 3 {
            self.rebuild_index();
            return;
        }
        let mask = self.index.len() - 1;
        let mut bucket = hash as usize & mask;
        while self.index[bucket] < GONE {
            bucket = (bucket + 1) & mask;
        }
        self.index_used += usize::from(self.index[bucket] == EMPTY);
        self.index[bucket] = at;
    }

    fn rebuild_index(&mut self) {
        let size = (self.len() * 2).next_power_of_two().clamp(32, LARGEST_INDEX);
        self.index.clear();
        self.index.resize(size, EMPTY);
        self.index_used = self.len();
        for (at, slot) in self.slots.from(0) {
            let mut bucket = slot.hash as usize & (size - 1);
            while self.index[bucket] != EMPTY {
                bucket = (bucket + 1) & (size - 1);
            }
            self.index[bucket] = at as u32;
        }
    }
}

/// Mixes the name eight bytes at a time by multiplications whose halves are folded; a last word overlaps the one
/// before. Without the key the hashes are unpredictable, so names that collide cannot be chosen: a lookup
/// among many of them would visit all of them under the directory's lock.
#[inline]
fn hash(key: u64, name: &[u8]) -> u32 {
    let fold = |value: u64| {
        let product = u128::from(value) * 0x9e37_79b9_7f4a_7c15;
        product as u64 ^ (product >> 64) as u64
    };
    let length = (name.len() as u64) << 56;
    let value = match (name.last_chunk(), name.first_chunk(), name.last_chunk()) {
        (Some(&last), ..) => {
            let words = name.chunks_exact(8).filter_map(|word| word.first_chunk().copied());
            let value = words.fold(key, |value, word| fold(value ^ u64::from_le_bytes(word)));
            fold(value ^ u64::from_le_bytes(last) ^ length)
        }
        (_, Some(&first), Some(&last)) => {
            let (first, last) = (u32::from_le_bytes(first), u32::from_le_bytes(last));
            fold(key ^ u64::from(first) ^ u64::from(last) << 32 ^ length)
        }
        _ => fold(key ^ name.iter().fold(length, |word, &byte| word << 8 | u64::from(byte)) ^ length),
    };
    value as u32 ^ (value >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::string::ToString as _;
    use proptest::prelude::*;

    #[test]
    fn names_that_collide_under_one_key_are_spread_under_another() {
        let bucket = |key, name: &str| hash(key, name.as_bytes()) as usize % 256;
        let chosen: Vec<_> = (0..100_000).map(|n: u32| n.to_string()).filter(|name| bucket(1, name) == 0).collect();
        assert!(chosen.len() > 200, "{} names were found", chosen.len());
        for key in [0, 2, 3, 1 << 63] {
            let mut buckets = [0; 256];
            chosen.iter().for_each(|name| buckets[bucket(key, name)] += 1);
            assert!(buckets.iter().all(|&count| count < 16), "{:?} names in one bucket", buckets.iter().max());
        }
    }

    #[test]
    fn removing_while_listing_skips_nobody_who_stays() {
        let mut dir = DirMap::new(7);
        for number in 0..100 {
            dir.insert(number.to_string().as_bytes(), number).unwrap();
        }
        let (mut cookie, mut seen) = (0, Vec::new());
        let first = |dir: &DirMap<i32>, from| {
            dir.entries_from(from).next().map(|(next, name, &number)| (next, name.to_vec(), number))
        };
        while let Some((next, name, number)) = first(&dir, cookie) {
            seen.push(number);
            dir.remove(&name);
            cookie = next;
        }
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert!(dir.is_empty());
    }

    #[test]
    fn a_name_exists_once() {
        let mut dir = DirMap::new(7);
        assert_eq!(dir.insert(b"a", 1), Ok(()));
        assert_eq!(dir.insert(b"a", 2), Err(2));
        assert_eq!(dir.replace(b"a", 3), Some(1));
        assert_eq!(dir.replace(b"b", 3), None);
    }

    #[test]
    fn a_full_directory_takes_no_more_and_still_finds_its_names() {
        let mut dir = DirMap::new(7);
        for number in 0..MOST_NAMES as u32 {
            dir.insert(&number.to_le_bytes(), number).unwrap();
        }
        assert!(dir.is_full() && dir.index.len() == LARGEST_INDEX);
        assert_eq!(dir.insert(b"one more", 0), Err(0));
        assert_eq!(dir.get(&77_777_u32.to_le_bytes()), Some(&77_777));
        assert_eq!(dir.remove(&5_u32.to_le_bytes()), Some(5));
        assert_eq!(dir.insert(b"one more", 1), Ok(()));
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..60), 0..400)) {
            let mut dir = DirMap::new(7);
            let mut model = BTreeMap::new();
            for (add, number) in steps {
                let name = alloc::format!("name-{number}");
                if add {
                    let fresh = !model.contains_key(&name);
                    prop_assert_eq!(dir.insert(name.as_bytes(), number).is_ok(), fresh);
                    model.insert(name, number);
                } else {
                    prop_assert_eq!(dir.remove(name.as_bytes()), model.remove(&name));
                }
                prop_assert_eq!(dir.len(), model.len());
                for number in 0..60 {
                    let name = alloc::format!("name-{number}");
                    prop_assert_eq!(dir.get(name.as_bytes()), model.get(&name));
                }
            }
        }
    }
}
