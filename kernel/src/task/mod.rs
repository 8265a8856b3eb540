//! Threads and processes: the kernel's records of both.
//!
//! A *thread* ([`Task`], carried by the machine's thread of that name) is what runs; a *process* ([`Process`]) is what
//! its threads share: identity, signal dispositions, limits, the family it belongs to. Memory, files and working
//! directory are shared as `clone` was asked to and therefore belong to the thread, each behind a [`Slot`].
//!
//! The family tree, groups and sessions live in [`tree`], under one lock; a process stays there as a zombie until its
//! parent has waited for it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use kernel_logic::signal::{SigInfo, SigSet};
use machine::arch::UserFrame;
use machine::sync::SpinLock;
use machine::trap::TrapCode;

use crate::fs::closing::Closing;
use crate::fs::{Actor, FdTable, FsContext, TableSlot};
use crate::inject::{self, Fault};
use crate::mm::{AddressSpace, MemoryLimits, Owner};
use crate::sched::{SchedState, Schedulable, Sleep};
use crate::trace::Traced;
use crate::trace::ring::Calls;

pub mod access;
pub mod account;
pub mod clock;
pub mod clone;
pub mod creds;
pub mod exceed;
pub mod exec;
pub mod exit;
pub mod fasync;
pub mod fields;
pub mod kept;
pub mod limits;
mod loader;
pub mod memory;
pub mod oom;
mod pending;
pub mod pidfd;
pub mod process;
pub mod rseq;
pub mod signal;
pub mod tree;
pub mod wait;

use account::Charge;
pub use creds::Creds;
use kept::Kept;
pub use pending::PendingSignals;
pub use process::{Process, Session};

pub use crate::upper::{Thread, ThreadRef, current, current_here, try_current};

use signal::ThreadSignals;

/// Largest id handed out (`kernel.pid_max`).
pub const PID_MAX: u32 = 32_768;
/// A process id, or a group's, or a session's.
pub type Pid = u32;
/// A thread id.
pub type Tid = u32;

/// What the kernel keeps per thread.
pub struct Task {
    /// Process and thread id: see [`Traced::ids`].
    ids: AtomicU64,
    /// How deep in spans it is, while spans are traced.
    pub span_depth: AtomicU32,
    /// Its last system calls.
    pub calls: Calls,
    /// The process it belongs to.
    pub process: Arc<Process>,
    /// The scheduler's part.
    pub sched: SchedState,
    /// The signal part.
    pub signals: ThreadSignals,
    /// Its memory; `None` for kernel threads and after exit.
    pub mm: OptionSlot<AddressSpace>,
    /// Its open files; `None` for kernel threads and after exit.
    pub files: TableSlot,
    /// Root, working directory, umask; `None` after exit.
    pub fs: OptionSlot<FsContext>,
    /// Its credentials; exchanged as a whole.
    pub creds: Slot<Creds>,
    /// What it counts for its real user; given up when it ends.
    pub counted: SpinLock<Option<Charge>>,
    /// Held while memory and credentials change together, and while both are looked at ([`access`]).
    pub identity: SpinLock<()>,
    /// `comm`: up to 15 bytes and a NUL.
    pub name: SpinLock<[u8; 16]>,
    /// Cleared and woken as a futex when the thread ends (`set_tid_address`).
    pub clear_child_tid: AtomicU64,
    /// Where its id is to be stored before its first user instruction (`CLONE_CHILD_SETTID`), else 0.
    pub set_child_tid: AtomicU64,
    /// It must end although its process goes on: another thread executes a program.
    pub must_exit: AtomicBool,
    /// Head of its robust futex list and its length argument.
    pub robust_list: AtomicU64,
    /// Registered `struct rseq`, 0 if none; length and signature beside it.
    pub rseq: Rseq,
    /// Signal it gets when its parent thread ends (`PR_SET_PDEATHSIG`), 0 for none.
    pub parent_death_signal: AtomicU32,
    /// What the vfork parent waits for; set while this thread borrows its parent's memory.
    pub vfork: SpinLock<Option<Arc<VforkDone>>>,
    /// Faults resolved without and with I/O.
    pub minor_faults: AtomicU64,
    /// Page faults that waited for I/O.
    pub major_faults: AtomicU64,
    /// Its user had more threads than permitted when it became that user: it may execute a program once that is over.
    pub exceeds_processes: AtomicBool,
    /// It never runs a program.
    pub kernel_thread: bool,
    /// Set for the thread that becomes init: it executes the program before its first user instruction.
    pub becomes_init: AtomicBool,
    /// The last exception it caused, for signal frames.
    pub trap: SpinLock<TrapCode>,
    /// It ends and has handed over every futex it owned.
    pub pi_released: AtomicBool,
    /// Files it is closing.
    pub closing: Closing,
    /// Memory that its call keeps.
    pub kept: Kept,
}

