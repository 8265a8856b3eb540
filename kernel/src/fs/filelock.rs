//! Advisory locks: flock(2), POSIX record locks and open file description locks (fcntl(2)).
//!
//! Locks hang off inodes in one table, keyed by the inode; the rules are in `kernel_logic::filelock`. A whole-file
//! flock is a lock of its own family: it never conflicts with record locks. A file is forgotten once it has neither
//! locks nor waiters.
//!
//! Each waiter sleeps on a queue of its own. When a lock goes, those are woken, in the order they came, that conflict
//! neither with a lock that is left nor with one that was woken before them: one writer, or readers together. One that
//! was woken holds nothing until it has run, and another thread may be faster. So a waiter that was woken and does not
//! get its lock, because it is late or gives up, passes the wake-up on: those that stood back for it get another look.
//!
//! Deadlocks are looked for among the record locks of processes only, as on Linux: a description may be closed or used
//! by several processes, so waiting for its lock proves nothing. Who waits for whom is not kept but derived from the
//! locks held at the moment of the question, so that a waiter whose lock has become free, but who has not run yet,
//! waits for none.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use kernel_logic::filelock::{Full, Kind, Lock, Locks, Refusal, TO_END};
use linux_abi::{Errno, capabilities};
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::Actor as _;
use crate::mm::frames;
use crate::sched;
use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;
use crate::upper::current;

/// Whose a record lock is.
#[derive(Clone, Copy, Debug)]
pub enum Owner {
    /// A process, by its descriptor table, with the process id that F_GETLK reports. Processes that share the table
    /// (`CLONE_FILES`) are one owner.
    Process(u64, u32),
    /// An open file description (by address).
    Description(usize),
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Process(table, _), Self::Process(other, _)) => table == other,
            (Self::Description(file), Self::Description(other)) => file == other,
            _ => false,
        }
    }
}

#[derive(Default)]
struct FileLocks {
    records: Locks<Owner>,
    whole: Locks<Owner>,
    /// Those that wait for locks of either family, by number.
    waiters: Vec<Arc<LockWaiter>>,
    /// Those of them that were woken and have not looked yet. Others stand back for them.
    woken: Vec<Arc<LockWaiter>>,
    /// How many of `woken` want a write lock.
    woken_writers: usize,
}

/// A thread that waits for a lock.
struct LockWaiter {
    /// Later ones have higher numbers.
    number: u64,
    family: Family,
    wanted: Lock<Owner>,
    queue: WaitQueue,
    /// Whether it is in [`FileLocks::woken`]. Changed with [`LOCKS`] held.
    woken: AtomicBool,
}

impl FileLocks {
    fn is_in_use(&self) -> bool {
        !self.records.is_empty() || !self.whole.is_empty() || !self.waiters.is_empty()
    }

    fn of(&self, family: Family) -> &Locks<Owner> {
        match family {
            Family::Record => &self.records,
            Family::Whole => &self.whole,
        }
    }

    /// Enters a waiter as the last.
    fn enter(&mut self, family: Family, wanted: Lock<Owner>) -> Arc<LockWaiter> {
        let number = NUMBERS.fetch_add(1, Relaxed);
        let queue = WaitQueue::new(WaitReason::FileLock);
        let waiter = Arc::new(LockWaiter { number, family, wanted, queue, woken: AtomicBool::new(false) });
        self.waiters.push(waiter.clone());
        waiter
    }

    /// A waiter that may have been woken looks for itself: others need not stand back for it. Whether it was woken.
    fn look(&mut self, waiter: &LockWaiter) -> bool {
        let was_woken = waiter.woken.load(Relaxed);
        if was_woken {
            waiter.woken.store(false, Relaxed);
            self.woken.retain(|woken| woken.number != waiter.number);
            self.woken_writers -= usize::from(waiter.wanted.kind == Kind::Write);
        }
        was_woken
    }

    /// A waiter goes, with its lock or without; whether it was woken.
    fn leave(&mut self, waiter: &LockWaiter) -> bool {
        if let Ok(at) = self.waiters.binary_search_by_key(&waiter.number, |waiter| waiter.number) {
            self.waiters.remove(at);
        }
        self.look(waiter)
    }

