//! Advisory locks: flock(2), POSIX record locks and open file description locks (fcntl(2)).
//!
//! Locks hang off inodes in one table, keyed by the inode; the rules are in `kernel_logic::filelock`. A whole-file flock is a
//! lock of its own family: it never conflicts with record locks. Waiters sleep on one queue and try again when any lock goes:
//! lock waits are rare and short.
//!
//! Deadlocks are looked for among the record locks of processes only, as on Linux: a description may be closed or used by
//! several processes, so waiting for its lock proves nothing. Who waits for whom is not kept but derived from the locks held
//! at the moment of the question, so that a waiter whose lock has become free, but who has not run yet, waits for none.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use kernel_logic::filelock::{Kind, Lock, Locks, TO_END};
use linux_abi::{Errno, capabilities};
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;

use super::Actor as _;
use super::file::File;
use crate::mm::frames;
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
}

type Key = (u64, u64);

/// Locks of one file at most: a program that locks every other byte does not fill memory.
const MOST: usize = 1 << 15;

/// Locked ranges of all files together.
static RANGES: AtomicUsize = AtomicUsize::new(0);

static LOCKS: SpinLock<BTreeMap<Key, FileLocks>> = SpinLock::new(BTreeMap::new());
static RELEASED: WaitQueue = WaitQueue::new();
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

/// Which family of locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Byte ranges.
    Record,
    /// flock(2).
    Whole,
}

/// The description's identity as a lock owner.
pub fn description(file: &File) -> Owner {
    let address: *const File = file;
    Owner::Description(address.addr())
}

/// Sets a lock, waiting for those in the way if `wait`: EAGAIN otherwise.
pub fn set(file: &File, family: Family, lock: Lock<Owner>, wait: bool) -> Result<(), Errno> {
    if frames::is_low() {
        return Err(Errno::ENOLCK);
    }
    file.has_locks.store(true, Relaxed);
    let key = key(file);
    let full = LOCKS.lock().get(&key).is_some_and(|locks| locks.records.len().max(locks.whole.len()) >= MOST);
    if full || (RANGES.load(Relaxed) >= most_ranges() && !is_privileged()) {
        return Err(Errno::ENOLCK);
    }
    let attempt = || change(LOCKS.lock().entry(key).or_default(), family, |locks| locks.set(lock)).is_ok();
    if attempt() {
        // A weaker lock than before may let others in.
        RELEASED.wake_all();
        return Ok(());
    }
    if family == Family::Whole {
        // Converting a flock is not atomic: the old one is given up first (flock(2)).
        clear(file, family, lock.owner, 0, TO_END);
        if attempt() {
            return Ok(());
        }
    }
    if !wait {
        forget_if_unlocked(key);
        return Err(Errno::EAGAIN);
    }
    let number = NUMBERS.fetch_add(1, Relaxed);
    let looks = family == Family::Record && matches!(lock.owner, Owner::Process(..));
    let waited = RELEASED.wait(|| {
        let mut table = LOCKS.lock();
        let set = change(table.entry(key).or_default(), family, |locks| locks.set(lock));
        let Err(holder) = set else { return Some(Ok(())) };
        if !looks {
            return None;
        }
        let mut waiting = WAITING.lock();
        if waits_for(&table, &waiting, holder.owner, lock.owner) {
            return Some(Err(Errno::EDEADLK));
        }
        if !waiting.iter().any(|wait| wait.number == number) {
            waiting.push(Waiting { number, key, wanted: lock });
        }
        None
    });
    if looks {
        WAITING.lock().retain(|wait| wait.number != number);
    }
    if !matches!(waited, Ok(Ok(()))) {
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
pub fn clear(file: &File, family: Family, owner: Owner, first: u64, last: u64) {
    let key = key(file);
    let mut table = LOCKS.lock();
    let clear = |locks: &mut Locks<Owner>| locks.clear(owner, first, last);
    let changed = table.get_mut(&key).is_some_and(|locks| change(locks, family, clear));
    drop(table);
    if changed {
        forget_if_unlocked(key);
        RELEASED.wake_all();
    }
}

/// The lock that forbids `wanted`, if any (F_GETLK).
pub fn conflict(file: &File, wanted: &Lock<Owner>) -> Option<Lock<Owner>> {
    LOCKS.lock().get(&key(file)).and_then(|locks| locks.records.conflict(wanted).copied())
}

/// A process closed a descriptor of `file`: its record locks go.
pub fn release_process(file: &File, table: u64) {
    let key = key(file);
    let mut locks = LOCKS.lock();
    let Some(found) = locks.get_mut(&key) else { return };
    // Any id will do: ownership is decided by the table alone.
    let Some(owner) = found.records.owner_where(|owner| matches!(owner, Owner::Process(id, _) if *id == table)) else {
        return;
    };
    change(found, Family::Record, |records| records.clear(owner, 0, TO_END));
    drop(locks);
    forget_if_unlocked(key);
    RELEASED.wake_all();
}

/// The description is gone: its flock and its own record locks go.
pub fn release_description(file: &File) {
    let owner = description(file);
    clear(file, Family::Whole, owner, 0, TO_END);
    clear(file, Family::Record, owner, 0, TO_END);
}

/// A lock over the whole file.
pub fn whole(kind: Kind, owner: Owner) -> Lock<Owner> {
    Lock { first: 0, last: TO_END, kind, owner }
}

fn key(file: &File) -> Key {
    let attr = file.inode().attr();
    (attr.dev, attr.ino)
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
    if table.get(&key).is_some_and(|locks| locks.records.is_empty() && locks.whole.is_empty()) {
        table.remove(&key);
    }
}
