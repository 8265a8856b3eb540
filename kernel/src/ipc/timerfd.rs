//! Timer descriptors (timerfd_create(2)): a read returns the number of expirations since the last.
//!
//! A timer that went off is not armed again before it is read or polled: how often it would have gone off is then
//! reckoned from its clock. So a short interval costs nothing while it is not read.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use kernel_logic::readiness::{IN, RDNORM};
use linux_abi::Errno;
use linux_abi::flags::file::O_RDWR;
use machine::sync::SpinLock;
use machine::time::Nanos;

use crate::fs::file::{File, FileOps};
use crate::fs::io::Sink;
use crate::fs::{FileSlot, anon};
use crate::sched::breathe;
use crate::sched::timer::{Action, Armed, Expire, arm};
use crate::sync::WaitReason;
use crate::sync::wait::{WaitQueue, Waiter};
use crate::task::clock::Clock;

/// A timer that can be waited for (timerfd_create(2)).
pub struct TimerFd {
    clock: Clock,
    /// It is on a clock that wakes the machine, which needs CAP_WAKE_ALARM to be set.
    wakes: bool,
    state: SpinLock<TimerFdState>,
    readable: WaitQueue,
}

#[derive(Default)]
struct TimerFdState {
    plan: Plan,
    armed: Option<Armed>,
    /// Raised by every change of the plan: an expiry that was under way meanwhile is void.
    generation: u64,
    /// It went off and was not looked at since.
    fired: bool,
    /// Expirations reckoned and not read yet.
    ticks: u64,
    /// The wall clock was set under a timer that is cancelled by that.
    cancelled: bool,
}

/// When a timer goes off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// The next time, on the timer's clock; 0 when disarmed.
    pub next: Nanos,
    /// How long after each the following one; 0 for none.
    pub interval: Nanos,
    /// `next` is a reading of the clock that was asked for: it stands when the clock is set.
    pub absolute: bool,
    /// Setting the clock ends it with `ECANCELED` (`TFD_TIMER_CANCEL_ON_SET`).
    pub cancel_on_set: bool,
}

/// Timers on the wall clock, to be told when it is set, by their addresses.
static ON_THE_WALL: SpinLock<BTreeMap<usize, Weak<TimerFd>>> = SpinLock::new(BTreeMap::new());

/// Access mode of the description.
const READ_WRITE: u32 = O_RDWR as u32;

/// Makes a disarmed timer; `flags` are `O_NONBLOCK` or nothing.
pub fn create(clock: Clock, wakes: bool, flags: u32) -> Result<Arc<File>, Errno> {
    let slot = FileSlot::take()?;
    let timer = Arc::new(TimerFd {
        clock,
        wakes,
        state: SpinLock::new(TimerFdState::default()),
        readable: WaitQueue::new(WaitReason::TimerfdExpiry),
    });
    if timer.clock.is_wall() {
        ON_THE_WALL.lock().insert(Arc::as_ptr(&timer).addr(), Arc::downgrade(&timer));
    }
    Ok(anon::open_shared("anon_inode:[timerfd]", Arc::new(TimerFile(timer)), flags | READ_WRITE, slot))
}

/// The wall clock was set `by` nanoseconds forward (negative: back).
pub fn wall_moved(by: i64) {
    let timers: Vec<Arc<TimerFd>> = ON_THE_WALL.lock().values().filter_map(Weak::upgrade).collect();
    for timer in timers {
        timer.wall_moved(by);
        breathe();
    }
}

impl TimerFd {
    /// Whether it is on a clock that wakes the machine.
    pub fn wakes(&self) -> bool {
        self.wakes
    }

    /// The clock it goes by.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Replaces the plan; what was left of the old one and its interval. `ECANCELED`, with the new plan in force, if it
    /// was not has heard yet that the clock was set and this plan too is cancelled by that.
    pub fn set(self: &Arc<Self>, plan: Plan) -> Result<(Nanos, Nanos), Errno> {
        let mut state = self.state.lock();
        let old = self.left(&mut state);
        let unheard = state.cancelled && plan.cancel_on_set && plan.next != 0;
        state.plan = plan;
        (state.fired, state.ticks, state.cancelled) = (false, 0, false);
        self.rearm(&mut state);
        if unheard { Err(Errno::ECANCELED) } else { Ok(old) }
    }

    /// Time left (0 when disarmed) and interval.
    pub fn get(self: &Arc<Self>) -> (Nanos, Nanos) {
        let mut state = self.state.lock();
        let left = self.left(&mut state);
        if state.armed.is_none() && state.plan.next != 0 && !state.fired {
            self.rearm(&mut state);
        }
        left
    }

