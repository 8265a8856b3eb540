//! Wait queues: where a thread sleeps until somebody changes what it waits for.
//!
//! The rule that loses no wake-up: a waiter queues itself, marks itself asleep and only then looks at its condition; a waker
//! changes the condition and only then looks at the queue. Each side has a full barrier in between, so at least one of
//! them sees the other.
//!
//! Three kinds of customers: [`WaitQueue::wait`] for one queue, [`Waiter`] for several at once (poll), and [`Wake`] hooks
//! that stay queued until they are taken out (epoll). Waking wakes everybody: whoever finds nothing left sleeps again.
//! Hooks run after the queue is unlocked: one that is taken out at that moment may still run once.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

use linux_abi::Errno;
use machine::sync::SpinLock;
use machine::time::{Nanos, now};

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
        sched::sleep(Some(deadline));
    }
}

/// A callback of a queue. Runs with the queue unlocked, so it may use any queue, this one included; the caller of
/// [`WaitQueue::wake_all`] may hold other locks, so it must not sleep or ask a file what it is ready for.
pub trait Wake: Send + Sync {
    /// The queue was woken.
    fn wake(&self);
}

enum Who {
    Thread(ThreadRef),
    Hook(Arc<dyn Wake>),
}

/// Hooks of a queue that is being woken, to run once it is unlocked. A few need no heap.
#[derive(Default)]
struct Hooks {
    few: [Option<Arc<dyn Wake>>; 4],
    more: Vec<Arc<dyn Wake>>,
}

impl Hooks {
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
    waiting: AtomicUsize,
    entries: SpinLock<VecDeque<Who>>,
}

impl Default for WaitQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl WaitQueue {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self { waiting: AtomicUsize::new(0), entries: SpinLock::new(VecDeque::new()) }
    }

    /// Wakes everybody who waits.
    pub fn wake_all(&self) {
        if !self.has_waiters() {
            return;
        }
        let mut hooks = Hooks::default();
        let mut entries = self.entries.lock();
        entries.retain(|who| match who {
            Who::Hook(hook) => {
                hooks.push(hook);
                true
            }
            Who::Thread(thread) => {
                sched::wake(thread);
                false
            }
        });
        self.waiting.store(entries.len(), Ordering::SeqCst);
        drop(entries);
        hooks.run();
    }

    /// Whether anybody waits. Exact only under the caller's own lock.
    pub fn has_waiters(&self) -> bool {
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Sleeps, interruptibly, until `condition` gives a value.
    pub fn wait<T>(&self, condition: impl FnMut() -> Option<T>) -> Result<T, WaitError> {
        self.wait_until(None, Sleep::Interruptible, condition)
    }

    /// Sleeps until `condition` gives a value, `deadline` (of [`now`]) passes, or, if `sleep` allows it, a signal arrives.
    pub fn wait_until<T>(
        &self,
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
            self.add_thread(me.to_arc());
            let value = condition();
            let stop = match value {
                Some(_) => None,
                None if me.is_interrupted(sleep) => Some(WaitError::Interrupted),
                None if deadline.is_some_and(|at| now() >= at) => Some(WaitError::TimedOut),
                None => {
                    me.sched().waits_in.store(core::ptr::from_ref(self).addr() as u64, Ordering::Relaxed);
                    sched::sleep(deadline);
                    me.sched().waits_in.store(0, Ordering::Relaxed);
                    self.remove_thread(&me);
                    // Woken as fast as it sleeps, a long transfer never comes to rest otherwise.
                    sched::breathe();
                    continue;
                }
            };
            self.remove_thread(&me);
            sched::cancel_sleep();
            return match (value, stop) {
                (Some(value), _) => Ok(value),
                (None, error) => Err(error.unwrap_or(WaitError::Interrupted)),
            };
        }
    }

    /// Queues a hook until [`WaitQueue::remove_hook`].
    pub fn add_hook(&self, hook: Arc<dyn Wake>) {
        let mut entries = self.entries.lock();
        entries.push_back(Who::Hook(hook));
        self.waiting.store(entries.len(), Ordering::SeqCst);
    }

    /// Takes a hook out; one that is not queued is ignored.
    pub fn remove_hook(&self, hook: &Arc<dyn Wake>) {
        self.remove(|who| matches!(who, Who::Hook(queued) if Arc::ptr_eq(queued, hook)));
    }

    fn add_thread(&self, thread: ThreadRef) {
        let mut entries = self.entries.lock();
        entries.push_back(Who::Thread(thread));
        self.waiting.store(entries.len(), Ordering::SeqCst);
    }

    fn remove_thread(&self, me: &Thread) {
        self.remove(|who| matches!(who, Who::Thread(thread) if core::ptr::eq(&**thread, me)));
    }

    fn remove(&self, found: impl Fn(&Who) -> bool) {
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut entries = self.entries.lock();
        if let Some(at) = entries.iter().position(found) {
            let gone = entries.remove(at);
            self.waiting.store(entries.len(), Ordering::SeqCst);
            drop(entries);
            drop(gone);
        }
    }
}

/// Waits on several queues at once.
///
/// A file's `poll(waiter)` calls [`Waiter::add`] for each queue whose waking may change its answer; the caller looks at the
/// answers after all queues were added, then [`Waiter::sleep`]s and asks again. Dropping it leaves every queue.
pub struct Waiter<'q> {
    mode: Mode,
    queues: Vec<&'q WaitQueue>,
}

enum Mode {
    Thread,
    AddHook(Arc<dyn Wake>),
    RemoveHook(Arc<dyn Wake>),
}

impl<'q> Waiter<'q> {
    /// Will queue the running thread.
    pub fn new() -> Self {
        Self { mode: Mode::Thread, queues: Vec::new() }
    }

    /// Queues `hook`, to stay, wherever the waiter is taken (`EPOLL_CTL_ADD`).
    pub fn adding(hook: Arc<dyn Wake>) -> Self {
        Self { mode: Mode::AddHook(hook), queues: Vec::new() }
    }

    /// Takes `hook` out wherever the waiter is taken (`EPOLL_CTL_DEL`).
    pub fn removing(hook: Arc<dyn Wake>) -> Self {
        Self { mode: Mode::RemoveHook(hook), queues: Vec::new() }
    }

    /// Queues at `queue`.
    pub fn add(&mut self, queue: &'q WaitQueue) {
        match &self.mode {
            Mode::Thread => {
                queue.add_thread(current().to_arc());
                self.queues.push(queue);
            }
            Mode::AddHook(hook) => queue.add_hook(hook.clone()),
            Mode::RemoveHook(hook) => queue.remove_hook(hook),
        }
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
        sched::sleep(deadline);
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
        for queue in self.queues.drain(..) {
            queue.remove_thread(&me);
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}
