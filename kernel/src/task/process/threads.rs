//! The live threads of a process.
//!
//! A thread that executes a program becomes the only one ([`Threads::dismiss_others`]). While it waits for the others
//! to leave, no thread is added.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linux_abi::Errno;
use machine::sync::SpinLock;

use crate::sched::{self, Sleep};
use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;
use crate::task::{Creds, Task, ThreadRef, Tid};

/// The live threads of a process, and the credentials the last one ended with.
pub struct Threads {
    live: SpinLock<Vec<ThreadRef>>,
    /// How many `live` holds; changes in its critical section.
    count: AtomicUsize,
    /// A thread executes a program and waits until the others have left.
    executing: AtomicBool,
    /// Woken when one thread is left, and when the process begins to end.
    changed: WaitQueue,
    /// Credentials of the thread that left last.
    last_creds: SpinLock<Option<Arc<Creds>>>,
}

impl Threads {
    /// No thread yet.
    pub(super) const fn new() -> Self {
        Self {
            live: SpinLock::new(Vec::new()),
            count: AtomicUsize::new(0),
            executing: AtomicBool::new(false),
            changed: WaitQueue::new(WaitReason::OtherThreads),
            last_creds: SpinLock::new(None),
        }
    }

    /// Adds the first thread of a process that is not in the tree yet.
    pub fn add_first(&self, thread: &ThreadRef) {
        let mut live = self.live.lock();
        live.push(thread.clone());
        self.count.store(live.len(), Ordering::SeqCst);
    }

    /// Adds a thread, unless the process `is_ending` or a thread of it executes a program: `EAGAIN`.
    pub fn add(&self, thread: &ThreadRef, is_ending: impl FnOnce() -> bool) -> Result<(), Errno> {
        let mut live = self.live.lock();
        if is_ending() || self.executing.load(Ordering::SeqCst) {
            return Err(Errno::EAGAIN);
        }
        live.push(thread.clone());
        self.count.store(live.len(), Ordering::SeqCst);
        Ok(())
    }

    /// Takes `task`, which ends, out; how many are left. `account` adds what it used to the ended threads' sum in the
    /// same step, so that it counts once for any who read both in [`Threads::with`]. `account` must not sleep.
    pub fn remove(&self, task: &Task, account: impl FnOnce()) -> usize {
        // Before it leaves the list: what has no thread is asked for these.
        *self.last_creds.lock() = Some(task.creds());
        let mut live = self.live.lock();
        let at = live.iter().position(|thread| thread.tid() == task.tid());
        let gone = at.map(|at| live.remove(at));
        account();
        let left = live.len();
        self.count.store(left, Ordering::SeqCst);
        drop(live);
        drop(gone);
        if left == 1 {
            self.changed.wake_all();
        }
        left
    }

    /// How many live, as of now. Takes no lock.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The live threads, as of now.
    pub fn list(&self) -> Vec<ThreadRef> {
        self.live.lock().clone()
    }

    /// The first live thread.
    pub fn first(&self) -> Option<ThreadRef> {
        self.live.lock().first().cloned()
    }

    /// The first live thread that is `wanted`. `wanted` must not sleep.
    pub fn find(&self, wanted: impl FnMut(&&ThreadRef) -> bool) -> Option<ThreadRef> {
        self.live.lock().iter().find(wanted).cloned()
    }

    /// Runs `look` on the live threads, without taking references. `look` must not sleep.
    pub fn with<R>(&self, look: impl FnOnce(&[ThreadRef]) -> R) -> R {
        look(&self.live.lock())
    }

    /// Credentials of the first thread, or of the last one if none is left.
    pub fn creds(&self) -> Option<Arc<Creds>> {
        self.first().map(|thread| thread.creds()).or_else(|| self.last_creds.lock().clone())
    }

    /// Wakes a thread that waits for the others to leave: the process begins to end.
    pub(super) fn interrupt_execution(&self) {
        self.changed.wake_all();
    }

    /// Ends every thread but `me`, the thread `tid` of this process, and waits until they have left; whether there were
    /// any. `EAGAIN` if the process itself must end, or another thread was first to execute a program.
    pub fn dismiss_others(&self, tid: Tid) -> Result<bool, Errno> {
        let alone = || (self.count() == 1).then_some(());
        if alone().is_some() {
            return Ok(false);
        }
        // Of two that execute at once the first goes on; the other waits here for its end.
        let first = || (!self.executing.swap(true, Ordering::SeqCst)).then_some(());
        self.changed.wait_until(None, Sleep::Killable, first).map_err(|_| Errno::EAGAIN)?;
        // From here on no thread is added.
        for thread in self.list().iter().filter(|thread| thread.tid() != tid) {
            thread.must_exit.store(true, Ordering::SeqCst);
            sched::notify(thread, true);
        }
        let gone = self.changed.wait_until(None, Sleep::Killable, alone);
        self.executing.store(false, Ordering::SeqCst);
        gone.map_err(|_| Errno::EAGAIN)?;
        Ok(true)
    }
}
