//! A process: what its threads share besides memory and files.
//!
//! Each subject is a type of its own that keeps its invariants: [`Family`] (group, session, parent), [`Life`] (running,
//! stopped, ending, zombie), [`Threads`], [`ProcessSignals`], [`Accounting`] (usage and limits), [`OomScore`], timers
//! in [`itimer`] and [`posix`], [`ParkedTimers`].

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use linux_abi::Errno;
use machine::sync::SpinLock;
use machine::time::Nanos;

use super::limits::{Limits, max_threads};
use super::{Above, Pid, ThreadRef};
use crate::log;
use crate::sched;
use crate::upper::Kwab;

mod accounting;
pub mod family;
pub mod itimer;
mod life;
mod oom_score;
pub mod posix;
mod signals;
mod threads;

pub use accounting::{Accounting, Usage};
use family::Family;
use itimer::Itimers;
pub use itimer::ParkedTimers;
pub use life::{Change, Changes, Ended, Life, Phase};
pub use oom_score::OomScore;
use posix::PosixTimers;
pub use signals::{Actions, ProcessSignals};
pub use threads::Threads;

/// One process, from its fork to its reaping.
pub struct Process {
    /// The thread id of its first thread.
    pub pid: Pid,
    /// When it was forked, on the monotonic clock.
    pub started: Nanos,
    /// Group, session and parent.
    pub family: Family,
    /// Its live threads.
    pub threads: Threads,
    /// Whether it runs, is stopped, is ending or is a zombie.
    pub life: Life,
    /// Signals of the process as a whole.
    pub signals: ProcessSignals,
    /// Usage and limits.
    pub accounting: Accounting,
    /// How the OOM killer rates it.
    pub oom_score: OomScore,
    /// Timers of setitimer(2).
    pub itimers: Itimers,
    /// Timers of timer_create(2).
    pub timers: PosixTimers,
    /// Timers of any process that wait until this one has run.
    pub parked_timers: ParkedTimers,
    /// Execution domain (personality(2)).
    personality: AtomicU32,
}

/// A process's `comm`, for messages.
pub struct Comm<'a>(pub &'a Process);

impl fmt::Display for Comm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(thread) = self.0.threads.first() else { return f.write_str("?") };
        let mut comm = [0; 16];
        let len = thread.comm(&mut comm);
        log::Escaped(&comm[..len]).fmt(f)
    }
}

/// A session: processes that share a controlling terminal.
pub struct Session {
    /// The process id of its leader.
    pub id: Pid,
    /// The controlling terminal.
    pub terminal: SpinLock<Option<Arc<<Kwab as Above>::Terminal>>>,
}

impl Session {
    /// A session without terminal.
    pub fn new(id: Pid) -> Arc<Self> {
        Arc::new(Self { id, terminal: SpinLock::new(None) })
    }
}

impl Process {
    /// A process to be entered into the tree, a child of `like`, from which it inherits. `exit_signal` is what its
    /// parent gets when it ends, 0 for none.
    pub fn new(pid: Pid, like: Option<&Process>, actions: Actions, exit_signal: u8) -> Arc<Self> {
        let limits = like.map_or(Limits::initial(max_threads() / 2), |parent| parent.accounting.limits());
        Arc::new(Self {
            pid,
            started: machine::time::now(),
            family: Family::new(pid, like, exit_signal),
            threads: Threads::new(),
            life: Life::new(),
            signals: ProcessSignals::new(actions),
            accounting: Accounting::new(limits),
            oom_score: like.map_or_else(OomScore::default, |parent| parent.oom_score.inherited()),
            itimers: Itimers::default(),
            timers: PosixTimers::default(),
            parked_timers: ParkedTimers::default(),
            personality: AtomicU32::new(like.map_or(0, Process::personality)),
        })
    }

    /// Whether it is init.
    pub fn is_init(&self) -> bool {
        self.pid == 1
    }

    /// Whether no signal's default action ends it: init, until it faults (pid_namespaces(7)).
    pub fn is_protected(&self) -> bool {
        self.is_init() && !self.signals.is_to_die()
    }

    /// Process group id.
    pub fn pgid(&self) -> Pid {
        self.family.group()
    }

    /// Session id of the process.
    pub fn sid(&self) -> Pid {
        self.family.with_session(|session| session.id)
    }

    /// Parent process id; 0 for init.
    pub fn ppid(&self) -> Pid {
        self.family.parent()
    }

    /// Whether it has ended and was not waited for.
    pub fn is_zombie(&self) -> bool {
        self.life.is_zombie()
    }

    /// Begins its end with this status: every thread leaves on its next way to user mode. The first caller decides the
    /// status.
    pub fn begin_end(&self, ended: Ended) {
        if self.life.begin_end(ended) {
            for thread in &self.threads.list() {
                sched::notify(thread, true);
            }
            self.threads.interrupt_execution();
        }
    }

    /// Adds a further thread: `EAGAIN` while the process ends or executes a program.
    pub fn add_thread(&self, thread: &ThreadRef) -> Result<(), Errno> {
        self.threads.add(thread, || self.life.is_ending())
    }

    /// The soft limit of a resource.
    #[inline]
    pub fn limit(&self, resource: usize) -> u64 {
        self.accounting.limit(resource)
    }

    /// Its execution domain (personality(2)).
    pub fn personality(&self) -> u32 {
        self.personality.load(Relaxed)
    }

    /// Sets its execution domain.
    pub fn set_personality(&self, personality: u32) {
        self.personality.store(personality, Relaxed);
    }
}
