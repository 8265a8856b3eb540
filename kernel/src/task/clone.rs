//! Making threads and processes: fork, vfork, clone, clone3.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use kernel_logic::signal::{MAX_SIGNAL, SigSet};
use linux_abi::Errno;
use linux_abi::flags::process as flags;
pub use linux_abi::numbers::CLONE_CLEAR_SIGHAND;
use machine::arch::UserFrame;
use machine::sync::SpinLock;
use machine::thread::{FpuStart, UserStart, running};
use machine::trap::TrapCode;

use super::account::{Charge, Kind};
use super::creds::cap;
use super::kept::Kept;
use super::{Creds, OptionSlot, Pid, Process, Rseq, Slot, Task, Thread, ThreadRef, VforkDone, pidfd, tree};
use crate::fs::TableSlot;
use crate::fs::closing::Closing;
use crate::fs::fdtable::Usage;
use crate::inject::{self, Fault};
use crate::mm::{AddressSpace, frames};
use crate::options;
use crate::sched::{self, SchedState, Sleep};
use crate::sync::wait::WaitError;
use crate::task::limits::{max_threads, resource};
use crate::task::signal::ThreadSignals;
use crate::trace;
use crate::trace::ring::Calls;
use crate::trace::span::{Id, span};
use crate::user::UserPtr;

/// What a clone is asked to do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// `CLONE_*` bits, without the exit signal.
    pub flags: u64,
    /// Signal to the parent when the child ends; 0 for none.
    pub exit_signal: u8,
    /// The child's stack pointer; 0 for the parent's.
    pub stack: u64,
    /// Where the parent stores the child's id.
    pub parent_tid: u64,
    /// Where the child's id is stored in and cleared from its memory.
    pub child_tid: u64,
    /// Where the parent stores a descriptor of the child (`CLONE_PIDFD`).
    pub pidfd: u64,
    /// Its thread pointer (`CLONE_SETTLS`).
    pub tls: u64,
    /// Its id, if that was chosen ([`chosen_id`]).
    pub chosen_id: Option<Pid>,
}

/// Flags that ask for what this kernel does not have: namespaces.
const UNSUPPORTED: u64 = flags::CLONE_NEWNS
    | flags::CLONE_NEWCGROUP
    | flags::CLONE_NEWUTS
    | flags::CLONE_NEWIPC
    | flags::CLONE_NEWUSER
    | flags::CLONE_NEWPID
    | flags::CLONE_NEWNET;

/// What `ghost-fork` makes of a request: a child of fork(2) runs in its parent's memory until it executes a program or
/// ends, and the parent waits for that.
///
/// It spares the copy of the page tables, and is off because programs do not expect it. What a child writes after a
/// fork is the parent's: a libc notes the child's thread id, resets its locks and its robust list, and runs the
/// handlers of pthread_atfork(3), all in memory that is the parent's too; the child also returns from the function that
/// called fork and goes on, on the stack that the parent goes on with. Only callers of vfork(2) promise to do neither.
#[cold]
fn as_ghost(request: &Request) -> Request {
    let plain = request.flags & flags::CLONE_VM == 0 && request.stack == 0;
    let more = if plain { flags::CLONE_VM | flags::CLONE_VFORK } else { 0 };
    Request { flags: request.flags | more, ..*request }
}

