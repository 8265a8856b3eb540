//! A process's relations: its group and session, its parent, and the signal it owes the parent when it ends.
//!
//! Other processes are found by these, so a method that changes what a search of the tree compares takes the
//! [`TreeKey`], which [`tree`](crate::task::tree) keeps inside its lock: a caller of such a method holds that lock.
//! Reading takes none.

use alloc::sync::Arc;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use kernel_logic::signal::sig;

use super::{Process, Session};
use crate::task::{PID_MAX, Pid, Slot, Tid};

/// Proof that the tree is locked. There is one, in the data the tree's lock guards.
pub struct TreeKey(());

impl TreeKey {
    /// The key, for the initial value of the tree.
    pub(in crate::task) const fn new() -> Self {
        Self(())
    }
}

/// A process number as one process has it, and the group it led: when the number is given to another process, that is
/// another identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity(u64);

impl Identity {
    /// Of the process that gets the number `pid` now.
    fn new(pid: Pid) -> Self {
        const { assert!(PID_MAX <= 1 << PID_BITS) };
        Self(PROCESSES.fetch_add(1, Relaxed) << PID_BITS | u64::from(pid))
    }

    /// The process id, or of a group its process group id.
    pub const fn id(self) -> Pid {
        (self.0 & ((1 << PID_BITS) - 1)) as Pid
    }
}

const PID_BITS: u32 = 16;

/// Processes made so far.
static PROCESSES: AtomicU64 = AtomicU64::new(0);

/// Processes made since boot.
pub fn made() -> u64 {
    PROCESSES.load(Relaxed)
}

/// A process's relations to others.
pub struct Family {
    identity: Identity,
    /// The [`Identity`] of the process that leads or led the group.
    group: AtomicU64,
    session: Slot<Session>,
    /// 0 for init.
    parent: AtomicU32,
    /// How many children the tree lists.
    children: AtomicU32,
    /// How often children went from one of its threads to another.
    moves: AtomicU32,
    /// The parent's thread that made it, or that took its children over when the maker ended.
    parent_thread: AtomicU32,
    /// The signal its parent gets when it ends, 0 for none.
    exit_signal: AtomicU8,
    /// Number of programs it has executed. What was agreed with an earlier program does not bind a later one.
    executions: AtomicU64,
    /// The parent's `executions` when the parent chose `exit_signal`.
    parent_executions: AtomicU64,
    /// Set by `PR_SET_CHILD_SUBREAPER`: orphaned descendants become its children.
    subreaper: AtomicBool,
}

impl Family {
    /// Offset of the parent's process id.
    pub const PARENT: usize = offset_of!(Self, parent);

    /// Of process `pid`, a child of `parent` in its group and session; without a parent it leads a group and a session.
    pub(super) fn new(pid: Pid, parent: Option<&Process>, exit_signal: u8) -> Self {
        let of_parent = parent.map(|parent| &parent.family);
        let identity = Identity::new(pid);
        Self {
            identity,
            group: AtomicU64::new(of_parent.map_or(identity, Family::group_identity).0),
            session: Slot::new(of_parent.map_or_else(|| Session::new(pid), Family::session)),
            parent: AtomicU32::new(parent.map_or(0, |parent| parent.pid)),
            children: AtomicU32::new(0),
            moves: AtomicU32::new(0),
            parent_thread: AtomicU32::new(0),
            exit_signal: AtomicU8::new(exit_signal),
            executions: AtomicU64::new(0),
            parent_executions: AtomicU64::new(of_parent.map_or(0, Family::executions)),
            subreaper: AtomicBool::new(false),
        }
    }

    /// The process, as distinct from others that had or will have its number.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The group, as distinct from others that had or will have its number.
    pub fn group_identity(&self) -> Identity {
        Identity(self.group.load(Relaxed))
    }

    /// Process group id.
    pub fn group(&self) -> Pid {
        self.group_identity().id()
    }

    /// The session, counted.
    pub fn session(&self) -> Arc<Session> {
        self.session.get()
    }

    /// Runs `look` on its session, without taking a reference. `look` must not sleep.
    pub fn with_session<R>(&self, look: impl FnOnce(&Session) -> R) -> R {
        self.session.with(look)
    }

