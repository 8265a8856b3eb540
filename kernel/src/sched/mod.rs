//! The scheduler: run queues, sleeping and waking.
//!
//! Each processor has a queue (the order is [`kernel_logic::runqueue`]'s) and its timers. A thread's
//! [`ThreadState`] is one atomic byte and says what refers to it:
//!
//! - `Running`: on a processor, in no queue;
//! - `Queued`: in exactly one queue (it may still be on a processor, on its way out);
//! - a sleeping state: in no queue; the processor that moves it to `Queued` by compare-and-exchange puts it into one;
//! - `Dead`: in no queue, for good.
//!
//! The kernel is not preemptible: interrupts only leave marks ([`Cpu::timer_due`] and the machine's work request),
//! which [`on_return`] and the idle loop act upon. So no lock here is taken in interrupt context. Work whose length a
//! program chooses calls [`breathe`] on its way.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use kernel_logic::runqueue::{Arrival, Policy, RunQueue, SLICE};
use kernel_logic::timers::Timers;
use machine::cpu::{self, CpuId, MAX_CPUS, PerCpu};
use machine::sync::{Once, SpinLock};
use machine::time::{Nanos, now};

use crate::trace::flight;
use crate::upper::{Kwab, START, Task, Thread, ThreadRef, current};

mod idle;
pub mod load;
pub mod placement;
mod thread;
mod tick;
pub mod timer;

pub use idle::{idle_thread, start_first};
pub use kernel_logic::runqueue::ThreadState;
pub use thread::SchedState;

use timer::Action;

/// What the scheduler needs of a thread.
pub trait Schedulable {
    /// The scheduler's part of it.
    fn sched(&self) -> &SchedState;
    /// Its number among all threads: what waits for it names it by this.
    fn number(&self) -> u32;
    /// Whether a signal must end a sleep of this kind; with [`Sleep::Interruptible`], whether it has any work to do on
    /// its way to user mode.
    fn is_interrupted(&self, sleep: Sleep) -> bool;
    /// Whether its process has a limit of processor time, or timers that wait for it to run.
    fn is_timed(&self) -> bool;
    /// The timer went off while this thread ran, or it ran for long enough over several turns: its limit of processor
    /// time is enforced. Thread context.
    fn ticked(&self);
}

/// What the scheduler calls in thread context for marks that interrupts left.
pub trait Deferred {
    /// The console has input.
    fn console_input();
}

/// How a thread sleeps: what may wake it besides what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Any signal it does not block.
    Interruptible,
    /// Only the end of its process.
    Killable,
    /// Only what it waits for.
    Uninterruptible,
    /// Stopped by job control: `SIGCONT` or the end of its process.
    Stopped,
}

/// How long a processor's timer stays silent at most, also when it is idle.
pub const HEARTBEAT: Nanos = 1_000_000_000;

/// One processor's scheduling state.
pub struct Cpu {
    queue: SpinLock<RunQueue<ThreadRef>>,
    /// How many are queued; readable without the lock.
    queued: AtomicU32,
    idle: Once<ThreadRef>,
    /// Its idle thread runs, also while it looks for something to do.
    idles: AtomicBool,
    /// A thread with precedence is queued: give way at the next scheduling point.
    resched: AtomicBool,
    /// The timer expired.
    pub timer_due: AtomicBool,
    /// The console has input.
    pub console_due: AtomicBool,
    /// What the hardware timer is set to; `u64::MAX` when it is not.
    armed: AtomicU64,
    /// Timers of this processor.
    pub timers: SpinLock<Timers<Action>>,
    /// Thread switches so far.
    pub switches: AtomicU64,
    /// Nanoseconds in the kernel, as far as samples say.
    system: AtomicU64,
    /// The most idle time and the most user time that were told of it.
    idled: AtomicU64,
    in_user: AtomicU64,
    /// The queue's virtual time, readable without the lock.
    clock: AtomicU64,
    /// The running thread's virtual runtime when its turn began; [`NO_TURN`] if it has none.
    turn_vruntime: AtomicU64,
    /// When that was.
    turn_since: AtomicU64,
    /// The running thread's weight.
    turn_weight: AtomicU64,
}

