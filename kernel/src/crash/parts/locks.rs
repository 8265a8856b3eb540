//! The section of locks: holders of the kernel's own, the locks that processors spin for, and the mutexes for which
//! threads sleep.

use kwab_format::record::{Lock, LockKind, LockWait};
use machine::cpu::{self, CpuId};
use machine::crash;
use machine::sync::Holder;

use super::tasks::waits_on;
use super::{Dump, Scope, Stop, Subject};
use crate::task::Thread;
use crate::{log, mm, task};

type HolderOf = fn() -> Option<Holder>;

/// The locks of the whole kernel, by name.
const GLOBAL: &[(&str, HolderOf)] = &[
    ("process tree", task::tree::holder),
    ("threads", task::tree::holder_of_threads),
    ("kernel log", log::holder),
    ("frame allocator", mm::frames::holder),
    ("console", machine::console::holder),
];

pub(super) fn locks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    for (name, holder) in GLOBAL {
        if let Some(holder) = holder() {
            put(dump, None, Some(name), holder)?;
        }
    }
    if subject.scope != Scope::Kernel {
        return Ok(());
    }
    for number in (0..64).filter(|number| cpu::online() >> number & 1 != 0) {
        let cpu = CpuId(number);
        let Some(awaited) = crash::awaited_lock(cpu) else { continue };
        if let Some(holder) = awaited.holder {
            put(dump, Some(awaited.lock), None, holder)?;
        }
        let mut text = log::Line::<160>::new();
        // What does not fit is cut.
        let _ = core::fmt::Write::write_fmt(&mut text, format_args!("{}", awaited.location));
        dump.put(&LockWait {
            addr: Some(awaited.lock),
            waiter_cpu: Some(cpu.0),
            location: Some(text.bytes()),
            kind: Some(LockKind::SPIN),
            ..LockWait::default()
        })?;
    }
    mutexes(dump)
}

/// Mutexes that are told once, and threads that are told to wait for one.
const MOST: usize = 128;

/// Who sleeps for which mutex, and who has it. The tree was locked for a section before: a thread that is not found
/// says nothing of a mutex.
fn mutexes(dump: &mut Dump<'_>) -> Result<(), Stop> {
    let mut told = [0; MOST];
    let mut outcome = Ok(());
    let now = machine::time::now();
    let seen = task::tree::try_threads(|threads| {
        let waiters = threads.iter().filter_map(|thread| Some((thread, waits_on(&thread.sched)?)));
        for ((thread, holder), slot) in waiters.zip(0..) {
            let wait = thread.sched.waits();
            let known = told.get(..slot).unwrap_or(&[]).contains(&wait.object);
            outcome = match told.get_mut(slot) {
                Some(slot) => {
                    *slot = wait.object;
                    let owner = threads.get(holder).filter(|_| !known);
                    owner.map_or(Ok(()), |owner| held(dump, wait.object, owner)).and_then(|()| {
                        dump.put(&LockWait {
                            addr: Some(wait.object),
                            waiter_pid: Some(thread.pid()),
                            waiter_tid: Some(thread.tid()),
                            waited_ns: Some(now.saturating_sub(wait.since)),
                            kind: Some(LockKind::MUTEX),
                            ..LockWait::default()
                        })
                    })
                }
                None => Err(Stop::Enough),
            };
            if outcome.is_err() {
                break;
            }
        }
    });
    seen.ok_or(Stop::Locked).and(outcome)
}

/// A mutex that a thread has, or will have next.
fn held(dump: &mut Dump<'_>, addr: u64, owner: &Thread) -> Result<(), Stop> {
    dump.put(&Lock {
        addr: Some(addr),
        kind: Some(LockKind::MUTEX),
        holder_pid: Some(owner.pid()),
        holder_tid: Some(owner.tid()),
        ..Lock::default()
    })
}

fn put(dump: &mut Dump<'_>, addr: Option<u64>, name: Option<&str>, holder: Holder) -> Result<(), Stop> {
    let mut text = log::Line::<160>::new();
    // What does not fit is cut.
    let _ = core::fmt::Write::write_fmt(&mut text, format_args!("{}", holder.location));
    dump.put(&Lock {
        addr,
        name: name.map(str::as_bytes),
        kind: Some(LockKind::SPIN),
        holder_cpu: Some(holder.cpu.0),
        location: Some(text.bytes()),
        ..Lock::default()
    })
}
