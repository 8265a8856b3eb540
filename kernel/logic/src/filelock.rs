//! Advisory byte-range locks (fcntl(2) "Advisory record locking") as rules over a sorted list.
//!
//! An owner's own locks never conflict: setting a range replaces the owner's locks there, splitting and merging as
//! needed. Read locks of different owners may overlap. A lock to the end of the file ends at [`TO_END`].

use alloc::vec::Vec;

/// The last byte of a lock that grows with the file.
pub const TO_END: u64 = i64::MAX as u64;

/// Ranges that there are more once one is set: itself, and the second half of one that it splits.
const MOST_GROWTH: usize = 2;

/// What a lock forbids others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Others may read-lock, not write-lock.
    Read,
    /// Others may lock nothing.
    Write,
}

/// A locked range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock<O> {
    /// Offset of the first locked byte.
    pub first: u64,
    /// Last byte, inclusive.
    pub last: u64,
    /// Shared or exclusive.
    pub kind: Kind,
    /// Whose it is.
    pub owner: O,
}

impl<O: PartialEq> Lock<O> {
    fn overlaps(&self, first: u64, last: u64) -> bool {
        self.first <= last && first <= self.last
    }

    /// Whether it is locked before `first` and after `last` too.
    fn reaches_beyond(&self, first: u64, last: u64) -> bool {
        self.first < first && last < self.last
    }

    /// Whether it forbids another owner `wanted`.
    pub fn conflicts(&self, wanted: &Self) -> bool {
        self.owner != wanted.owner
            && self.overlaps(wanted.first, wanted.last)
            && (self.kind == Kind::Write || wanted.kind == Kind::Write)
    }
}

/// No room for another range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Why a lock is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal<O> {
    /// Another owner's lock is in the way.
    Held(Lock<O>),
    /// There is no room for the ranges it would make.
    Full,
}

/// The locks of one file, by their first byte.
#[derive(Debug)]
pub struct Locks<O> {
    held: Vec<Lock<O>>,
}

impl<O> Default for Locks<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Locks<O> {
    /// A file without locks; allocates nothing.
    pub const fn new() -> Self {
        Self { held: Vec::new() }
    }
}

impl<O: Copy + PartialEq> Locks<O> {
    /// Number of ranges locked.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// The owner of the first range for which `found` holds.
    pub fn owner_where(&self, found: impl Fn(&O) -> bool) -> Option<O> {
        self.held.iter().map(|lock| lock.owner).find(found)
    }

    /// The first lock that forbids `wanted` (F_GETLK).
    pub fn conflict(&self, wanted: &Lock<O>) -> Option<&Lock<O>> {
        self.held[..self.begin_by(wanted.last)].iter().find(|lock| lock.conflicts(wanted))
    }

    /// Whether setting `wanted` turns a write lock of its owner into a read lock.
    pub fn weakens(&self, wanted: &Lock<O>) -> bool {
        let becomes_read = |lock: &Lock<O>| {
            lock.kind == Kind::Write && lock.owner == wanted.owner && lock.overlaps(wanted.first, wanted.last)
        };
        wanted.kind == Kind::Read && self.held[..self.begin_by(wanted.last)].iter().any(becomes_read)
    }

    /// Sets `wanted` if the file then has at most `room` ranges more; on a refusal nothing changes.
    pub fn set(&mut self, wanted: Lock<O>, room: usize) -> Result<(), Refusal<O>> {
        if let Some(&other) = self.conflict(&wanted) {
            return Err(Refusal::Held(other));
        }
        if room < MOST_GROWTH && self.growth(&wanted) > room {
            return Err(Refusal::Full);
        }
        self.remove(wanted.owner, wanted.first, wanted.last);
        self.join(wanted);
        Ok(())
    }

    /// How many ranges more there are once `wanted` is set: [`MOST_GROWTH`] at most.
    fn growth(&self, wanted: &Lock<O>) -> usize {
        let (mut more, mut fewer) = (1, 0);
        for lock in self.held[..self.begin_by(wanted.last + 1)].iter().filter(|lock| lock.owner == wanted.owner) {
            let is_covered = wanted.first <= lock.first && lock.last <= wanted.last;
            let is_joined = lock.kind == wanted.kind && lock.first <= wanted.last + 1 && wanted.first <= lock.last + 1;
            fewer += usize::from(is_covered || is_joined);
            more += usize::from(!is_joined && lock.reaches_beyond(wanted.first, wanted.last));
        }
        usize::saturating_sub(more, fewer)
    }

    /// Unlocks a range of `owner`; returns whether anything was unlocked. Refused only if a range is split and there is
    /// no `room` for one more; then nothing changes.
    pub fn clear(&mut self, owner: O, first: u64, last: u64, room: usize) -> Result<bool, Full> {
        let splits = |lock: &Lock<O>| lock.owner == owner && lock.reaches_beyond(first, last);
        if room == 0 && self.held[..self.begin_by(first)].iter().any(splits) {
            return Err(Full);
        }
        Ok(self.remove(owner, first, last))
    }