    fn left(&self, state: &mut TimerFdState) -> (Nanos, Nanos) {
        self.reckon(state);
        let left = match state.plan.next {
            0 => 0,
            next => next.saturating_sub(self.clock.read().unwrap_or(0)).max(1),
        };
        (left, state.plan.interval)
    }

    /// Counts the expirations of a timer that went off, and moves on to the next that is to come.
    fn reckon(&self, state: &mut TimerFdState) {
        if !state.fired {
            return;
        }
        state.fired = false;
        let behind = self.clock.read().unwrap_or(0).saturating_sub(state.plan.next);
        match state.plan.interval {
            0 => {
                state.ticks += 1;
                state.plan.next = 0;
            }
            interval => {
                let passed = behind / interval + 1;
                state.ticks = state.ticks.saturating_add(passed);
                state.plan.next = state.plan.next.saturating_add(passed.saturating_mul(interval));
            }
        }
    }

    fn rearm(self: &Arc<Self>, state: &mut TimerFdState) {
        if let Some(armed) = state.armed.take() {
            armed.disarm();
        }
        state.generation += 1;
        if state.plan.next != 0 {
            let shot = Shot { timer: self.clone(), generation: state.generation };
            state.armed = Some(arm(self.clock.to_monotonic(state.plan.next), Action::Fire(Arc::new(shot))));
        }
    }

    fn wall_moved(self: &Arc<Self>, by: i64) {
        let mut state = self.state.lock();
        if state.plan.cancel_on_set {
            state.cancelled = true;
        }
        if state.plan.next != 0 && !state.fired {
            if !state.plan.absolute {
                state.plan.next = state.plan.next.saturating_add_signed(by).max(1);
            }
            self.rearm(&mut state);
        }
        let cancelled = state.cancelled;
        drop(state);
        if cancelled {
            self.readable.wake_all();
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Result<u64, Errno>> {
        let mut state = self.state.lock();
        if core::mem::take(&mut state.cancelled) {
            return Some(Err(Errno::ECANCELED));
        }
        let was_armed = !state.fired;
        self.reckon(&mut state);
        if !was_armed {
            self.rearm(&mut state);
        }
        match core::mem::take(&mut state.ticks) {
            0 => None,
            ticks => Some(Ok(ticks)),
        }
    }
}

impl Drop for TimerFd {
    fn drop(&mut self) {
        if self.clock.is_wall() {
            // The list's reference keeps the address from being another's until here.
            let gone = ON_THE_WALL.lock().remove(&core::ptr::from_ref(self).addr());
            drop(gone);
        }
    }
}

/// An expiry to come, void once the plan changed.
struct Shot {
    timer: Arc<TimerFd>,
    generation: u64,
}

impl Expire for Shot {
    fn expire(self: Arc<Self>) {
        {
            let mut state = self.timer.state.lock();
            if state.generation != self.generation {
                return;
            }
            state.armed = None;
            state.fired = true;
        }
        self.timer.readable.wake_all();
    }
}

/// The description of a timer: closing it disarms.
struct TimerFile(Arc<TimerFd>);

impl FileOps for TimerFile {
    fn seeking(&self) -> crate::fs::file::Seeking {
        crate::fs::file::Seeking::Nowhere
    }

    fn read(&self, file: &File, _position: u64, sink: &mut Sink<'_>) -> Result<(), Errno> {
        if sink.left() < 8 {
            return Err(Errno::EINVAL);
        }
        let ticks = match self.0.try_take() {
            Some(outcome) => outcome?,
            None if file.is_nonblocking() => return Err(Errno::EAGAIN),
            None => self.0.readable.wait(|| self.0.try_take())??,
        };
        sink.put(&ticks.to_ne_bytes()).map(|_| ())
    }

    fn poll<'q>(&'q self, _file: &'q File, waiter: Option<&mut Waiter<'q>>) -> u32 {
        if let Some(waiter) = waiter {
            waiter.add(&self.0.readable);
        }
        let state = self.0.state.lock();
        if state.fired || state.ticks > 0 || state.cancelled { IN | RDNORM } else { 0 }
    }

    fn release(&self, _file: &File) {
        // Disarming is never refused.
        let _ = self.0.set(Plan::default());
    }
}

/// The timer that `file` stands for, if it is one.
pub fn of(file: &File) -> Option<&Arc<TimerFd>> {
    file.ops.downcast::<TimerFile>().map(|file| &file.0)
}
