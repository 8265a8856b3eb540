//! Chooses descriptor numbers: the lowest free one, within the limit, with its close-on-exec flag.
//!
//! Two arrays: the descriptors, up to the highest number that was given, and for every 64 numbers a bitmap of those in
//! use and one of those to be closed by exec. Finding the lowest free number looks at one word for every 64 descriptors
//! in use and starts at the lowest word that can have room; copying, closing and listing look at the numbers in use
//! only. Rules: open(2), dup(2), fcntl(2) F_DUPFD, close_range(2), getrlimit(2) RLIMIT_NOFILE.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// Why no descriptor was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDescriptor {
    /// Every number below the limit is taken (EMFILE).
    Full,
    /// The wanted number is not below the limit (EBADF for dup2, EINVAL for F_DUPFD).
    BeyondLimit,
    /// There is no memory for a table of that length.
    NoMemory,
}

/// A process's descriptors. A slot is filled exactly if its number's bit is set in `Word::in_use`.
#[derive(Debug)]
pub struct FdTable<T> {
    slots: Vec<Option<T>>,
    words: Vec<Word>,
    first_room: usize,
}

/// What is known of 64 numbers, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    in_use: u64,
    close_on_exec: u64,
}

impl<T> Default for FdTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> FdTable<T> {
    /// A copy with the open descriptors; [`NoDescriptor::NoMemory`] where there is no room for it.
    pub fn try_clone(&self) -> Result<Self, NoDescriptor> {
        let highest = self.words.iter().rposition(|word| word.in_use != 0);
        let end = highest.map_or(0, |word| word * 64 + 64 - self.words[word].in_use.leading_zeros() as usize);
        let (mut slots, mut words) = (Vec::new(), Vec::new());
        slots.try_reserve_exact(end.next_multiple_of(64)).map_err(|_| NoDescriptor::NoMemory)?;
        words.try_reserve_exact(self.words.len()).map_err(|_| NoDescriptor::NoMemory)?;
        slots.extend(self.slots.iter().take(end).cloned());
        words.extend_from_slice(&self.words);
        Ok(Self { slots, words, first_room: self.first_room })
    }
}

