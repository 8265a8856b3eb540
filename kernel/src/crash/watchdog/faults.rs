//! Notices a thread that takes the same page fault for ever: each is said to be resolved, and the instruction faults again.
//!
//! Such a thread goes back to user mode after every fault, so its processor looks alive. The timer interrupt counts the
//! faults of the thread it finds, and once it has done nothing else for as long as `watchdog=` allows, the flight recorder
//! tells whether they are one and the same. Calls of a thread that shares the memory are taken for the reason why a page has to be
//! brought back again and again: while they go on, nothing is claimed.

use kernel_logic::stall::{Repeating, Running};
use kwab_format::record::{CauseKind, FlightKind, Reason};
use machine::cpu::{self, MAX_CPUS, PerCpu};
use machine::sync::SpinLock;
use machine::time::Nanos;

use super::panic;
use crate::patience;
use crate::sched::Schedulable as _;
use crate::task::{Thread, tree, try_current};
use crate::trace::{flight, ring};

/// A processor's candidate, and how many calls the threads of its process had made when half of the time was over.
struct Candidate {
    repeating: Repeating,
    calls: Option<u64>,
}

static CANDIDATES: PerCpu<SpinLock<Candidate>> =
    PerCpu::new([const { SpinLock::new(Candidate { repeating: Repeating::new(), calls: None }) }; MAX_CPUS]);

/// The newest faults that must be the same.
const ALIKE: usize = 32;

/// The timer of this processor expired. Interrupt context.
pub(super) fn look(now: Nanos) {
    let Some(me) = try_current() else { return };
    let Some(limit) = patience::PROCESSOR.limit() else { return };
    if me.sched().is_idle() {
        return;
    }
    let faults = me.minor_faults.load(core::sync::atomic::Ordering::Relaxed);
    let running = Running { now, tid: me.tid(), faults, calls: ring::counts(&me).total };
    // Only this processor comes here, and with interrupts off.
    let Some(mut candidate) = CANDIDATES.here().try_lock() else { return };
    let Some(lasted) = candidate.repeating.look(running) else {
        if candidate.calls.is_some() {
            candidate.calls = None;
        }
        return;
    };
    if lasted <= limit / 2 {
        return;
    }
    let Some(calls) = calls_beside(&me) else { return };
    match candidate.calls {
        None => candidate.calls = Some(calls),
        Some(_) if lasted <= limit => {}
        Some(before) if before == calls => {
            if let Some((addr, ip)) = same_fault(me.tid()) {
                drop(candidate);
                give_up(&me, lasted, addr, ip);
            }
            candidate.repeating.restart();
        }
        Some(_) => {
            candidate.calls = None;
            candidate.repeating.restart();
        }
    }
}

/// Calls made by the other threads of the process; `None` while the tree of threads is locked.
fn calls_beside(me: &Thread) -> Option<u64> {
    let mut calls = 0u64;
    tree::try_visit(
        &mut |thread| {
            if thread.pid() == me.pid() && thread.tid() != me.tid() {
                calls = calls.wrapping_add(ring::counts(thread).total);
            }
            true
        },
        &mut |_| false,
    )?;
    Some(calls)
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
