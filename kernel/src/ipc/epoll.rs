//! epoll(7): a set of watched descriptions and the list of those that may be ready.
//!
//! Every watched description has an [`Item`], a hook in the queues its `poll` names. A wake-up puts the item on the
//! ready list; waiting asks only the items on that list. What is reported when is decided by `kernel_logic::readiness`.
//! How epolls may watch each other is [`nesting`]'s, the list itself [`ready`]'s.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::{Bound, RangeInclusive};
use core::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use kernel_logic::readiness::{EDGE, ERR, EXCLUSIVE, HUP, IN, Interest, ONESHOT, OUT, RDNORM, WAKEUP};
use linux_abi::Errno;
use linux_abi::flags::file::O_RDWR;
use machine::addr::PAGE_SIZE;
use machine::sync::SpinLock;
use machine::time::Nanos;

use crate::fs::file::{File, FileOps};
use crate::fs::{self, FileSlot, Watchers, anon};
use crate::mm::frames;
use crate::sched::breathe;
use crate::sync::WaitReason;
use crate::sync::wait::{HookId, WaitError, WaitQueue, Waiter, Wake};
use crate::task::account::{Account, Charge, Kind};
use crate::task::current;

mod nesting;
mod ready;

use ready::ReadyList;

/// Which description, by its address, under which descriptor.
type Key = (usize, i32);

/// A set of watched descriptions.
pub struct Epoll {
    items: SpinLock<BTreeMap<Key, Arc<Item>>>,
    ready: ReadyList<Item>,
    queue: WaitQueue,
    /// The epolls that watch this one, once for each item.
    watchers: SpinLock<Watchers<Epoll>>,
    /// Whose watches count.
    account: Account,
}

struct Item {
    this: Weak<Item>,
    id: HookId,
    epoll: Weak<Epoll>,
    file: Weak<File>,
    key: Key,
    interest: SpinLock<Interest>,
    sequence: AtomicU64,
    listed: AtomicBool,
    gone: AtomicBool,
    /// Until it is gone.
    watch: SpinLock<Option<Charge>>,
}

/// `fs.epoll.max_user_watches`; `u64::MAX` until it is set.
static MAX_USER_WATCHES: AtomicU64 = AtomicU64::new(u64::MAX);
/// Watches that are looked at before others run.
const LOOKED_AT: usize = 1024;
/// Bytes Linux reckons a watch with on x86_64.
const LINUX_WATCH: u64 = 192;

/// Most descriptions the epolls of one user may watch: what was set, or as many as take a twenty-fifth of memory.
pub fn max_user_watches() -> u64 {
    match MAX_USER_WATCHES.load(Relaxed) {
        u64::MAX => frames::total() as u64 / 25 * PAGE_SIZE as u64 / LINUX_WATCH,
        set => set,
    }
}

/// Sets the most descriptions one user's epolls may watch.
pub fn set_max_user_watches(most: u64) {
    MAX_USER_WATCHES.store(most, Relaxed);
}

/// Access mode of the description.
const READ_WRITE: u32 = O_RDWR as u32;

/// One event to report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event {
    /// `EPOLL*` bits that are ready.
    pub events: u32,
    /// What the program gave with the interest.
    pub data: u64,
    /// Of which descriptor.
    of: Key,
}

struct EpollFile(Arc<Epoll>);

/// Makes an epoll.
pub fn create() -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    let epoll = Epoll {
        items: SpinLock::new(BTreeMap::new()),
        ready: ReadyList::new(),
        queue: WaitQueue::new(WaitReason::EpollEvent),
        watchers: SpinLock::new(Watchers::new()),
        account: current().creds.with(|creds| creds.account.clone()),
    };
    Ok(anon::open_shared("anon_inode:[eventpoll]", Arc::new(EpollFile(Arc::new(epoll))), READ_WRITE, slot))
}

impl Wake for Item {
    fn id(&self) -> HookId {
        self.id
    }

    fn wake(&self) {
        self.sequence.fetch_add(1, AcqRel);
        self.list();
    }
}

impl Item {
    /// Puts the item on the ready list, and wakes a thread that waits for events.
    fn list(&self) {
        let (Some(epoll), Some(this)) = (self.epoll.upgrade(), self.this.upgrade()) else { return };
        if !self.listed.swap(true, AcqRel) {
            epoll.ready.push(this);
        }
        epoll.queue.wake_one();
    }

    fn report(&self) -> Option<(u32, u64, u64)> {
        if self.gone.load(Acquire) {
            return None;
        }
        let file = self.file.upgrade()?;
        let sequence = self.sequence.load(Acquire);
        let ready = file.poll(None);
        let interest = self.interest.lock();
        let events = interest.report(ready, sequence)?;
        Some((events, interest.data, sequence))
    }

    fn unhook(self: &Arc<Self>, file: &File) {
        self.gone.store(true, Release);
        if let Some(inner) = of(file) {
            let gone = inner.watchers.lock().remove(self.epoll.as_ptr());
            drop(gone);
        }
        drop(self.watch.lock().take());
        file.poll(Some(&mut Waiter::removing(self.clone())));
    }
}

