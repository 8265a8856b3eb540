//! The tick: splits run time into user and system time, and enforces limits of processor time.
//!
//! While a program runs, its processor's timer is set at most [`PERIOD`] ahead. The interrupt finds the thread in user
//! mode or in the kernel, and the time since the thread was last looked at counts as that; a look at the clock on every
//! entry would cost more than most calls. On the way back to the program its limit of processor time is enforced
//! ([`Schedulable::ticked`](super::Schedulable::ticked)).

use machine::time::{Nanos, now};

use super::{Cpu, SchedState, Schedulable as _, arm_by};
use crate::upper::{current, try_current};

/// Time between two looks, in nanoseconds.
pub const PERIOD: Nanos = 10_000_000;

/// The timer interrupt found a processor in one of the two modes. Interrupt context.
pub(super) fn sample() {
    if let Some(me) = try_current()
        && !me.sched().idle
    {
        me.sched().split.note(me.sched().run_time(), machine::irq::interrupted_user());
    }
}

/// Makes sure that a thread which runs now is looked at.
#[inline]
pub(super) fn watch(here: &Cpu, thread: &SchedState, now: Nanos) {
    if !thread.idle {
        arm_by(here, now + PERIOD);
    }
}

/// The timer went off: what is due for the running thread in thread context.
pub(super) fn follow_up(here: &Cpu) {
    let me = current();
    watch(here, me.sched(), now());
    me.ticked();
}
