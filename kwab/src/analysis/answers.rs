//! What the kernel answered a program before it died or hung, and which functions gave that answer.
//!
//! A kernel bug that kills a program lies in the calls that the program made: one that failed although it need not,
//! one that said "done" for memory that then could not be accessed, or the kernel's own access to the program's memory.
//! [`rows`] says which of these the dump shows, and what of the kernel's image is behind them. It gives no weight: the
//! program may have asked for what it got.

use std::collections::BTreeMap;

use kwab_format::record::{Cause, SyscallRecord, TaskState};
use linux_abi::Errno;
use linux_abi::syscalls::{self, Syscall, Traits};

use super::context::Context;
use super::evidence::{ListedFunction, Statement};
use super::keepers::{self, Promise};
use super::quote::{text, without_level};
use super::reach;
use super::trail::Decider;
use crate::model::Located;
use crate::model::call::{self, Call};

/// Errors that programs provoke all the time.
const USUAL: &[Errno] = &[Errno::EAGAIN, Errno::EINTR, Errno::EINPROGRESS, Errno::ECHILD, Errno::ENOENT, Errno::ENOTTY];
/// Calls before the end among which a failed one is looked for.
const RECENT: usize = 48;
/// `si_code` of a signal that the kernel sends without an address (sigaction(2)).
const SI_KERNEL: i64 = 0x80;

/// What the kernel answered the program of a death or a hang that may have been wrong, the likeliest first.
pub(super) fn rows(ctx: &Context<'_, '_>) -> Vec<Statement> {
    let Some(pid) = subject(ctx) else { return Vec::new() };
    let own: Vec<_> = ctx.case.syscalls.iter().filter(|row| row.pid == Some(pid)).collect();
    let about_memory = ctx.program_died().then(|| own_access(ctx).or_else(|| mapped(ctx, &own))).flatten();
    let waited_on = ctx.is_hang().then(|| made(ctx, &own)).flatten();
    let mut rows: Vec<Statement> = [about_memory, failed(ctx, &own), waited_on].into_iter().flatten().collect();
    if !ctx.is_hang() {
        rows.extend(at_its_start(ctx, &own));
    }
    rows
}

/// Calls of a program that has only begun: what the kernel did in them is most of what it did for the program.
const FEW: usize = 6;
/// Of those the last ones are told, and of each so many functions.
const LAST: usize = 2;
const MOST_EACH: usize = 6;

/// The last calls of a program that died after a few, and what they are made of.
fn at_its_start(ctx: &Context<'_, '_>, own: &[&Located<SyscallRecord<'_>>]) -> Option<Statement> {
    let few = (1..=FEW).contains(&own.len()) && own.iter().all(|row| row.result.is_some());
    let last = own.iter().rev().take(LAST).filter(|_| few);
    let (mut calls, mut parts) = (Vec::new(), Vec::new());
    for row in last {
        calls.push(said(row));
        parts.extend(reach::parts(ctx.symbols, row.nr?).into_iter().take(MOST_EACH));
    }
    // The first call of all that fails is the first that came through the kernel's door at all.
    if own.len() == 1 && own[0].result.is_some_and(|result| result < 0) && keepers::is_ours(ctx) {
        parts.splice(0..0, keepers::DOOR.iter().map(|name| ListedFunction::plain(*name)));
    }
    let said = format!("the program had only begun; its last calls, the latest first: {}", calls.join(", "));
    (!calls.is_empty()).then(|| Statement::and(said, "; they are made of", parts))
}

/// The error that the kernel logged last before it panicked; with what can have made it, when what decided the panic
/// can.
pub(super) fn logged(ctx: &Context<'_, '_>, suspects: &[Decider]) -> Option<Statement> {
    if !ctx.kernel_died() {
        return None;
    }
    let lines = ctx.case.logs.iter().rev().take(LOGS).flat_map(|chunk| {
        let lines: Vec<String> = text(chunk.bytes).lines().rev().map(str::to_owned).collect();
        lines
    });
    let (line, errno) = lines.take(LINES).find_map(|line| error_in(&line).map(|errno| (line, errno)))?;
    let callees = suspects.iter().filter_map(|suspect| suspect.entry);
    let makers = callees.map(|entry| reach::makers_in(ctx.symbols, entry, errno)).find(|makers| !makers.is_empty());
    if makers.is_none() && ctx.is_foreign_kernel() {
        return None;
    }
    let said = format!("the log said before: {}", without_level(&line).trim());
    Some(Statement::and(said, "; that error can come from", makers.unwrap_or_default()))
}

/// The name of an error in a line: `(E2BIG)`, `: ENOMEM`.
fn error_in(line: &str) -> Option<Errno> {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.starts_with('E'));
    words.filter_map(Errno::from_name).next()
}

