//! Wait queues: where a thread sleeps until another changes what it waits for.
//!
//! The rule that loses no wake-up: a waiter queues itself, marks itself asleep and only then looks at its condition; a
//! waker changes the condition and only then looks at the queue. Each side has a full barrier in between, so at least
//! one of them sees the other.
//!
//! Three kinds of waiters: [`WaitQueue::wait`] for one queue, [`Waiter`] for several at once (poll), and [`Wake`] hooks
//! that stay queued until they are taken out (epoll). Hooks run after the queue is unlocked: one that is taken out at
//! that moment may still run once. A user may have tens of thousands of each in one queue: it is unlocked after every
//! [`BATCH`] of them.
//!
//! Threads that wait for one thing each of them can take (a connection, a message) wait exclusively
//! ([`WaitQueue::wait_exclusive`]): [`WaitQueue::wake_one`] wakes the one that has waited longest, besides all that do
//! not. No wake-up is lost: a thread that is taken out of the queue while it finds something by itself, or gives up,
//! wakes the next; one that leaves something for others calls [`WaitQueue::wake_next`].

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use linux_abi::Errno;
use machine::sync::{SpinGuard, SpinLock};
use machine::time::{Nanos, now};

use super::WaitReason;
use crate::sched::{self, Schedulable as _, Sleep};
use crate::upper::{Thread, ThreadRef, current};

/// Why a wait ended without its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// A signal is pending. As an `Errno` this is `ERESTARTSYS`: restarted or `EINTR`, as the handler says.
    Interrupted,
    /// The deadline passed. As an `Errno` this is `ETIMEDOUT`.
    TimedOut,
}

impl From<WaitError> for Errno {
    fn from(error: WaitError) -> Errno {
        match error {
            WaitError::Interrupted => Errno::ERESTARTSYS,
            WaitError::TimedOut => Errno::ETIMEDOUT,
        }
    }
}

/// Sleeps until `deadline` or, if `kind` allows it, a signal.
pub fn sleep_until(deadline: Nanos, kind: Sleep) -> Result<(), WaitError> {
    let me = current();
    loop {
        sched::prepare_to_sleep(kind);
        if now() >= deadline {
            sched::cancel_sleep();
            return Ok(());
        }
        if me.is_interrupted(kind) {
            sched::cancel_sleep();
            return Err(WaitError::Interrupted);
        }
        sched::sleep_for(WaitReason::Time.number(), 0, Some(deadline));
    }
}

/// A callback of a queue. Runs with the queue unlocked, so it may use any queue, this one included; the caller of
/// [`WaitQueue::wake_all`] may hold other locks, so it must not sleep or ask a file what it is ready for.
pub trait Wake: Send + Sync {
    /// The queue was woken.
    fn wake(&self);
    /// Names the hook among all hooks ([`HookId::new`]).
    fn id(&self) -> HookId;
}

/// Waiters that are woken while a queue is locked.
const BATCH: usize = 64;

/// Names a hook; hooks of a queue run in this order, that of their creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HookId(u64);

impl HookId {
    /// One that no other hook has.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for HookId {
    fn default() -> Self {
        Self::new()
    }
}

/// Hooks of a queue that is being woken, to run once it is unlocked. A few need no heap.
#[derive(Default)]
struct Woken {
    few: [Option<Arc<dyn Wake>>; 4],
    more: Vec<Arc<dyn Wake>>,
}

impl Woken {
    fn push(&mut self, hook: &Arc<dyn Wake>) {
        match self.few.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(hook.clone()),
            None => self.more.push(hook.clone()),
        }
    }

    #[inline]
    fn run(self) {
        for hook in self.few.into_iter().flatten() {
            hook.wake();
        }
        for hook in self.more {
            hook.wake();
        }
    }
}

/// A queue of waiters.
pub struct WaitQueue {
    /// As 32 bits it shares a word with the reason.
    waiting: AtomicU32,
    reason: WaitReason,
    entries: SpinLock<Entries>,
}

/// The waiters; no more than a pointer for the hooks of a queue without any, of which there are many.
struct Entries {
    threads: VecDeque<Sleeper>,
    hooks: Option<Box<Hooks>>,
}

/// A thread in a queue.
struct Sleeper {
    thread: ThreadRef,
    /// A single wake-up wakes only the first of these.
    exclusive: bool,
}

/// Hooks of a queue. A user may have hundreds of thousands in one, so finding one takes no walk.
#[derive(Default)]
struct Hooks {
    /// The only one of most queues.
    first: Option<Arc<dyn Wake>>,
    more: BTreeMap<HookId, Arc<dyn Wake>>,
}

