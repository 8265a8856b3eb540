//! Decides which thread has been blocked for too long, where no signal can wake it.
//!
//! A thread that waits for a mutex is judged by the thread that has it ([`Holders`]), over as many mutexes as it takes:
//! how long a holder is kept from a processor is up to programs, so a holder that is runnable lets its waiters wait.
//! One that sleeps, a circle, and one that has had the processor for as long as the limit do not let go any more.

use core::fmt;

use kernel_logic::stall::{Doing, Holders, Stuck};
use kwab_format::record::{CauseKind, Reason};
use machine::sync::SpinLock;
use machine::time::Nanos;

use super::panic;
use crate::patience;
use crate::sched::{SchedState, ThreadState};
use crate::sync::WaitReason;
use crate::task::tree;

static HOLDERS: SpinLock<Holders> = SpinLock::new(Holders::new());

/// Looks at every thread. Interrupt context.
pub(super) fn look(now: Nanos) {
    let Some(limit) = patience::TASK.limit() else { return };
    let Some(mut holders) = HOLDERS.try_lock() else { return };
    // An interrupt does not wait: if the tree is locked, next time.
    let hung = tree::try_threads(|threads| {
        let doing = |tid: u32| threads.get(tid).map_or(Doing::Gone, |thread| doing(&thread.sched, now));
        threads.iter().find_map(|thread| {
            let waits = thread.sched.waits();
            let slept = now.saturating_sub(waits.since);
            // One without a reason is about to sleep or to run: its time is that of its last turn.
            let sleeps = thread.sched.state() == ThreadState::Uninterruptible && waits.reason != 0;
            if !sleeps || thread.kernel_thread || slept <= limit {
                return None;
            }
            let stuck = match waits.reason == WaitReason::Mutex.number() {
                true => Some(holders.judge(waits.on, limit, doing)?),
                false => None,
            };
            Some((thread.tid(), slept, stuck))
        })
    });
    holders.end_look();
    drop(holders);
    if let Some((tid, slept, stuck)) = hung.flatten() {
        let (seconds, why) = (slept / 1_000_000_000, Why(stuck));
        let message = format_args!("hung task: thread {tid} has been blocked for {seconds} s{why}");
        panic::die(CauseKind::HUNG_TASK, Reason::HANG, message);
    }
}

fn doing(thread: &SchedState, now: Nanos) -> Doing {
    let waits = thread.waits();
    match thread.state() {
        ThreadState::Running | ThreadState::Queued => Doing::Runs(thread.run_time()),
        ThreadState::Uninterruptible if waits.reason == WaitReason::Mutex.number() => Doing::WaitsOn(waits.on),
        ThreadState::Dead => Doing::Gone,
        _ if waits.reason == 0 => Doing::Runs(thread.run_time()),
        _ => Doing::Sleeps(now.saturating_sub(waits.since)),
    }
}

/// The end of the message about a thread that is blocked.
struct Why(Option<Stuck>);

impl fmt::Display for Why {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(Stuck::Circle(tid)) => write!(out, ": it waits on thread {tid}, which waits on itself"),
            Some(Stuck::Sleeps(tid)) => write!(out, ": it waits on thread {tid}, which sleeps"),
            Some(Stuck::Runs(tid)) => write!(out, ": it waits on thread {tid}, which runs and does not let go"),
            Some(Stuck::Gone(tid)) => write!(out, ": it waits on thread {tid}, which has ended"),
        }
    }
}