/// Whether the kernel panicked because its first program ended.
pub(super) fn init_ended(ctx: &Context<'_, '_>) -> bool {
    ctx.kernel_died() && ctx.death.message.to_lowercase().contains("attempted to kill init")
}

/// Chunks of the log and lines of it that are looked at.
const LOGS: usize = 32;
const LINES: usize = 48;

/// The process that died, init when the kernel cannot go on without it, or the one program that sleeps when everything
/// does.
fn subject(ctx: &Context<'_, '_>) -> Option<u32> {
    if ctx.program_died() {
        return ctx.death.pid;
    }
    if init_ended(ctx) {
        return ctx.death.pid.or(Some(1));
    }
    if !ctx.is_hang() {
        return None;
    }
    let sleeps = |state: Option<TaskState>| matches!(state, Some(TaskState::BLOCKED | TaskState::SLEEPING));
    let asleep = ctx.case.tasks.iter().filter(|task| sleeps(task.state) && task.user_ip.is_some());
    let open = ctx.case.syscalls.iter().filter(|row| row.result.is_none());
    let last: BTreeMap<u32, &Located<SyscallRecord<'_>>> = open.filter_map(|row| Some((row.pid?, row))).collect();
    let waits = |pid: &u32| last.get(pid).is_some_and(|row| !has(row, Traits::AWAITS_CHILD));
    asleep.filter_map(|task| task.pid).rfind(waits)
}

/// The kernel's own access to the program's memory failed: a signal without an address.
fn own_access(ctx: &Context<'_, '_>) -> Option<Statement> {
    let by_kernel = |cause: &Cause<'_>| cause.signal_code == Some(SI_KERNEL) && cause.signal == Some(11);
    let forced = ctx.case.causes.first().is_some_and(|cause| by_kernel(cause));
    let keepers = keepers::in_words(ctx, Promise::Fault).filter(|_| forced && ctx.death.vector.is_none())?;
    Some(keepers.behind("no instruction of the program faulted: the kernel could not access its memory; "))
}

