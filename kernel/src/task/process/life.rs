//! Whether a process runs, is stopped, is ending or is a zombie.
//!
//! [`Life`] keeps the state that wait(2) reports under a lock, and three flags that are read without it, two of them by
//! threads on every way to user mode. Flags and state change in one critical section, so a parent that sees a stop and
//! continues the process at once is second.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

use kernel_logic::signal::sig;
use machine::sync::SpinLock;

use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;

/// How a process ended: the two halves of a wait status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By `exit` with this code.
    Exited(u8),
    /// By a signal.
    Killed {
        /// The signal's number.
        signal: u8,
        /// Whether the core bit is set.
        core: bool,
    },
}

impl Ended {
    /// The status `wait4` stores.
    pub fn wait_status(self) -> i32 {
        match self {
            Ended::Exited(code) => i32::from(code) << 8,
            Ended::Killed { signal, core } => i32::from(signal) | if core { 0x80 } else { 0 },
        }
    }
}

/// A change of state that a parent can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The process is a zombie.
    Ended(Ended),
    /// Job control stopped it with this signal.
    Stopped(u8),
    /// It continued after a stop.
    Continued,
}

/// The changes that a caller of wait(2) asks for.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Report the end (`WEXITED`).
    pub ended: bool,
    /// Report a stop (`WUNTRACED`).
    pub stopped: bool,
    /// Report a continuation (`WCONTINUED`).
    pub continued: bool,
}

/// The part of a process's state letter in /proc that its threads do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its threads run, sleep or end.
    Running,
    /// Job control stopped it.
    Stopped,
    /// It has ended and was not waited for.
    Zombie,
}

#[derive(Default)]
struct LifeState {
    /// The status of the whole process, from the first `exit_group` or fatal signal on.
    ending: Option<Ended>,
    /// Its status, once all threads are gone.
    zombie: Option<Ended>,
    /// The signal that stopped it.
    stopped: Option<u8>,
    stop_unreported: bool,
    continued_unreported: bool,
}

/// The state of a process between its start and its reaping.
pub struct Life {
    state: SpinLock<LifeState>,
    /// `state.ending` is set.
    ending: AtomicBool,
    /// `state.stopped` is set.
    stopping: AtomicBool,
    /// `state.zombie` is set.
    gone: AtomicBool,
    /// A thread has claimed to write the dump of a process that `SIGKILL` ends.
    dumped: AtomicBool,
    /// Woken when it becomes a zombie.
    ended: WaitQueue,
    /// Woken when one of its children changes state.
    child_changed: WaitQueue,
}

impl Life {
    /// Offset of the byte that is 1 once it is a zombie.
    pub const GONE: usize = offset_of!(Self, gone);

    /// Of a running process.
    pub(super) fn new() -> Self {
        Self {
            state: SpinLock::new(LifeState::default()),
            ending: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            dumped: AtomicBool::new(false),
            ended: WaitQueue::new(WaitReason::ProcessEnd),
            child_changed: WaitQueue::new(WaitReason::ChildChange),
        }
    }

    /// Whether the whole process is to end: its threads leave on their next way to user mode.
    #[inline]
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Whether it is stopped: its threads sleep on their next way to user mode.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Whether it has ended and was not waited for.
    #[inline]
    pub fn is_zombie(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// [`is_zombie`](Self::is_zombie) for dumps: `false` if the lock is taken.
    pub fn try_is_zombie(&self) -> bool {
        self.state.try_lock().is_some_and(|state| state.zombie.is_some())
    }

    /// What it does now, for listings.
    pub fn phase(&self) -> Phase {
        let state = self.state.lock();
        match (state.zombie, state.stopped) {
            (Some(_), _) => Phase::Zombie,
            (None, Some(_)) => Phase::Stopped,
            (None, None) => Phase::Running,
        }
    }

    /// Begins its end with this status. `false` if it is ending already: the first caller decides.
    pub fn begin_end(&self, ended: Ended) -> bool {
        let mut state = self.state.lock();
        if state.ending.is_some() {
            return false;
        }
        state.ending = Some(ended);
        state.stopped = None;
        self.ending.store(true, Ordering::SeqCst);
        self.stopping.store(false, Ordering::SeqCst);
        true
    }

    /// Its last thread has left with `code`: the status of the process, which is another one if its end began before.
    pub fn end_with(&self, code: u8) -> Ended {
        let mut state = self.state.lock();
        let ended = *state.ending.get_or_insert(Ended::Exited(code));
        self.ending.store(true, Ordering::SeqCst);
        ended
    }

    /// Makes it a zombie with this status.
    pub fn become_zombie(&self, ended: Ended) {
        let mut state = self.state.lock();
        state.zombie = Some(ended);
        self.gone.store(true, Ordering::SeqCst);
        drop(state);
        self.ended.wake_all();
    }

    /// Whether `SIGKILL` ends it; `true` for one caller only, which dumps the process.
    pub fn claim_dump_of_kill(&self) -> bool {
        let killed = matches!(self.state.lock().ending, Some(Ended::Killed { signal: sig::KILL, .. }));
        killed && !self.dumped.swap(true, Ordering::Relaxed)
    }

    /// Stops it by `signal`. `false` if it is stopped or ending already.
    pub fn stop(&self, signal: u8) -> bool {
        let mut state = self.state.lock();
        if state.ending.is_some() || state.stopped.is_some() {
            return false;
        }
        state.stopped = Some(signal);
        state.stop_unreported = true;
        state.continued_unreported = false;
        self.stopping.store(true, Ordering::SeqCst);
        true
    }

    /// Continues it. `false` if it was not stopped.
    pub fn resume(&self) -> bool {
        let mut state = self.state.lock();
        if state.stopped.take().is_none() {
            return false;
        }
        state.stop_unreported = false;
        state.continued_unreported = true;
        self.stopping.store(false, Ordering::SeqCst);
        true
    }

    /// The change among `wanted` that its parent was not told of yet; with `keep` it can be reported again (`WNOWAIT`).
    pub fn report(&self, wanted: Changes, keep: bool) -> Option<Change> {
        let mut state = self.state.lock();
        if let Some(ended) = state.zombie {
            return wanted.ended.then_some(Change::Ended(ended));
        }
        if let (true, true, Some(signal)) = (wanted.stopped, state.stop_unreported, state.stopped) {
            state.stop_unreported = keep;
            return Some(Change::Stopped(signal));
        }
        if wanted.continued && state.continued_unreported {
            state.continued_unreported = keep;
            return Some(Change::Continued);
        }
        None
    }

    /// The queue that is woken when it becomes a zombie.
    pub fn ended(&self) -> &WaitQueue {
        &self.ended
    }

    /// The queue that is woken when one of its children changes state.
    pub fn child_changed(&self) -> &WaitQueue {
        &self.child_changed
    }
}
