//! The scheduler's part of a thread: state, processor, and what its share depends on.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use kernel_logic::runqueue::{Entity, Policy};
use machine::cpu::{self, CpuId};
use machine::describe::Entry;
use machine::sync::SpinLock;
use machine::time::{Nanos, now};

use super::ThreadState;

/// The scheduler's part of a thread.
pub struct SchedState {
    pub(super) state: StateCell,
    /// The processor it runs on, or whose queue it is in, or it last ran on.
    pub(super) cpu: AtomicU32,
    pub(super) vruntime: AtomicU64,
    nice: AtomicI32,
    policy: SpinLock<Policy>,
    /// `Policy::Normal`, readable without the lock: the common case.
    ordinary: AtomicBool,
    affinity: AtomicU64,
    /// Children start at the default policy (`SCHED_RESET_ON_FORK`).
    pub reset_on_fork: AtomicBool,
    /// When its present turn began.
    pub(super) since: AtomicU64,
    /// Nanoseconds it has run before that.
    pub(super) ran: AtomicU64,
    /// What it had run when its limits and timers of processor time were last looked at.
    pub(super) looked_at: AtomicU64,
    /// Times it gave way by sleeping.
    pub voluntary: AtomicU64,
    /// Times it was made to.
    pub involuntary: AtomicU64,
    pub(super) idle: bool,
    /// `PR_SET_TIMERSLACK` in nanoseconds. Kept and reported only: timers here are exact.
    pub slack: AtomicU64,
    /// The slack it began with, which 0 asks back.
    pub default_slack: u64,
    /// What it sleeps for, of which object, and until when at the latest: for dumps.
    wait_reason: AtomicU8,
    wait_object: AtomicU64,
    wakes_at: AtomicU64,
    /// On which thread, if that is known of what it sleeps for.
    wait_on: AtomicU32,
    /// When what it waits for last went to another waiter.
    progress: AtomicU64,
    pub(super) split: Split,
}

/// What a thread sleeps for.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Number of the reason, 0 for none ([`crate::sync::WaitReason`]).
    pub reason: u8,
    /// Address of the queue, mutex or futex; 0 for none.
    pub object: u64,
    /// When the sleep ends at the latest (of [`now`]).
    pub deadline: Option<Nanos>,
    /// Number of the thread that has what it waits for, or will have it next; of a mutex alone.
    pub on: u32,
    /// Since when it has been in its present state without progress.
    pub since: Nanos,
}

/// The deadline of a sleep without one.
const NEVER: Nanos = Nanos::MAX;

/// Nanoseconds of timer slack of a thread that nothing else was asked for (prctl(2)).
const DEFAULT_SLACK: u64 = 50_000;

/// A [`ThreadState`] that several processors may change.
pub(super) struct StateCell(AtomicU8);

impl StateCell {
    const fn new(state: ThreadState) -> Self {
        Self(AtomicU8::new(state as u8))
    }

    #[inline]
    fn get(&self) -> ThreadState {
        ThreadState::from_number(self.0.load(Ordering::Acquire))
    }

    /// Sets the state, for the processor that owns the thread.
    #[inline]
    pub(super) fn set(&self, state: ThreadState) {
        self.0.store(state as u8, Ordering::SeqCst);
    }

