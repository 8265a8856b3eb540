//! Waiting for children (wait4(2), waitid(2)).

use alloc::sync::Arc;

use linux_abi::Errno;

use super::process::family::Identity;
use super::process::{Change, Changes, Process};
use super::{Pid, Task, tree};
use crate::sync::wait::WaitError;
use crate::trace::span::{Id, span};

/// The children a caller of wait(2) asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Each child of the caller.
    Any,
    /// The child with this id.
    Process(Pid),
    /// This very process, whatever child has its id by now.
    This(Identity),
    /// Those of this group.
    Group(Pid),
}

/// What changes of state.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// By id or group.
    pub which: Which,
    /// The changes to report.
    pub changes: Changes,
    /// Do not sleep.
    pub no_hang: bool,
    /// Leave the child waitable.
    pub keep: bool,
    /// By what they tell their parent.
    pub kind: Kind,
    /// Only children of the calling thread (`__WNOTHREAD`).
    pub of_thread: bool,
}

/// Children by the signal of their end (wait(2), `__WCLONE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Those that send SIGCHLD.
    Ordinary,
    /// Those that send another signal, or none.
    Clones,
    /// Both kinds (`__WALL`).
    All,
}

/// A child that changed.
pub struct Report {
    /// The child that changed.
    pub process: Arc<Process>,
    /// Its change of state.
    pub change: Change,
    /// Its real user.
    pub uid: u32,
}

/// Waits for a change; `Ok(None)` when there is none and the caller does not want to sleep.
pub fn wait(me: &Task, wanted: &Wanted) -> Result<Option<Report>, Errno> {
    let _span = span(Id::Wait);
    if !me.process.family.has_children() {
        return Err(Errno::ECHILD);
    }
    let look = || match scan_until_reaped(me, wanted) {
        Scan::Found(report) => Some(Ok(Some(report))),
        Scan::NoChild => Some(Err(Errno::ECHILD)),
        Scan::NotYet if wanted.no_hang => Some(Ok(None)),
        Scan::NotYet => None,
    };
    match me.process.life.child_changed().wait(look) {
        Ok(outcome) => outcome,
        Err(WaitError::Interrupted) => Err(Errno::ERESTARTSYS),
        Err(WaitError::TimedOut) => Err(Errno::EINTR),
    }
}

enum Scan {
    Found(Report),
    NotYet,
    NoChild,
}

/// [`scan`], and again while other threads are faster at reaping what it finds.
fn scan_until_reaped(me: &Task, wanted: &Wanted) -> Scan {
    loop {
        let scanned = scan(me, wanted);
        match &scanned {
            Scan::Found(Report { process, change: Change::Ended(_), .. })
                if !wanted.keep && !reap_into(me, process) => {}
            _ => return scanned,
        }
    }
}

fn scan(me: &Task, wanted: &Wanted) -> Scan {
    let mut any = false;
    let look = |child: &Arc<Process>| {
        let matches = match wanted.which {
            Which::Any => true,
            Which::Process(pid) => child.pid == pid,
            Which::This(identity) => child.family.identity() == identity,
            Which::Group(pgid) => child.pgid() == pgid,
        };
        let of_kind = match wanted.kind {
            Kind::Ordinary => child.family.is_ordinary_child(),
            Kind::Clones => !child.family.is_ordinary_child(),
            Kind::All => true,
        };
        let own = !wanted.of_thread || child.family.parent_thread() == me.tid();
        if !matches || !of_kind || !own {
            return None;
        }
        // What has ended neither stops nor continues any more.
        if child.is_zombie() && !wanted.changes.ended {
            return None;
        }
        any = true;
        let change = child.life.report(wanted.changes, wanted.keep)?;
        Some((child.clone(), change))
    };
    let found = match wanted.which {
        Which::Process(pid) => tree::find_this_child(me.process.pid, pid, look),
        Which::This(identity) => tree::find_this_child(me.process.pid, identity.id(), look),
        Which::Any | Which::Group(_) => tree::find_child(me.process.pid, look),
    };
    match found {
        Some((process, change)) => {
            let uid = process.threads.creds().map_or(0, |creds| creds.uid);
            Scan::Found(Report { process, change, uid })
        }
        None if any => Scan::NotYet,
        None => Scan::NoChild,
    }
}

fn reap_into(me: &Task, child: &Arc<Process>) -> bool {
    if !reap(child) {
        return false;
    }
    me.process.accounting.add_child(&child.accounting);
    true
}

/// Takes a zombie out of the tree. Whether it was still there.
pub fn reap(process: &Arc<Process>) -> bool {
    tree::remove_process(process.pid)
}
