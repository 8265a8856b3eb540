//! Sections of the flight recorder and the call rings: what happened before the death.

use kwab_format::record::Drops;
use machine::cpu::{self, CpuId};

use super::{Dump, Scope, Stop, Subject};
use crate::task::{Task, tree};
use crate::trace::{flight as recorder, ring};

/// The calls of the process that was running, the thread that was running last.
pub(super) fn calls(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let Some(running) = subject.thread.filter(|thread| !thread.kernel_thread) else { return Ok(()) };
    let most = subject.amount.events;
    let mut outcome = Ok(());
    let mut left = MOST_THREADS;
    // The other threads are left out if the tree is locked: the one that matters comes below.
    let others = tree::try_visit(
        &mut |thread| {
            if thread.pid() == running.pid() && thread.tid() != running.tid() && left > 0 {
                left -= 1;
                outcome = of_thread(dump, thread, most.min(MOST_CALLS_OF_OTHERS));
            }
            outcome.is_ok()
        },
        &mut |_| false,
    );
    outcome?;
    of_thread(dump, running, most)?;
    others.ok_or(Stop::Locked)
}

/// Threads whose calls are dumped beside the running one's.
const MOST_THREADS: u32 = 16;
/// Calls of each of them.
const MOST_CALLS_OF_OTHERS: usize = 32;

fn of_thread(dump: &mut Dump<'_>, thread: &Task, most: usize) -> Result<(), Stop> {
    let clock = machine::time::params();
    let counts = ring::counts(thread);
    let held = counts.held() as usize;
    let mut skip = held.saturating_sub(most);
    let mut outcome = Ok(());
    let torn = ring::for_each(thread, &clock, |call| {
        if skip > 0 {
            skip -= 1;
        } else if outcome.is_ok() {
            outcome = dump.put(call);
        }
    });
    outcome?;
    dump.put(&Drops {
        recorder: Some(b"system calls"),
        total: Some(counts.total),
        overwritten: Some(counts.overwritten),
        dropped: Some(u64::from(torn)),
        capacity: Some(u64::from(counts.capacity)),
        pid: Some(thread.pid()),
        ..Drops::default()
    })
}

/// The flight recorder of every processor.
pub(super) fn flight(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    // A program's death rarely has its reason in what happened long before.
    let most = if subject.scope == Scope::Process { subject.amount.events.min(128) } else { subject.amount.events };
    for number in (0..64).filter(|number| cpu::online() >> number & 1 != 0) {
        let cpu = CpuId(number);
        let counts = recorder::counts(cpu);
        let mut skip = (counts.held() as usize).saturating_sub(most);
        let mut outcome = Ok(());
        let torn = recorder::for_each(cpu, |event| {
            if skip > 0 {
                skip -= 1;
            } else if outcome.is_ok() {
                outcome = dump.put(&event.record());
            }
        });
        outcome?;
        let mut name = crate::log::Line::<24>::new();
        // It always fits.
        let _ = core::fmt::Write::write_fmt(&mut name, format_args!("flight of cpu {number}"));
        dump.put(&Drops {
            recorder: Some(name.bytes()),
            total: Some(counts.total),
            overwritten: Some(counts.overwritten),
            dropped: Some(u64::from(torn)),
            capacity: Some(u64::from(counts.capacity)),
            ..Drops::default()
        })?;
    }
    Ok(())
}
