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
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use kernel_logic::filelock::{Kind, Lock, Locks, TO_END};
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
        before.map(|woken| woken.wanted).or_else(|| self.of(waiter.family).obstacle(&waiter.wanted).copied())
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

/// Locks of one file at most: a program that locks every other byte does not fill memory.
const MOST: usize = 1 << 15;

/// Locks and wake-ups that are looked at while the table is locked.
const MOST_LOOKS: usize = 1 << 13;

/// Locked ranges of all files together.
static RANGES: AtomicUsize = AtomicUsize::new(0);

static LOCKS: SpinLock<BTreeMap<Key, FileLocks>> = SpinLock::new(BTreeMap::new());
/// Processes that wait for record locks. Taken with [`LOCKS`] held, never before it.
static WAITING: SpinLock<Vec<Waiting>> = SpinLock::new(Vec::new());

/// A process (rather: one of its threads) that waits for a record lock.
struct Waiting {
    number: u64,
    key: Key,
    wanted: Lock<Owner>,
}

/// Numbers of waits: two threads of a process may wait for equal locks.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Links followed in search of a deadlock, as Linux's `MAX_DEADLK_ITERATIONS`: longer chains are not noticed.
const MOST_LINKS: usize = 10;

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
    let full = LOCKS.lock().get(&key).is_some_and(|locks| locks.records.len().max(locks.whole.len()) >= MOST);
    if full || (RANGES.load(Relaxed) >= most_ranges() && !is_privileged()) {
        return Err(Errno::ENOLCK);
    }
    let attempt = || {
        let mut table = LOCKS.lock();
        let locks = table.entry(key).or_default();
        // A weaker lock than before may let others in.
        let weaker = !locks.waiters.is_empty() && locks.of(family).weakens(&lock);
        change(locks, family, |locks| locks.set(lock)).is_ok().then_some(weaker)
    };
    if let Some(weaker) = attempt() {
        if weaker {
            wake_waiters(key);
        }
        return Ok(());
    }
    if family == Family::Whole {
        // Converting a flock is not atomic: the old one is given up first (flock(2)).
        clear(file, family, lock.owner, 0, TO_END);
        if attempt().is_some() {
            return Ok(());
        }
    }
    if !wait {
        forget_if_unlocked(key);
        return Err(Errno::EAGAIN);
    }
    wait_for(key, family, lock)
}

/// Sleeps until the lock is set, a signal comes, or waiting would never end.
fn wait_for(key: Key, family: Family, lock: Lock<Owner>) -> Result<(), Errno> {
    let looks = family == Family::Record && matches!(lock.owner, Owner::Process(..));
    let waiter = LOCKS.lock().entry(key).or_default().enter(family, lock);
    let mut weaker = false;
    let waited = waiter.queue.wait(|| {
        let mut table = LOCKS.lock();
        let locks = table.entry(key).or_default();
        let late = locks.look(&waiter);
        weaker = locks.of(family).weakens(&lock);
        let Err(holder) = change(locks, family, |locks| locks.set(lock)) else { return Some(Ok(())) };
        if looks {
            let mut waiting = WAITING.lock();
            if waits_for(&table, &waiting, holder.owner, lock.owner) {
                return Some(Err(Errno::EDEADLK));
            }
            if !waiting.iter().any(|wait| wait.number == waiter.number) {
                waiting.push(Waiting { number: waiter.number, key, wanted: lock });
            }
        }
        drop(table);
        if late {
            wake_waiters(key);
        }
        None
    });
    if looks {
        WAITING.lock().retain(|wait| wait.number != waiter.number);
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
fn waits_for(table: &BTreeMap<Key, FileLocks>, waiting: &[Waiting], mut owner: Owner, other: Owner) -> bool {
    for _ in 0..=MOST_LINKS {
        let Some(wait) = waiting.iter().rev().find(|wait| wait.wanted.owner == owner) else { return false };
        let holder = table.get(&wait.key).and_then(|locks| locks.records.conflict(&wait.wanted));
        match holder {
            None => return false,
            Some(holder) if holder.owner == other => return true,
            Some(holder) => owner = holder.owner,
        }
    }
    false
}

/// Gives up a range.
pub fn clear(file: &impl Lockable, family: Family, owner: Owner, first: u64, last: u64) {
    let key = key(file);
    let mut table = LOCKS.lock();
    let clear = |locks: &mut Locks<Owner>| locks.clear(owner, first, last);
    let changed = table.get_mut(&key).is_some_and(|locks| change(locks, family, clear));
    drop(table);
    if changed {
        wake_waiters(key);
        forget_if_unlocked(key);
    }
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
    let key = key(file);
    let mut locks = LOCKS.lock();
    let Some(found) = locks.get_mut(&key) else { return };
    // Any id will do: ownership is decided by the table alone.
    let Some(owner) = found.records.owner_where(|owner| matches!(owner, Owner::Process(id, _) if *id == table)) else {
        return;
    };
    change(found, Family::Record, |records| records.clear(owner, 0, TO_END));
    drop(locks);
    wake_waiters(key);
    forget_if_unlocked(key);
}

/// The description is gone: its flock and its own record locks go.
pub fn release_description(file: &impl Lockable) {
    let owner = description(file);
    clear(file, Family::Whole, owner, 0, TO_END);
    clear(file, Family::Record, owner, 0, TO_END);
}

/// A lock over the whole file.
pub fn whole(kind: Kind, owner: Owner) -> Lock<Owner> {
    Lock { first: 0, last: TO_END, kind, owner }
}

fn key(file: &impl Lockable) -> Key {
    file.identity()
}

/// Changes the locks of one file and counts their ranges.
fn change<R>(locks: &mut FileLocks, family: Family, edit: impl FnOnce(&mut Locks<Owner>) -> R) -> R {
    let locks = match family {
        Family::Record => &mut locks.records,
        Family::Whole => &mut locks.whole,
    };
    let before = locks.len();
    let result = edit(locks);
    RANGES.fetch_add(locks.len().wrapping_sub(before), Relaxed);
    result
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
