//! The signal part of a process: dispositions, signals pending for any of its threads, readers of signal descriptors.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering, fence};

use kernel_logic::signal::{Disposition, MAX_SIGNAL, SIG_IGN};
use machine::sync::{Once, SpinLock};

use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;
use crate::task::{PendingSignals, Slot};

/// Dispositions of all signals; processes made with `CLONE_SIGHAND` share one table. While all are at their default
/// there is no memory behind it: so it is after most executions.
pub struct Actions(SpinLock<Option<Box<Dispositions>>>);

type Dispositions = [Disposition; MAX_SIGNAL as usize];

impl Actions {
    /// All at their default.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(SpinLock::new(None)))
    }

    /// Runs `edit` on the disposition of `signal`, which is in 1..=[`MAX_SIGNAL`].
    #[inline]
    pub fn edit<R>(&self, signal: u8, edit: impl FnOnce(&mut Disposition) -> R) -> R {
        let mut table = self.0.lock();
        let index = usize::from(signal) - 1;
        let Some(table) = &mut *table else {
            let mut disposition = Disposition::default();
            let result = edit(&mut disposition);
            if disposition != Disposition::default() {
                begin(&mut table, index, disposition);
            }
            return result;
        };
        edit(&mut table[index])
    }

    /// A copy for a child; `forget_handlers` puts all but ignored signals to their default (`CLONE_CLEAR_SIGHAND`,
    /// exec).
    fn copy(&self, forget_handlers: bool) -> Arc<Self> {
        let mut table = self.0.lock().clone();
        if forget_handlers {
            drop(forget(&mut table));
        }
        Arc::new(Self(SpinLock::new(table)))
    }
}

/// The first disposition of a table that differs from the default.
#[cold]
fn begin(table: &mut Option<Box<Dispositions>>, index: usize, disposition: Disposition) {
    let mut made = Box::new([Disposition::default(); MAX_SIGNAL as usize]);
    made[index] = disposition;
    *table = Some(made);
}

/// Puts all but ignored signals to their default. A table that is not needed any more is returned, to be dropped
/// outside the lock.
fn forget(table: &mut Option<Box<Dispositions>>) -> Option<Box<Dispositions>> {
    if !table.as_ref()?.iter().any(|disposition| disposition.handler == SIG_IGN) {
        return table.take();
    }
    table.iter_mut().for_each(|table| table.iter_mut().for_each(Disposition::forget_handler));
    None
}

/// The signal part of a process.
pub struct ProcessSignals {
    actions: Slot<Actions>,
    /// Signals that any of its threads may take.
    pub pending: PendingSignals,
    /// Readers of signal descriptors (signalfd(2)); made by the first.
    readers: Once<Arc<WaitQueue>>,
    /// Whether a fault of its own has to end it, init or not.
    faulted: AtomicBool,
}

impl ProcessSignals {
    /// With no signal pending.
    pub(super) const fn new(actions: Arc<Actions>) -> Self {
        Self {
            actions: Slot::new(actions),
            pending: PendingSignals::new(),
            readers: Once::new(),
            faulted: AtomicBool::new(false),
        }
    }

    /// From now on a signal's default action ends it, init or not: a fault that the program does not handle comes again
    /// and again.
    pub fn must_die(&self) {
        self.faulted.store(true, Ordering::Relaxed);
    }

    /// Whether a fault of its own has to end it.
    pub(super) fn is_to_die(&self) -> bool {
        self.faulted.load(Ordering::Relaxed)
    }

    /// The table of dispositions.
    pub fn actions(&self) -> Arc<Actions> {
        self.actions.get()
    }

    /// A copy of the table for a child that does not share it (fork); see [`Actions::copy`].
    pub fn copy_actions(&self, forget_handlers: bool) -> Arc<Actions> {
        self.actions.with(|actions| actions.copy(forget_handlers))
    }

    /// The disposition of `signal`.
    pub fn action(&self, signal: u8) -> Disposition {
        self.edit_action(signal, |disposition| *disposition)
    }

    /// Runs `edit` on the disposition of `signal`. `edit` must not sleep.
    pub fn edit_action<R>(&self, signal: u8, edit: impl FnOnce(&mut Disposition) -> R) -> R {
        self.actions.with(|actions| actions.edit(signal, edit))
    }

    /// Handlers are gone with the program; ignored signals stay ignored (execve(2)). Processes that share the table
    /// keep it.
    pub fn forget_handlers(&self) {
        let table = self.actions.get();
        // One reference is the slot's, one is ours.
        if Arc::strong_count(&table) > 2 {
            self.actions.set(table.copy(true));
        } else {
            let unneeded = forget(&mut table.0.lock());
            drop(unneeded);
        }
    }

    /// The queue of its readers of signal descriptors.
    pub fn readers(&self) -> &Arc<WaitQueue> {
        loop {
            if let Some(queue) = self.readers.get() {
                return queue;
            }
            // Of two threads that come here at once, one queue is used.
            let _ = self.readers.set(Arc::new(WaitQueue::new(WaitReason::SignalfdSignal)));
        }
    }

    /// Wakes its readers, once a signal is queued for it or one of its threads.
    pub fn wake_readers(&self) {
        // A reader makes the queue before it looks for signals.
        fence(Ordering::SeqCst);
        if let Some(queue) = self.readers.get() {
            queue.wake_all();
        }
    }
}
