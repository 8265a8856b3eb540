//! Permission to look into another process (ptrace(2), "Ptrace access mode checking").
//!
//! Memory and credentials of a thread change in one step under [`Task::identity`], and a check reads both under it: the
//! memory a check returns belongs to the credentials it was made against, also while the thread executes a set-user-ID
//! program.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use kernel_logic::permission::{Identity, may_look_into};
use linux_abi::Errno;

use super::Task;
use super::account::Kind;
use super::creds::{Creds, cap};
use crate::mm::AddressSpace;

/// By which ids of the caller a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// File system ids and effective capabilities: for files in `/proc`.
    FileSystemIds,
    /// Real ids and permitted capabilities: for calls.
    RealIds,
}

/// The memory of `target`, if `me` may look into it: EPERM if not. `None` for a thread without memory.
pub fn memory(me: &Task, target: &Task, by: By) -> Result<Option<Arc<AddressSpace>>, Errno> {
    take(me, target, by, |target| target.mm.get())
}

/// What `get` finds in `target`, if `me` may look into it: EPERM if not. `get` runs under [`Task::identity`], so what
/// it finds belongs to the credentials that were checked.
pub fn take<T>(me: &Task, target: &Task, by: By, get: impl FnOnce(&Task) -> T) -> Result<T, Errno> {
    let (found, creds, dumpable) = {
        let _one_step = target.identity.lock();
        let dumpable = target.mm.with(|mm| mm.is_none_or(|mm| mm.dumpable.load(Ordering::Relaxed)));
        (get(target), target.creds.get(), dumpable)
    };
    if me.pid() == target.pid() {
        return Ok(found);
    }
    let mine = me.creds();
    let (caller, caps) = match by {
        By::FileSystemIds => ((mine.fsuid, mine.fsgid), mine.effective),
        By::RealIds => ((mine.uid, mine.gid), mine.permitted),
    };
    let theirs = Identity {
        users: [creds.uid, creds.euid, creds.suid],
        groups: [creds.gid, creds.egid, creds.sgid],
        capabilities: creds.permitted,
        dumpable,
    };
    if may_look_into(caller, caps, mine.capable(cap::SYS_PTRACE), &theirs) { Ok(found) } else { Err(Errno::EPERM) }
}

/// Whether `me` may look into `target`: EPERM if not.
pub fn check(me: &Task, target: &Task, by: By) -> Result<(), Errno> {
    if me.pid() == target.pid() {
        return Ok(());
    }
    memory(me, target, by).map(drop)
}

/// Gives a thread new memory and new credentials in one step; the old memory, to be dropped by the caller.
pub(super) fn switch(task: &Task, mm: Arc<AddressSpace>, creds: Arc<Creds>) -> Option<Arc<AddressSpace>> {
    let _one_step = task.identity.lock();
    task.creds.set(creds);
    task.mm.set(Some(mm))
}

/// Gives a thread the credentials that `edit` makes of its own. If it may do more or other things now, it is not
/// dumpable any more and its parent's death is not signalled to it.
pub fn change_creds(task: &Task, edit: impl FnOnce(&mut Creds)) {
    let mut creds = (*task.creds()).clone();
    edit(&mut creds);
    let _one_step = task.identity.lock();
    if task.creds.with(|old| creds.differs_for_others(old)) {
        task.mm.with(|mm| {
            if let Some(mm) = mm {
                mm.dumpable.store(false, Ordering::Relaxed);
            }
        });
        task.parent_death_signal.store(0, Ordering::Relaxed);
    }
    if task.creds.with(|old| old.uid != creds.uid) {
        *task.counted.lock() = creds.account.charge(Kind::Threads, 1, u64::MAX);
    }
    task.creds.set(Arc::new(creds));
}

/// User and group that the files of a process in `/proc` belong to: root unless it is dumpable.
pub fn owner_in_proc(task: &Task) -> (u32, u32) {
    if task.mm.with(|mm| mm.is_some_and(|mm| !mm.dumpable.load(Ordering::Relaxed))) {
        return (0, 0);
    }
    task.creds.with(|creds| (creds.euid, creds.egid))
}
