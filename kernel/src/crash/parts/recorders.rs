//! Sections of the flight recorder and the call rings: what happened before the death.

use kwab_format::record::Drops;
use machine::cpu::{self, CpuId};

use super::dump::LOCK_PATIENCE;
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
                outcome = of_thread(dump, thread, most.min(MOST_CALLS_OF_OTHERS)).map(|_| ());
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

/// The calls of every other process: those that led a sleeper to where it sleeps may be long ago. Each thread gets the
/// same share, its newest calls; sleepers come first.
pub(super) fn calls_of_others(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let running = subject.pid();
    let is_other = |thread: &Task| !thread.kernel_thread && running.is_none_or(|pid| pid != thread.pid());
    let mut threads = 0;
    each_thread(&mut |thread| {
        threads += usize::from(is_other(thread));
        true
    })?;
    let mut left = subject.amount.events.min(MOST_CALLS_OF_ALL);
    let share = (left / threads.max(1)).max(LEAST_SHARE);
    // While others run, a thread may fall asleep between two passes, and would be told twice.
    let passes: &[Option<bool>] = if subject.scope == Scope::Live { &[None] } else { &[Some(true), Some(false)] };
    for wanted in passes {
        let mut outcome = Ok(());
        let (mut process, mut siblings) = (0, 0);
        each_thread(&mut |thread| {
            let asleep = thread.sched.state().is_asleep();
            if is_other(thread) && wanted.is_none_or(|wanted| wanted == asleep) {
                siblings = if process == thread.pid() { siblings + 1 } else { 0 };
                process = thread.pid();
                outcome = match share.min(left) {
                    0 => Err(Stop::Enough),
                    _ if siblings >= MOST_THREADS => Ok(()),
                    most => of_thread(dump, thread, most).map(|put| left -= put),
                };
            }
            outcome.is_ok()
        })?;
        outcome?;
    }
    Ok(())
}

/// Calls of all other processes together.
const MOST_CALLS_OF_ALL: usize = 1024;
/// Calls of a thread, however many threads there are.
const LEAST_SHARE: usize = 8;

/// Visits the threads; asks for the tree's lock for a short while.
fn each_thread(visit: &mut dyn FnMut(&Task) -> bool) -> Result<(), Stop> {
    let until = machine::time::now().saturating_add(LOCK_PATIENCE);
    loop {
        match tree::try_visit(&mut |thread| visit(thread), &mut |_| false) {
            Some(()) => return Ok(()),
            None if machine::time::now() > until => return Err(Stop::Locked),
            None => cpu::relax(),
        }
    }
}

/// The newest calls of a thread, at most so many, oldest first; how many were put.
fn of_thread(dump: &mut Dump<'_>, thread: &Task, most: usize) -> Result<usize, Stop> {
    let clock = machine::time::params();
    let counts = ring::counts(thread);
    let left_out = (counts.held() as usize).saturating_sub(most);
    let (mut skip, mut put) = (left_out, 0);
    let mut outcome = Ok(());
    let torn = ring::for_each(thread, &clock, |call| {
        if skip > 0 {
            skip -= 1;
        } else if outcome.is_ok() {
            outcome = dump.put(call);
            put += 1;
        }
    });
    outcome?;
    dump.put(&Drops {
        recorder: Some(b"system calls"),
        total: Some(counts.total),
        overwritten: Some(counts.overwritten),
        dropped: Some(u64::from(torn) + left_out as u64),
        capacity: Some(u64::from(counts.capacity)),
        pid: Some(thread.pid()),
        ..Drops::default()
    })?;
    Ok(put)
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
