//! The section of tasks: state, what it waits for, saved registers, stack trace and stack bytes of each thread.
//!
//! The registers and the stack of a thread that is switched out follow its record. They are of the moment of the
//! switch: RFLAGS is not saved there, and is absent.

use core::cell::RefCell;

use kwab_format::List;
use kwab_format::record::{
    Arch, Frame, FrameTrust, MemoryKind, Reg, RegId, RegisterRole, Registers, Stamp, Task as Record, TaskState,
};
use linux_abi::syscalls;
use machine::crash;
use machine::thread::ResumePoint;

use super::cause::name_of;
use super::dump::LOCK_PATIENCE;
use super::stacks::memory;
use super::{Dump, Scope, Stop, Subject};
use crate::sched::{SchedState, ThreadState};
use crate::sync::WaitReason;
use crate::task::{Process, Thread, signal, tree};

/// Most frames of a sleeping thread's kernel stack.
const MAX_FRAMES: usize = 12;

pub(super) fn tasks(dump: &mut Dump<'_>, subject: &Subject<'_>) -> Result<(), Stop> {
    let mut parked = Parked { trace: 1, left: subject.amount.parked.0 };
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
                        live(&mut shared.borrow_mut(), subject, thread, &mut parked)
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

/// What the section has of threads that are switched out.
struct Parked {
    /// Number of the next stack trace.
    trace: u32,
    /// How many more get registers and stack bytes.
    left: usize,
}

fn live(dump: &mut Dump<'_>, subject: &Subject<'_>, thread: &Thread, seen: &mut Parked) -> Result<(), Stop> {
    let mut comm = [0; 16];
    let current = subject.thread.is_some_and(|running| core::ptr::eq(running, thread));
    let asleep = !matches!(thread.sched.state(), ThreadState::Running | ThreadState::Queued | ThreadState::Dead);
    let parked = thread.is_parked() && !current;
    let resume = if parked { thread.resume_point() } else { Default::default() };
    let frame = thread.user_frame();
    let call = frame.and_then(|frame| frame.syscall());
    let root = thread.mm.try_with(|mm| mm.space.root().0);
    let waits = if asleep { call.and_then(syscalls::by_number).map(|call| call.name) } else { None };
    let wait = thread.sched.waits();
    let now = machine::time::now();
    dump.put(&Record {
        pid: Some(thread.pid()),
        tid: Some(thread.tid()),
        ppid: Some(thread.process.ppid()),
        comm: Some(name_of(thread, &mut comm)),
        state: Some(state_of(thread, current)),
        wait_reason: waits.map(str::as_bytes),
        wait_object: Some(wait.object).filter(|object| asleep && *object != 0),
        wait_tid: waits_on(&thread.sched),
        wait_object_name: WaitReason::text(wait.reason).filter(|_| asleep).map(str::as_bytes),
        deadline_ns: wait.deadline.filter(|_| asleep),
        state_ns: Some(now.saturating_sub(wait.since)),
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
        stamp: Stamp { ns: Some(now), ..Stamp::default() },
        ..Record::default()
    })?;
    if resume.ip == 0 {
        return Ok(());
    }
    for (index, addr) in crash::backtrace(resume.ip, resume.fp).take(MAX_FRAMES).enumerate() {
        dump.put(&Frame {
            trace: Some(seen.trace),
            index: Some(index as u32),
            addr: Some(addr),
            trust: Some(FrameTrust::FRAME_POINTER),
            pid: Some(thread.pid()),
            tid: Some(thread.tid()),
            ..Frame::default()
        })?;
    }
    seen.trace += 1;
    let Some(left) = seen.left.checked_sub(1) else { return Ok(()) };
    seen.left = left;
    switched_out(dump, subject, thread, &resume)
}

/// The thread that has, or will have next, the mutex for which this one sleeps.
pub(super) fn waits_on(thread: &SchedState) -> Option<u32> {
    let wait = thread.waits();
    let sleeps = thread.state() == ThreadState::Uninterruptible && wait.reason == WaitReason::Mutex.number();
    Some(wait.on).filter(|on| sleeps && *on != 0)
}

/// The registers that the switch from the thread saved, and the innermost bytes of its stack.
fn switched_out(dump: &mut Dump<'_>, subject: &Subject<'_>, thread: &Thread, resume: &ResumePoint) -> Result<(), Stop> {
    let (pid, tid) = (Some(thread.pid()), Some(thread.tid()));
    let ids = [RegId::RBX, RegId::R12, RegId::R13, RegId::R14, RegId::R15];
    let mut regs = [Reg::default(); 8];
    let pointers = [(RegId::RIP, resume.ip), (RegId::RSP, resume.sp), (RegId::RBP, resume.fp)];
    let saved = pointers.into_iter().chain(ids.into_iter().zip(resume.saved));
    for (reg, (id, value)) in regs.iter_mut().zip(saved) {
        *reg = Reg::new(id, value);
    }
    dump.put(&Registers {
        role: Some(RegisterRole::SWITCHED_OUT),
        pid,
        tid,
        arch: Some(Arch::X86_64),
        regs: Some(List::new(&regs)),
        ..Registers::default()
    })?;
    let (low, high) = thread.stack();
    let end = resume.sp.saturating_add(subject.amount.parked.1 as u64).min(high);
    if resume.sp < low {
        return Ok(());
    }
    memory(dump, MemoryKind::KERNEL_STACK, resume.sp, end, (None, tid), "task")
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