/// Makes a child of the running thread; its id.
pub fn clone(me: &Thread, frame: &UserFrame, request: &Request) -> Result<usize, Errno> {
    check(request)?;
    let ghost = options::get().ghost_fork.then(|| as_ghost(request));
    let request = ghost.as_ref().unwrap_or(request);
    if request.flags & flags::CLONE_PARENT != 0 && me.process.is_init() {
        return Err(Errno::EINVAL);
    }
    let whole = span(Id::Fork);
    let asked = |flag: u64| request.flags & flag != 0;
    if asked(flags::CLONE_SETTLS) && request.tls >= kernel_logic::vma::USER_END {
        return Err(Errno::EPERM);
    }
    let is_thread = asked(flags::CLONE_THREAD);
    // A caller that may exceed resource limits is bound only by the number of ids.
    let may_exceed =
        |creds: &Creds| creds.uid == 0 || creds.capable(cap::SYS_RESOURCE) || creds.capable(cap::SYS_ADMIN);
    let most = if me.creds.with(may_exceed) { u64::MAX } else { me.process.limit(resource::NPROC) };
    let counted = me.creds.with(|creds| creds.account.charge(Kind::Threads, 1, most));
    if tree::thread_count() as u64 >= max_threads() || counted.is_none() {
        return Err(Errno::EAGAIN);
    }
    me.exceeds_processes.store(false, Ordering::Relaxed);
    frames::spare()?;
    let memory = span(Id::ForkMemory);
    let mm = child_memory(me, asked(flags::CLONE_VM), request.stack != 0)?;
    drop(memory);
    let files = child_files(me, asked(flags::CLONE_FILES))?;
    let family = span(Id::ForkTask);
    let taken = request.chosen_id.map(tree::allocate_this).transpose()?;
    let tid = taken.as_ref().map_or_else(tree::allocate, |taken| Ok(taken.id()))?;
    let process = if is_thread { me.process.clone() } else { child_process(me, tid, request) };
    let vfork = asked(flags::CLONE_VFORK).then(|| Arc::new(VforkDone::default()));
    let task = child_task(me, tid, process.clone(), mm.clone(), request, (vfork.clone(), counted, files));
    drop(family);
    let mut start = *frame;
    start.set_result(0);
    if request.stack != 0 {
        start.set_sp(request.stack);
    }
    let tls = if asked(flags::CLONE_SETTLS) { request.tls } else { running::tls() };
    let user = UserStart { frame: &start, tls, fpu: FpuStart::Inherit, space: Some(mm.space.clone()) };
    let stack = span(Id::ForkThread);
    let thread: ThreadRef = Thread::user(task, &user).map_err(|_| Errno::ENOMEM)?;
    drop(stack);
    if asked(flags::CLONE_PIDFD) {
        let fd = pidfd::open(me, &process, false)?;
        if let Err(errno) = UserPtr::<i32>::new(request.pidfd).write(fd) {
            drop(me.files().close(fd));
            return Err(errno);
        }
    }
    if asked(flags::CLONE_PARENT_SETTID) {
        // Linux ignores a bad address here: the child exists already.
        let _ = UserPtr::<u32>::new(request.parent_tid).write(tid);
    }
    if is_thread {
        process.add_thread(&thread)?;
        tree::add_thread(&thread);
    } else {
        process.threads.add_first(&thread);
        tree::add_process(&process, me.tid(), asked(flags::CLONE_PARENT).then_some(&*me.process), &thread);
        trace::event::fork(me.pid(), tid);
    }
    trace::flight::fork(me.pid(), tid);
    sched::start(thread);
    drop(whole);
    if let Some(vfork) = vfork {
        wait_for_vfork(&vfork);
    }
    Ok(tid as usize)
}

/// Checks an id that the caller chose for a child (clone3(2), `set_tid`).
pub fn chosen_id(me: &Task, id: Pid) -> Result<Pid, Errno> {
    if id == 0 || id >= super::PID_MAX {
        return Err(Errno::EINVAL);
    }
    let may = |creds: &Creds| creds.capable(cap::SYS_ADMIN) || creds.capable(cap::CHECKPOINT_RESTORE);
    if me.creds.with(may) { Ok(id) } else { Err(Errno::EPERM) }
}