    /// Unlocks all that `owner` has, which splits nothing.
    pub fn clear_all(&mut self, owner: O) -> bool {
        self.remove(owner, 0, TO_END)
    }

    fn remove(&mut self, owner: O, first: u64, last: u64) -> bool {
        let mut changed = false;
        // The ranges of an owner do not overlap: one at most reaches beyond the end.
        let mut rest = None;
        let end = self.begin_by(last);
        let gone = self.held.extract_if(..end, |lock| {
            if lock.owner != owner || !lock.overlaps(first, last) {
                return false;
            }
            changed = true;
            if lock.last > last {
                rest = Some(Lock { first: last + 1, ..*lock });
            }
            let begins_before = lock.first < first;
            if begins_before {
                lock.last = first - 1;
            }
            !begins_before
        });
        gone.for_each(drop);
        if let Some(rest) = rest {
            self.put(rest);
        }
        changed
    }

    /// Adds a lock where its owner has none, as one with those of its kind beside it, so that a program that locks byte
    /// by byte does not fill memory.
    fn join(&mut self, mut wanted: Lock<O>) {
        let Lock { first, last, kind, owner } = wanted;
        let end = self.begin_by(last + 1);
        let joined = self.held.extract_if(..end, |lock| {
            let before = lock.last + 1 == first;
            let beside = (before || last + 1 == lock.first) && lock.owner == owner && lock.kind == kind;
            if beside {
                wanted.first = wanted.first.min(lock.first);
                wanted.last = wanted.last.max(lock.last);
            }
            beside
        });
        joined.for_each(drop);
        self.put(wanted);
    }

    /// How many begin at `offset` or before: only they can reach there.
    fn begin_by(&self, offset: u64) -> usize {
        self.held.partition_point(|lock| lock.first <= offset)
    }

    fn put(&mut self, lock: Lock<O>) {
        let at = self.begin_by(lock.first);
        self.held.insert(at, lock);
    }
}

