//! Sending signals: which thread gets them, and the effects of sending itself.
//!
//! A signal waits at a thread or at its process until a thread takes it on its way to user mode ([`deliver`]). Sending
//! has effects of its own, before delivery: `SIGCONT` continues, `SIGKILL` ends, stop signals and `SIGCONT` cancel
//! each other, ignored signals vanish. The rules are [`kernel_logic::signal`]'s.

use alloc::sync::Arc;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kernel_logic::signal::{Cause, Limit, SigInfo, SigSet, sig};
use kernel_logic::sigstack::AltStack;
use linux_abi::Errno;
use machine::sync::SpinLock;

use crate::sched::{self, Sleep, ThreadState};
use crate::sync::WaitReason;
use crate::sync::wait::WaitQueue;
use crate::task::account::{Charge, Kind};
use crate::task::process::Ended;
use crate::task::{PendingSignals, Process, Task, Thread, ThreadRef, current, limits::resource};
use crate::trace::flight;

pub mod deliver;
pub mod frame;
pub mod jobs;
pub mod permit;

/// The signal part of a thread.
pub struct ThreadSignals {
    /// Blocked signals; written by the thread itself.
    blocked: AtomicU64,
    /// Signals for this thread alone.
    pub pending: PendingSignals,
    /// The alternate stack of handlers (sigaltstack(2)).
    pub alt_stack: OwnAltStack,
    /// The mask to put back when no handler ran (`sigsuspend`, `ppoll`).
    saved_mask: AtomicU64,
    has_saved_mask: AtomicBool,
    /// How `restart_syscall` goes on.
    pub restart: SpinLock<Option<Restart>>,
    /// Signals an `rt_sigtimedwait` of this thread takes.
    pub waiting_for: AtomicU64,
    /// Woken when one of those arrives.
    pub arrived: WaitQueue,
}

/// An alternate stack that its thread alone reads and writes, once it runs: so it takes no lock, of which each signal
/// would pay two.
#[derive(Debug, Default)]
pub struct OwnAltStack {
    base: AtomicU64,
    size: AtomicU64,
    auto_disarm: AtomicBool,
}

impl OwnAltStack {
    /// What `sigaltstack` set last.
    pub fn get(&self) -> AltStack {
        AltStack {
            base: self.base.load(Ordering::Relaxed),
            size: self.size.load(Ordering::Relaxed),
            auto_disarm: self.auto_disarm.load(Ordering::Relaxed),
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.size.load(Ordering::Relaxed) == 0
    }

    /// Takes the place of what there was; that a frame lies there is for the caller to see.
    pub fn set(&self, stack: AltStack) {
        self.base.store(stack.base, Ordering::Relaxed);
        self.size.store(stack.size, Ordering::Relaxed);
        self.auto_disarm.store(stack.auto_disarm, Ordering::Relaxed);
    }
}

/// A call that `restart_syscall` continues.
#[derive(Clone, Copy, Debug)]
pub enum Restart {
    /// A sleep until a moment of the monotonic clock; where the rest is reported.
    Sleep {
        /// When to wake.
        deadline: u64,
        /// `rem`, 0 if not wanted.
        remaining: u64,
    },
    /// A futex wait.
    Futex {
        /// User address of the futex.
        addr: u64,
        /// Value that the caller expected.
        value: u32,
        /// Bits a waker must share.
        bits: u32,
        /// When to give up.
        deadline: u64,
        /// The key is private to the address space.
        private: bool,
    },
}

impl ThreadSignals {
    /// Offset of the set of blocked signals.
    pub const BLOCKED: usize = offset_of!(Self, blocked);

    /// Of a new thread with this mask.
    pub fn new(blocked: SigSet) -> Self {
        Self {
            blocked: AtomicU64::new(blocked.0),
            pending: PendingSignals::new(),
            alt_stack: OwnAltStack::default(),
            saved_mask: AtomicU64::new(0),
            has_saved_mask: AtomicBool::new(false),
            restart: SpinLock::new(None),
            waiting_for: AtomicU64::new(0),
            arrived: WaitQueue::new(WaitReason::Signal),
        }
    }