impl Epoll {
    /// Watches `file` under the number `fd`: EEXIST if it does already, ENOSPC if the user has as many
    /// watches as are permitted, ELOOP if epolls would watch each other in a circle.
    pub fn add(self: &Arc<Self>, fd: i32, file: &Arc<File>, interest: Interest) -> Result<(), Errno> {
        // EPOLLEXCLUSIVE goes with few others (epoll_ctl(2)).
        frames::spare()?;
        if interest.events & EXCLUSIVE != 0
            && interest.events & !(IN | OUT | ERR | HUP | WAKEUP | EDGE | EXCLUSIVE) != 0
        {
            return Err(Errno::EINVAL);
        }
        let inner = of(file);
        if inner.is_some() && interest.events & EXCLUSIVE != 0 {
            return Err(Errno::EINVAL);
        }
        if inner.is_none() && !self.is_watched() {
            return self.insert(fd, file, interest);
        }
        let _alone = nesting::ALONE.lock();
        if let Some(inner) = inner {
            nesting::check_depth(self, inner)?;
        }
        self.insert(fd, file, interest)?;
        nesting::check_paths(file).inspect_err(|_| {
            // Closed meanwhile by another thread, which removed it too.
            let _ = self.remove(fd, file);
        })
    }

    fn insert(self: &Arc<Self>, fd: i32, file: &Arc<File>, interest: Interest) -> Result<(), Errno> {
        if self.items.lock().contains_key(&key(fd, file)) {
            return Err(Errno::EEXIST);
        }
        let watch = self.account.charge(Kind::Watches, 1, max_user_watches()).ok_or(Errno::ENOSPC)?;
        let item = Arc::new_cyclic(|this| Item {
            this: this.clone(),
            id: HookId::new(),
            epoll: Arc::downgrade(self),
            file: Arc::downgrade(file),
            key: key(fd, file),
            interest: SpinLock::new(interest),
            sequence: AtomicU64::new(0),
            listed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            watch: SpinLock::new(Some(watch)),
        });
        {
            let mut items = self.items.lock();
            if items.contains_key(&key(fd, file)) {
                return Err(Errno::EEXIST);
            }
            items.insert(key(fd, file), item.clone());
            // In one step with the item, so that a removal by another thread finds all of it or nothing.
            file.add_watcher(self);
            if let Some(inner) = of(file) {
                inner.watchers.lock().add(self);
            }
        }
        let ready = file.poll(Some(&mut Waiter::adding(item.clone())));
        if interest.report(ready, 0).is_some() {
            item.list();
        }
        // Removed before it was in the queues: a hook left there would wake a set that no longer watches, perhaps in a
        // circle.
        if item.gone.load(Acquire) {
            file.poll(Some(&mut Waiter::removing(item.clone())));
            self.unlist(&item);
        }
        Ok(())
    }

    /// Changes what is wished of `file`: ENOENT if it is not watched.
    pub fn modify(&self, fd: i32, file: &Arc<File>, interest: Interest) -> Result<(), Errno> {
        let item = self.items.lock().get(&key(fd, file)).cloned().ok_or(Errno::ENOENT)?;
        let exclusive = EXCLUSIVE & (item.interest.lock().events | interest.events);
        if exclusive != 0 {
            return Err(Errno::EINVAL);
        }
        *item.interest.lock() = interest;
        if item.report().is_some() {
            item.list();
        }
        Ok(())
    }

    /// Stops watching `file`: ENOENT if it is not watched.
    pub fn remove(&self, fd: i32, file: &Arc<File>) -> Result<(), Errno> {
        let mut items = self.items.lock();
        let item = items.remove(&key(fd, file)).ok_or(Errno::ENOENT)?;
        if items.range(of_file(Arc::as_ptr(file))).next().is_none() {
            file.remove_watcher(self);
        }
        drop(items);
        item.unhook(file);
        self.unlist(&item);
        Ok(())
    }

    /// Takes an item that is gone from the ready list, where it would take memory until the next wait.
    fn unlist(&self, item: &Arc<Item>) {
        if !item.listed.load(Acquire) {
            return;
        }
        for gone in self.ready.remove(item, |item| item.gone.load(Relaxed)) {
            drop(gone);
            breathe();
        }
    }

    /// Whether collecting could find anything.
    #[inline]
    pub fn may_have_ready(&self) -> bool {
        self.ready.holds_any()
    }

    /// Collects up to `into.len()` events that are there now.
    pub fn collect(&self, into: &mut [Event]) -> usize {
        let mut found = 0;
        let mut again = Vec::new();
        while found < into.len() {
            let Some(item) = self.ready.pop() else { break };
            // An exchange, not a store: it must not move past the look at the sequence number that follows, or a
            // wake-up in between finds the item listed, leaves it, and is never reported.
            item.listed.swap(false, AcqRel);
            let Some((events, data, sequence)) = item.report() else {
                breathe();
                continue;
            };
            into[found] = Event { events, data, of: item.key };
            found += 1;
            let mut interest = item.interest.lock();
            interest.delivered(sequence);
            if interest.events & (EDGE | ONESHOT) == 0 {
                drop(interest);
                again.push(item);
            }
        }
        for item in again {
            if !item.listed.swap(true, AcqRel) {
                self.ready.push(item);
            }
        }
        if self.may_have_ready() {
            self.queue.wake_next();
        }
        found
    }