/// Turns `l_start` (already relative to the start of the file) and `l_len` into a range; `None` is EINVAL.
pub fn range(start: i64, length: i64) -> Option<(u64, u64)> {
    let (first, last) = match length {
        0 => (start, i64::MAX),
        1.. => (start, start.checked_add(length - 1)?),
        _ => (start.checked_add(length)?, start - 1),
    };
    if first < 0 || last < first {
        return None;
    }
    Some((first as u64, last as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MANY: usize = usize::MAX;

    fn lock(owner: u8, first: u64, last: u64, kind: Kind) -> Lock<u8> {
        Lock { first, last, kind, owner }
    }

    #[test]
    fn unlocking_the_middle_leaves_two_locks() {
        let mut locks = Locks::new();
        locks.set(lock(1, 0, 99, Kind::Write), MANY).unwrap();
        assert_eq!(locks.clear(1, 40, 59, MANY), Ok(true));
        assert_eq!(locks.set(lock(2, 40, 59, Kind::Write), MANY), Ok(()));
        assert_eq!(locks.set(lock(2, 39, 39, Kind::Read), MANY), Err(Refusal::Held(lock(1, 0, 39, Kind::Write))));
        assert_eq!(locks.conflict(&lock(2, 60, TO_END, Kind::Read)), Some(&lock(1, 60, 99, Kind::Write)));
    }

    #[test]
    fn locking_byte_by_byte_keeps_one_range() {
        let mut locks = Locks::new();
        for byte in 0..1000 {
            locks.set(lock(1, byte, byte, Kind::Read), MANY).unwrap();
        }
        assert_eq!(locks.held, [lock(1, 0, 999, Kind::Read)]);
    }

    #[test]
    fn an_owner_of_a_table_is_found_and_loses_all_it_locks_at_once() {
        let mut locks = Locks::new();
        locks.set(lock(1, 0, 9, Kind::Read), MANY).unwrap();
        locks.set(lock(2, 5, 20, Kind::Read), MANY).unwrap();
        locks.set(lock(1, 30, 31, Kind::Write), MANY).unwrap();
        assert_eq!((locks.owner_where(|owner| *owner == 1), locks.owner_where(|owner| *owner == 3)), (Some(1), None));
        assert!(locks.clear_all(1));
        assert_eq!((locks.owner_where(|owner| *owner == 1), locks.len()), (None, 1));
    }

    #[test]
    fn a_lock_among_those_of_another_owner_takes_one_look_at_each() {
        use core::cell::Cell;
        std::thread_local!(static LOOKS: Cell<usize> = const { Cell::new(0) });
        #[derive(Clone, Copy, Debug)]
        struct Counted(u8);
        impl PartialEq for Counted {
            fn eq(&self, other: &Self) -> bool {
                LOOKS.set(LOOKS.get() + 1);
                self.0 == other.0
            }
        }
        let held = 1000;
        let mut locks = Locks::new();
        for at in 0..held {
            locks.set(Lock { first: 2 * at, last: 2 * at, kind: Kind::Write, owner: Counted(1) }, MANY).unwrap();
        }
        LOOKS.set(0);
        locks.set(Lock { first: 2 * held, last: 2 * held, kind: Kind::Write, owner: Counted(2) }, MANY).unwrap();
        assert!(LOOKS.get() as u64 <= 5 * held, "{} looks at {held} locks", LOOKS.get());
    }

    #[test]
    fn without_room_only_what_makes_ranges_is_refused() {
        let mut locks = Locks::new();
        locks.set(lock(1, 0, TO_END, Kind::Write), 1).unwrap();
        assert_eq!(locks.clear(1, 10, 10, 0), Err(Full), "splits");
        assert_eq!(locks.set(lock(1, 10, 10, Kind::Read), 1), Err(Refusal::Full), "makes three of one");
        assert_eq!(locks.held, [lock(1, 0, TO_END, Kind::Write)]);
        assert_eq!(locks.set(lock(1, 10, 10, Kind::Write), 0), Ok(()));
        assert_eq!(locks.clear(1, 10, 10, 1), Ok(true));
        assert_eq!(locks.set(lock(1, 10, 10, Kind::Read), 0), Err(Refusal::Full));
        assert_eq!(locks.set(lock(1, 9, 11, Kind::Read), 0), Err(Refusal::Full));
        assert_eq!(locks.set(lock(2, 10, 10, Kind::Read), 0), Err(Refusal::Full));
        assert_eq!(locks.clear(1, 0, 0, 0), Ok(true), "a range at its begin");
        assert_eq!(locks.clear(1, 9, 9, 0), Ok(true), "a range at its end");
        assert_eq!(locks.clear(1, 5, 20, 0), Ok(true), "the ends of two");
        assert_eq!(locks.set(lock(1, 0, 30, Kind::Read), 0), Ok(()), "covers one");
        assert_eq!(locks.set(lock(1, 31, 31, Kind::Read), 0), Ok(()), "grows one");
        assert!(locks.clear_all(1) && locks.is_empty());
    }

    #[test]
    fn a_negative_length_locks_backwards_and_overflow_is_refused() {
        assert_eq!(range(10, -10), Some((0, 9)));
        assert_eq!(range(10, 0), Some((10, TO_END)));
        assert_eq!(range(10, -11), None);
        assert_eq!(range(i64::MAX, 2), None);
    }

    #[test]
    fn a_write_lock_is_weakened_by_a_read_lock_of_its_owner_over_it() {
        let lock = |first, last, kind, owner| Lock { first, last, kind, owner };
        let mut locks = Locks::new();
        locks.set(lock(10, 19, Kind::Write, 'a'), MANY).unwrap();
        assert!(locks.weakens(&lock(19, 30, Kind::Read, 'a')));
        assert!(!locks.weakens(&lock(20, 30, Kind::Read, 'a')), "beside it");
        assert!(!locks.weakens(&lock(10, 19, Kind::Write, 'a')));
        assert!(!locks.weakens(&lock(10, 19, Kind::Read, 'b')));
        assert_eq!(locks.conflict(&lock(10, 19, Kind::Write, 'a')), None);
        assert_eq!(locks.conflict(&lock(10, 10, Kind::Read, 'b')), Some(&lock(10, 19, Kind::Write, 'a')));
        locks.set(lock(0, TO_END, Kind::Read, 'a'), MANY).unwrap();
        assert!(!locks.weakens(&lock(10, 19, Kind::Read, 'a')));
        assert_eq!(locks.conflict(&lock(10, 10, Kind::Read, 'b')), None);
        assert!(locks.conflict(&lock(10, 10, Kind::Write, 'b')).is_some());
    }

    proptest! {
        #[test]
        fn each_byte_obeys_the_rule(
            steps in proptest::collection::vec((0_u8..3, 0_u8..3, 0_u64..24, 0_u64..8), 0..60),
        ) {
            let mut locks = Locks::new();
            let mut model = [[None; 32]; 3];
            for (owner, what, first, more) in steps {
                let last = first + more;
                let range = first as usize..=last as usize;
                let kind = [None, Some(Kind::Read), Some(Kind::Write)][usize::from(what)];
                let Some(kind) = kind else {
                    locks.clear(owner, first, last, MANY).unwrap();
                    model[usize::from(owner)][range].fill(None);
                    continue;
                };
                let before = locks.len();
                let growth = locks.growth(&lock(owner, first, last, kind));
                let free = (0..3).filter(|&other| other != usize::from(owner)).all(|other| {
                    model[other][range.clone()].iter().flatten().all(|&held| held == Kind::Read && kind == Kind::Read)
                });
                prop_assert_eq!(locks.set(lock(owner, first, last, kind), MANY).is_ok(), free);
                if free {
                    prop_assert_eq!(growth, locks.len().saturating_sub(before));
                    model[usize::from(owner)][range].fill(Some(kind));
                }
            }
            for (owner, bytes) in model.iter().enumerate() {
                for (at, &kind) in bytes.iter().enumerate() {
                    let byte = at as u64;
                    let mine = locks.held.iter().find(|l| usize::from(l.owner) == owner && l.overlaps(byte, byte));
                    prop_assert_eq!(mine.map(|l| l.kind), kind);
                }
            }
        }
    }
}