impl<T> FdTable<T> {
    /// A table without descriptors.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), words: Vec::new(), first_room: 0 }
    }

    /// What `fd` stands for.
    #[inline]
    pub fn get(&self, fd: u32) -> Option<&T> {
        self.slots.get(fd as usize)?.as_ref()
    }

    /// Puts `value` at the lowest free number that is at least `least` and below `limit`.
    #[inline]
    pub fn install(&mut self, value: T, least: u32, limit: u32, close_on_exec: bool) -> Result<u32, NoDescriptor> {
        let fd = self.find_room(least, limit)?;
        self.put(fd, value, close_on_exec);
        Ok(fd)
    }

    /// The lowest free number that is at least `least` and below `limit`, for [`Self::put`].
    #[inline]
    pub fn find_room(&mut self, least: u32, limit: u32) -> Result<u32, NoDescriptor> {
        if least >= limit && least > 0 {
            return Err(NoDescriptor::BeyondLimit);
        }
        let fd = self.lowest_free(least as usize);
        if fd >= limit as usize {
            return Err(NoDescriptor::Full);
        }
        self.reserve(fd)?;
        Ok(fd as u32)
    }

    /// Whether [`Self::install`] would find a number below `limit`.
    pub fn has_room(&mut self, limit: u32) -> bool {
        self.lowest_free(0) < limit as usize
    }

    /// Puts `value` at `fd` exactly and returns what stood there (dup2, dup3).
    pub fn replace(&mut self, fd: u32, value: T, limit: u32, close_on_exec: bool) -> Result<Option<T>, NoDescriptor> {
        if fd >= limit {
            return Err(NoDescriptor::BeyondLimit);
        }
        self.reserve(fd as usize)?;
        let old = self.remove(fd);
        self.put(fd, value, close_on_exec);
        Ok(old)
    }

    /// Frees `fd` and returns what stood there.
    #[inline]
    pub fn remove(&mut self, fd: u32) -> Option<T> {
        let fd = fd as usize;
        let value = self.slots.get_mut(fd)?.take()?;
        let word = fd / 64;
        let bits = &mut self.words[word];
        bits.in_use &= !(1 << (fd % 64));
        bits.close_on_exec &= !(1 << (fd % 64));
        self.first_room = self.first_room.min(word);
        Some(value)
    }

    /// The close-on-exec flag of `fd`, if it is open.
    pub fn close_on_exec(&self, fd: u32) -> Option<bool> {
        self.get(fd)?;
        Some(self.words[fd as usize / 64].close_on_exec >> (fd % 64) & 1 != 0)
    }

    /// Sets the close-on-exec flag of `fd`; `None` if it is not open.
    pub fn set_close_on_exec(&mut self, fd: u32, on: bool) -> Option<()> {
        self.get(fd)?;
        set_bit(&mut self.words[fd as usize / 64].close_on_exec, fd % 64, on);
        Some(())
    }

    /// Takes out every descriptor that exec closes.
    pub fn take_close_on_exec(&mut self) -> Vec<T> {
        self.take_where(0..=u32::MAX, |word| word.close_on_exec)
    }

    /// Takes out the open descriptors of `first..=last`.
    pub fn take_range(&mut self, first: u32, last: u32) -> Vec<T> {
        self.take_where(first..=last, |word| word.in_use)
    }

    fn take_where(&mut self, range: RangeInclusive<u32>, wanted: impl Fn(&Word) -> u64) -> Vec<T> {
        let mut taken = Vec::new();
        for at in *range.start() as usize / 64..self.words.len().min(*range.end() as usize / 64 + 1) {
            for bit in bits(wanted(&self.words[at])) {
                let fd = at as u32 * 64 + bit;
                if range.contains(&fd) {
                    taken.extend(self.remove(fd));
                }
            }
        }
        taken
    }

    /// The open numbers from `first` on, rising.
    pub fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let start = first as usize / 64;
        let words = self.words.get(start..).unwrap_or(&[]).iter().enumerate();
        let numbers =
            words.flat_map(move |(at, word)| bits(word.in_use).map(move |bit| (start + at) as u32 * 64 + bit));
        numbers.skip_while(move |&fd| fd < first)
    }

    /// Every open descriptor with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.numbers_from(0).filter_map(|fd| Some((fd, self.get(fd)?)))
    }

    /// How many numbers the table has room for at present (`FDSize` of /proc/PID/status).
    pub fn capacity(&self) -> usize {
        self.words.len() * 64
    }

    #[inline]
    fn lowest_free(&mut self, least: usize) -> usize {
        let mut word = self.first_room.max(least / 64);
        let mut ignored = if word == least / 64 { (1_u64 << (least % 64)) - 1 } else { 0 };
        loop {
            let Some(bits) = self.words.get(word) else { return (word * 64).max(least) };
            let full = bits.in_use | ignored;
            if full != u64::MAX {
                // Only a search from 0 has seen that every word before this one is full.
                if least == 0 {
                    self.first_room = word;
                }
                return word * 64 + full.trailing_ones() as usize;
            }
            word += 1;
            ignored = 0;
        }
    }

    /// Puts `value` at `fd`, which is free and below the limit.
    #[inline]
    pub fn put(&mut self, fd: u32, value: T, close_on_exec: bool) {
        match self.slots.get_mut(fd as usize) {
            Some(slot) => *slot = Some(value),
            None => self.put_behind(fd as usize, value),
        }
        let word = &mut self.words[fd as usize / 64];
        word.in_use |= 1 << (fd % 64);
        set_bit(&mut word.close_on_exec, fd % 64, close_on_exec);
    }

    /// Finds memory for slots up to that of `fd`: a table of a million is 8 MB long.
    #[inline]
    fn reserve(&mut self, fd: usize) -> Result<(), NoDescriptor> {
        if fd < self.slots.capacity() && fd / 64 < self.words.len() { Ok(()) } else { self.find_memory(fd) }
    }

    #[cold]
    fn find_memory(&mut self, fd: usize) -> Result<(), NoDescriptor> {
        let room = (fd + 1).next_multiple_of(64);
        let words = room.div_ceil(64).saturating_sub(self.words.len());
        self.words.try_reserve(words).map_err(|_| NoDescriptor::NoMemory)?;
        self.slots.try_reserve(room - self.slots.len()).map_err(|_| NoDescriptor::NoMemory)?;
        self.words.resize(self.words.len() + words, Word::default());
        Ok(())
    }

    /// Makes slots up to that of `fd`, which gets `value`.
    #[cold]
    fn put_behind(&mut self, fd: usize, value: T) {
        let words = fd / 64 + 1;
        if words > self.words.len() {
            self.words.resize(words, Word::default());
        }
        self.slots.resize_with(fd, || None);
        self.slots.push(Some(value));
    }
}

