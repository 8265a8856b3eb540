//! The idle loop: what a processor runs while no thread is queued for it.

use core::sync::atomic::Ordering;

use machine::cpu::{self, CpuId};
use machine::sync::Once;

use super::{Cpu, HEARTBEAT, here, placement, run_due, schedule};
use crate::options;
use crate::trace::flight;
use crate::upper::{Task, Thread, ThreadRef};

/// Makes this processor's idle thread from a task of its own.
pub fn idle_thread(task: Task) -> Option<ThreadRef> {
    let thread = Thread::kernel(task, run_idle).ok()?;
    here().idle.set(thread.clone()).ok()?;
    Some(thread)
}

static FIRST: Once<ThreadRef> = Once::new();

/// Has the first processor start `thread` as soon as it idles: before that nothing can be scheduled. Only the first
/// call counts.
pub fn start_first(thread: ThreadRef) {
    FIRST.set(thread).ok();
}

/// The idle loop: runs a queued thread, else waits for an interrupt.
pub fn run_idle() -> ! {
    if cpu::id() == CpuId(0)
        && let Some(first) = FIRST.get()
    {
        super::start(first.clone());
    }
    super::arm_by(here(), machine::time::now() + HEARTBEAT);
    here().idles.store(true, Ordering::Relaxed);
    loop {
        cpu::take_work();
        run_due(here());
        if placement::has_work() || steal_possible() {
            flight::idle_exit();
            here().idles.store(false, Ordering::Relaxed);
            schedule();
            here().idles.store(true, Ordering::Relaxed);
        }
        placement::set_idle(true);
        // One at a time: what comes meanwhile waits for the clearing of a page at most.
        while !placement::has_work() && !due(here()) && machine::frame::prepare_cleared(prepares()) {}
        if !placement::has_work() && !due(here()) {
            flight::idle_enter();
            cpu::idle();
        }
        placement::set_idle(false);
    }
}

/// Frames that an idle processor keeps cleared for page tables (`idle_zero=`): as many as two small programs need.
fn prepares() -> usize {
    options::get().idle_zero.unwrap_or(16)
}

fn due(here: &Cpu) -> bool {
    here.timer_due.load(Ordering::Relaxed) || here.console_due.load(Ordering::Relaxed)
}

/// Whether another processor has more than it can run now.
fn steal_possible() -> bool {
    let mut left = cpu::online() & !(1 << cpu::id().0);
    while left != 0 {
        if super::of(CpuId(left.trailing_zeros())).queued.load(Ordering::Relaxed) != 0 {
            return true;
        }
        left &= left - 1;
    }
    false
}