/// An idle processor's, or a real-time thread's, virtual runtime.
const NO_TURN: u64 = u64::MAX;

static CPUS: PerCpu<Cpu> = PerCpu::new([const { Cpu::new() }; MAX_CPUS]);
/// Processors running their idle thread.
static IDLE: AtomicU64 = AtomicU64::new(0);

impl Cpu {
    const fn new() -> Self {
        Self {
            queue: SpinLock::new(RunQueue::new()),
            queued: AtomicU32::new(0),
            idle: Once::new(),
            idles: AtomicBool::new(false),
            system: AtomicU64::new(0),
            idled: AtomicU64::new(0),
            in_user: AtomicU64::new(0),
            resched: AtomicBool::new(false),
            timer_due: AtomicBool::new(false),
            console_due: AtomicBool::new(false),
            armed: AtomicU64::new(u64::MAX),
            timers: SpinLock::new(Timers::new()),
            switches: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            turn_vruntime: AtomicU64::new(NO_TURN),
            turn_since: AtomicU64::new(0),
            turn_weight: AtomicU64::new(1024),
        }
    }
}

/// The scheduling state of this processor.
pub fn here() -> &'static Cpu {
    CPUS.here()
}

/// The scheduling state of another processor.
pub fn of(cpu: CpuId) -> &'static Cpu {
    CPUS.of(cpu)
}

/// Nanoseconds that a processor has been idle: never less than what was told before.
pub fn idle_time(cpu: CpuId) -> Nanos {
    let Some(thread) = of(cpu).idle.get() else { return 0 };
    // In this order: a turn that ends meanwhile is missing, not counted twice.
    let ran = thread.sched().ran.load(Ordering::SeqCst);
    let since = thread.sched().since.load(Ordering::SeqCst);
    let idles = of(cpu).idles.load(Ordering::SeqCst);
    let told = ran + if idles { now().saturating_sub(since) } else { 0 };
    of(cpu).idled.fetch_max(told, Ordering::Relaxed).max(told)
}

/// Nanoseconds that a processor has spent in user mode, in the kernel by samples of the timer, and idle. None is ever
/// less than before: what was told as user time and turns out to be the kernel's counts in both.
pub fn times(cpu: CpuId) -> [Nanos; 3] {
    let (system, idle) = (of(cpu).system.load(Ordering::Relaxed), idle_time(cpu));
    let user = now().saturating_sub(system + idle);
    [of(cpu).in_user.fetch_max(user, Ordering::Relaxed).max(user), system, idle]
}

/// Number of threads that run or wait to, for the load average.
pub fn runnable() -> u32 {
    let online = cpu::online();
    let queued: u32 =
        (0..64).filter(|n| online >> n & 1 != 0).map(|n| of(CpuId(n)).queued.load(Ordering::Relaxed)).sum();
    queued + (online & !IDLE.load(Ordering::Relaxed)).count_ones()
}

/// Whether every processor idles and no thread is queued. A look from outside: true only as long as nothing wakes a
/// thread.
pub fn is_quiet() -> bool {
    let online = cpu::online();
    online & !IDLE.load(Ordering::Relaxed) == 0
        && (0..64).filter(|n| online >> n & 1 != 0).all(|n| of(CpuId(n)).queued.load(Ordering::Relaxed) == 0)
}

/// Switches of all processors.
pub fn all_switches() -> u64 {
    let online = cpu::online();
    (0..64).filter(|n| online >> n & 1 != 0).map(|n| of(CpuId(n)).switches.load(Ordering::Relaxed)).sum()
}

/// Marks the running thread asleep. Between this and [`sleep_for`] or [`cancel_sleep`] a waker already finds it, so
/// look at the condition after calling this.
pub fn prepare_to_sleep(sleep: Sleep) {
    let to = match sleep {
        Sleep::Interruptible => ThreadState::Interruptible,
        Sleep::Killable => ThreadState::Killable,
        Sleep::Uninterruptible => ThreadState::Uninterruptible,
        Sleep::Stopped => ThreadState::Stopped,
    };
    current().sched().state.set(to);
    fence(Ordering::SeqCst);
}

