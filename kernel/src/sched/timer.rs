//! Kernel timers: actions at a deadline of the monotonic clock, one set per processor.
//!
//! Each processor has its own set. The hardware timer interrupt only marks it due; [`expire`] runs in thread context,
//! and leaves at least half of the processor's time to its threads however many timers there are and however soon they
//! repeat: those of one instant are handled for [`LONGEST_RUN`] at a time.

use alloc::sync::Arc;

use kernel_logic::timers::TimerKey;
use machine::cpu::CpuId;
use machine::time::{Nanos, now};

use super::Cpu;
use crate::sched;
use crate::upper::ThreadRef;

/// What a timer does at its deadline.
pub enum Action {
    /// A thread wakes up.
    Wake(ThreadRef),
    /// Its [`Expire::expire`] is called.
    Fire(Arc<dyn Expire>),
}

/// Called at its deadline. Thread context, no lock held; must not sleep.
pub trait Expire: Send + Sync {
    /// The timer went off.
    fn expire(self: Arc<Self>);
}

/// An armed timer.
#[derive(Clone, Copy, Debug)]
pub struct Armed {
    cpu: CpuId,
    key: TimerKey,
}

impl Armed {
    /// Disarms it, if it has not gone off yet.
    pub fn disarm(self) {
        let action = sched::of(self.cpu).timers.lock().disarm(self.key);
        drop(action);
    }
}

/// Arms a timer on this processor.
pub fn arm(deadline: Nanos, action: Action) -> Armed {
    let here = sched::here();
    let key = here.timers.lock().arm(deadline, action);
    sched::arm_by(here, deadline);
    Armed { cpu: machine::cpu::id(), key }
}

/// Whether a timer is armed on any processor, or may be: the timers of one are locked. Waits for no lock.
pub fn any_armed() -> bool {
    let online = machine::cpu::online();
    (0..64)
        .filter(|number| online >> number & 1 != 0)
        .any(|number| sched::of(CpuId(number)).timers.try_lock().is_none_or(|timers| !timers.is_empty()))
}

/// Rounds of one call of [`expire`] at most: timers that become due meanwhile belong to the next.
const ROUNDS: u32 = 3;
/// How long timers are handled before threads have their share.
const LONGEST_RUN: Nanos = 500_000;
/// Timers that are handled between two looks at the clock.
const UNWATCHED: u32 = 16;
/// The longest a timer that is due waits for threads to have had their share.
const LONGEST_PAUSE: Nanos = 100_000_000;

/// Lets the timers that are due on this processor happen. If others become due as fast as they are handled, the rest
/// waits as long as these took.
pub fn expire(here: &'static Cpu) {
    let begun = now();
    let mut until = begun;
    let mut handled: u32 = 0;
    for _ in 0..ROUNDS {
        while let Some(action) = { here.timers.lock().pop_due(until) } {
            match action {
                Action::Wake(thread) => {
                    sched::wake(&thread);
                }
                Action::Fire(timer) => timer.expire(),
            }
            handled += 1;
            if handled.is_multiple_of(UNWATCHED) && now() - begun > LONGEST_RUN {
                pause(here, begun);
                return;
            }
        }
        let next = here.timers.lock().next();
        let Some(next) = next else { return };
        until = now();
        if next > until {
            sched::arm_by(here, next);
            return;
        }
    }
    pause(here, begun);
}

/// Leaves the timers that are due until threads had as much time as was spent on timers since `begun`.
fn pause(here: &Cpu, begun: Nanos) {
    let now = now();
    sched::arm_by(here, now + (now - begun).min(LONGEST_PAUSE));
}