    /// A lock that `waiter` would be in conflict with if all that were woken got theirs.
    fn obstacle(&self, waiter: &LockWaiter) -> Option<Lock<Owner>> {
        let stands_back =
            |woken: &&Arc<LockWaiter>| woken.family == waiter.family && woken.wanted.conflicts(&waiter.wanted);
        let all_readers = waiter.wanted.kind == Kind::Read && self.woken_writers == 0;
        let before = if all_readers { None } else { self.woken.iter().find(stands_back) };
        before.map(|woken| woken.wanted).or_else(|| self.of(waiter.family).conflict(&waiter.wanted).copied())
    }

    /// Wakes waiters from `number` on that can have their locks now, and looks at a bounded number of locks for that;
    /// the number to go on from, if that was not the end.
    fn wake_from(&mut self, number: u64) -> Option<u64> {
        let mut looks = MOST_LOOKS;
        // Most wait for the same: what was in the way of one is looked at first for the next.
        let mut last: Option<(Family, Lock<Owner>)> = None;
        let begin = self.waiters.partition_point(|waiter| waiter.number < number);
        for at in begin..self.waiters.len() {
            let waiter = &self.waiters[at];
            if looks == 0 {
                return Some(waiter.number);
            }
            looks -= 1;
            if last.is_some_and(|(family, lock)| family == waiter.family && lock.conflicts(&waiter.wanted))
                || waiter.woken.load(Relaxed)
            {
                continue;
            }
            looks = looks.saturating_sub(self.of(waiter.family).len() + self.woken.len());
            if let Some(lock) = self.obstacle(waiter) {
                last = Some((waiter.family, lock));
                continue;
            }
            let waiter = waiter.clone();
            waiter.woken.store(true, Relaxed);
            waiter.queue.wake_all();
            if waiter.wanted.kind == Kind::Write {
                last = Some((waiter.family, waiter.wanted));
                self.woken_writers += 1;
            }
            self.woken.push(waiter);
        }
        None
    }
}

type Key = (u64, u64);

/// Locks of one file at most: a program that locks every other byte does not fill memory, nor hold the table for long
/// (8,000 are walked in 370 µs).
const MOST: usize = 1 << 14;

/// Locks and wake-ups that are looked at while the table is locked.
const MOST_LOOKS: usize = 1 << 13;

/// Locked ranges of all files together. Changed with [`LOCKS`] held.
static RANGES: AtomicUsize = AtomicUsize::new(0);

static LOCKS: SpinLock<BTreeMap<Key, FileLocks>> = SpinLock::new(BTreeMap::new());
/// Where threads of processes wait for record locks, by the owner's descriptor table and the number of the wait. Taken
/// with [`LOCKS`] held, never before it.
static WAITING: SpinLock<BTreeMap<(u64, u64), Waiting>> = SpinLock::new(BTreeMap::new());

/// What a thread waits for.
struct Waiting {
    key: Key,
    wanted: Lock<Owner>,
}

/// Numbers of waits: two threads of a process may wait for equal locks.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Links followed in search of a deadlock, as Linux's `MAX_DEADLK_ITERATIONS`: longer chains are not noticed.
const MOST_LINKS: usize = 10;

/// Locks looked at in search of a deadlock, while the table is locked: what lies beyond is not noticed.
const MOST_SEARCHED: usize = 4 * MOST;

/// An open description that locks are taken through.
pub trait Lockable {
    /// Device and inode number of the file.
    fn identity(&self) -> (u64, u64);
    /// A lock is taken: its close must give up locks.
    fn locked(&self);
}

/// Which family of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Locks of byte ranges (fcntl(2)).
    Record,
    /// Locks of whole files (flock(2)).
    Whole,
}

/// The description's identity as a lock owner.
pub fn description(file: &impl Lockable) -> Owner {
    Owner::Description(core::ptr::from_ref(file).addr())
}