impl Hooks {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    /// The first that is not among the first [`BATCH`] of `more`, and the last.
    fn after_batch(&self) -> Option<(HookId, HookId)> {
        if self.more.len() <= BATCH {
            return None;
        }
        Some((*self.more.keys().nth(BATCH)?, *self.more.last_key_value()?.0))
    }

    fn insert(&mut self, hook: Arc<dyn Wake>) -> Option<Arc<dyn Wake>> {
        let is_first = self.first.as_ref().map_or(self.more.is_empty(), |first| first.id() == hook.id());
        if is_first { self.first.replace(hook) } else { self.more.insert(hook.id(), hook) }
    }

    fn remove(&mut self, id: HookId) -> Option<Arc<dyn Wake>> {
        if self.first.as_ref().is_some_and(|first| first.id() == id) {
            self.first.take()
        } else {
            self.more.remove(&id)
        }
    }
}

impl Entries {
    fn len(&self) -> usize {
        self.threads.len() + self.hooks.as_ref().map_or(0, |hooks| hooks.len())
    }

    /// Looks at the first `count` threads: wakes all but those that wait exclusively, and the first of these unless
    /// `exclusive_woken`. Those that stay are the last then.
    fn wake_some(&mut self, count: usize, exclusive_woken: &mut bool) {
        for _ in 0..count {
            let Some(sleeper) = self.threads.pop_front() else { return };
            if sleeper.exclusive && *exclusive_woken {
                self.threads.push_back(sleeper);
            } else {
                *exclusive_woken |= sleeper.exclusive;
                sched::wake(&sleeper.thread);
            }
        }
    }
}

impl WaitQueue {
    /// A queue without waiters, for threads that wait for `reason`.
    pub const fn new(reason: WaitReason) -> Self {
        let entries = Entries { threads: VecDeque::new(), hooks: None };
        Self { reason, waiting: AtomicU32::new(0), entries: SpinLock::new(entries) }
    }

    /// Wakes all waiters.
    #[inline]
    pub fn wake_all(&self) {
        if self.has_waiters() {
            self.wake_all_queued();
        }
    }

    #[inline(never)]
    fn wake_all_queued(&self) {
        let mut entries = self.entries.lock();
        // Those that come meanwhile have seen what they are woken for.
        let mut left = entries.threads.len();
        while left > BATCH {
            entries.threads.drain(..BATCH).for_each(|sleeper| _ = sched::wake(&sleeper.thread));
            entries = self.relock(entries);
            left = (left - BATCH).min(entries.threads.len());
        }
        entries.threads.drain(..left).for_each(|sleeper| _ = sched::wake(&sleeper.thread));
        self.finish_waking(entries);
    }

    /// Wakes all waiters but those that wait exclusively, of which it wakes the one that has waited longest.
    #[inline]
    pub fn wake_one(&self) {
        if self.has_waiters() {
            self.wake_one_queued();
        }
    }

    #[inline(never)]
    fn wake_one_queued(&self) {
        let mut entries = self.entries.lock();
        if entries.threads.len() > 1 {
            let (mut left, mut exclusive_woken) = (entries.threads.len(), false);
            while left > BATCH {
                entries.wake_some(BATCH, &mut exclusive_woken);
                entries = self.relock(entries);
                left -= BATCH;
            }
            entries.wake_some(left, &mut exclusive_woken);
        } else if let Some(sleeper) = entries.threads.pop_front() {
            sched::wake(&sleeper.thread);
        }
        self.finish_waking(entries);
    }

    /// Wakes the thread that has waited longest among those that wait exclusively, and nothing else: what the caller
    /// took part of, or leaves, is not new to the others.
    #[inline]
    pub fn wake_next(&self) {
        if self.has_waiters() {
            self.wake_next_queued();
        }
    }

    #[inline(never)]
    fn wake_next_queued(&self) {
        let mut entries = self.entries.lock();
        let first = entries.threads.iter().position(|sleeper| sleeper.exclusive);
        let next = first.and_then(|at| entries.threads.remove(at));
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        if let Some(next) = next {
            sched::wake(&next.thread);
        }
    }

    /// Unlocks the queue and runs its hooks.
    #[inline]
    fn finish_waking(&self, entries: SpinGuard<'_, Entries>) {
        let mut woken = Woken::default();
        let mut further = None;
        if let Some(hooks) = &entries.hooks {
            hooks.first.iter().chain(hooks.more.values().take(BATCH)).for_each(|hook| woken.push(hook));
            further = hooks.after_batch();
        }
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        woken.run();
        if let Some((next, last)) = further {
            self.wake_further(next, last);
        }
    }

