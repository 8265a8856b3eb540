//! The section of tasks: state, wait reason and stack trace of each thread.

use core::cell::RefCell;

use kwab_format::record::{Frame, FrameTrust, Task as Record, TaskState};
use linux_abi::syscalls;
use machine::crash;

use super::cause::name_of;
use super::dump::LOCK_PATIENCE;
use super::{Dump, Scope, Stop, Subject};
use crate::sched::ThreadState;
use crate::task::{Process, Thread, signal, tree};

/// Most frames of a sleeping thread's kernel stack.
const MAX_FRAMES: usize = 12;

pub(super) fn tasks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let mut trace = 1;
    let mut left = subject.amount.entries;
    let only = subject.pid().filter(|_| subject.scope == Scope::Process);
    let until = machine::time::now() + LOCK_PATIENCE;
    loop {
        let (mut outcome, mut others) = (Ok(()), Ok(()));
        let shared = RefCell::new(&mut *dump);
        let seen = tree::try_visit(
            &mut |thread| {
                if only.is_none_or(|pid| pid == thread.pid()) {
                    outcome = left.checked_sub(1).ok_or(Stop::Enough).and_then(|rest| {
                        left = rest;
                        live(&mut shared.borrow_mut(), subject, thread, &mut trace)
                    });
                }
                outcome.is_ok()
            },
            &mut |process| {
                if only.is_none() {
                    others = zombie(&mut shared.borrow_mut(), process);
                }
                others.is_ok()
            },
        );
        match seen {
            Some(()) => return outcome.and(others),
            None if machine::time::now() > until => return Err(Stop::Locked),
            None => machine::cpu::relax(),
        }
    }
}

fn live(dump: &mut Dump<'_>, subject: &Subject<'_>, thread: &Thread, trace: &mut u32) -> Result<(), Stop> {
    let mut comm = [0; 16];
    let current = subject.thread.is_some_and(|running| core::ptr::eq(running, thread));
    let asleep = !matches!(thread.sched.state(), ThreadState::Running | ThreadState::Queued | ThreadState::Dead);
    let parked = thread.is_parked() && !current;
    let resume = if parked { thread.resume_point() } else { Default::default() };
    let frame = thread.user_frame();
    let call = frame.and_then(|frame| frame.syscall());
    let root = thread.mm.try_with(|mm| mm.space.root().0);
    let waits = if asleep { call.and_then(syscalls::by_number).map(|call| call.name) } else { None };
    let (object, since) = thread.sched.waits();
    dump.put(&Record {
        pid: Some(thread.pid()),
        tid: Some(thread.tid()),
        ppid: Some(thread.process.ppid()),
        comm: Some(name_of(thread, &mut comm)),
        state: Some(state_of(thread, current)),
        wait_reason: waits.map(str::as_bytes),
        wait_object: Some(object).filter(|object| asleep && *object != 0),
        state_ns: Some(machine::time::now().saturating_sub(since)),
        last_cpu: Some(thread.sched.cpu().0),
        kernel_sp: Some(resume.sp).filter(|sp| *sp != 0),
        kernel_ip: Some(resume.ip).filter(|ip| *ip != 0),
        user_sp: frame.map(|frame| frame.sp()),
        user_ip: frame.map(|frame| frame.ip()),
        syscall: call.map(|nr| nr as i64),
        run_ns: Some(thread.sched.run_time()),
        priority: Some(i64::from(thread.sched.nice())),
        page_table_root: root,
        pending: Some(signal::pending_set(thread).0),
        blocked: Some(thread.signals.blocked().0),
        current: Some(current),
        ..Record::default()
    })?;
    if resume.ip == 0 {
        return Ok(());
    }
    for (index, addr) in crash::backtrace(resume.ip, resume.fp).take(MAX_FRAMES).enumerate() {
        dump.put(&Frame {
            trace: Some(*trace),
            index: Some(index as u32),
            addr: Some(addr),
            trust: Some(FrameTrust::FRAME_POINTER),
            pid: Some(thread.pid()),
            tid: Some(thread.tid()),
            ..Frame::default()
        })?;
    }
    *trace += 1;
    Ok(())
}

fn state_of(thread: &Thread, current: bool) -> TaskState {
    match thread.sched.state() {
        _ if current => TaskState::RUNNING,
        _ if thread.sched.is_idle() => TaskState::IDLE,
        ThreadState::Running => TaskState::RUNNING,
        ThreadState::Queued => TaskState::RUNNABLE,
        ThreadState::Interruptible => TaskState::SLEEPING,
        ThreadState::Stopped => TaskState::STOPPED,
        ThreadState::Dead => TaskState::ZOMBIE,
        _ => TaskState::BLOCKED,
    }
}

fn zombie(dump: &mut Dump<'_>, process: &Process) -> Result<(), Stop> {
    dump.put(&Record {
        pid: Some(process.pid),
        tid: Some(process.pid),
        ppid: Some(process.ppid()),
        state: Some(TaskState::ZOMBIE),
        ..Record::default()
    })
}
