//! Interval timers: `setitimer`, `alarm`, and the base of POSIX timers.
//!
//! An [`IntervalTimer`] runs on any [`Clock`]. For processor-time clocks the moment of expiry is only an estimate: when
//! it comes too early the timer waits with the process ([`ParkedTimers`]), whose ticks look at it.
//!
//! A timer that repeats sends its signal once and waits until that is taken, however short its interval; then it goes
//! on. Only now is it counted how often a POSIX timer would have gone off (timer_getoverrun(2)). One that sends none is
//! never armed: what is left of it is reckoned when asked for. The two `setitimer` timers of processor time do not
//! wait: they go off at most as often as their process runs.

mod parked;

use alloc::sync::{Arc, Weak};

use kernel_logic::signal::{Cause, SigInfo, code, sig};
use linux_abi::Errno;
use machine::sync::SpinLock;
use machine::time::{Nanos, now};

use self::parked::ParkedSlot;
pub use self::parked::ParkedTimers;
use crate::sched::timer::{Action, Armed, Expire, arm};
use crate::task::clock::{Clock, process_time};
use crate::task::signal;
use crate::task::{Process, Tid, tree};

/// What expiry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notify {
    /// An `setitimer` signal to the process.
    Itimer(u8),
    /// A POSIX timer's signal to the process.
    Process {
        /// Timer id in the process.
        id: u32,
        /// Number of the signal.
        signal: u8,
        /// `sigev_value` of the program.
        value: u64,
    },
    /// A POSIX timer's signal to one thread.
    Thread {
        /// Timer id in the process.
        id: u32,
        /// Number of the signal.
        signal: u8,
        /// `sigev_value` of the program.
        value: u64,
        /// The thread that gets it.
        tid: Tid,
    },
    /// No signal is sent (`SIGEV_NONE`).
    Nothing,
}

/// A timer that may repeat.
pub struct IntervalTimer {
    process: Weak<Process>,
    clock: Clock,
    notify: Notify,
    state: SpinLock<ItimerState>,
}

#[derive(Default)]
struct ItimerState {
    /// When it goes off next, on its own clock; 0 when disarmed.
    next: Nanos,
    interval: Nanos,
    /// `next` is a reading of the clock and moves with it; else it is so much time from when the timer was set.
    absolute: bool,
    armed: Option<Armed>,
    /// Where it waits for the process whose clock it goes by.
    parked: Option<(Weak<Process>, ParkedSlot)>,
    /// It went off at `next`, and goes on when its signal is taken.
    waits: bool,
    /// Raised by every [`IntervalTimer::set`]: an expiry that was under way meanwhile is void, and so is a waiting
    /// signal.
    generation: u64,
    /// Overruns of the last signal that was taken.
    overrun: u32,
}

impl IntervalTimer {
    /// A disarmed one.
    pub fn new(process: &Arc<Process>, clock: Clock, notify: Notify) -> Arc<Self> {
        Arc::new(Self { process: Arc::downgrade(process), clock, notify, state: SpinLock::new(ItimerState::default()) })
    }

    /// Sets it to go off at `next` of its clock (0: not at all) and every `interval` after; what was left and the
    /// interval before.
    pub fn set(self: &Arc<Self>, next: Nanos, interval: Nanos) -> (Nanos, Nanos) {
        self.set_to(next, interval, false)
    }

    /// [`IntervalTimer::set`], saying whether `next` is a reading of the clock that was asked for (`TIMER_ABSTIME`).
    pub fn set_to(self: &Arc<Self>, next: Nanos, interval: Nanos, absolute: bool) -> (Nanos, Nanos) {
        let old = self.get();
        let mut state = self.state.lock();
        state.absolute = absolute;
        if let Some(armed) = state.armed.take() {
            armed.disarm();
        }
        if let Some((process, slot)) = state.parked.take()
            && let Some(process) = process.upgrade()
        {
            process.parked_timers.unpark(slot);
        }
        state.next = next;
        state.interval = interval;
        state.overrun = 0;
        state.waits = false;
        state.generation += 1;
        if next != 0 && self.notify != Notify::Nothing {
            let at = self.clock.to_monotonic(next);
            state.armed = Some(self.arm(at, state.generation));
        }
        old
    }

