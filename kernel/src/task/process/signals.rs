//! The signal part of a process: dispositions, signals pending for any of its threads, readers of signal descriptors.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering, fence};

use kernel_logic::signal::{Disposition, MAX_SIGNAL, SIG_IGN};
use machine::sync::{Once, SpinLock};

use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;
use crate::task::PendingSignals;

/// Dispositions of all signals. While all are at their default there is no memory behind them: so it is after most
/// executions.
#[derive(Clone, Default)]
pub struct Dispositions(Option<Box<[Disposition; MAX_SIGNAL as usize]>>);

impl Dispositions {
    /// Runs `edit` on the disposition of `signal`, which is in 1..=[`MAX_SIGNAL`].
    #[inline]
    fn edit<R>(&mut self, signal: u8, edit: impl FnOnce(&mut Disposition) -> R) -> R {
        let index = usize::from(signal) - 1;
        let Some(table) = &mut self.0 else {
            let mut disposition = Disposition::default();
            let result = edit(&mut disposition);
            if disposition != Disposition::default() {
                self.begin(index, disposition);
            }
            return result;
        };
        edit(&mut table[index])
    }

    /// The first that differs from the default.
    #[cold]
    fn begin(&mut self, index: usize, disposition: Disposition) {
        let mut made = Box::new([Disposition::default(); MAX_SIGNAL as usize]);
        made[index] = disposition;
        self.0 = Some(made);
    }

    /// Puts all but ignored signals to their default. A table that is not needed any more is returned, to be dropped
    /// outside the lock.
    fn forget_handlers(&mut self) -> Self {
        if !self.0.as_ref().is_some_and(|table| table.iter().any(|disposition| disposition.handler == SIG_IGN)) {
            return core::mem::take(self);
        }
        self.0.iter_mut().for_each(|table| table.iter_mut().for_each(Disposition::forget_handler));
        Self::default()
    }
}

/// The dispositions of a process.
pub enum Actions {
    /// Those of this process alone, under its lock.
    Own(Dispositions),
    /// Those of all processes made with `CLONE_SIGHAND`. Their lock is taken inside that of a process.
    Shared(Arc<SpinLock<Dispositions>>),
}

impl Actions {
    /// All at their default.
    pub fn new() -> Self {
        Self::Own(Dispositions::default())
    }
}

/// The signal part of a process.
pub struct ProcessSignals {
    actions: SpinLock<Actions>,
    /// Signals that any of its threads may take.
    pub pending: PendingSignals,
    /// Readers of signal descriptors (signalfd(2)); made by the first.
    readers: Once<Arc<WaitQueue>>,
    /// Whether a fault of its own has to end it, init or not.
    faulted: AtomicBool,
}

impl ProcessSignals {
    /// With no signal pending.
    pub(super) const fn new(actions: Actions) -> Self {
        Self {
            actions: SpinLock::new(actions),
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

    /// The dispositions for a child that shares them (`CLONE_SIGHAND`).
    pub fn share_actions(&self) -> Actions {
        let mut actions = self.actions.lock();
        let shared = match &mut *actions {
            Actions::Own(table) => Arc::new(SpinLock::new(core::mem::take(table))),
            Actions::Shared(table) => table.clone(),
        };
        *actions = Actions::Shared(shared.clone());
        Actions::Shared(shared)
    }

    /// A copy for a child that does not share them (fork); `forget_handlers` puts all but ignored signals to their
    /// default (`CLONE_CLEAR_SIGHAND`).
    pub fn copy_actions(&self, forget_handlers: bool) -> Actions {
        let mut table = match &*self.actions.lock() {
            Actions::Own(table) => table.clone(),
            Actions::Shared(table) => table.lock().clone(),
        };
        if forget_handlers {
            drop(table.forget_handlers());
        }
        Actions::Own(table)
    }

    /// A number that two processes have in common exactly if they share their dispositions (kcmp(2)).
    pub fn actions_id(&self) -> usize {
        match &*self.actions.lock() {
            Actions::Own(table) => core::ptr::from_ref(table).addr(),
            Actions::Shared(table) => Arc::as_ptr(table).addr(),
        }
    }

    /// The disposition of `signal`.
    pub fn action(&self, signal: u8) -> Disposition {
        self.edit_action(signal, |disposition| *disposition)
    }

    /// Runs `edit` on the disposition of `signal`. `edit` must not sleep.
    #[inline]
    pub fn edit_action<R>(&self, signal: u8, edit: impl FnOnce(&mut Disposition) -> R) -> R {
        let mut own = self.actions.lock();
        let mut shared;
        let table = match &mut *own {
            Actions::Own(table) => table,
            Actions::Shared(table) => {
                shared = table.lock();
                &mut *shared
            }
        };
        table.edit(signal, edit)
    }

    /// Handlers are gone with the program; ignored signals stay ignored (execve(2)). Processes that share the table
    /// keep it.
    pub fn forget_handlers(&self) {
        let mut actions = self.actions.lock();
        let (unneeded, left) = match &mut *actions {
            Actions::Own(table) => (table.forget_handlers(), None),
            Actions::Shared(table) => {
                let mut own = table.lock().clone();
                let unneeded = own.forget_handlers();
                (unneeded, Some(core::mem::replace(&mut *actions, Actions::Own(own))))
            }
        };
        // Memory is given back outside the lock.
        drop(actions);
        drop((unneeded, left));
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