#[inline]
fn set_bit(word: &mut u64, bit: u32, on: bool) {
    *word = *word & !(1 << bit) | u64::from(on) << bit;
}

/// The numbers of the bits that are set, rising.
#[inline]
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    #[test]
    fn the_lowest_closed_number_is_given_again() {
        let mut table = FdTable::new();
        for fd in 0..130 {
            assert_eq!(table.install(fd, 0, 1024, false), Ok(fd));
        }
        assert_eq!(table.remove(3), Some(3));
        assert_eq!(table.remove(70), Some(70));
        assert_eq!(table.install(900, 10, 1024, false), Ok(70));
        assert_eq!(table.install(901, 0, 1024, false), Ok(3));
        assert_eq!(table.install(902, 0, 1024, false), Ok(130));
    }

    #[test]
    fn exec_closes_only_the_marked_ones_and_dup2_clears_the_mark() {
        let mut table = FdTable::new();
        table.install('a', 0, 8, true).unwrap();
        table.install('b', 0, 8, false).unwrap();
        table.install('c', 0, 8, true).unwrap();
        assert_eq!(table.replace(2, 'd', 8, false), Ok(Some('c')));
        assert_eq!(table.take_close_on_exec(), ['a']);
        assert_eq!(table.iter().collect::<Vec<_>>(), [(1, &'b'), (2, &'d')]);
    }

    #[test]
    fn a_number_at_the_limit_is_refused_without_growing_the_table() {
        let mut table = FdTable::new();
        assert_eq!(table.install((), 1 << 30, 1024, false), Err(NoDescriptor::BeyondLimit));
        assert_eq!(table.replace(1024, (), 1024, false), Err(NoDescriptor::BeyondLimit));
        assert_eq!(table.capacity(), 0);
        assert_eq!(table.install((), 0, 0, false), Err(NoDescriptor::Full));
    }

    #[test]
    fn a_copy_has_the_open_ones_and_gives_the_same_numbers() {
        let mut table = FdTable::new();
        for fd in [0, 1, 5, 70, 129] {
            table.replace(fd, fd, 1024, fd == 5).unwrap();
        }
        table.remove(129);
        let mut copy = table.try_clone().unwrap();
        assert_eq!(copy.numbers_from(1).collect::<Vec<_>>(), [1, 5, 70]);
        assert_eq!((copy.close_on_exec(5), copy.close_on_exec(70), copy.get(129)), (Some(true), Some(false), None));
        assert_eq!((copy.install(900, 70, 1024, false), copy.capacity()), (Ok(71), table.capacity()));
        assert_eq!(copy.install(901, 140, 1024, false), Ok(140));
        assert_eq!(copy.take_range(5, 70), [5, 70]);
        assert_eq!(table.take_range(0, u32::MAX), [0, 1, 5, 70]);
        assert_eq!(FdTable::<u32>::new().try_clone().unwrap().install(7, 0, 8, false), Ok(0));
    }

    proptest! {
        #[test]
        fn any_history_gives_the_lowest_free_number(steps in proptest::collection::vec((0_u8..4, 0_u32..200), 0..300)) {
            let mut table = FdTable::new();
            let mut model = BTreeMap::new();
            for (what, number) in steps {
                match what {
                    0 | 1 => {
                        let least = if what == 0 { 0 } else { number };
                        let expected = (least..256).find(|fd| !model.contains_key(fd));
                        prop_assert_eq!(table.install(number, least, 256, number % 2 == 0).ok(), expected);
                        if let Some(fd) = expected {
                            model.insert(fd, (number, number % 2 == 0));
                        }
                    }
                    2 => prop_assert_eq!(table.remove(number), model.remove(&number).map(|(value, _)| value)),
                    _ => prop_assert_eq!(table.close_on_exec(number), model.get(&number).map(|&(_, mark)| mark)),
                }
            }
        }
    }
}