    /// Its clock, the wall clock, was set `by` nanoseconds forward: a timer at a reading of it goes off when the clock
    /// reads that, one that was to run for some time runs that long (timer_settime(2)).
    pub fn wall_moved(self: &Arc<Self>, by: i64) {
        let mut state = self.state.lock();
        if state.next == 0 {
            return;
        }
        if !state.absolute {
            state.next = state.next.saturating_add_signed(by).max(1);
        }
        if let Some(armed) = state.armed.take() {
            armed.disarm();
        }
        if state.waits || self.notify == Notify::Nothing {
            return;
        }
        state.generation += 1;
        state.armed = Some(self.arm(self.clock.to_monotonic(state.next), state.generation));
    }

    /// Time left (0 when disarmed) and interval.
    pub fn get(&self) -> (Nanos, Nanos) {
        let state = self.state.lock();
        if state.next == 0 {
            return (0, state.interval);
        }
        if state.waits && self.is_alarm() {
            return (0, state.interval);
        }
        let Ok(read) = self.clock.read() else { return (0, 0) };
        let unheard = self.notify == Notify::Nothing && read >= state.next;
        if unheard && state.interval == 0 {
            return (0, 0);
        }
        let next = if state.waits || unheard { state.after(read).1 } else { state.next };
        (next.saturating_sub(read).max(1), state.interval)
    }

    /// The clock it goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Overruns of the last signal taken.
    pub fn overrun(&self) -> u32 {
        self.state.lock().overrun
    }

    /// The signal it sends, if it is a POSIX timer that sends any.
    pub fn signal(&self) -> Option<u8> {
        match self.notify {
            Notify::Process { signal, .. } | Notify::Thread { signal, .. } => Some(signal),
            Notify::Itimer(_) | Notify::Nothing => None,
        }
    }

    /// The signal that it sent in this setting was taken: it goes on. How often it would have gone off meanwhile; of a
    /// signal from before it was set again, 0.
    pub fn taken(self: &Arc<Self>, setting: u64) -> u32 {
        let mut state = self.state.lock();
        if !state.waits || state.generation != setting {
            return 0;
        }
        let missed = self.go_on(&mut state, MIN_STEP);
        state.overrun = missed;
        missed
    }

    /// A `SIGALRM` was taken, its own or another: an `ITIMER_REAL` that waits for that goes on.
    fn alarm_taken(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.waits {
            self.go_on(&mut state, MIN_STEP);
        }
    }

    /// Whether it is an `ITIMER_REAL`.
    fn is_alarm(&self) -> bool {
        self.notify == Notify::Itimer(sig::ALRM)
    }

    /// Its signal was thrown away untaken: it goes on.
    pub fn discarded(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.waits {
            self.go_on(&mut state, MIN_STEP_UNHEARD);
        }
    }

    /// Arms it for its next expiry, `step` from now at the soonest; how many it passes over.
    fn go_on(self: &Arc<Self>, state: &mut ItimerState, step: Nanos) -> u32 {
        state.waits = false;
        let (missed, next) = state.after(self.clock.read().unwrap_or(0));
        state.next = next;
        let at = self.clock.to_monotonic(next).max(now() + step);
        state.armed = Some(self.arm(at, state.generation));
        missed
    }

    /// Sends its signal; whether that waits now to be taken. An `ITIMER_REAL` waits even if its signal is ignored, as
    /// on Linux: until another `SIGALRM` is taken.
    fn send(&self, process: &Arc<Process>, setting: u64) -> bool {
        let timer = |id, signal, value| SigInfo {
            signal,
            code: code::TIMER,
            errno: 0,
            cause: Cause::Timer { id, overrun: 0, value, setting },
        };
        match self.notify {
            Notify::Nothing => false,
            Notify::Itimer(signal) => {
                // An ordinary signal is never refused.
                let _ = signal::send_process(process, SigInfo::kernel(signal));
                true
            }
            Notify::Process { id, signal, value } => {
                signal::queue_for_process(process, timer(id, signal, value)).unwrap_or(false)
            }
            // The number may have gone to a thread of another process since.
            Notify::Thread { id, signal, value, tid } => tree::thread(tid)
                .filter(|thread| Arc::ptr_eq(&thread.process, process))
                .is_some_and(|thread| signal::queue_for_thread(&thread, timer(id, signal, value)).unwrap_or(false)),
        }
    }
}

impl ItimerState {
    /// For a reading of the clock at or after `next`: the expiries between the two, and the first after the reading.
    fn after(&self, read: Nanos) -> (u32, Nanos) {
        let missed = read.saturating_sub(self.next).checked_div(self.interval).unwrap_or(0);
        let next = self.next.saturating_add((missed + 1).saturating_mul(self.interval));
        (missed.min(i32::MAX as u64) as u32, next)
    }
}