/// Gives the processor away until woken, at the latest at `deadline`.
///
/// A dump names what it waits for: `reason` is a number of [`crate::sync::WaitReason`], `object` the address of the
/// queue, mutex or futex, 0 for none.
pub fn sleep_for(reason: u8, object: u64, deadline: Option<Nanos>) {
    let me = current();
    me.sched().voluntary.fetch_add(1, Ordering::Relaxed);
    me.sched().begin_wait(reason, object, deadline);
    match deadline {
        None => schedule(),
        Some(at) => {
            let timer = timer::arm(at, Action::Wake(me.to_arc()));
            schedule();
            timer.disarm();
        }
    }
    me.sched().end_wait();
}

/// Stays awake after [`prepare_to_sleep`].
pub fn cancel_sleep() {
    let me = current();
    let seen = me.sched().state();
    if seen == ThreadState::Running {
        return;
    }
    if seen == ThreadState::Queued || !me.sched().state.exchange(seen, ThreadState::Running) {
        // A waker was faster and queued this thread: take the turn it arranged.
        schedule();
    }
}

/// Wakes a thread that sleeps, however it does, unless job control stopped it. Whether this call did it.
pub fn wake(thread: &ThreadRef) -> bool {
    let seen = thread.sched().state();
    matches!(seen, ThreadState::Interruptible | ThreadState::Killable | ThreadState::Uninterruptible)
        && wake_from(thread, seen)
}

/// Wakes a thread only from the given state. Whether this call did it.
pub fn wake_from(thread: &ThreadRef, from: ThreadState) -> bool {
    let won = thread.sched().state.exchange(from, ThreadState::Queued);
    if won {
        placement::enqueue(thread.clone(), Arrival::Woken);
    }
    won
}

/// Starts a thread that has never run.
pub fn start(thread: ThreadRef) {
    thread.sched().state.set(ThreadState::Queued);
    placement::enqueue(thread, Arrival::New);
}

/// Makes a running thread look at its signals soon, and a sleeping one if its kind of sleep allows.
pub fn notify(thread: &ThreadRef, fatal: bool) {
    fence(Ordering::SeqCst);
    match thread.sched().state() {
        ThreadState::Interruptible => {
            wake_from(thread, ThreadState::Interruptible);
        }
        ThreadState::Killable if fatal => {
            wake_from(thread, ThreadState::Killable);
        }
        ThreadState::Stopped if fatal => {
            wake_from(thread, ThreadState::Stopped);
        }
        ThreadState::Running => {
            let cpu = thread.sched().cpu();
            if cpu == cpu::id() { cpu::request_work() } else { cpu::kick(cpu) }
        }
        _ => {}
    }
}

/// Lets others run, if any wait.
pub fn yield_now() {
    let here = here();
    if here.queued.load(Ordering::Relaxed) == 0 {
        return;
    }
    let me = current();
    if let Some(first) = here.queue.lock().first_vruntime() {
        let mine = me.sched().vruntime.load(Ordering::Relaxed);
        me.sched().vruntime.store(mine.max(first + 1), Ordering::Relaxed);
    }
    schedule();
}

/// Moves the running thread off a processor its affinity no longer allows.
pub fn migrate_if_needed() {
    let me = current();
    if me.sched().affinity() >> cpu::id().0 & 1 == 0 && me.sched().affinity() & cpu::online() != 0 {
        me.sched().state.set(ThreadState::Queued);
        placement::enqueue(me.to_arc(), Arrival::Preempted);
        schedule();
    }
}