/// The last call that was to change what lies at the address whose access failed.
fn mapped(ctx: &Context<'_, '_>, own: &[&Located<SyscallRecord<'_>>]) -> Option<Statement> {
    let addr = ctx.death.fault_addr.filter(|_| matches!(ctx.death.signal, Some(7 | 11)))?;
    let row = own.iter().rev().find(|row| touches(row, addr))?;
    let parts = reach::parts(ctx.symbols, row.nr?);
    let said = format!("the kernel's last answer about {addr:#x}: {}", said(row));
    Some(Statement::and(said, "; the call is made of", parts))
}

/// Whether a call that succeeded was about an address, or near it for the end of the heap.
fn touches(row: &SyscallRecord<'_>, addr: u64) -> bool {
    let Some(result) = row.result.filter(|result| Errno::from_result(*result).is_none()) else { return false };
    let (start, size) = (row.args()[0].unwrap_or(0), row.args()[1].unwrap_or(0));
    match known(row).map(|call| call.name) {
        Some("mmap") => addr.checked_sub(result.cast_unsigned()).is_some_and(|skip| skip < size.max(1)),
        Some("brk") => addr.abs_diff(result.cast_unsigned()) < HEAP,
        _ if has(row, Traits::CHANGES_RANGE) => start <= addr && addr - start < size.max(1),
        _ => false,
    }
}

/// The farthest that the end of a heap is from an access that belongs to it.
const HEAP: u64 = 1 << 20;

/// The last call that failed with an unusual error, or did not find a file that the kernel itself makes.
fn failed(ctx: &Context<'_, '_>, own: &[&Located<SyscallRecord<'_>>]) -> Option<Statement> {
    let missing = |row: &SyscallRecord<'_>| row.texts().iter().flatten().any(|(path, _)| keepers::makes(path));
    let error = |row: &SyscallRecord<'_>| {
        let errno = row.result.and_then(Errno::from_result)?;
        (!USUAL.contains(&errno) || errno == Errno::ENOENT && missing(row)).then_some(errno)
    };
    let (row, errno) = own.iter().rev().take(RECENT).find_map(|row| Some((row, error(row)?)))?;
    let makers = match errno {
        Errno::ENOENT => reach::parts_of(ctx.symbols, keepers::LOOKUP),
        _ => reach::makers(ctx.symbols, row.nr?, errno),
    };
    let said = format!("the last call that failed before: {}", said(row));
    Some(Statement::and(said, "; that error can come from", makers))
}

/// The call that made what a thread waits on.
fn made(ctx: &Context<'_, '_>, own: &[&Located<SyscallRecord<'_>>]) -> Option<Statement> {
    own.iter().rev().find(|row| row.result.is_none() && has(row, Traits::READS_SOURCE))?;
    let makes = |row: &&&Located<SyscallRecord<'_>>| {
        row.result.is_some_and(|result| result >= 0) && has(row, Traits::MAKES_SOURCE)
    };
    let row = own.iter().rev().find(makes)?;
    let parts = reach::parts(ctx.symbols, row.nr?);
    let said = format!("what it waits on may be of its {}", said(row));
    Some(Statement::and(said, ", which is made of", parts))
}

/// A system call that a death may come from.
pub(super) struct CallBefore {
    /// What it is in the kernel's table.
    pub(super) nr: i64,
    /// What programs call it.
    pub(super) name: String,
    /// Whether it had not ended.
    pub(super) is_in_progress: bool,
}

/// The calls that a death or a hang may come from, each number once: those in progress of the process that died, or of
/// all when everything waits, then the last ones that the process made.
pub(super) fn calls_of_the_death(ctx: &Context<'_, '_>, most: usize) -> Vec<CallBefore> {
    let is_its = |pid: Option<u32>| ctx.death.pid.is_none() || pid == ctx.death.pid;
    let rows = || ctx.case.syscalls.iter().rev();
    let running = rows().filter(|row| row.result.is_none() && (ctx.is_hang() || is_its(row.pid)));
    let before = rows().filter(|row| row.result.is_some() && is_its(row.pid)).take(most);
    let mut calls: Vec<CallBefore> = Vec::new();
    for row in running.take(most).chain(before) {
        let (Some(nr), name) = (row.nr, known(row).map(|call| call.name)) else { continue };
        if !calls.iter().any(|call| call.nr == nr) {
            let name = name.map_or_else(|| format!("call {nr}"), str::to_owned);
            calls.push(CallBefore { nr, name, is_in_progress: row.result.is_none() });
        }
    }
    calls
}

fn known(row: &SyscallRecord<'_>) -> Option<&'static Syscall> {
    syscalls::by_number(u64::try_from(row.nr?).ok()?)
}

fn has(row: &SyscallRecord<'_>, property: Traits) -> bool {
    known(row).is_some_and(|call| call.traits.has(property))
}

fn said(row: &SyscallRecord<'_>) -> String {
    let call = Call { nr: row.nr, name: row.name, args: row.args(), texts: row.texts(), result: row.result };
    let result = row.result.map_or_else(|| "?".to_owned(), |result| call::result(row.nr, result));
    format!("{} = {result}", call::arguments(&call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_names_an_error_by_its_name_alone() {
        assert_eq!(error_in("/sbin/init exists but couldn't execute it (E2BIG)"), Some(Errno::E2BIG));
        assert_eq!(error_in("mount: ENOMEM"), Some(Errno::ENOMEM));
        assert_eq!(error_in("Every ELF file, ENERGY"), None);
    }
}