/// What threads leave behind and is told to the layers above.
pub trait Above {
    /// The terminal of a session.
    type Terminal: Send + Sync + 'static;
    /// The running thread lets go of the futexes that its memory holds: it ends, or (`exec`) executes another program.
    fn release_futexes(thread: &Thread, exec: bool);
    /// The running thread, alone in its process, had the number `old` and has the number `new` now.
    fn renumber(old: Tid, new: Tid);
    /// The leader of a session with this terminal ended.
    fn leader_ended(terminal: &Arc<Self::Terminal>, session: &Session);
    /// Pages that `user` has sent through sockets and that were not received yet.
    fn pages_in_flight(user: u32) -> u64;
}

/// Events of threads and programs that the crash layer acts on.
pub trait Observer {
    /// A signal ends the running thread's process, whose registers are `user`.
    fn process_dies(thread: &Thread, user: &UserFrame, info: &SigInfo);
    /// The running thread has executed a program, which has not run yet.
    fn program_executed(thread: &Thread);
}

impl Schedulable for Task {
    #[inline]
    fn sched(&self) -> &SchedState {
        &self.sched
    }

    #[inline]
    fn number(&self) -> u32 {
        self.tid()
    }

    #[inline]
    fn is_interrupted(&self, sleep: Sleep) -> bool {
        signal::is_pending(self, sleep)
    }

    #[inline]
    fn is_timed(&self) -> bool {
        self.process.accounting.cpu_deadline().min(self.process.parked_timers.first()) != u64::MAX
    }

    #[inline]
    fn ticked(&self) {
        if self.is_timed() {
            exceed::processor_time(self);
        }
    }
}

impl Actor for Task {
    fn capable(&self, capability: u32) -> bool {
        self.creds.with(|creds| creds.capable(capability))
    }

    fn file_owner(&self) -> (u32, u32) {
        self.creds.with(|creds| (creds.fsuid, creds.fsgid))
    }

    #[inline]
    fn file_size_limit(&self) -> u64 {
        self.process.limit(limits::resource::FSIZE)
    }

    #[inline]
    fn closing(&self) -> &Closing {
        &self.closing
    }
}

impl Owner for Task {
    #[inline]
    fn memory_limits(&self) -> MemoryLimits {
        self.process.accounting.memory_limits()
    }

    fn locks_any_memory(&self) -> bool {
        self.creds.with(|creds| creds.capable(creds::cap::IPC_LOCK))
    }

    fn exceeds_limits(&self) -> bool {
        self.creds.with(|creds| creds.capable(creds::cap::SYS_RESOURCE))
    }
}

impl Traced for Task {
    #[inline]
    fn ids(&self) -> u64 {
        self.ids.load(Ordering::Relaxed)
    }

    fn span_depth(&self) -> &AtomicU32 {
        &self.span_depth
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }
}

/// A registered restartable sequence area (rseq(2)).
#[derive(Default)]
pub struct Rseq {
    /// User address, 0 if none.
    pub addr: AtomicU64,
    /// Registered length in bytes.
    pub len: AtomicU32,
    /// Signature in front of abort handlers.
    pub signature: AtomicU32,
}

/// Told when a vfork child no longer uses its parent's memory.
pub struct VforkDone {
    /// It does not any more.
    pub done: AtomicBool,
    /// The parent sleeps here.
    pub queue: crate::sync::wait::WaitQueue,
}

impl Default for VforkDone {
    fn default() -> Self {
        let queue = crate::sync::wait::WaitQueue::new(crate::sync::WaitReason::Vfork);
        Self { done: AtomicBool::new(false), queue }
    }
}

impl Task {
    /// Thread id; equal to the process id for a process's first thread, and for the one that executed a program.
    #[inline]
    pub fn tid(&self) -> Tid {
        self.ids.load(Ordering::Relaxed) as u32
    }

    fn pack_ids(pid: Pid, tid: Tid) -> u64 {
        u64::from(pid) << 32 | u64::from(tid)
    }

    fn set_tid(&self, tid: Tid) {
        self.ids.store(Self::pack_ids(self.process.pid, tid), Ordering::Relaxed);
    }

    /// The process id.
    pub fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Copies `comm` without its padding into `out`; how long it is.
    pub fn comm(&self, out: &mut [u8; 16]) -> usize {
        *out = *self.name.lock();
        out.iter().position(|b| *b == 0).unwrap_or(15)
    }

