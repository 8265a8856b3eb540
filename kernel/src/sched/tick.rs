//! The tick: where programs spend their time, and what limits it.
//!
//! While a program runs, its processor's timer is set at most [`PERIOD`] ahead. The interrupt finds the thread in user mode or
//! in the kernel, and the time since the thread was last looked at counts as that; a look at the clock on every entry would
//! cost more than most calls. On the way back to the program its limit of processor time (`RLIMIT_CPU`) is enforced.

use core::sync::atomic::{AtomicU64, Ordering};

use kernel_logic::signal::{SigInfo, sig};
use machine::time::{Nanos, now};

use super::{Cpu, SchedState, arm_by};
use crate::signal;
use crate::task::limits::{INFINITY, Limits, resource};
use crate::task::{Process, Task, current, try_current};
use crate::time::{SECOND, process_time};

/// Time between two looks, in nanoseconds.
pub const PERIOD: Nanos = 10_000_000;

/// A thread's processor time by mode, as far as it was looked at.
#[derive(Debug, Default)]
pub struct Split {
    user: AtomicU64,
    system: AtomicU64,
    /// The run time up to which the two above account.
    seen: AtomicU64,
}

impl Split {
    /// User and system time of a thread that has run for `total`; what nobody has looked at counts as user time.
    pub fn at(&self, total: Nanos) -> (Nanos, Nanos) {
        self.note(total, true);
        (self.user.load(Ordering::Relaxed), self.system.load(Ordering::Relaxed))
    }

    fn note(&self, total: Nanos, user: bool) {
        let fresh = total.saturating_sub(self.seen.fetch_max(total, Ordering::Relaxed));
        let side = if user { &self.user } else { &self.system };
        side.fetch_add(fresh, Ordering::Relaxed);
    }
}

/// The timer interrupt found a processor in one of the two modes. Interrupt context.
pub(super) fn sample() {
    if let Some(me) = try_current()
        && !me.sched.idle
    {
        me.sched.split.note(me.sched.run_time(), machine::irq::interrupted_user());
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
    watch(here, &me.sched, now());
    if me.process.cpu_deadline.load(Ordering::Relaxed) != u64::MAX {
        enforce(&me);
    }
}

/// The processor time at which a process with these limits is to be told, `u64::MAX` for never.
pub fn cpu_deadline(limits: &Limits) -> u64 {
    let cpu = limits.0[resource::CPU];
    match cpu.soft.min(cpu.hard) {
        INFINITY => u64::MAX,
        // As on Linux: 0 is as good as 1.
        seconds => seconds.max(1).saturating_mul(SECOND),
    }
}

/// `SIGKILL` at the hard limit, `SIGXCPU` at the soft one and every second after (setrlimit(2)).
#[cold]
fn enforce(me: &Task) {
    let process: &alloc::sync::Arc<Process> = &me.process;
    let used = process_time(process);
    if used < process.cpu_deadline.load(Ordering::Relaxed) {
        return;
    }
    let signal = {
        let mut limits = process.limits.lock();
        let cpu = &mut limits.0[resource::CPU];
        let hard_passed = used >= cpu.hard.max(1).saturating_mul(SECOND);
        if !hard_passed {
            cpu.soft = (used / SECOND + 1).max(cpu.soft.saturating_add(1));
        }
        process.cpu_deadline.store(cpu_deadline(&limits), Ordering::Relaxed);
        if hard_passed { sig::KILL } else { sig::XCPU }
    };
    // A full queue loses only the detail: the signal itself stays pending.
    let _ = signal::send_process(process, SigInfo::kernel(signal));
}