    /// Parent process id; 0 for init.
    pub fn parent(&self) -> Pid {
        self.parent.load(Relaxed)
    }

    /// The parent's thread whose child it is (`__WNOTHREAD`, `PR_SET_PDEATHSIG`).
    pub fn parent_thread(&self) -> Tid {
        self.parent_thread.load(Relaxed)
    }

    /// Whether it sends its parent `SIGCHLD` when it ends (wait(2), `__WCLONE`).
    pub fn is_ordinary_child(&self) -> bool {
        self.exit_signal.load(Relaxed) == sig::CHLD
    }

    /// The signal `parent` gets when it ends, 0 for none: the one the parent chose, if it still runs the program that
    /// did.
    pub fn signal_at_end(&self, parent: Option<&Process>) -> u8 {
        let agreed = self.parent_executions.load(Relaxed);
        let same_program = parent.is_none_or(|parent| parent.family.executions() == agreed);
        if same_program { self.exit_signal.load(Relaxed) } else { sig::CHLD }
    }

    /// Number of programs it has executed since it was forked.
    pub fn executions(&self) -> u64 {
        self.executions.load(Relaxed)
    }

    /// It executes another program: its parent gets `SIGCHLD` at its end, and may no longer move it to a group.
    pub fn executed(&self) {
        self.exit_signal.store(sig::CHLD, Relaxed);
        self.executions.fetch_add(1, Relaxed);
    }

    /// Whether orphaned descendants become its children.
    pub fn is_subreaper(&self) -> bool {
        self.subreaper.load(Relaxed)
    }

    /// Sets whether orphaned descendants become its children (`PR_SET_CHILD_SUBREAPER`).
    pub fn set_subreaper(&self, on: bool) {
        self.subreaper.store(on, Relaxed);
    }

    /// Whether the tree lists children of it, as of now. Takes no lock.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.children.load(Relaxed) != 0
    }

    /// Notes how many children the tree lists.
    pub(in crate::task) fn set_children(&self, _tree: &TreeKey, count: usize) {
        self.children.store(count as u32, Relaxed);
    }

    /// How often children of it went from one of its threads to another.
    pub(in crate::task) fn moves(&self) -> u32 {
        self.moves.load(Relaxed)
    }

    /// Counts that children of it go from one of its threads to another.
    pub(in crate::task) fn count_move(&self, _tree: &TreeKey) {
        self.moves.fetch_add(1, Relaxed);
    }

    /// Moves it to a group.
    pub(in crate::task) fn join_group(&self, _tree: &TreeKey, group: Identity) {
        self.group.store(group.0, Relaxed);
    }

    /// Makes it the leader of a new session and group.
    pub(in crate::task) fn lead_session(&self, _tree: &TreeKey) {
        self.session.set(Session::new(self.identity.id()));
        self.group.store(self.identity.0, Relaxed);
    }

    /// Makes it a child of thread `thread` of the parent it has.
    pub(in crate::task) fn set_parent_thread(&self, _tree: &TreeKey, thread: Tid) {
        self.parent_thread.store(thread, Relaxed);
    }

    /// Makes it a child of its sibling's parent (`CLONE_PARENT`), which has not asked for this child and therefore gets
    /// the signal it chose for the sibling.
    pub(in crate::task) fn join_sibling(&self, _tree: &TreeKey, sibling: &Family) {
        self.parent.store(sibling.parent(), Relaxed);
        self.parent_thread.store(sibling.parent_thread(), Relaxed);
        self.exit_signal.store(sibling.exit_signal.load(Relaxed), Relaxed);
        self.parent_executions.store(sibling.parent_executions.load(Relaxed), Relaxed);
    }

    /// Makes it a child of thread `thread` of `reaper`, which has chosen no signal for it and therefore gets `SIGCHLD`.
    pub(in crate::task) fn reparent(&self, _tree: &TreeKey, reaper: Pid, thread: Tid) {
        self.parent.store(reaper, Relaxed);
        self.parent_thread.store(thread, Relaxed);
        self.exit_signal.store(sig::CHLD, Relaxed);
    }
}