    /// The thread's signal mask.
    pub fn blocked(&self) -> SigSet {
        SigSet(self.blocked.load(Ordering::Relaxed))
    }
}

/// Changes the running thread's mask.
#[inline]
pub fn set_blocked(me: &Task, mask: SigSet) {
    let old = me.signals.blocked();
    let mask = mask.without(SigSet::UNBLOCKABLE);
    if old == mask {
        return;
    }
    me.signals.blocked.store(mask.0, Ordering::SeqCst);
    let shared = me.process.signals.pending.set().0;
    // An end or a stop does not ask for the mask: who ends or stops a thread tells it.
    if (me.signals.pending.set().0 | shared) & !mask.0 != 0 {
        machine::cpu::request_work();
    }
    let left = shared & mask.0 & !old.0;
    if left != 0 {
        leave_to_others(me, left);
    }
}

/// What this thread no longer takes, another may.
#[cold]
#[inline(never)]
fn leave_to_others(me: &Task, left: u64) {
    for thread in me.process.threads.list() {
        if left & !thread.signals.blocked().0 != 0 {
            sched::notify(&thread, false);
        }
    }
}

/// Replaces the mask until the call returns: [`deliver`] puts `old` back unless a handler runs first.
pub fn set_temporary_mask(me: &Task, mask: SigSet) {
    me.signals.saved_mask.store(me.signals.blocked().0, Ordering::Relaxed);
    me.signals.has_saved_mask.store(true, Ordering::Relaxed);
    set_blocked(me, mask);
}

/// Puts the mask before [`set_temporary_mask`] back, if no handler is to run under it.
pub fn restore_mask(me: &Task) {
    // Written by the thread itself alone.
    if me.signals.has_saved_mask.load(Ordering::Relaxed) {
        me.signals.has_saved_mask.store(false, Ordering::Relaxed);
        set_blocked(me, SigSet(me.signals.saved_mask.load(Ordering::Relaxed)));
    }
}

/// Whether a thread must look after something before it goes to user mode.
pub fn needs_attention(task: &Task) -> bool {
    let pending = pending_set(task).0;
    pending & !task.signals.blocked.load(Ordering::Relaxed) != 0
        || task.process.life.is_ending()
        || task.process.life.is_stopping()
        || task.must_exit.load(Ordering::Acquire)
}

/// Whether a sleep of this kind must end.
pub fn is_pending(task: &Task, sleep: Sleep) -> bool {
    match sleep {
        Sleep::Interruptible => needs_attention(task),
        Sleep::Killable | Sleep::Stopped => task.process.life.is_ending() || task.must_exit.load(Ordering::Acquire),
        Sleep::Uninterruptible => false,
    }
}

/// The signals pending for the thread or its process.
#[inline]
pub fn pending_set(task: &Task) -> SigSet {
    task.signals.pending.set().with(task.process.signals.pending.set())
}

/// Takes the next signal among `wanted` from the thread or its process.
#[inline]
pub fn take(task: &Task, wanted: SigSet) -> Option<SigInfo> {
    let (own, shared) = (&task.signals.pending, &task.process.signals.pending);
    let from = if own.set().0 & wanted.0 != 0 { own } else { shared };
    let mut info = from.take(wanted);
    if info.is_none() && shared.set().0 & wanted.0 != 0 {
        // Another thread has discarded, or taken, what was seen first.
        info = shared.take(wanted);
    }
    match &mut info {
        Some(SigInfo { cause: cause @ Cause::Timer { .. }, .. }) => note_timer(task, cause),
        Some(SigInfo { signal: sig::ALRM, .. }) => task.process.itimers.alarm_taken(),
        _ => {}
    }
    info
}

/// A POSIX timer goes on when its signal is taken, and says how often it would have gone off meanwhile.
#[cold]
fn note_timer(task: &Task, cause: &mut Cause) {
    if let Cause::Timer { id, overrun, setting, .. } = cause {
        let missed = task.process.timers.taken(*id, *setting);
        *overrun = overrun.saturating_add(missed).min(i32::MAX as u32);
    }
}

/// Sends to a process: any of its threads may take it.
pub fn send_process(process: &Arc<Process>, info: SigInfo) -> Result<(), Errno> {
    queue_for_process(process, info).map(drop)
}

/// [`send_process`], saying whether the signal waits now; else it is ignored.
pub fn queue_for_process(process: &Arc<Process>, info: SigInfo) -> Result<bool, Errno> {
    let signal = info.signal;
    flight::signal_sent(signal, process.pid);
    if !prepare(process, None, &info) {
        continue_if_asked(process, signal);
        return Ok(false);
    }
    let charge =
        |limit| process.threads.with(|threads| admit(process, threads.first().map(|thread| &***thread), limit));
    if !process.signals.pending.push(info, charge) {
        return Err(Errno::EAGAIN);
    }
    continue_if_asked(process, signal);
    process.signals.wake_readers();
    let wants = |thread: &&ThreadRef| {
        !thread.signals.blocked().has(signal) || SigSet(thread.signals.waiting_for.load(Ordering::Acquire)).has(signal)
    };
    if let Some(thread) = process.threads.find(wants) {
        tell(&thread, signal);
    }
    Ok(true)
}

/// Sends to one thread.
pub fn send_thread(thread: &ThreadRef, info: SigInfo) -> Result<(), Errno> {
    queue_for_thread(thread, info).map(drop)
}

/// [`send_thread`], saying whether the signal waits now; else it is ignored.
pub fn queue_for_thread(thread: &ThreadRef, info: SigInfo) -> Result<bool, Errno> {
    let signal = info.signal;
    flight::signal_sent(signal, thread.pid());
    if !prepare(&thread.process, Some(thread), &info) {
        continue_if_asked(&thread.process, signal);
        return Ok(false);
    }
    if !thread.signals.pending.push(info, |limit| admit(&thread.process, Some(thread), limit)) {
        return Err(Errno::EAGAIN);
    }
    continue_if_asked(&thread.process, signal);
    thread.process.signals.wake_readers();
    tell(thread, signal);
    Ok(true)
}

/// `SIGCONT` continues whatever its disposition; only once it is queued, so that the process cannot run on without it.
fn continue_if_asked(process: &Arc<Process>, signal: u8) {
    if signal == sig::CONT {
        jobs::resume(process);
    }
}

/// Raises a fault's signal in the running thread: blocked or ignored, it is fatal, and without a handler it ends init
/// too.
pub fn force(info: SigInfo) {
    let me = current();
    flight::signal_sent(info.signal, me.pid());
    let set = SigSet::only(info.signal);
    let blocked = me.signals.blocked().has(info.signal);
    let handler = me.process.signals.edit_action(info.signal, |entry| {
        if blocked || entry.handler == kernel_logic::signal::SIG_IGN {
            *entry = kernel_logic::signal::Disposition::default();
        }
        entry.handler
    });
    if handler == kernel_logic::signal::SIG_DFL {
        me.process.signals.must_die();
    }
    if blocked {
        me.signals.blocked.store(me.signals.blocked().without(set).0, Ordering::SeqCst);
    }
    me.signals.pending.push(info, |_| admit(&me.process, Some(&me), Limit::Lifted));
    machine::cpu::request_work();
}

/// What a call by the running thread puts into `siginfo`: its process and real user.
pub fn from_caller(me: &Task, signal: u8, code: i32) -> SigInfo {
    let uid = me.creds.with(|creds| creds.uid);
    SigInfo { signal, code, errno: 0, cause: Cause::Sender { pid: me.pid(), uid } }
}

/// Does what sending alone does; whether the signal must then be queued.
fn prepare(process: &Arc<Process>, thread: Option<&Thread>, info: &SigInfo) -> bool {
    if process.is_zombie() {
        return false;
    }
    if SigSet::STOPS.has(info.signal) {
        discard(process, SigSet::only(sig::CONT));
    } else if info.signal == sig::CONT {
        discard(process, SigSet::STOPS);
    }
    let disposition = process.signals.action(info.signal);
    let is_blocked = |thread: &Thread| thread.signals.blocked().has(info.signal);
    let is_wanted = |thread: &Thread| SigSet(thread.signals.waiting_for.load(Ordering::Acquire)).has(info.signal);
    let (blocked, wanted) = match thread {
        Some(thread) => (is_blocked(thread), is_wanted(thread)),
        None => process.threads.with(|threads| {
            (threads.iter().all(|thread| is_blocked(thread)), threads.iter().any(|thread| is_wanted(thread)))
        }),
    };
    if !blocked && !wanted {
        if disposition.ignores(info.signal) {
            return false;
        }
        let verdict = kernel_logic::signal::deliver(info.signal, &disposition, process.is_protected());
        if verdict == kernel_logic::signal::Delivery::Drop {
            return false;
        }
    }
    if info.signal == sig::KILL && !process.is_init() {
        process.begin_end(Ended::Killed { signal: sig::KILL, core: false });
    }
    true
}

fn tell(thread: &ThreadRef, signal: u8) {
    if SigSet(thread.signals.waiting_for.load(Ordering::Acquire)).has(signal) {
        thread.signals.arrived.wake_all();
    }
    if !thread.signals.blocked().has(signal) {
        sched::notify(thread, signal == sig::KILL);
    }
}

/// Forgets pending signals of `set` everywhere in a process.
pub fn discard(process: &Process, set: SigSet) {
    let mut any = process.signals.pending.discard(set);
    process.threads.with(|threads| {
        for thread in threads {
            any |= thread.signals.pending.discard(set);
        }
    });
    if any {
        process.timers.discarded(set);
    }
}

/// [`discard`] by a thread of the process. One without others looks at its own alone: only it could add any.
#[inline]
pub fn discard_own(me: &Task, set: SigSet) {
    if me.process.threads.count() > 1 || pending_set(me).0 & set.0 != 0 {
        discard(&me.process, set);
    }
}

/// Forgets pending signals of POSIX timers, which an exec deletes, of the process and its one thread.
pub fn discard_timers(me: &Task) {
    me.process.signals.pending.discard_timers();
    me.signals.pending.discard_timers();
}

/// Counts one more queued signal for the real user of `thread`, one of `process`: `None` if the limit or memory forbids
/// it.
#[inline]
fn admit(process: &Process, thread: Option<&Task>, limit: Limit) -> Option<Charge> {
    if crate::mm::frames::is_low() {
        return None;
    }
    let most = match limit {
        Limit::Binds => process.limit(resource::SIGPENDING),
        Limit::Lifted => u64::MAX,
    };
    thread?.creds.with(|creds| creds.account.charge(Kind::Signals, 1, most))
}

/// Wakes a thread that job control stopped.
pub(crate) fn unstop(thread: &ThreadRef) {
    sched::wake_from(thread, ThreadState::Stopped);
}