fn check(request: &Request) -> Result<(), Errno> {
    let asked = |flag: u64| request.flags & flag != 0;
    if (asked(flags::CLONE_THREAD) && !asked(flags::CLONE_SIGHAND))
        || (asked(flags::CLONE_SIGHAND) && !asked(flags::CLONE_VM))
        || (asked(flags::CLONE_FS) && asked(flags::CLONE_NEWNS))
        || request.flags & UNSUPPORTED != 0
        || (asked(flags::CLONE_PIDFD) && asked(flags::CLONE_THREAD))
        // Both would go to one address, as they always do for clone(2).
        || (asked(flags::CLONE_PIDFD) && asked(flags::CLONE_PARENT_SETTID) && request.pidfd == request.parent_tid)
        || request.exit_signal > MAX_SIGNAL
    {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

fn child_memory(me: &Thread, shared: bool, own_stack: bool) -> Result<Arc<AddressSpace>, Errno> {
    let mm = me.mm().ok_or(Errno::EINVAL)?;
    if shared || own_stack && inject::is(Fault::ForkShares) { Ok(mm) } else { mm.fork() }
}

fn child_files(me: &Thread, shared: bool) -> Result<Option<Usage>, Errno> {
    if shared { Ok(me.files.share()) } else { me.files.get().map(|files| files.fork()).transpose() }
}

fn child_process(me: &Thread, pid: u32, request: &Request) -> Arc<Process> {
    let asked = |flag: u64| request.flags & flag != 0;
    let actions = if asked(flags::CLONE_SIGHAND) {
        me.process.signals.share_actions()
    } else {
        me.process.signals.copy_actions(asked(CLONE_CLEAR_SIGHAND))
    };
    Process::new(pid, Some(&me.process), actions, request.exit_signal)
}

fn child_task(
    me: &Thread,
    tid: u32,
    process: Arc<Process>,
    mm: Arc<AddressSpace>,
    request: &Request,
    (vfork, counted, files): (Option<Arc<VforkDone>>, Option<Charge>, Option<Usage>),
) -> Task {
    let asked = |flag: u64| request.flags & flag != 0;
    let fs = if asked(flags::CLONE_FS) { me.fs.get() } else { me.fs.get().map(|fs| fs.fork()) };
    let signals = ThreadSignals::new(me.signals.blocked());
    if !asked(flags::CLONE_VM) || asked(flags::CLONE_VFORK) {
        signals.alt_stack.set(me.signals.alt_stack.get());
    }
    let kept = if asked(flags::CLONE_VM) { 0 } else { me.rseq.addr.load(Ordering::Relaxed) };
    let rseq = Rseq {
        addr: AtomicU64::new(kept),
        len: AtomicU32::new(me.rseq.len.load(Ordering::Relaxed)),
        signature: AtomicU32::new(me.rseq.signature.load(Ordering::Relaxed)),
    };
    let on = |flag: u64, value: u64| AtomicU64::new(if asked(flag) { value } else { 0 });
    let task = Task {
        ids: AtomicU64::new(Task::pack_ids(process.pid, tid)),
        span_depth: AtomicU32::new(0),
        calls: Calls::new(),
        process,
        sched: SchedState::child_of(&me.sched),
        signals,
        mm: OptionSlot::new(Some(mm)),
        files: TableSlot::new(files),
        fs: OptionSlot::new(fs),
        creds: Slot::new(me.creds.get()),
        counted: SpinLock::new(counted),
        identity: SpinLock::new(()),
        name: SpinLock::new(*me.name.lock()),
        clear_child_tid: on(flags::CLONE_CHILD_CLEARTID, request.child_tid),
        set_child_tid: on(flags::CLONE_CHILD_SETTID, request.child_tid),
        must_exit: AtomicBool::new(false),
        robust_list: AtomicU64::new(0),
        rseq,
        parent_death_signal: AtomicU32::new(0),
        vfork: SpinLock::new(vfork),
        minor_faults: AtomicU64::new(0),
        major_faults: AtomicU64::new(0),
        exceeds_processes: AtomicBool::new(me.exceeds_processes.load(Ordering::Relaxed)),
        kernel_thread: false,
        becomes_init: AtomicBool::new(false),
        trap: SpinLock::new(TrapCode::default()),
        pi_released: AtomicBool::new(false),
        closing: Closing::default(),
        kept: Kept::default(),
    };
    debug_assert!(task.signals.pending.set() == SigSet::EMPTY);
    task
}

/// Waits until the child no longer uses this thread's memory, or this process must end.
fn wait_for_vfork(vfork: &VforkDone) {
    let done = || vfork.done.load(Ordering::Acquire).then_some(());
    match vfork.queue.wait_until(None, Sleep::Killable, done) {
        Ok(()) | Err(WaitError::Interrupted | WaitError::TimedOut) => {}
    }
}