    /// Changes the state if it is `from`; whether it was.
    #[inline]
    pub(super) fn exchange(&self, from: ThreadState, to: ThreadState) -> bool {
        self.0.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl SchedState {
    /// Its part of [`machine::describe`], for one at offset `at` of a thread.
    pub const fn fields(at: usize) -> [Entry; 11] {
        [
            Entry::number("sched.state", at + offset_of!(Self, state)),
            Entry::number("sched.cpu", at + offset_of!(Self, cpu)),
            Entry::number("sched.nice", at + offset_of!(Self, nice)),
            Entry::number("sched.since", at + offset_of!(Self, since)),
            Entry::number("sched.ran", at + offset_of!(Self, ran)),
            Entry::number("sched.idle", at + offset_of!(Self, idle)),
            Entry::number("wait.reason", at + offset_of!(Self, wait_reason)),
            Entry::number("wait.object", at + offset_of!(Self, wait_object)),
            Entry::number("wait.deadline", at + offset_of!(Self, wakes_at)),
            Entry::number("wait.thread", at + offset_of!(Self, wait_on)),
            Entry::number("wait.progress", at + offset_of!(Self, progress)),
        ]
    }

    /// Of a new thread that inherits `nice`, policy and affinity from `parent`.
    pub fn child_of(parent: &SchedState) -> Self {
        let resets = parent.reset_on_fork.load(Ordering::Relaxed);
        let policy = if resets { Policy::Normal } else { parent.policy() };
        let nice = parent.nice();
        let nice = if resets { nice.max(0) } else { nice };
        Self {
            vruntime: AtomicU64::new(parent.vruntime.load(Ordering::Relaxed)),
            nice: AtomicI32::new(nice),
            policy: SpinLock::new(policy),
            ordinary: AtomicBool::new(policy == Policy::Normal),
            slack: AtomicU64::new(parent.slack.load(Ordering::Relaxed)),
            default_slack: parent.slack.load(Ordering::Relaxed),
            affinity: AtomicU64::new(parent.affinity.load(Ordering::Relaxed)),
            ..Self::new(false)
        }
    }

    /// Of a thread at nice 0 without restrictions; `idle` for a processor's idle thread.
    pub fn new(idle: bool) -> Self {
        Self {
            state: StateCell::new(if idle { ThreadState::Running } else { ThreadState::Uninterruptible }),
            cpu: AtomicU32::new(cpu::id().0),
            vruntime: AtomicU64::new(0),
            nice: AtomicI32::new(0),
            policy: SpinLock::new(Policy::Normal),
            ordinary: AtomicBool::new(true),
            affinity: AtomicU64::new(u64::MAX),
            reset_on_fork: AtomicBool::new(false),
            since: AtomicU64::new(now()),
            ran: AtomicU64::new(0),
            looked_at: AtomicU64::new(0),
            voluntary: AtomicU64::new(0),
            involuntary: AtomicU64::new(0),
            idle,
            slack: AtomicU64::new(DEFAULT_SLACK),
            default_slack: DEFAULT_SLACK,
            wait_reason: AtomicU8::new(0),
            wait_object: AtomicU64::new(0),
            wakes_at: AtomicU64::new(NEVER),
            wait_on: AtomicU32::new(0),
            progress: AtomicU64::new(0),
            split: Split::default(),
        }
    }

    /// What it does now.
    #[inline]
    pub fn state(&self) -> ThreadState {
        self.state.get()
    }

    /// Whether it is a processor's idle thread.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// What it sleeps for. Of a thread that runs the answer is that of no wait.
    pub fn waits(&self) -> Wait {
        Wait {
            reason: self.wait_reason.load(Ordering::Relaxed),
            object: self.wait_object.load(Ordering::Relaxed),
            deadline: Some(self.wakes_at.load(Ordering::Relaxed)).filter(|at| *at != NEVER),
            on: self.wait_on.load(Ordering::Relaxed),
            since: self.since.load(Ordering::Relaxed).max(self.progress.load(Ordering::Relaxed)),
        }
    }

    pub(super) fn begin_wait(&self, reason: u8, object: u64, deadline: Option<Nanos>) {
        self.wait_reason.store(reason, Ordering::Relaxed);
        self.wait_object.store(object, Ordering::Relaxed);
        self.wakes_at.store(deadline.unwrap_or(NEVER), Ordering::Relaxed);
    }

    pub(super) fn end_wait(&self) {
        self.begin_wait(0, 0, None);
    }

    /// Notes which thread has the mutex that it waits for, or will have it next.
    pub fn waits_on(&self, holder: u32) {
        self.wait_on.store(holder, Ordering::Relaxed);
    }

    /// Notes that a waiter before it had its turn: however long the line, a thread in it is not hung.
    pub fn note_progress(&self, now: Nanos) {
        self.progress.store(now, Ordering::Relaxed);
    }

    /// The letter `/proc` shows.
    pub fn letter(&self) -> char {
        match self.state() {
            ThreadState::Running | ThreadState::Queued => 'R',
            ThreadState::Interruptible => 'S',
            ThreadState::Killable | ThreadState::Uninterruptible => 'D',
            ThreadState::Stopped => 'T',
            _ => 'X',
        }
    }

    /// The processor it is on or was last on.
    pub fn cpu(&self) -> CpuId {
        CpuId(self.cpu.load(Ordering::Relaxed))
    }

    /// -20 to 19.
    pub fn nice(&self) -> i32 {
        self.nice.load(Ordering::Relaxed)
    }

    /// Sets it, clamped.
    pub fn set_nice(&self, nice: i32) {
        self.nice.store(nice.clamp(-20, 19), Ordering::Relaxed);
    }

    /// Scheduling policy and priority.
    pub fn policy(&self) -> Policy {
        if self.ordinary.load(Ordering::Relaxed) { Policy::Normal } else { *self.policy.lock() }
    }

    /// Its real-time priority, 0 for none.
    pub fn real_time_priority(&self) -> u8 {
        match self.policy() {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority,
            _ => 0,
        }
    }

    /// Sets it; takes effect when it is next queued.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.lock() = policy;
        self.ordinary.store(policy == Policy::Normal, Ordering::Relaxed);
    }

    /// Processors it may run on.
    pub fn affinity(&self) -> u64 {
        self.affinity.load(Ordering::Relaxed)
    }

    /// Sets them; takes effect when it is next placed.
    pub fn set_affinity(&self, mask: u64) {
        self.affinity.store(mask, Ordering::Relaxed);
    }

    /// Nanoseconds it has run, its present turn included.
    pub fn run_time(&self) -> Nanos {
        let ran = self.ran.load(Ordering::Relaxed);
        if self.state() == ThreadState::Running {
            ran + now().saturating_sub(self.since.load(Ordering::Relaxed))
        } else {
            ran
        }
    }

    /// [`SchedState::run_time`] as user and system time.
    pub fn split_time(&self) -> (Nanos, Nanos) {
        self.split.at(self.run_time())
    }

    pub(super) fn entity(&self) -> Entity {
        Entity {
            policy: self.policy(),
            nice: self.nice.load(Ordering::Relaxed) as i8,
            vruntime: self.vruntime.load(Ordering::Relaxed),
        }
    }
}

/// A thread's processor time by mode, as far as it was looked at.
#[derive(Debug, Default)]
pub struct Split {
    user: AtomicU64,
    system: AtomicU64,
    /// The run time up to which the two above account.
    seen: AtomicU64,
}

impl Split {
    /// User and system time of a thread that has run for `total`; time that no sample covers counts as user time.
    pub fn at(&self, total: Nanos) -> (Nanos, Nanos) {
        self.note(total, true);
        (self.user.load(Ordering::Relaxed), self.system.load(Ordering::Relaxed))
    }

    /// Accounts what has run since the last look to the one mode. Returns how much that is.
    pub(super) fn note(&self, total: Nanos, user: bool) -> Nanos {
        let fresh = total.saturating_sub(self.seen.fetch_max(total, Ordering::Relaxed));
        let side = if user { &self.user } else { &self.system };
        side.fetch_add(fresh, Ordering::Relaxed);
        fresh
    }
}
