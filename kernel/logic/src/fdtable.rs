//! Chooses descriptor numbers: the lowest free one, within the limit, with its close-on-exec flag.
//!
//! Three parallel arrays: the descriptors, a bitmap of those in use and a bitmap of those to be closed by exec. Finding
//! the lowest free number looks at one word for every 64 descriptors in use and starts at the lowest word that can have
//! room. Rules: open(2), dup(2), fcntl(2) F_DUPFD, close_range(2), getrlimit(2) RLIMIT_NOFILE.

use alloc::vec::Vec;

/// Why no descriptor was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDescriptor {
    /// Every number below the limit is taken (EMFILE).
    Full,
    /// The wanted number is not below the limit (EBADF for dup2, EINVAL for F_DUPFD).
    BeyondLimit,
}

/// A process's descriptors.
#[derive(Debug, Clone)]
pub struct FdTable<T> {
    slots: Vec<Option<T>>,
    in_use: Vec<u64>,
    close_on_exec: Vec<u64>,
    first_room: usize,
}

impl<T> Default for FdTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FdTable<T> {
    /// A table without descriptors.
    pub const fn new() -> Self {
        Self { slots: Vec::new(), in_use: Vec::new(), close_on_exec: Vec::new(), first_room: 0 }
    }

    /// What `fd` stands for.
    #[inline]
    pub fn get(&self, fd: u32) -> Option<&T> {
        self.slots.get(fd as usize)?.as_ref()
    }

    /// Puts `value` at the lowest free number that is at least `least` and below `limit`.
    #[inline]
    pub fn install(&mut self, value: T, least: u32, limit: u32, close_on_exec: bool) -> Result<u32, NoDescriptor> {
        if least >= limit && least > 0 {
            return Err(NoDescriptor::BeyondLimit);
        }
        let fd = self.lowest_free(least as usize);
        if fd >= limit as usize {
            return Err(NoDescriptor::Full);
        }
        self.put(fd, value, close_on_exec);
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
        let old = self.remove(fd);
        self.put(fd as usize, value, close_on_exec);
        Ok(old)
    }

    /// Frees `fd` and returns what stood there.
    #[inline]
    pub fn remove(&mut self, fd: u32) -> Option<T> {
        let fd = fd as usize;
        let value = self.slots.get_mut(fd)?.take()?;
        let word = fd / 64;
        self.in_use[word] &= !(1 << (fd % 64));
        self.close_on_exec[word] &= !(1 << (fd % 64));
        self.first_room = self.first_room.min(word);
        Some(value)
    }

    /// The close-on-exec flag of `fd`, if it is open.
    pub fn close_on_exec(&self, fd: u32) -> Option<bool> {
        self.get(fd)?;
        Some(self.close_on_exec[fd as usize / 64] >> (fd % 64) & 1 != 0)
    }

    /// Sets the close-on-exec flag of `fd`; `None` if it is not open.
    pub fn set_close_on_exec(&mut self, fd: u32, on: bool) -> Option<()> {
        self.get(fd)?;
        set_bit(&mut self.close_on_exec[fd as usize / 64], fd as usize % 64, on);
        Some(())
    }

    /// Takes out every descriptor that exec closes.
    pub fn take_close_on_exec(&mut self) -> Vec<T> {
        let mut taken = Vec::new();
        for word in 0..self.close_on_exec.len() {
            while self.close_on_exec[word] != 0 {
                let bit = self.close_on_exec[word].trailing_zeros();
                self.close_on_exec[word] &= !(1 << bit);
                taken.extend(self.remove(word as u32 * 64 + bit));
            }
        }
        taken
    }

    /// Takes out the open descriptors of `first..=last`.
    pub fn take_range(&mut self, first: u32, last: u32) -> Vec<T> {
        let numbers: Vec<u32> = self.numbers_from(first).take_while(|&fd| fd <= last).collect();
        numbers.into_iter().filter_map(|fd| self.remove(fd)).collect()
    }

    /// The open numbers from `first` on, rising.
    pub fn numbers_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let start = first as usize;
        let slots = self.slots.get(start..).unwrap_or(&[]);
        slots.iter().enumerate().filter(|(_, slot)| slot.is_some()).map(move |(at, _)| (start + at) as u32)
    }

    /// Every open descriptor with its number.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(fd, slot)| Some((fd as u32, slot.as_ref()?)))
    }

    /// How many numbers the table has room for at present (`FDSize` of /proc/PID/status).
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    #[inline]
    fn lowest_free(&mut self, least: usize) -> usize {
        let mut word = self.first_room.max(least / 64);
        let mut ignored = if word == least / 64 { (1_u64 << (least % 64)) - 1 } else { 0 };
        loop {
            let Some(&used) = self.in_use.get(word) else { return (word * 64).max(least) };
            let full = used | ignored;
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

    fn put(&mut self, fd: usize, value: T, close_on_exec: bool) {
        if fd >= self.slots.len() {
            let room = (fd + 1).next_multiple_of(64);
            self.slots.resize_with(room, || None);
            self.in_use.resize(room / 64, 0);
            self.close_on_exec.resize(room / 64, 0);
        }
        self.slots[fd] = Some(value);
        self.in_use[fd / 64] |= 1 << (fd % 64);
        set_bit(&mut self.close_on_exec[fd / 64], fd % 64, close_on_exec);
    }
}

#[inline]
fn set_bit(word: &mut u64, bit: usize, on: bool) {
    *word = *word & !(1 << bit) | u64::from(on) << bit;
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
