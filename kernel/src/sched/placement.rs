//! Chooses the processor a thread waits for, and moves threads to processors that have nothing to do.

use core::sync::atomic::Ordering;

use kernel_logic::runqueue::{Arrival, RunQueue, SLICE, weighted};
use machine::cpu::{self, CpuId};
use machine::time::{Nanos, now};

use super::{Cpu, IDLE, NO_TURN, Schedulable as _, arm_by, here, of};
use crate::trace::flight;
use crate::upper::{ThreadRef, current};

/// Queues a thread where it fits best. Its state is `Queued` already.
pub fn enqueue(thread: ThreadRef, arrival: Arrival) {
    let cpu = choose(&thread, arrival);
    enqueue_on(cpu, thread, arrival);
}

/// Queues a thread on `cpu` and sees to it that the processor notices.
pub fn enqueue_on(cpu: CpuId, thread: ThreadRef, arrival: Arrival) {
    let target = of(cpu);
    let was = thread.sched();
    let mut entity = was.entity();
    let from = was.cpu();
    was.cpu.store(cpu.0, Ordering::Relaxed);
    let now = now();
    if arrival != Arrival::Preempted {
        flight::wake(&thread, now);
    }
    let mut queue = target.queue.lock();
    let first = queue.is_empty();
    target.follow(&mut queue, now);
    if from != cpu {
        // Virtual times of two processors are not comparable: what counts is how far ahead of its queue a thread is.
        let from_clock = of(from).clock.load(Ordering::Relaxed);
        queue.settle(&mut entity, Arrival::Moved { from_clock });
    }
    // The vruntime it is queued at must be stored before another processor can run it.
    queue.settle(&mut entity, arrival);
    was.vruntime.store(entity.vruntime, Ordering::Relaxed);
    queue.push(thread, &mut entity, Arrival::Preempted);
    target.queued.store(queue.len() as u32, Ordering::SeqCst);
    if cpu != cpu::id() {
        drop(queue);
        if first || IDLE.load(Ordering::SeqCst) >> cpu.0 & 1 != 0 {
            cpu::kick(cpu);
        }
        return;
    }
    let me = current();
    if me.sched().idle {
        return;
    }
    let mut running = me.sched().entity();
    running.charge(now.saturating_sub(me.sched().since.load(Ordering::Relaxed)));
    let preempts = queue.preempts(&running);
    drop(queue);
    if preempts {
        target.resched.store(true, Ordering::Relaxed);
        cpu::request_work();
    } else if first {
        arm_by(target, now + SLICE);
    }
}

/// Takes a thread from the queue of a busier processor.
pub fn steal(here: &'static Cpu) -> Option<ThreadRef> {
    let others = cpu::online() & !(1 << cpu::id().0);
    let me = cpu::id().0;
    let mut left = others;
    while left != 0 {
        let other = CpuId(left.trailing_zeros());
        left &= left - 1;
        let from = of(other);
        if from.queued.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut queue = from.queue.lock();
        let from_clock = queue.clock();
        let stolen = queue.steal(|thread| thread.sched().affinity() >> me & 1 != 0 && thread.is_parked());
        from.queued.store(queue.len() as u32, Ordering::Relaxed);
        drop(queue);
        if let Some(thread) = stolen {
            let mut entity = thread.sched().entity();
            here.queue.lock().settle(&mut entity, Arrival::Moved { from_clock });
            thread.sched().vruntime.store(entity.vruntime, Ordering::Relaxed);
            return Some(thread);
        }
    }
    None
}

fn choose(thread: &ThreadRef, arrival: Arrival) -> CpuId {
    let online = cpu::online();
    let last = thread.sched().cpu();
    if online & (online - 1) == 0 || (arrival == Arrival::Woken && !thread.is_parked()) {
        return last;
    }
    let allowed = match thread.sched().affinity() & online {
        0 => online,
        some => some,
    };
    let idle = IDLE.load(Ordering::Relaxed) & allowed;
    let preferred = if arrival == Arrival::New { cpu::id() } else { last };
    match (idle >> preferred.0 & 1 != 0, idle, allowed >> preferred.0 & 1 != 0) {
        (true, _, _) | (false, 0, true) => preferred,
        (false, 0, false) => CpuId(allowed.trailing_zeros()),
        (false, idle, _) => CpuId(idle.trailing_zeros()),
    }
}

impl Cpu {
    /// Brings the queue's virtual time up to the running thread's, as far as it can be told from outside: a thread that
    /// runs alone for long is not asked for it.
    fn follow(&self, queue: &mut RunQueue<ThreadRef>, now: Nanos) {
        let began_at = self.turn_vruntime.load(Ordering::Relaxed);
        if began_at != NO_TURN {
            let elapsed = now.saturating_sub(self.turn_since.load(Ordering::Relaxed));
            queue.advance_to(began_at + weighted(elapsed, self.turn_weight.load(Ordering::Relaxed)));
        }
        self.clock.store(queue.clock(), Ordering::Relaxed);
    }
}

/// Marks this processor idle or busy for [`choose`].
pub(super) fn set_idle(idle: bool) {
    let bit = 1 << cpu::id().0;
    if idle {
        IDLE.fetch_or(bit, Ordering::SeqCst);
    } else {
        IDLE.fetch_and(!bit, Ordering::SeqCst);
    }
}

/// Whether anything waits for this processor.
pub(super) fn has_work() -> bool {
    here().queued.load(Ordering::SeqCst) != 0
}