    /// The address of the `which`th description that is watched under the number `fd`.
    pub fn target(&self, fd: i32, which: u32) -> Option<usize> {
        let (mut from, mut left) = (Bound::Unbounded, which);
        loop {
            let items = self.items.lock();
            let mut last = None;
            for key in items.range((from, Bound::Unbounded)).map(|(key, _)| *key).take(LOOKED_AT) {
                last = Some(key);
                if key.1 == fd {
                    match left.checked_sub(1) {
                        Some(fewer) => left = fewer,
                        None => return Some(key.0),
                    }
                }
            }
            drop(items);
            from = Bound::Excluded(last?);
            breathe();
        }
    }

    /// How many descriptions it watches.
    pub fn watched(&self) -> usize {
        self.items.lock().len()
    }

    /// Events that were collected and could not be given to the program: they are reported again.
    pub fn take_back(&self, events: &[Event]) {
        for event in events {
            let Some(item) = self.items.lock().get(&event.of).cloned() else { continue };
            item.interest.lock().taken_back();
            item.wake();
        }
    }

    /// Waits for events until `deadline` (`None`: for ever) and collects them.
    pub fn wait(&self, into: &mut [Event], deadline: Option<Nanos>) -> Result<usize, Errno> {
        let found = self.queue.wait_exclusive(deadline, || {
            let found = self.collect(into);
            (found > 0).then_some(found)
        });
        match found {
            Ok(found) => Ok(found),
            Err(WaitError::TimedOut) => Ok(0),
            // Restarting would begin the timeout again: epoll_wait is never restarted (signal(7)).
            Err(WaitError::Interrupted) => Err(Errno::EINTR),
        }
    }

    /// Leaves every queue. Not left to `Drop`: a wake-up may hold the last reference, with locks of its caller held.
    fn close(&self) {
        let items = core::mem::take(&mut *self.items.lock());
        for item in items.values() {
            if let Some(file) = item.file.upgrade() {
                item.unhook(&file);
                file.remove_watcher(self);
            }
            breathe();
        }
    }

    /// Whether there are events. Items that have none any more leave the list: they are not asked again for it.
    fn has_ready(&self) -> bool {
        loop {
            let Some(first) = self.ready.first() else { return false };
            if first.report().is_some() {
                return true;
            }
            // Another thread may have taken it.
            if self.ready.pop_first(&first).is_some() {
                // As in `collect`: a wake-up from here on lists it again, one before is seen by the look that follows.
                first.listed.swap(false, AcqRel);
                if first.report().is_some() {
                    first.list();
                }
            }
            breathe();
        }
    }

    /// The descriptions it watches.
    fn files(&self) -> Vec<Arc<File>> {
        let (mut files, mut from) = (Vec::new(), Bound::Unbounded);
        loop {
            let before = files.len();
            let items = self.items.lock();
            files.extend(items.range((from, Bound::Unbounded)).take(LOOKED_AT).map(|(_, item)| item.clone()));
            drop(items);
            match files.last() {
                Some(last) if files.len() == before + LOOKED_AT => from = Bound::Excluded(last.key),
                _ => break,
            }
            breathe();
        }
        files.iter().filter_map(|item| item.file.upgrade()).collect()
    }

    fn is_watched(&self) -> bool {
        !self.watchers.lock().is_empty()
    }

    /// The epolls that watch it.
    fn parents(&self) -> Vec<Arc<Epoll>> {
        self.watchers.lock().alive()
    }
}

impl FileOps for EpollFile {
    fn seeking(&self) -> fs::file::Seeking {
        fs::file::Seeking::Nowhere
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.0.queue);
        }
        if self.0.has_ready() { IN | RDNORM } else { 0 }
    }

    fn epoll(&self) -> Option<&Arc<Epoll>> {
        Some(&self.0)
    }

    fn release(&self, _file: &File) {
        self.0.close();
    }
}

fn key(fd: i32, file: &Arc<File>) -> Key {
    (Arc::as_ptr(file).addr(), fd)
}

/// The keys of all watches of a description.
fn of_file(file: *const File) -> RangeInclusive<Key> {
    (file.addr(), i32::MIN)..=(file.addr(), i32::MAX)
}

/// The epoll that `file` stands for, if it is one.
#[inline]
pub fn of(file: &File) -> Option<&Arc<Epoll>> {
    file.ops.epoll()
}

impl fs::Watcher for Epoll {
    fn forget(&self, file: &File) {
        loop {
            let mut items = self.items.lock();
            let some = items.extract_if(of_file(file), |_, _| true).take(LOOKED_AT);
            let gone: Vec<Arc<Item>> = some.map(|(_, item)| item).collect();
            drop(items);
            for item in &gone {
                item.unhook(file);
                self.unlist(item);
                breathe();
            }
            if gone.len() < LOOKED_AT {
                return;
            }
        }
    }
}