/// Sets a lock, waiting for those in the way if `wait`: EAGAIN otherwise.
pub fn set(file: &impl Lockable, family: Family, lock: Lock<Owner>, wait: bool) -> Result<(), Errno> {
    if frames::is_low() {
        return Err(Errno::ENOLCK);
    }
    file.locked();
    let key = key(file);
    let attempt = || {
        let most = most_ranges_of_caller();
        let mut table = LOCKS.lock();
        let locks = table.entry(key).or_default();
        // A weaker lock than before may let others in.
        let weaker = !locks.waiters.is_empty() && locks.of(family).weakens(&lock);
        change(locks, family, most, |locks, room| locks.set(lock, room)).map(|()| weaker)
    };
    let mut result = attempt();
    if family == Family::Whole && matches!(result, Err(Refusal::Held(_))) {
        // Converting a flock is not atomic: the old one is given up first (flock(2)).
        release(file, family, lock.owner);
        result = attempt();
    }
    match result {
        Ok(weaker) => {
            if weaker {
                wake_waiters(key);
            }
            return Ok(());
        }
        Err(Refusal::Full) => {
            forget_if_unlocked(key);
            return Err(Errno::ENOLCK);
        }
        Err(Refusal::Held(_)) => {}
    }
    if !wait {
        forget_if_unlocked(key);
        return Err(Errno::EAGAIN);
    }
    wait_for(key, family, lock)
}

/// Sleeps until the lock is set, a signal comes, or waiting would never end.
fn wait_for(key: Key, family: Family, lock: Lock<Owner>) -> Result<(), Errno> {
    let waiter = LOCKS.lock().entry(key).or_default().enter(family, lock);
    let position = match lock.owner {
        Owner::Process(table, _) if family == Family::Record => Some((table, waiter.number)),
        _ => None,
    };
    let mut weaker = false;
    let waited = waiter.queue.wait(|| {
        let most = most_ranges_of_caller();
        let mut table = LOCKS.lock();
        let locks = table.entry(key).or_default();
        let late = locks.look(&waiter);
        weaker = locks.of(family).weakens(&lock);
        let holder = match change(locks, family, most, |locks, room| locks.set(lock, room)) {
            Ok(()) => return Some(Ok(())),
            Err(Refusal::Full) => return Some(Err(Errno::ENOLCK)),
            Err(Refusal::Held(holder)) => holder,
        };
        if let Some(position) = position {
            let mut waiting = WAITING.lock();
            if waits_for(&table, &waiting, holder.owner, lock.owner) {
                return Some(Err(Errno::EDEADLK));
            }
            waiting.insert(position, Waiting { key, wanted: lock });
        }
        drop(table);
        if late {
            wake_waiters(key);
        }
        None
    });
    if let Some(position) = position {
        WAITING.lock().remove(&position);
    }
    let woken = LOCKS.lock().get_mut(&key).is_some_and(|locks| locks.leave(&waiter));
    let done = matches!(waited, Ok(Ok(())));
    if woken || !done || weaker {
        wake_waiters(key);
    }
    if !done {
        forget_if_unlocked(key);
    }
    waited?
}

/// Whether `owner` waits, maybe through others, for a lock that `other` holds now.
fn waits_for(
    table: &BTreeMap<Key, FileLocks>,
    waiting: &BTreeMap<(u64, u64), Waiting>,
    mut owner: Owner,
    other: Owner,
) -> bool {
    let mut looks = MOST_SEARCHED;
    for _ in 0..=MOST_LINKS {
        let Owner::Process(id, _) = owner else { return false };
        let Some((_, wait)) = waiting.range((id, 0)..=(id, u64::MAX)).next_back() else { return false };
        let Some(locks) = table.get(&wait.key) else { return false };
        let Some(left) = looks.checked_sub(locks.records.len()) else { return false };
        looks = left;
        match locks.records.conflict(&wait.wanted) {
            None => return false,
            Some(holder) if holder.owner == other => return true,
            Some(holder) => owner = holder.owner,
        }
    }
    false
}

/// Gives up a range of a record lock; ENOLCK if that would split a lock and there are too many, which changes nothing.
pub fn unlock(file: &impl Lockable, owner: Owner, first: u64, last: u64) -> Result<(), Errno> {
    let most = most_ranges_of_caller();
    clear(file, Family::Record, most, |locks, room| locks.clear(owner, first, last, room)).map_err(|Full| Errno::ENOLCK)
}

