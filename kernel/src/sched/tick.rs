//! The tick: splits run time into user and system time, and enforces limits of processor time.
//!
//! While a program runs, its processor's timer is set at most [`PERIOD`] ahead. The interrupt finds the thread in user
//! mode or in the kernel, and the time since the thread was last looked at counts as that; a look at the clock on every
//! entry would cost more than most calls. On the way back to the program its limit of processor time is enforced
//! ([`Schedulable::ticked`](super::Schedulable::ticked)).

use core::sync::atomic::Ordering;

use machine::cpu;
use machine::time::{Nanos, now};

use super::{Cpu, Schedulable as _, arm_by, here};
use crate::upper::{Task, current, try_current};

/// Time between two looks, in nanoseconds.
pub const PERIOD: Nanos = 10_000_000;

/// The timer interrupt found a processor in one of the two modes. Interrupt context.
pub(super) fn sample() {
    if let Some(me) = try_current()
        && !me.sched().idle
    {
        let user = machine::irq::interrupted_user();
        let fresh = me.sched().split.note(me.sched().run_time(), user);
        if !user {
            here().system.fetch_add(fresh, Ordering::Relaxed);
        }
    }
}

/// Makes sure that a thread whose turn begins now is looked at. One that has timers or a limit of processor time is
/// looked at each time it has run for [`PERIOD`], over however many turns.
#[inline]
pub(super) fn watch(here: &Cpu, thread: &Task, now: Nanos) {
    let state = thread.sched();
    if state.idle {
        return;
    }
    let mut left = PERIOD;
    if thread.is_timed() {
        left = PERIOD.saturating_sub(state.run_time().saturating_sub(state.looked_at.load(Ordering::Relaxed)));
        if left == 0 {
            // No interrupt: it may sleep again before it is back in its program, at every turn.
            here.timer_due.store(true, Ordering::Release);
            cpu::request_work();
            left = PERIOD;
        }
    }
    arm_by(here, now + left);
}

/// The timer went off: what is due for the running thread in thread context.
pub(super) fn follow_up(here: &Cpu) {
    let me = current();
    me.sched().looked_at.store(me.sched().run_time(), Ordering::Relaxed);
    watch(here, &me, now());
    me.ticked();
}
