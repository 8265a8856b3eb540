//! The waiters of all PI futexes, in the order in which each futex is handed over, and the owners they wait for.
//!
//! A user may have tens of thousands of threads wait, for one futex or for many, and every wake-up of an ordinary futex
//! asks whether its word has waiters here: nothing below walks past the waiters of other futexes, nor past its own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use super::Waiter;
use crate::futex::Key;
use crate::task::Tid;

/// Where a waiter stands: under its futex, by priority, in order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Standing {
    key: Key,
    /// Less for a higher priority.
    rank: u8,
    arrival: u64,
}

/// What the waiters of one futex have in common.
struct Awaited {
    owner: Tid,
    /// The waiter that is to write itself into the word.
    heir: Option<Arc<Waiter>>,
}

/// All of them, with what finds one.
pub(in crate::futex) struct Waiting {
    order: BTreeMap<Standing, Arc<Waiter>>,
    /// The futexes they wait for.
    futexes: BTreeMap<Key, Awaited>,
    /// The same by their owners.
    owned: BTreeSet<(Tid, Key)>,
    /// The waiters by their threads: each waits for one futex at most.
    by_thread: BTreeMap<Tid, Arc<Waiter>>,
    arrivals: u64,
}

impl Waiting {
    /// No waiters; allocates nothing.
    pub(super) const fn new() -> Self {
        Self {
            order: BTreeMap::new(),
            futexes: BTreeMap::new(),
            owned: BTreeSet::new(),
            by_thread: BTreeMap::new(),
            arrivals: 0,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether a thread waits for `key`.
    pub(super) fn is_awaited(&self, key: &Key) -> bool {
        self.futexes.contains_key(key)
    }

    /// Whom the waiters of `key` wait for; `None` without waiters.
    pub(super) fn owner(&self, key: &Key) -> Option<Tid> {
        self.futexes.get(key).map(|awaited| awaited.owner)
    }

    /// The heir of `key`.
    pub(super) fn heir(&self, key: &Key) -> Option<&Arc<Waiter>> {
        self.futexes.get(key)?.heir.as_ref()
    }

    /// The waiter that gets `key` next.
    pub(super) fn best(&self, key: &Key) -> Option<&Arc<Waiter>> {
        // The heir alone stands here and was granted it.
        self.of(key).find(|waiter| !waiter.is_granted())
    }

    /// Whether others than `waiter` wait for its futex.
    pub(super) fn has_others(&self, waiter: &Arc<Waiter>) -> bool {
        self.of(&waiter.key).any(|other| !Arc::ptr_eq(other, waiter))
    }

    fn of(&self, key: &Key) -> impl Iterator<Item = &Arc<Waiter>> {
        let first = Standing { key: *key, rank: 0, arrival: 0 };
        self.order.range(first..=Standing { rank: u8::MAX, arrival: u64::MAX, ..first }).map(|(_, waiter)| waiter)
    }

    /// Whom the thread `tid` waits for.
    pub(super) fn awaited_by(&self, tid: Tid) -> Option<Tid> {
        let waiter = self.by_thread.get(&tid).filter(|waiter| !waiter.is_granted())?;
        self.owner(&waiter.key)
    }

    /// The futexes with waiters that wait for `owner`.
    pub(super) fn owned_by(&self, owner: Tid) -> impl Iterator<Item = Key> {
        self.owned.range((owner, Key::FIRST)..).take_while(move |(tid, _)| *tid == owner).map(|(_, key)| *key)
    }

    /// The waiters of `key`, if there are any, wait for `owner` from now on.
    pub(super) fn rename_owner(&mut self, key: &Key, owner: Tid) {
        if let Some(awaited) = self.futexes.get_mut(key) {
            self.owned.remove(&(awaited.owner, *key));
            self.owned.insert((owner, *key));
            awaited.owner = owner;
        }
    }

    /// The best waiter of `key`, if it waits for `owner`, becomes the heir, for whom the others wait.
    pub(super) fn appoint(&mut self, key: &Key, owner: Tid) -> Option<Arc<Waiter>> {
        let heir = self.best(key).filter(|_| self.owner(key) == Some(owner))?.clone();
        self.rename_owner(key, heir.thread.tid());
        self.futexes.get_mut(key)?.heir = Some(heir.clone());
        Some(heir)
    }

    /// Adds `waiter`, which waits for `owner`, behind those of its priority.
    pub(super) fn enqueue(&mut self, waiter: &Arc<Waiter>, owner: Tid) {
        self.arrivals += 1;
        let standing = Standing { key: waiter.key, rank: u8::MAX - waiter.priority, arrival: self.arrivals };
        *waiter.standing.lock() = Some(standing);
        self.order.insert(standing, waiter.clone());
        self.by_thread.insert(waiter.thread.tid(), waiter.clone());
        self.futexes.entry(waiter.key).or_insert(Awaited { owner, heir: None });
        self.rename_owner(&waiter.key, owner);
    }

    /// Takes `waiter` out; whether it was there.
    pub(super) fn dequeue(&mut self, waiter: &Arc<Waiter>) -> bool {
        let Some(standing) = waiter.standing.lock().take() else { return false };
        self.order.remove(&standing);
        self.by_thread.remove(&waiter.thread.tid());
        if self.of(&waiter.key).next().is_none() {
            if let Some(awaited) = self.futexes.remove(&waiter.key) {
                self.owned.remove(&(awaited.owner, waiter.key));
            }
        } else if let Some(awaited) = self.futexes.get_mut(&waiter.key) {
            awaited.heir.take_if(|heir| Arc::ptr_eq(heir, waiter));
        }
        true
    }
}