    /// Sets `comm` from the bytes of a path's last part or a `prctl` argument.
    pub fn set_comm(&self, name: &[u8]) {
        let mut comm = [0; 16];
        let len = name.len().min(15);
        comm[..len].copy_from_slice(&name[..len]);
        *self.name.lock() = comm;
    }

    /// Its open files; panics for a kernel thread, which makes no calls.
    pub fn files(&self) -> Arc<FdTable> {
        self.files.get().expect("a thread that makes calls has files")
    }

    /// Its root, working directory and umask.
    pub fn fs(&self) -> Arc<FsContext> {
        self.fs.get().expect("a thread that makes calls has a working directory")
    }

    /// Its address space; `None` for kernel threads and after exit.
    #[inline(always)]
    pub fn mm(&self) -> Option<Arc<AddressSpace>> {
        self.mm.get()
    }

    /// Its credentials now.
    pub fn creds(&self) -> Arc<Creds> {
        self.creds.get()
    }

    /// A thread's part of the kernel's own: an idle thread, or the one that becomes init.
    pub fn kernel(tid: Tid, process: Arc<Process>, name: &[u8], idle: bool) -> Self {
        let task = Self {
            ids: AtomicU64::new(Self::pack_ids(process.pid, tid)),
            span_depth: AtomicU32::new(0),
            calls: Calls::new(),
            process,
            sched: SchedState::new(idle),
            signals: ThreadSignals::new(SigSet::EMPTY),
            mm: OptionSlot::new(None),
            files: TableSlot::new(None),
            fs: OptionSlot::new(None),
            creds: Slot::new(Arc::new(Creds::root())),
            counted: SpinLock::new(None),
            identity: SpinLock::new(()),
            name: SpinLock::new([0; 16]),
            clear_child_tid: AtomicU64::new(0),
            set_child_tid: AtomicU64::new(0),
            must_exit: AtomicBool::new(false),
            robust_list: AtomicU64::new(0),
            rseq: Rseq::default(),
            parent_death_signal: AtomicU32::new(0),
            vfork: SpinLock::new(None),
            minor_faults: AtomicU64::new(0),
            major_faults: AtomicU64::new(0),
            exceeds_processes: AtomicBool::new(false),
            kernel_thread: true,
            becomes_init: AtomicBool::new(false),
            trap: SpinLock::new(TrapCode::default()),
            pi_released: AtomicBool::new(false),
            closing: Closing::default(),
            kept: Kept::default(),
        };
        task.set_comm(name);
        task
    }

    /// The last exception it caused.
    pub fn last_trap(&self) -> TrapCode {
        *self.trap.lock()
    }

    /// Releases a vfork parent that waits for this thread, if there is one.
    pub fn finish_vfork(&self) {
        let waiting = self.vfork.lock().take();
        if let Some(vfork) = waiting {
            vfork.done.store(true, Ordering::Release);
            if !inject::is(Fault::LostWakeup) {
                vfork.queue.wake_all();
            }
        }
    }
}

/// A shared thing that can be exchanged: credentials.
pub struct Slot<T>(SpinLock<Arc<T>>);

impl<T> Slot<T> {
    /// A slot with this value.
    pub const fn new(value: Arc<T>) -> Self {
        Self(SpinLock::new(value))
    }

    /// What it holds.
    pub fn get(&self) -> Arc<T> {
        self.0.lock().clone()
    }

    /// Looks at what it holds, without taking a reference. `look` must not sleep.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.0.lock())
    }

    /// Puts something else there.
    pub fn set(&self, value: Arc<T>) {
        let old = core::mem::replace(&mut *self.0.lock(), value);
        drop(old);
    }
}

/// A shared thing that can be exchanged or given up: memory, files.
pub struct OptionSlot<T>(SpinLock<Option<Arc<T>>>);

impl<T> OptionSlot<T> {
    /// A slot with this value, or none.
    pub const fn new(value: Option<Arc<T>>) -> Self {
        Self(SpinLock::new(value))
    }

    /// What it holds.
    #[inline(always)]
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.lock().clone()
    }

    /// Looks at what it holds, without taking a reference. `look` must not sleep.
    pub fn with<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
        look(self.0.lock().as_deref())
    }

    /// [`with`](Self::with) for dumps: `None` if the slot is locked.
    pub fn try_with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.try_lock()?.as_deref().map(look)
    }

    /// Puts something else there; what was there is returned so that it is dropped outside the lock.
    pub fn set(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        core::mem::replace(&mut *self.0.lock(), value)
    }
}