/// Switches to the thread whose turn it is; returns when it is this thread's turn again.
pub fn schedule() {
    let me = current();
    loop {
        let here = here();
        let now = charge(&me);
        let next = match pick(here, &me, now) {
            Next::Stay => return,
            Next::Run(next) => next,
        };
        let Some(next) = parked(next) else { continue };
        take_turn(here, &next, now);
        flight::switch(me.sched().state(), &next, now);
        match START.switch_to(&next) {
            Ok(()) => return,
            Err(_) if next.sched().idle => {}
            Err(_) => {
                // Its memory is being exchanged.
                next.sched().state.set(ThreadState::Queued);
                placement::enqueue_on(next.last_cpu(), next, Arrival::Preempted);
            }
        }
    }
}

/// `next`, unless it is still leaving another processor: then it is left to the queue of that one.
///
/// Its turn must not begin before: it may not sleep after all, and takes a state of `Running` for its own, so that it
/// would go on there and stand in a queue as well.
fn parked(next: ThreadRef) -> Option<ThreadRef> {
    if next.is_parked() || next.sched().idle {
        return Some(next);
    }
    placement::enqueue_on(next.last_cpu(), next, Arrival::Preempted);
    None
}

/// Ends the running thread.
pub fn exit() -> ! {
    let me = current();
    me.sched().state.set(ThreadState::Dead);
    loop {
        let here = here();
        let now = charge(&me);
        let next = match pick(here, &me, now) {
            Next::Run(next) => next,
            Next::Stay => idle_of(here),
        };
        if let Some(next) = parked(next) {
            take_turn(here, &next, now);
            flight::switch(me.sched().state(), &next, now);
            START.exit_to(next)
        }
    }
}

/// What [`machine::Kernel::return_work`] does for the scheduler: expired timers, console input, a finished turn.
pub fn on_return() {
    migrate_if_needed();
    let here = here();
    run_due(here);
    if here.queued.load(Ordering::Relaxed) == 0 {
        here.resched.store(false, Ordering::Relaxed);
        return;
    }
    let me = current();
    let ran = now().saturating_sub(me.sched().since.load(Ordering::Relaxed));
    let over = here.queue.lock().turn_is_over(&me.sched().entity(), ran);
    if here.resched.swap(false, Ordering::Relaxed) || over {
        me.sched().involuntary.fetch_add(1, Ordering::Relaxed);
        schedule();
    } else {
        arm_by(here, me.sched().since.load(Ordering::Relaxed) + SLICE);
    }
}

/// A scheduling point of long work: acts upon the marks that interrupts left, and lets others run if this thread's turn
/// is over. Every loop whose length a program chooses comes here at least once a millisecond, with no spin lock held.
#[inline]
pub fn breathe() {
    let here = here();
    if here.timer_due.load(Ordering::Relaxed) || here.resched.load(Ordering::Relaxed) {
        breathe_now(here);
    }
}

#[cold]
fn breathe_now(here: &'static Cpu) {
    let me = current();
    if machine::sync::locks_held() != 0 || me.sched().idle {
        return;
    }
    // On its way to sleep it must not give the processor away before it has looked at what it waits for.
    if me.sched().state() == ThreadState::Running { on_return() } else { run_due(here) }
}

/// [`breathe`] in a call that ends early for a signal of this kind: `EINTR` if there is one.
pub fn breathe_or_stop(sleep: Sleep) -> Result<(), linux_abi::Errno> {
    breathe();
    if current().is_interrupted(sleep) { Err(linux_abi::Errno::EINTR) } else { Ok(()) }
}

/// Runs what interrupts asked for on this processor.
pub fn run_due(here: &'static Cpu) {
    if here.timer_due.swap(false, Ordering::Acquire) {
        timer::expire(here);
        tick::follow_up(here);
    }
    if here.console_due.swap(false, Ordering::Acquire) {
        <Kwab as Deferred>::console_input();
    }
}

/// The timer interrupt; whether the mark it leaves was there already. Interrupt context.
pub fn on_timer() -> bool {
    let here = here();
    here.armed.store(u64::MAX, Ordering::Relaxed);
    tick::sample();
    let marked = here.timer_due.swap(true, Ordering::Release);
    cpu::request_work();
    arm_by(here, now() + HEARTBEAT);
    marked
}

