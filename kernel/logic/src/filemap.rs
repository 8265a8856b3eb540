//! Maps a file's page numbers to whatever holds a page: dense where the file is dense, sparse where it is not.
//!
//! A file written from its start grows a vector, whose doubling makes growth cost a constant per page. A page far
//! behind the dense part (a hole of more than `DENSE_GAP` pages) goes to a tree instead, so that one byte at 1 TiB
//! costs one page. When the dense part reaches pages of the tree, lookups find them there still: the vector is asked
//! first.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most pages the vector holds: behind it even a dense file goes to the tree, so that no allocation grows without
/// bound.
const DENSE_MOST: u64 = 1 << 18;
/// The widest hole, in pages, that the vector bridges with empty slots.
const DENSE_GAP: u64 = 512;

/// The pages of one file.
#[derive(Debug)]
pub struct FileMap<T> {
    dense: Vec<Option<T>>,
    sparse: BTreeMap<u64, T>,
    held: u64,
}

impl<T> Default for FileMap<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FileMap<T> {
    /// A file without pages.
    pub const fn new() -> Self {
        Self { dense: Vec::new(), sparse: BTreeMap::new(), held: 0 }
    }

    /// The page at `index`, if it is not a hole.
    #[inline]
    pub fn get(&self, index: u64) -> Option<&T> {
        match self.dense.get(index as usize) {
            Some(Some(page)) => Some(page),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&index),
        }
    }

    /// Puts `page` at `index` and returns what was there.
    pub fn insert(&mut self, index: u64, page: T) -> Option<T> {
        let dense_end = self.dense.len() as u64;
        let old = if index < (dense_end + DENSE_GAP).min(DENSE_MOST) {
            if index >= dense_end {
                self.dense.resize_with(index as usize + 1, || None);
            }
            self.dense[index as usize].replace(page).or_else(|| self.sparse.remove(&index))
        } else {
            self.sparse.insert(index, page)
        };
        self.held += u64::from(old.is_none());
        old
    }

    /// Makes `index` a hole and returns what was there.
    pub fn remove(&mut self, index: u64) -> Option<T> {
        let dense = self.dense.get_mut(index as usize).and_then(Option::take);
        let old = dense.or_else(|| self.sparse.remove(&index));
        self.held -= u64::from(old.is_some());
        old
    }

    /// Drops every page from `first` on.
    pub fn truncate(&mut self, first: u64) {
        if let Some(tail) = self.dense.get(first as usize..) {
            self.held -= tail.iter().flatten().count() as u64;
            self.dense.truncate(first as usize);
            if self.dense.capacity() > 64 && self.dense.len() < self.dense.capacity() / 4 {
                self.dense.shrink_to_fit();
            }
        }
        self.held -= self.sparse.split_off(&first).len() as u64;
    }

    /// How many pages are held.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// The first held page at or behind `index` (SEEK_DATA), or the first hole (SEEK_HOLE).
    pub fn next(&self, index: u64, hole: bool, end: u64) -> Option<u64> {
        if hole {
            return (index..=end).find(|&at| at == end || self.get(at).is_none());
        }
        let dense = self.dense.iter().enumerate().skip(index as usize).find(|(_, page)| page.is_some());
        let sparse = self.sparse.range(index..).next().map(|(&at, _)| at);
        let first = dense.map(|(at, _)| at as u64).into_iter().chain(sparse).min();
        first.filter(|&at| at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_byte_at_a_terabyte_costs_one_page() {
        let mut map = FileMap::new();
        map.insert(1 << 28, 'x');
        assert_eq!((map.dense.capacity(), map.held(), map.get(1 << 28)), (0, 1, Some(&'x')));
        assert_eq!(map.next(0, false, 1 << 29), Some(1 << 28));
        assert_eq!(map.next(0, true, 1 << 29), Some(0));
    }

    #[test]
    fn a_page_put_sparse_is_found_after_the_dense_part_passes_it() {
        let mut map = FileMap::new();
        map.insert(600, 'x');
        for index in 0..700 {
            if index != 600 {
                map.insert(index, 'd');
            }
        }
        assert_eq!(map.get(600), Some(&'x'));
        assert_eq!(map.insert(600, 'y'), Some('x'));
        map.truncate(100);
        assert_eq!((map.held(), map.get(600)), (100, None));
        assert_eq!(map.next(3, true, 200), Some(100));
    }

    #[test]
    fn a_dense_file_of_two_gigabytes_does_not_ask_for_one_huge_vector() {
        let mut map = FileMap::new();
        for index in 0..1 << 19 {
            map.insert(index, ());
        }
        assert_eq!((map.dense.len() as u64, map.held()), (DENSE_MOST, 1 << 19));
        map.truncate(DENSE_MOST + 1);
        assert_eq!((map.held(), map.get(DENSE_MOST), map.get(DENSE_MOST + 1)), (DENSE_MOST + 1, Some(&()), None));
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0_u8..4, 0_u64..3000), 0..200)) {
            let mut map = FileMap::new();
            let mut model = BTreeMap::new();
            for (what, index) in steps {
                match what {
                    0 | 1 => prop_assert_eq!(map.insert(index, index), model.insert(index, index)),
                    2 => prop_assert_eq!(map.remove(index), model.remove(&index)),
                    _ => {
                        map.truncate(index);
                        model.split_off(&index);
                    }
                }
                prop_assert_eq!(map.get(index), model.get(&index));
                prop_assert_eq!(map.held(), model.len() as u64);
                prop_assert_eq!(map.next(index, false, 4000), model.range(index..).next().map(|(&at, _)| at));
            }
        }
    }
}
