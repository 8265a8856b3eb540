//! Calls that failed before a thread began to wait for ever: the one that should have set up its wake-up.

use kwab_format::record::{SyscallRecord, Task};
use linux_abi::Errno;
use linux_abi::syscalls::{self, Syscall, Traits};

use crate::analysis::context::Context;
use crate::analysis::quote::text;
use crate::analysis::reach;
use crate::model::call::{self, Call};
use crate::model::{Located, RecordRef};

/// Errors that only say that something is not there yet.
const PASSING: &[Errno] = &[Errno::EAGAIN, Errno::EINTR, Errno::EINPROGRESS, Errno::ECHILD];

/// A call that failed, as a reason why a thread sleeps.
pub(super) struct Failed {
    /// The call, its error and when, in words.
    pub(super) row: String,
    /// Where it was recorded.
    pub(super) at: RecordRef,
    /// Whether the sleeper's own process made it.
    pub(super) own: bool,
    /// What the error can come from, in words.
    pub(super) makers: Option<String>,
}

/// The last call that failed and should have set up what a thread waits for: its own process', else one of its parent,
/// its children or their other children.
pub(super) fn failed(ctx: &Context<'_, '_>, sleeper: &Task<'_>) -> Option<Failed> {
    let reason = text(sleeper.wait_reason);
    let waits = syscalls::by_name(&reason)?.traits;
    let (_, set_up) = Traits::WAITS.into_iter().find(|(kind, _)| waits.has(*kind))?;
    let failures = || {
        let rows = ctx.case.syscalls.iter().rev();
        rows.filter_map(|row| {
            Some((row, error_of(row).filter(|_| known(row).is_some_and(|call| call.traits.has(set_up)))?))
        })
    };
    let own = failures().find(|(row, _)| row.pid == sleeper.pid);
    let (row, errno) = own.or_else(|| failures().find(|(row, _)| is_related(ctx, sleeper, row.pid)))?;
    let call = Call { nr: row.nr, name: row.name, args: row.args(), texts: row.texts() };
    let said = format!("{} = {}", call::arguments(&call), call::result(row.nr, errno.to_result()));
    let is_own = row.pid == sleeper.pid;
    let who = if is_own { String::new() } else { format!("process {}: ", row.pid.unwrap_or(0)) };
    let makers = row.nr.map(|nr| reach::makers(ctx.symbols, nr, errno)).filter(|makers| !makers.is_empty());
    Some(Failed {
        row: format!("{who}{said}{}: it may have set up the wake-up", when(ctx, sleeper, row)),
        at: row.at,
        own: is_own,
        makers: makers.map(|makers| format!("that error can come from {}", makers.join(", "))),
    })
}

fn known(row: &SyscallRecord<'_>) -> Option<&'static Syscall> {
    syscalls::by_number(u64::try_from(row.nr?).ok()?)
}

fn error_of(row: &SyscallRecord<'_>) -> Option<Errno> {
    row.result.and_then(Errno::from_result).filter(|errno| !PASSING.contains(errno))
}

/// Whether a process is the parent, a child or another child of the parent of a thread. Every program is a child of the
/// first process in the end, so that one relates nothing.
fn is_related(ctx: &Context<'_, '_>, sleeper: &Task<'_>, pid: Option<u32>) -> bool {
    let parent = sleeper.ppid.filter(|parent| *parent > 1);
    let Some(pid) = pid.filter(|pid| *pid > 1) else { return false };
    let their = ctx.case.tasks.iter().find(|task| task.pid == Some(pid)).and_then(|task| task.ppid);
    parent == Some(pid) || (their.is_some() && (their == sleeper.pid || their == parent))
}

/// ` 3.2 ms before it slept`, when the dump says both times.
fn when(ctx: &Context<'_, '_>, sleeper: &Task<'_>, row: &Located<SyscallRecord<'_>>) -> String {
    let slept = ctx.death.ns.zip(sleeper.state_ns).map(|(now, ns)| now.saturating_sub(ns));
    let Some((slept, called)) = slept.zip(row.stamp.ns) else { return String::new() };
    let apart = slept.abs_diff(called) as f64 / 1e6;
    format!(", {apart:.1} ms {} it went to sleep", if called <= slept { "before" } else { "after" })
}
