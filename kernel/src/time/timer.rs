//! Timers: something that happens on a processor at a moment of the monotonic clock.
//!
//! Each processor has its own set. The hardware timer interrupt only marks it due; [`expire`] runs in thread context.

use alloc::sync::Arc;

use kernel_logic::timers::TimerKey;
use machine::cpu::CpuId;
use machine::time::{Nanos, now};

use crate::sched::{self, Cpu};
use crate::task::ThreadRef;

/// What happens.
pub enum Action {
    /// A thread wakes up.
    Wake(ThreadRef),
    /// Somebody is told.
    Fire(Arc<dyn Expire>),
}

/// Told when its time has come. Thread context, no lock held; must not sleep.
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

/// Lets every timer that is due on this processor happen.
pub fn expire(here: &'static Cpu) {
    loop {
        let mut timers = here.timers.lock();
        match timers.pop_due(now()) {
            Some(action) => {
                drop(timers);
                match action {
                    Action::Wake(thread) => {
                        sched::wake(&thread);
                    }
                    Action::Fire(timer) => timer.expire(),
                }
            }
            None => {
                let next = timers.next();
                drop(timers);
                if let Some(next) = next {
                    sched::arm_by(here, next);
                }
                return;
            }
        }
    }
}
