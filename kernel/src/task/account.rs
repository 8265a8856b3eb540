//! Per-user sums of kernel resources: threads, queued signals, epoll watches, message queues, waiting connections.
//!
//! A user is a real user id. Credentials hold the [`Account`] of theirs, so counting needs no look-up; what was counted
//! is a [`Charge`], given back to the same user when it is dropped, also after setuid(2). Root's account is always
//! there.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use machine::sync::SpinLock;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queued signals and POSIX timers (`RLIMIT_SIGPENDING`).
    Signals,
    /// Descriptions watched by epolls (`fs.epoll.max_user_watches`).
    Watches,
    /// Bytes of POSIX message queues (`RLIMIT_MSGQUEUE`).
    QueueBytes,
    /// Threads, and processes that have ended and were not waited for (`RLIMIT_NPROC`).
    Threads,
    /// Connections to sockets that were not accepted yet, of which no descriptor need be left.
    Connections,
}

const KINDS: usize = 5;

/// A user's sums.
struct Counts {
    uid: u32,
    sums: [AtomicU64; KINDS],
}

impl Counts {
    const fn new(uid: u32) -> Self {
        Self { uid, sums: [const { AtomicU64::new(0) }; KINDS] }
    }
}

static ROOT: Counts = Counts::new(0);
static USERS: SpinLock<BTreeMap<u32, Weak<Counts>>> = SpinLock::new(BTreeMap::new());

/// The sums of one user; `None` is root.
#[derive(Clone)]
pub struct Account(Option<Arc<Counts>>);

impl Account {
    /// The account of root, which always exists.
    pub const fn root() -> Self {
        Self(None)
    }

    /// The account of a real user.
    pub fn of(uid: u32) -> Self {
        if uid == 0 {
            return Self::root();
        }
        let mut users = USERS.lock();
        if let Some(counts) = users.get(&uid).and_then(Weak::upgrade) {
            return Self(Some(counts));
        }
        let counts = Arc::new(Counts::new(uid));
        users.insert(uid, Arc::downgrade(&counts));
        Self(Some(counts))
    }

    fn counts(&self) -> &Counts {
        self.0.as_deref().unwrap_or(&ROOT)
    }

    /// The user's sum.
    pub fn sum(&self, kind: Kind) -> u64 {
        self.counts().sums[kind as usize].load(Relaxed)
    }

    /// Counts `amount` more, unless the sum would exceed `limit`.
    pub fn charge(&self, kind: Kind, amount: u64, limit: u64) -> Option<Charge> {
        // In one step: a charge that is taken back would make those of others fail meanwhile.
        let fits = |sum: u64| sum.checked_add(amount).filter(|sum| *sum <= limit);
        self.counts().sums[kind as usize].fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(Charge { account: self.clone(), kind, amount })
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {}", self.counts().uid)
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        let mut users = USERS.lock();
        // A new account may have replaced this one already.
        if users.get(&self.uid).is_some_and(|counts| counts.strong_count() == 0) {
            users.remove(&self.uid);
        }
    }
}

/// An amount counted for a user, given back on drop.
#[derive(Debug)]
pub struct Charge {
    account: Account,
    kind: Kind,
    amount: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.counts().sums[self.kind as usize].fetch_sub(self.amount, Relaxed);
    }
}
