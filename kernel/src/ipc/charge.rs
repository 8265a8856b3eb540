//! How many pages the pipes of each user may come to hold (pipe(7), `/proc/sys/fs/pipe-user-pages-soft`).
//!
//! A pipe counts with its capacity, whatever is in it. Beyond the soft limit a user without privilege gets pipes of
//! [`SMALL`] pages that do not grow; beyond the hard limit, none.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use linux_abi::Errno;
use machine::sync::SpinLock;

use crate::task::creds::cap;
use crate::task::try_current;

/// Pages in a user's pipes from which on new pipes are small (`pipe-user-pages-soft`); 0 for no limit.
pub static SOFT: AtomicUsize = AtomicUsize::new(16_384);
/// Most pages in a user's pipes (`pipe-user-pages-hard`); 0 for no limit.
pub static HARD: AtomicUsize = AtomicUsize::new(0);

/// Pages of a pipe made beyond the soft limit.
const SMALL: usize = 2;

static PAGES: SpinLock<BTreeMap<u32, usize>> = SpinLock::new(BTreeMap::new());

/// What one pipe counts for the user who made it.
pub struct Charge {
    uid: u32,
    pages: usize,
}

impl Charge {
    /// Counts a new pipe of `pages`, or fewer beyond the soft limit ([`Charge::pages`]). ENFILE beyond the hard one.
    pub fn new(pages: usize) -> Result<Self, Errno> {
        let (uid, privileged) = caller();
        let mut charge = Self { uid, pages };
        let mut sum = charge.add(pages);
        if !privileged && exceeds(sum, &SOFT) {
            sum = charge.set(SMALL);
        }
        if !privileged && exceeds(sum, &HARD) {
            return Err(Errno::ENFILE);
        }
        Ok(charge)
    }

    /// Pages the pipe may hold.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Counts `pages` instead. EPERM for growth beyond a limit.
    pub fn change(&mut self, pages: usize) -> Result<(), Errno> {
        let (_, privileged) = caller();
        let before = self.pages;
        let sum = self.set(pages);
        if pages > before && !privileged && (exceeds(sum, &SOFT) || exceeds(sum, &HARD)) {
            self.set(before);
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// Counts `pages` from now on; the user's sum.
    fn set(&mut self, pages: usize) -> usize {
        let mut users = PAGES.lock();
        let sum = users.entry(self.uid).or_default();
        *sum = *sum + pages - self.pages;
        self.pages = pages;
        *sum
    }

    fn add(&self, pages: usize) -> usize {
        let mut users = PAGES.lock();
        let sum = users.entry(self.uid).or_default();
        *sum += pages;
        *sum
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut users = PAGES.lock();
        if let Some(sum) = users.get_mut(&self.uid) {
            *sum -= self.pages;
            if *sum == 0 {
                users.remove(&self.uid);
            }
        }
    }
}

fn exceeds(sum: usize, limit: &AtomicUsize) -> bool {
    let limit = limit.load(Relaxed);
    limit > 0 && sum > limit
}

/// The running thread's real user, and whether limits on pipes are not for it.
fn caller() -> (u32, bool) {
    try_current().map_or((0, true), |task| {
        task.creds.with(|creds| (creds.uid, creds.capable(cap::SYS_RESOURCE) || creds.capable(cap::SYS_ADMIN)))
    })
}