/// Gives up all that `owner` has, which does not fail.
pub fn release(file: &impl Lockable, family: Family, owner: Owner) {
    let Ok(()) = clear(file, family, 0, |locks, _| Ok::<_, Infallible>(locks.clear_all(owner)));
}

/// Runs `edit`, which gives up locks and says whether it did, and wakes those that can have theirs now.
fn clear<E>(
    file: &impl Lockable,
    family: Family,
    most: usize,
    edit: impl FnOnce(&mut Locks<Owner>, usize) -> Result<bool, E>,
) -> Result<(), E> {
    let key = key(file);
    let mut table = LOCKS.lock();
    let changed = table.get_mut(&key).map_or(Ok(false), |locks| change(locks, family, most, edit))?;
    drop(table);
    if changed {
        wake_waiters(key);
        forget_if_unlocked(key);
    }
    Ok(())
}

/// Wakes the waiters of a file that can have their locks now.
fn wake_waiters(key: Key) {
    let mut from = 0;
    loop {
        let next = LOCKS.lock().get_mut(&key).and_then(|locks| locks.wake_from(from));
        let Some(next) = next else { return };
        from = next;
        sched::breathe();
    }
}

/// The lock that forbids `wanted`, if any (F_GETLK).
pub fn conflict(file: &impl Lockable, wanted: &Lock<Owner>) -> Option<Lock<Owner>> {
    LOCKS.lock().get(&key(file)).and_then(|locks| locks.records.conflict(wanted).copied())
}

/// A process closed a descriptor of `file`: its record locks go.
pub fn release_process(file: &impl Lockable, table: u64) {
    let is_owner = |owner: &Owner| matches!(owner, Owner::Process(id, _) if *id == table);
    let Ok(()) = clear(file, Family::Record, 0, |locks, _| {
        // Any id will do: ownership is decided by the table alone.
        Ok::<_, Infallible>(locks.owner_where(is_owner).is_some_and(|owner| locks.clear_all(owner)))
    });
}

/// The description is gone: its flock and its own record locks go.
pub fn release_description(file: &impl Lockable) {
    let owner = description(file);
    release(file, Family::Whole, owner);
    release(file, Family::Record, owner);
}

/// A lock over the whole file.
pub fn whole(kind: Kind, owner: Owner) -> Lock<Owner> {
    Lock { first: 0, last: TO_END, kind, owner }
}

fn key(file: &impl Lockable) -> Key {
    file.identity()
}

/// Changes the locks of one file and counts their ranges. `edit` is told how many more it may make if there may be
/// `most` in all files.
fn change<R>(
    locks: &mut FileLocks,
    family: Family,
    most: usize,
    edit: impl FnOnce(&mut Locks<Owner>, usize) -> R,
) -> R {
    let locks = match family {
        Family::Record => &mut locks.records,
        Family::Whole => &mut locks.whole,
    };
    let before = locks.len();
    let room = MOST.saturating_sub(before).min(most.saturating_sub(RANGES.load(Relaxed)));
    let result = edit(locks, room);
    RANGES.fetch_add(locks.len().wrapping_sub(before), Relaxed);
    result
}

/// Ranges that the caller may bring all files to. Asked with [`LOCKS`] free.
fn most_ranges_of_caller() -> usize {
    let most = most_ranges();
    match () {
        () if frames::is_low() => 0,
        () if RANGES.load(Relaxed) + 2 > most && is_privileged() => usize::MAX,
        () => most,
    }
}

/// Ranges that users may lock without privilege, in all files together: what takes a thirty-second of memory.
fn most_ranges() -> usize {
    frames::total() * (PAGE_SIZE / 32) / size_of::<Lock<Owner>>()
}

fn is_privileged() -> bool {
    current().capable(capabilities::SYS_RESOURCE)
}

fn forget_if_unlocked(key: Key) {
    let mut table = LOCKS.lock();
    if table.get(&key).is_some_and(|locks| !locks.is_in_use()) {
        table.remove(&key);
    }
}