    /// Runs the hooks from `next` to `last`.
    #[cold]
    fn wake_further(&self, next: HookId, last: HookId) {
        let mut next = Bound::Included(next);
        loop {
            let entries = self.entries.lock();
            let Some(hooks) = &entries.hooks else { return };
            let some = hooks.more.range((next, Bound::Included(last))).take(BATCH);
            let batch: Vec<Arc<dyn Wake>> = some.map(|(_, hook)| hook.clone()).collect();
            drop(entries);
            batch.iter().for_each(|hook| hook.wake());
            match batch.last().map(|hook| hook.id()) {
                Some(ran) if ran < last => next = Bound::Excluded(ran),
                _ => return,
            }
        }
    }

    /// Lets others have the queue.
    #[cold]
    fn relock<'q>(&'q self, entries: SpinGuard<'q, Entries>) -> SpinGuard<'q, Entries> {
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        self.entries.lock()
    }

    /// Whether anything waits. Exact only under the caller's own lock.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Whether anything waits, asked with a lock held that every condition and every poll of this queue takes: who
    /// joins the queue later than this sees what was done under the lock before. So no fence is needed, which costs as
    /// much as the lock.
    #[inline]
    pub fn has_waiters_locked<T: ?Sized>(&self, _held: &SpinGuard<'_, T>) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Sleeps, interruptibly, until `condition` gives a value.
    pub fn wait<T>(&self, condition: impl FnMut() -> Option<T>) -> Result<T, WaitError> {
        self.wait_until(None, Sleep::Interruptible, condition)
    }

    /// Sleeps until `condition` gives a value, `deadline` (of [`now`]) passes, or, if `sleep` allows it, a signal
    /// arrives.
    pub fn wait_until<T>(
        &self,
        deadline: Option<Nanos>,
        sleep: Sleep,
        condition: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitError> {
        self.wait_as(false, deadline, sleep, condition)
    }

    /// [`wait_until`](Self::wait_until), interruptibly and exclusively. What `condition` takes, any other thread that
    /// waits exclusively here could take: a wake-up that goes to the wrong one is lost.
    pub fn wait_exclusive<T>(
        &self,
        deadline: Option<Nanos>,
        condition: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitError> {
        self.wait_as(true, deadline, Sleep::Interruptible, condition)
    }

    fn wait_as<T>(
        &self,
        exclusive: bool,
        deadline: Option<Nanos>,
        sleep: Sleep,
        mut condition: impl FnMut() -> Option<T>,
    ) -> Result<T, WaitError> {
        if let Some(value) = condition() {
            return Ok(value);
        }
        let me = current();
        loop {
            sched::prepare_to_sleep(sleep);
            self.add_thread(me.to_arc(), exclusive);
            let value = condition();
            let stop = match value {
                Some(_) => None,
                None if me.is_interrupted(sleep) => Some(WaitError::Interrupted),
                None if deadline.is_some_and(|at| now() >= at) => Some(WaitError::TimedOut),
                None => {
                    sched::sleep_for(self.reason.number(), core::ptr::from_ref(self).addr() as u64, deadline);
                    self.remove_thread(&me);
                    // Woken as fast as it sleeps, a long transfer never comes to rest otherwise.
                    sched::breathe();
                    continue;
                }
            };
            let queued = self.remove_thread(&me);
            sched::cancel_sleep();
            if exclusive && !queued {
                // Woken while it looked: the wake-up was for something that it has not taken.
                self.wake_next();
            }
            return match (value, stop) {
                (Some(value), _) => Ok(value),
                (None, error) => Err(error.unwrap_or(WaitError::Interrupted)),
            };
        }
    }

    /// Queues a hook until [`WaitQueue::remove_hook`]; one that is queued already stays queued once.
    pub fn add_hook(&self, hook: Arc<dyn Wake>) {
        let mut entries = self.entries.lock();
        let replaced = entries.hooks.get_or_insert_default().insert(hook);
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        drop(replaced);
    }

    /// Takes a hook out; one that is not queued is ignored.
    pub fn remove_hook(&self, hook: &Arc<dyn Wake>) {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        let gone = entries.hooks.as_mut().and_then(|hooks| hooks.remove(hook.id()));
        let empty = entries.hooks.take_if(|hooks| hooks.len() == 0);
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        drop((gone, empty));
    }

    fn add_thread(&self, thread: ThreadRef, exclusive: bool) {
        let mut entries = self.entries.lock();
        entries.threads.push_back(Sleeper { thread, exclusive });
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
    }

    /// Takes the running thread out; whether it was still queued.
    fn remove_thread(&self, me: &Thread) -> bool {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut entries = self.entries.lock();
        let at = entries.threads.iter().position(|sleeper| core::ptr::eq(&*sleeper.thread, me));
        let Some(at) = at else { return false };
        let gone = entries.threads.remove(at);
        self.waiting.store(entries.len() as u32, Ordering::SeqCst);
        drop(entries);
        drop(gone);
        true
    }
}

/// Waits on several queues at once.
///
/// A file's `poll(waiter)` calls [`Waiter::add`] for each queue whose waking may change its answer; the caller looks at
/// the answers after all queues were added, then [`Waiter::sleep`]s and asks again. Dropping it leaves every queue.
///
/// A queue that is added again is left as it is: a thread that polls one file under thousands of numbers is in its
/// queue once.
pub struct Waiter<'q> {
    mode: Mode,
    queues: Vec<&'q WaitQueue>,
    /// Addresses of `queues` once there are more than [`FEW`].
    known: BTreeSet<usize>,
    /// Queues that are not the file's own.
    shared: Vec<Arc<WaitQueue>>,
}

/// What a [`Waiter`] does at each queue.
pub enum Mode {
    /// Queues the running thread until it leaves.
    Thread,
    /// Queues a hook, to stay.
    AddHook(Arc<dyn Wake>),
    /// Takes a hook out.
    RemoveHook(Arc<dyn Wake>),
}

impl<'q> Waiter<'q> {
    /// Will queue the running thread.
    pub fn new() -> Self {
        Self::with(Mode::Thread)
    }

    /// Queues `hook`, to stay, wherever the waiter is taken (`EPOLL_CTL_ADD`).
    pub fn adding(hook: Arc<dyn Wake>) -> Self {
        Self::with(Mode::AddHook(hook))
    }

    /// Takes `hook` out wherever the waiter is taken (`EPOLL_CTL_DEL`).
    pub fn removing(hook: Arc<dyn Wake>) -> Self {
        Self::with(Mode::RemoveHook(hook))
    }

    fn with(mode: Mode) -> Self {
        Self { mode, queues: Vec::new(), known: BTreeSet::new(), shared: Vec::new() }
    }

    /// What it does at a queue, for files whose queue depends on the caller.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Queues the running thread at a queue that is not the file's own.
    pub fn add_shared(&mut self, queue: Arc<WaitQueue>) {
        queue.add_thread(current().to_arc(), false);
        self.shared.push(queue);
    }

    /// Queues at `queue`.
    pub fn add(&mut self, queue: &'q WaitQueue) {
        match &self.mode {
            Mode::Thread => {
                if self.is_new(queue) {
                    queue.add_thread(current().to_arc(), false);
                    self.queues.push(queue);
                }
            }
            Mode::AddHook(hook) => queue.add_hook(hook.clone()),
            Mode::RemoveHook(hook) => queue.remove_hook(hook),
        }
    }

    /// Whether the thread is not in the queue yet.
    fn is_new(&mut self, queue: &WaitQueue) -> bool {
        let address = |queue: &WaitQueue| core::ptr::from_ref(queue).addr();
        if self.queues.len() < FEW {
            return !self.queues.iter().any(|known| core::ptr::eq(*known, queue));
        }
        if self.known.is_empty() {
            self.known.extend(self.queues.iter().map(|known| address(known)));
        }
        self.known.insert(address(queue))
    }

    /// Marks the running thread asleep. Call before adding queues and looking at the condition; follow with
    /// [`Waiter::sleep`] or [`Waiter::cancel`].
    pub fn prepare(&self) {
        sched::prepare_to_sleep(Sleep::Interruptible);
    }

    /// Sleeps until a queue is woken, a signal arrives or `deadline` passes, and leaves all queues.
    pub fn sleep(&mut self, deadline: Option<Nanos>) -> Result<(), WaitError> {
        let me = current();
        if me.is_interrupted(Sleep::Interruptible) {
            self.cancel();
            return Err(WaitError::Interrupted);
        }
        if deadline.is_some_and(|at| now() >= at) {
            self.cancel();
            return Err(WaitError::TimedOut);
        }
        // Of several queues a dump names the first.
        let object = self.queues.first().map_or(0, |queue| core::ptr::from_ref(*queue).addr() as u64);
        sched::sleep_for(WaitReason::Poll.number(), object, deadline);
        self.leave();
        Ok(())
    }

    /// Stays awake after all, and leaves all queues.
    pub fn cancel(&mut self) {
        self.leave();
        sched::cancel_sleep();
    }

    fn leave(&mut self) {
        let me = current();
        self.known.clear();
        for queue in self.queues.drain(..) {
            queue.remove_thread(&me);
            // Each may hold a thousand other threads.
            sched::breathe();
        }
        for queue in self.shared.drain(..) {
            queue.remove_thread(&me);
        }
    }
}

/// Queues that a [`Waiter`] looks through one by one.
const FEW: usize = 16;

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
