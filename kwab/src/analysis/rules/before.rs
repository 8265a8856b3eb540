//! Calls before a thread began to wait for ever: the one that failed and should have set up its wake-up, the one that
//! succeeded and should have woken it. And calls that a thread makes again and again.

use std::collections::BTreeSet;

use kwab_format::record::{SyscallRecord, Task};
use linux_abi::Errno;
use linux_abi::syscalls::{self, Syscall, Traits};

use crate::analysis::blame::Guilty;
use crate::analysis::context::Context;
use crate::analysis::finding::Statement;
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
    /// What the error can come from.
    pub(super) makers: Option<Statement>,
}

/// The last call that failed and should have set up what a thread waits for: its own process', else one of its parent,
/// its children or their other children.
pub(super) fn failed(ctx: &Context<'_, '_>, sleeper: &Located<Task<'_>>) -> Option<Failed> {
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
    let related = || {
        let relatives = relatives(ctx, sleeper);
        failures().find(|(row, _)| row.pid.is_some_and(|pid| relatives.contains(&pid)))
    };
    let (row, errno) = own.or_else(related)?;
    let said = said(row);
    let is_own = row.pid == sleeper.pid;
    let who = if is_own { String::new() } else { format!("process {}: ", row.pid.unwrap_or(0)) };
    let makers = row.nr.map(|nr| reach::makers(ctx.symbols, nr, errno)).unwrap_or_default();
    Some(Failed {
        row: format!("{who}{said}{}: it may have set up the wake-up", when(ctx, sleeper, row)),
        at: row.at,
        own: is_own,
        makers: Statement::listing("that error can come from", makers),
    })
}

/// The call of a related process, or of another thread of its own, that succeeded since a thread fell asleep and is of
/// the kind that wakes it; with the functions that it is made of, those of the sleeper's own modules first.
pub(super) fn waker(
    ctx: &Context<'_, '_>,
    sleeper: &Located<Task<'_>>,
    guilty: Option<&Guilty>,
) -> Option<(Statement, RecordRef)> {
    let waits = syscalls::by_name(&text(sleeper.wait_reason))?.traits;
    let (_, wakes) = Traits::WAITS.into_iter().find(|(kind, _)| waits.has(*kind))?;
    let slept = fell_asleep(ctx, sleeper)?;
    let relatives = relatives(ctx, sleeper);
    let can_wake = |row: &&Located<SyscallRecord<'_>>| {
        let since = row.stamp.ns.is_some_and(|at| at.saturating_add(row.duration_ns.unwrap_or(0)) >= slept);
        let own = row.pid == sleeper.pid && row.tid != sleeper.tid;
        let other = own || row.pid.is_some_and(|pid| Some(pid) != sleeper.pid && relatives.contains(&pid));
        let is_kind = || known(row).is_some_and(|call| call.traits.has(wakes));
        since && other && row.result.is_some_and(|result| result >= 0) && is_kind()
    };
    // The first since: nothing that came later was needed.
    let row = ctx.case.syscalls.iter().filter(can_wake).min_by_key(|row| row.stamp.ns)?;
    let called = guilty.into_iter().flat_map(|own| own.called.iter().chain([&own.name]).chain(&own.callers));
    let modules: Vec<&str> = called.map(|name| reach::module(name)).collect();
    let parts = reach::parts_near(ctx.symbols, row.nr?, &modules);
    let said = format!("process {}: {}{}: it may have been to wake it", row.pid?, said(row), when(ctx, sleeper, row));
    Some((Statement::and(said, "; the call is made of", parts), row.at))
}

/// Calls that are looked at for a repetition, the longest sequence that is repeated, and how often it must be.
const LATEST: usize = 48;
const LONGEST: usize = 4;
const OFTEN: usize = 6;

/// The calls that a thread made again and again with the same answers, up to its last one.
pub(super) fn repeats(ctx: &Context<'_, '_>, tid: u32) -> Option<(Statement, RecordRef)> {
    let own = ctx.case.syscalls.iter().filter(|row| row.tid == Some(tid) && row.result.is_some());
    let all: Vec<&Located<SyscallRecord<'_>>> = own.collect();
    let rows = &all[all.len().saturating_sub(LATEST)..];
    let same = |one: &SyscallRecord<'_>, other: &SyscallRecord<'_>| {
        (one.nr, one.arg0, one.result) == (other.nr, other.arg0, other.result)
    };
    let repeated = |length: usize| {
        let pairs = rows.iter().rev().zip(rows.iter().rev().skip(length));
        pairs.take_while(|(later, earlier)| same(later, earlier)).count() / length + 1
    };
    let (length, times) = (1..=LONGEST).map(|length| (length, repeated(length))).find(|(_, times)| *times >= OFTEN)?;
    let cycle = &rows[rows.len() - length..];
    let calls: Vec<String> = cycle.iter().map(|row| said(row)).collect();
    let mut parts = Vec::new();
    for row in cycle {
        let own = row.nr.map(|nr| reach::parts(ctx.symbols, nr)).unwrap_or_default();
        parts.extend(own.into_iter().take(MOST_NAMED / length));
    }
    let said = format!("its last {} calls are {} again and again", times * length, calls.join("; "));
    Some((Statement::and(said, ", made of", parts), cycle[0].at))
}

/// Functions that are named of repeated calls.
const MOST_NAMED: usize = 8;

/// A call with its answer.
fn said(row: &SyscallRecord<'_>) -> String {
    let call = Call { nr: row.nr, name: row.name, args: row.args(), texts: row.texts(), result: row.result };
    let answer = row.result.map_or_else(|| "?".to_owned(), |result| call::result(row.nr, result));
    format!("{} = {answer}", call::arguments(&call))
}

fn known(row: &SyscallRecord<'_>) -> Option<&'static Syscall> {
    syscalls::by_number(u64::try_from(row.nr?).ok()?)
}

fn error_of(row: &SyscallRecord<'_>) -> Option<Errno> {
    row.result.and_then(Errno::from_result).filter(|errno| !PASSING.contains(errno))
}

/// The processes that are the parent, a child or another child of the parent of a thread. Every program is a child of
/// the first process in the end, so that one relates nothing.
fn relatives(ctx: &Context<'_, '_>, sleeper: &Task<'_>) -> BTreeSet<u32> {
    let parent = sleeper.ppid.filter(|parent| *parent > 1);
    let is_related = |task: &&Located<Task<'_>>| {
        task.ppid.is_some() && (task.ppid == sleeper.pid || task.ppid == parent)
            || parent.is_some() && task.pid == parent
    };
    let pids = ctx.case.tasks.iter().filter(is_related).filter_map(|task| task.pid);
    pids.chain(parent).filter(|pid| *pid > 1).collect()
}

/// When a thread fell asleep. Its record says for how long it has slept when it was written, which is later than the
/// death by the time that the sections before took.
fn fell_asleep(ctx: &Context<'_, '_>, sleeper: &Located<Task<'_>>) -> Option<u64> {
    sleeper.stamp.ns.or(ctx.death.ns)?.checked_sub(sleeper.state_ns?)
}

/// ` 3.2 ms before it slept`, when the dump says both times.
fn when(ctx: &Context<'_, '_>, sleeper: &Located<Task<'_>>, row: &Located<SyscallRecord<'_>>) -> String {
    let Some((slept, called)) = fell_asleep(ctx, sleeper).zip(row.stamp.ns) else { return String::new() };
    let apart = slept.abs_diff(called) as f64 / 1e6;
    format!(", {apart:.1} ms {} it went to sleep", if called <= slept { "before" } else { "after" })
}