/// An expiry to come, void once the timer is set again.
struct Shot {
    timer: Arc<IntervalTimer>,
    generation: u64,
}

impl Expire for Shot {
    fn expire(self: Arc<Self>) {
        self.timer.expire(self.generation);
    }
}

impl IntervalTimer {
    fn arm(self: &Arc<Self>, at: Nanos, generation: u64) -> Armed {
        arm(at, Action::Fire(Arc::new(Shot { timer: self.clone(), generation })))
    }

    /// The estimate of a processor-time clock, which reads `read`, was early.
    fn park(self: &Arc<Self>, state: &mut ItimerState, read: Nanos) {
        let left = state.next - read;
        match self.clock.process() {
            // A thread's clock is behind its process's.
            Some(process) => {
                let at = process_time(&process).saturating_add(left);
                let slot = process.parked_timers.park(at, self, state.generation);
                state.parked = Some((Arc::downgrade(&process), slot));
            }
            None => state.armed = Some(self.arm(now() + left.max(MIN_STEP), state.generation)),
        }
    }

    /// It went off, or may have, in the setting with this number.
    pub(super) fn expire(self: &Arc<Self>, generation: u64) {
        let Some(process) = self.process.upgrade() else { return };
        {
            let mut state = self.state.lock();
            if state.generation != generation || state.next == 0 || state.waits {
                return;
            }
            state.armed = None;
            state.parked = None;
            // A clock that ended with its process never reads more.
            let Ok(read) = self.clock.read() else { return };
            if read < state.next {
                self.park(&mut state, read);
                return;
            }
            match state.interval {
                0 => state.next = 0,
                _ if self.signal().is_some() || self.is_alarm() => state.waits = true,
                _ => {
                    self.go_on(&mut state, MIN_STEP);
                }
            }
        }
        if !self.send(&process, generation) {
            let mut state = self.state.lock();
            if state.waits && state.generation == generation {
                self.go_on(&mut state, MIN_STEP_UNHEARD);
            }
        }
    }
}

/// Shortest time between two looks at a timer, so that a tiny interval cannot keep a processor busy; nanoseconds.
const MIN_STEP: Nanos = 20_000;

/// The same for a timer whose signal is not taken; a tick, as on Linux.
const MIN_STEP_UNHEARD: Nanos = 4_000_000;

/// A process's three `setitimer` timers, made when first set.
#[derive(Default)]
pub struct Itimers([SpinLockOption; 3]);

struct SpinLockOption(SpinLock<Option<Arc<IntervalTimer>>>);

impl Default for SpinLockOption {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl Itimers {
    /// Sets timer `which` to go off `after` from now (0: not) and every `interval`; what was left and the interval.
    pub fn set(
        &self,
        process: &Arc<Process>,
        which: usize,
        after: Nanos,
        interval: Nanos,
    ) -> Result<(u64, u64), Errno> {
        let slot = self.0.get(which).ok_or(Errno::EINVAL)?;
        let (clock, signal) = match which {
            0 => (Clock::Monotonic, sig::ALRM),
            1 => (Clock::of_process(process), sig::VTALRM),
            _ => (Clock::of_process(process), sig::PROF),
        };
        let mut slot = slot.0.lock();
        if slot.is_none() && after == 0 {
            return Ok((0, 0));
        }
        let timer = slot.get_or_insert_with(|| IntervalTimer::new(process, clock, Notify::Itimer(signal))).clone();
        drop(slot);
        let next = if after == 0 { 0 } else { timer.clock.read()?.saturating_add(after) };
        Ok(timer.set(next, interval))
    }

    /// Time left and interval of timer `which`.
    pub fn get(&self, which: usize) -> Result<(Nanos, Nanos), Errno> {
        let slot = self.0.get(which).ok_or(Errno::EINVAL)?;
        Ok(slot.0.lock().as_ref().map_or((0, 0), |timer| timer.get()))
    }

    /// A `SIGALRM` of the process was taken: `ITIMER_REAL` goes on if it waited for that.
    pub fn alarm_taken(&self) {
        let timer = self.0[0].0.lock().clone();
        if let Some(timer) = timer {
            timer.alarm_taken();
        }
    }

    /// Disarms all of them.
    pub fn clear(&self) {
        for slot in &self.0 {
            let timer = slot.0.lock().take();
            if let Some(timer) = timer {
                timer.set(0, 0);
            }
        }
    }
}
