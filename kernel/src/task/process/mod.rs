//! What a process's threads share; its timers are in [`itimer`] and [`posix`].

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use kernel_logic::signal::{Disposition, MAX_SIGNAL};
use linux_abi::Errno;
use machine::sync::{Once, SpinLock};
use machine::time::Nanos;

use super::account::Charge;
use super::limits::{Limits, max_threads};
use super::{Above, PendingSignals, Pid, Slot, ThreadRef};
use crate::log;
use crate::mm::AddressSpace;
use crate::sched;
use crate::sync::wait::WaitQueue;
use crate::upper::Kwab;

pub mod family;
pub mod itimer;
mod life;
pub mod posix;
mod threads;

use family::Family;
use itimer::Itimers;
pub use life::{Change, Changes, Ended, Life, Phase};
use posix::PosixTimers;
pub use threads::Threads;

/// A process.
pub struct Process {
    /// Its id: the thread id of its first thread.
    pub pid: Pid,
    /// Group, session and parent.
    pub family: Family,
    /// When it began, on the monotonic clock.
    pub started: Nanos,
    /// Signal dispositions, shared by `CLONE_SIGHAND`.
    pub actions: Slot<Actions>,
    /// Signals that any of its threads may take.
    pub pending: PendingSignals,
    /// Where its readers of signals (signalfd) wait; made by the first.
    readers: Once<Arc<WaitQueue>>,
    /// Its live threads.
    pub threads: Threads,
    /// Whether it runs, is stopped, is ending or is a zombie.
    pub life: Life,
    /// Resource limits.
    pub limits: SpinLock<Limits>,
    /// What it counts for its user between its end and when it is waited for.
    pub counted: SpinLock<Option<Charge>>,
    /// What reaped children and ended threads used.
    pub usage: SpinLock<Usage>,
    /// Processor time at which `RLIMIT_CPU` is to be enforced next, `u64::MAX` for never; follows `limits`.
    pub cpu_deadline: AtomicU64,
    /// `setitimer`
    pub itimers: Itimers,
    /// `timer_create`
    pub timers: PosixTimers,
    /// personality(2)
    pub personality: AtomicU32,
    /// `PR_SET_THP_DISABLE`
    pub thp_disabled: AtomicBool,
    /// `oom_score_adj`, offset by 1000.
    pub oom_score: AtomicU32,
    /// The least `oom_score_adj` it may set without privilege, offset by 1000.
    pub oom_floor: AtomicU32,
}

/// A process's `comm`, for messages.
pub struct Comm<'a>(pub &'a Process);

impl fmt::Display for Comm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(thread) = self.0.threads.first() else { return f.write_str("?") };
        let mut comm = [0; 16];
        let len = thread.comm(&mut comm);
        log::Bytes(&comm[..len]).fmt(f)
    }
}

/// Signal dispositions.
pub struct Actions(pub SpinLock<[Disposition; MAX_SIGNAL as usize]>);

impl Actions {
    /// All at their default.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(SpinLock::new([Disposition::default(); MAX_SIGNAL as usize])))
    }

    /// What is asked for `signal`.
    pub fn get(&self, signal: u8) -> Disposition {
        self.0.lock()[usize::from(signal) - 1]
    }
}

/// Processor time and faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Of threads that ended, in nanoseconds in user mode.
    pub user: u64,
    /// In the kernel.
    pub system: u64,
    /// Minor faults.
    pub minor_faults: u64,
    /// Major faults.
    pub major_faults: u64,
    /// Voluntary switches.
    pub voluntary: u64,
    /// Involuntary switches.
    pub involuntary: u64,
    /// Largest resident set, KiB.
    pub max_rss: u64,
    /// Of children waited for: user time.
    pub child_user: u64,
    /// System time.
    pub child_system: u64,
    /// Minor faults.
    pub child_minor: u64,
    /// Major faults.
    pub child_major: u64,
    /// Largest resident set of any, KiB.
    pub child_max_rss: u64,
}

/// A session: processes that share a controlling terminal.
pub struct Session {
    /// Its id: the process id of its leader.
    pub id: Pid,
    /// The controlling terminal.
    pub terminal: SpinLock<Option<Arc<<Kwab as Above>::Terminal>>>,
}

impl Session {
    /// One without terminal.
    pub fn new(id: Pid) -> Arc<Self> {
        Arc::new(Self { id, terminal: SpinLock::new(None) })
    }
}

impl Process {
    /// A process to be entered into the tree, a child of `like`, from which it inherits. `exit_signal` is what its parent gets
    /// when it ends, 0 for none.
    pub fn new(pid: Pid, like: Option<&Process>, actions: Arc<Actions>, exit_signal: u8) -> Arc<Self> {
        let limits = like.map_or(Limits::initial(max_threads() / 2), |parent| *parent.limits.lock());
        let inherit = |of: fn(&Process) -> &AtomicU32, default: u32| {
            AtomicU32::new(like.map_or(default, |parent| of(parent).load(Ordering::Relaxed)))
        };
        Arc::new(Self {
            pid,
            family: Family::new(pid, like, exit_signal),
            started: machine::time::now(),
            actions: Slot::new(actions),
            pending: PendingSignals::new(),
            readers: Once::new(),
            threads: Threads::new(),
            life: Life::new(),
            cpu_deadline: AtomicU64::new(limits.cpu_deadline()),
            limits: SpinLock::new(limits),
            counted: SpinLock::new(None),
            usage: SpinLock::new(Usage::default()),
            itimers: Itimers::default(),
            timers: PosixTimers::default(),
            personality: inherit(|p| &p.personality, 0),
            thp_disabled: AtomicBool::new(like.is_some_and(|parent| parent.thp_disabled.load(Ordering::Relaxed))),
            oom_score: inherit(|p| &p.oom_score, 1000),
            oom_floor: inherit(|p| &p.oom_floor, 1000),
        })
    }

    /// The queue of its readers of signals.
    pub fn readers(&self) -> &Arc<WaitQueue> {
        loop {
            if let Some(queue) = self.readers.get() {
                return queue;
            }
            // Of two threads that come here at once, one queue is used.
            let _ = self.readers.set(Arc::default());
        }
    }

    /// Wakes its readers of signals, once a signal is queued for it or one of its threads.
    pub fn wake_readers(&self) {
        // A reader makes the queue before it looks for signals.
        fence(Ordering::SeqCst);
        if let Some(queue) = self.readers.get() {
            queue.wake_all();
        }
    }

    /// Whether it is init, which no signal kills by default.
    pub fn is_init(&self) -> bool {
        self.pid == 1
    }

    /// Process group id.
    pub fn pgid(&self) -> Pid {
        self.family.group()
    }

    /// Session id.
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

    /// Begins its end with this status: every thread leaves on its next way to user mode. The first caller decides the status.
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

    /// Remembers how large a memory it no longer uses had become (`ru_maxrss`).
    pub fn note_resident(&self, mm: &AddressSpace) {
        let mut usage = self.usage.lock();
        usage.max_rss = usage.max_rss.max(mm.peak() * 4);
    }

    /// The enforced value of a limit.
    pub fn limit(&self, resource: usize) -> u64 {
        self.limits.lock().soft(resource)
    }
}