/// Console input arrived. Interrupt context.
pub fn on_console() {
    here().console_due.store(true, Ordering::Release);
    cpu::request_work();
}

/// Makes sure the hardware timer expires by `deadline`.
pub fn arm_by(here: &Cpu, deadline: Nanos) {
    if deadline < here.armed.load(Ordering::Relaxed) {
        // An expiry between the two stores would leave the note at "not armed" and let a later deadline replace this
        // one.
        let _off = machine::irq::off();
        here.armed.store(deadline, Ordering::Relaxed);
        machine::time::arm(deadline);
    }
}

enum Next {
    Stay,
    Run(ThreadRef),
}

fn pick(here: &'static Cpu, me: &Thread, now: Nanos) -> Next {
    let running = me.sched().state() == ThreadState::Running && !me.sched().idle;
    if here.queued.load(Ordering::Relaxed) == 0 {
        if running {
            begin_turn(here, me, now);
            return Next::Stay;
        }
    } else {
        let mut queue = here.queue.lock();
        if running {
            me.sched().state.set(ThreadState::Queued);
            let mut entity = me.sched().entity();
            queue.push(current().to_arc(), &mut entity, Arrival::Preempted);
        }
        let next = queue.pop();
        here.clock.store(queue.clock(), Ordering::Relaxed);
        here.queued.store(queue.len() as u32, Ordering::Relaxed);
        drop(queue);
        if let Some(next) = next {
            if core::ptr::eq(&*next, me) {
                begin_turn(here, me, now);
                me.sched().state.set(ThreadState::Running);
                return Next::Stay;
            }
            return Next::Run(next);
        }
    }
    match placement::steal(here) {
        Some(next) => Next::Run(next),
        None if me.sched().idle => Next::Stay,
        None => Next::Run(idle_of(here)),
    }
}

fn idle_of(here: &'static Cpu) -> ThreadRef {
    here.idle.get().expect("every processor has an idle thread before it schedules").clone()
}

fn take_turn(here: &Cpu, next: &Thread, now: Nanos) {
    here.switches.fetch_add(1, Ordering::Relaxed);
    next.sched().cpu.store(cpu::id().0, Ordering::Relaxed);
    begin_turn(here, next, now);
    next.sched().state.set(ThreadState::Running);
    fence(Ordering::SeqCst);
    if next.is_interrupted(Sleep::Interruptible) || next.sched().affinity() >> cpu::id().0 & 1 == 0 {
        cpu::request_work();
    }
}

/// Notes on the processor and the thread that its turn begins.
fn begin_turn(here: &Cpu, thread: &Task, now: Nanos) {
    thread.sched().since.store(now, Ordering::Relaxed);
    let entity = thread.sched().entity();
    let shares = !thread.sched().idle && entity.policy == Policy::Normal;
    let vruntime = if shares { entity.vruntime } else { NO_TURN };
    here.turn_vruntime.store(vruntime, Ordering::Relaxed);
    here.turn_since.store(now, Ordering::Relaxed);
    here.turn_weight.store(entity.weight(), Ordering::Relaxed);
    // Also when it is the same thread's turn again: others still wait.
    if here.queued.load(Ordering::Relaxed) != 0 {
        arm_by(here, now + SLICE);
    }
    tick::watch(here, thread, now);
}

/// Accounts the running thread's turn so far and begins a new one; the present time.
fn charge(me: &Task) -> Nanos {
    let now = now();
    let ran = now.saturating_sub(me.sched().since.load(Ordering::Relaxed));
    me.sched().since.store(now, Ordering::Relaxed);
    me.sched().ran.store(me.sched().ran.load(Ordering::Relaxed) + ran, Ordering::Relaxed);
    let mut entity = me.sched().entity();
    entity.charge(ran);
    me.sched().vruntime.store(entity.vruntime, Ordering::Relaxed);
    if !me.sched().idle && entity.policy == Policy::Normal {
        let here = here();
        let mut queue = here.queue.lock();
        queue.advance_to(entity.vruntime);
        here.clock.store(queue.clock(), Ordering::Relaxed);
    }
    now
}
