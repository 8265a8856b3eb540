//! Advisory locks: flock(2), POSIX record locks and open file description locks (fcntl(2)).
//!
//! Locks hang off inodes in one table, keyed by the inode; the rules are in `kernel_logic::filelock`. A whole-file flock is a
//! lock of its own family: it never conflicts with record locks. Waiters sleep on one queue and try again when any lock goes:
//! lock waits are rare and short.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

use kernel_logic::filelock::{Kind, Lock, Locks, TO_END};
use linux_abi::Errno;
use machine::sync::SpinLock;

use super::file::File;
use crate::sync::wait::WaitQueue;

/// Whose a record lock is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A process, by its descriptor table, with the process id that F_GETLK reports.
    Process(u64, u32),
    /// An open file description (by address).
    Description(usize),
}

#[derive(Default)]
struct FileLocks {
    records: Locks<Owner>,
    whole: Locks<Owner>,
}

type Key = (u64, u64);

/// Locks of one file at most: a program that locks every other byte does not fill memory.
const MOST: usize = 1 << 15;

static LOCKS: SpinLock<BTreeMap<Key, FileLocks>> = SpinLock::new(BTreeMap::new());
static RELEASED: WaitQueue = WaitQueue::new();
/// Who waits for whom.
static WAITING: SpinLock<Vec<(Owner, Owner)>> = SpinLock::new(Vec::new());

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
    if crate::mm::frames::is_low() {
        return Err(Errno::ENOLCK);
    }
    file.has_locks.store(true, Relaxed);
    let key = key(file);
    if LOCKS.lock().get(&key).is_some_and(|locks| locks.records.len().max(locks.whole.len()) >= MOST) {
        return Err(Errno::ENOLCK);
    }
    let try_set = || {
        let mut table = LOCKS.lock();
        family_of(table.entry(key).or_default(), family).set(lock).map_err(|other| other.owner)
    };
    let attempt = || try_set().is_ok();
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
    let waited = RELEASED.wait(|| match try_set() {
        Ok(()) => Some(Ok(())),
        Err(holder) => wait_for(lock.owner, holder).err().map(Err),
    });
    WAITING.lock().retain(|(waiter, _)| *waiter != lock.owner);
    waited?
}

/// Notes that `waiter` waits for `holder`: EDEADLK if that one waits, maybe through others, for `waiter`.
fn wait_for(waiter: Owner, holder: Owner) -> Result<(), Errno> {
    let mut waiting = WAITING.lock();
    waiting.retain(|(other, _)| *other != waiter);
    let mut at = holder;
    for _ in 0..=waiting.len() {
        let Some(&(_, next)) = waiting.iter().find(|(other, _)| *other == at) else { break };
        if next == waiter {
            return Err(Errno::EDEADLK);
        }
        at = next;
    }
    waiting.push((waiter, holder));
    Ok(())
}

/// Gives up a range.
pub fn clear(file: &File, family: Family, owner: Owner, first: u64, last: u64) {
    let key = key(file);
    let mut table = LOCKS.lock();
    let changed = table.get_mut(&key).is_some_and(|locks| family_of(locks, family).clear(owner, first, last));
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
    let owners = found.records.owners_where(|owner| matches!(owner, Owner::Process(id, _) if *id == table));
    for owner in &owners {
        found.records.clear(*owner, 0, TO_END);
    }
    drop(locks);
    if !owners.is_empty() {
        forget_if_unlocked(key);
        RELEASED.wake_all();
    }
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

fn family_of(locks: &mut FileLocks, family: Family) -> &mut Locks<Owner> {
    match family {
        Family::Record => &mut locks.records,
        Family::Whole => &mut locks.whole,
    }
}

fn forget_if_unlocked(key: Key) {
    let mut table = LOCKS.lock();
    if table.get(&key).is_some_and(|locks| locks.records.is_empty() && locks.whole.is_empty()) {
        table.remove(&key);
    }
}
