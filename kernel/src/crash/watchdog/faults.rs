//! Notices a thread that takes the same page fault for ever: each is said to be resolved, and the instruction faults
//! again.
//!
//! Such a thread goes back to user mode after every fault, so its processor looks alive. The timer interrupt counts the
//! faults of the thread it finds, and once it has done nothing else for as long as `watchdog=` allows, the flight
//! recorder tells whether they are one and the same. Others may take a page away again and again, by calls of threads
//! that share the memory or of any process that shares the file: while a right is lost in the thread's space, it has a
//! reason to fault, and nothing is claimed.

use kernel_logic::stall::{Repeating, Running};
use kwab_format::record::{CauseKind, FlightKind, Reason};
use machine::cpu::{self, MAX_CPUS, PerCpu};
use machine::space::losses_here;
use machine::sync::{SpinLock, locks_held};
use machine::time::Nanos;

use super::{GRACE, panic};
use crate::patience;
use crate::sched::Schedulable as _;
use crate::task::{Thread, try_current};
use crate::trace::{flight, ring};

static CANDIDATES: PerCpu<SpinLock<Repeating>> = PerCpu::new([const { SpinLock::new(Repeating::new()) }; MAX_CPUS]);

/// The newest faults that must be the same.
const ALIKE: usize = 32;

/// The timer of this processor expired. Interrupt context.
pub(super) fn look(now: Nanos) {
    let Some(me) = try_current() else { return };
    let Some(limit) = patience::PROCESSOR.limit() else { return };
    if me.sched().is_idle() {
        return;
    }
    let is_inside = locks_held() != 0;
    let faults = me.minor_faults.load(core::sync::atomic::Ordering::Relaxed);
    let running = Running { now, tid: me.tid(), faults, calls: ring::counts(&me).total, losses: losses_here() };
    // Only this processor comes here, and with interrupts off.
    let Some(mut candidate) = CANDIDATES.here().try_lock() else { return };
    let Some(lasted) = candidate.look(running).filter(|lasted| *lasted > limit) else { return };
    // What a lock of the interrupted code protects is missing in a dump, and a loop soon holds none.
    if is_inside && lasted <= limit.saturating_add(GRACE) {
        return;
    }
    candidate.restart();
    drop(candidate);
    if let Some((addr, ip)) = same_fault(me.tid()) {
        give_up(&me, lasted, addr, ip);
    }
}

/// Address and instruction of the newest page faults of this processor, if they are all the same and the thread's.
fn same_fault(tid: u32) -> Option<(u64, u64)> {
    let mut newest = [None; ALIKE];
    let mut count = 0;
    flight::for_each(cpu::id(), |event| {
        if event.kind == FlightKind::PAGE_FAULT && event.tid == tid {
            newest[count % ALIKE] = event.numbers[0].zip(event.numbers[1]);
            count += 1;
        }
    });
    let first = newest[0]?;
    (count >= ALIKE && newest.iter().all(|fault| *fault == Some(first))).then_some(first)
}

fn give_up(me: &Thread, lasted: Nanos, addr: u64, ip: u64) -> ! {
    let (tid, seconds) = (me.tid(), lasted / 1_000_000_000);
    let message = format_args!("page fault loop: thread {tid} faults at {addr:#x}, ip {ip:#x}, for {seconds} s");
    panic::die(CauseKind::FAULT_LOOP, Reason::HANG, message)
}
