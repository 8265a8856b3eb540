//! Programs: their own faults, aborts, smashed stacks, system calls the kernel lacks, and the end of init.

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, RegId, RegisterRole, Registers};

use crate::analysis::context::Context;
use crate::analysis::death::signal_name;
use crate::analysis::finding::{Claim, Statement};
use crate::analysis::keepers::{self, Promise};
use crate::analysis::quote::text;
use crate::model::{Located, RecordRef};

/// System calls that are looked at before a failure.
const RECENT: usize = 16;
/// Result of a system call that the kernel does not have: `-ENOSYS`.
const NO_SYSCALL: i64 = -38;

/// The last system calls of the dead process as text, oldest first.
fn last_calls(ctx: &Context<'_, '_>, count: usize) -> Vec<(String, RecordRef, Option<i64>)> {
    let own = |pid: Option<u32>| pid == ctx.death.pid;
    let name = |name: Option<&[u8]>, nr: Option<i64>| {
        name.map_or_else(|| format!("syscall {}", nr.unwrap_or(-1)), |n| text(Some(n)))
    };
    let mut calls: Vec<_> = ctx
        .case
        .syscalls
        .iter()
        .filter(|call| own(call.pid))
        .map(|call| (name(call.name, call.nr), call.at, call.result))
        .collect();
    if calls.is_empty() {
        let exits = ctx.case.exits.iter().filter(|exit| own(exit.pid));
        calls = exits.map(|exit| (name(exit.name, exit.nr), exit.at, exit.result)).collect();
    }
    calls.split_off(calls.len().saturating_sub(count))
}

fn with_result(call: &(String, RecordRef, Option<i64>)) -> String {
    match call.2 {
        Some(result) => format!("{} = {result}", call.0),
        None => format!("{} (not returned)", call.0),
    }
}

/// A program died of a fault in its own code, as far as the dump shows.
pub(super) fn own_fault(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if !ctx.program_died() || !matches!(death.signal, Some(4 | 5 | 7 | 8 | 11 | 31)) {
        return Vec::new();
    }
    let signal = death.signal.and_then(signal_name).unwrap_or_default();
    let who = if death.program.is_empty() { "the program".to_owned() } else { death.program.clone() };
    let place = death.ip.filter(|&ip| ip != 0).map(|ip| format!(" at {ip:#x}")).unwrap_or_default();
    let after = last_calls(ctx, 1).first().map(|call| format!(", after {}", with_result(call))).unwrap_or_default();
    let mut claim = Claim::new(format!("{who} crashed: {signal}{place}{after}")).because(
        0.4,
        format!("the kernel sent {signal}"),
        death.at,
    );
    let calls = last_calls(ctx, 4);
    if let Some(last) = calls.last() {
        let list: Vec<String> = calls.iter().map(with_result).collect();
        claim = claim.because(0.05, format!("its last system calls: {}", list.join("; ")), Some(last.1));
    }
    // That an audit found nothing proves nothing about bugs that it cannot see: context without weight.
    if !ctx.case.ptes.is_empty() && ctx.audit.is_empty() {
        claim = claim.because(0.0, "mappings and page tables agree", None);
    }
    let checked = !ctx.case.checks.is_empty() || !ctx.case.verify_oks.is_empty();
    if checked && ctx.pages.is_empty() {
        claim =
            claim.because(0.0, "every checked page matches its file", ctx.case.checks.first().map(|check| check.at));
    }
    if !ctx.pages.is_empty() {
        claim = claim.but(
            0.6,
            "pages of its files are wrong: the program may not be at fault",
            ctx.pages.first().map(|page| page.at),
        );
    }
    if ctx.case.ptes.is_empty() && !checked {
        claim =
            claim.but(0.1, "the dump has neither page tables nor page checks, so a kernel bug is not ruled out", None);
    }
    vec![claim]
}

/// A program aborted itself.
pub(super) fn abort(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.program_died() || ctx.death.signal != Some(6) {
        return Vec::new();
    }
    let who = if ctx.death.program.is_empty() { "the program" } else { &ctx.death.program };
    let mut claim = Claim::new(format!("{who} aborted itself: a failed assertion or a check of its library")).because(
        0.6,
        "SIGABRT",
        ctx.death.at,
    );
    let told = last_calls(ctx, RECENT).into_iter().rev().find(|(name, ..)| name == "write" || name == "writev");
    if let Some((name, at, _)) = told {
        claim = claim.because(0.2, format!("it wrote something shortly before ({name})"), Some(at));
    }
    vec![claim]
}

/// The canary of a stack was not what it should be.
pub(super) fn canary(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let own = |pid: Option<u32>| !ctx.program_died() || pid == ctx.death.pid;
    let Some(check) = ctx.case.canaries.iter().find(|check| own(check.pid)) else { return Vec::new() };
    let (expected, found) = (check.expected.unwrap_or(0), check.found.unwrap_or(0));
    let when = text(check.when);
    let claim = Claim::new(format!(
        "the stack canary changed during {} ({when}): the kernel or the program wrote over it",
        text(check.syscall)
    ))
    .proven(0.8, format!("expected {expected:#x}, found {found:#x} at fs:0x28"), Some(check.at));
    vec![claim]
}

/// A system call that the kernel lacks, and a failure soon behind it.
pub(super) fn unimplemented(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let own = |pid: Option<u32>| death.pid.is_none() || pid == death.pid;
    let event = ctx.case.unimplemented.iter().rev().find(|event| own(event.pid));
    let recent = last_calls(ctx, RECENT);
    let refused = recent.iter().rev().find(|(_, _, result)| *result == Some(NO_SYSCALL));
    let (what, at) = match (event, refused) {
        (Some(event), _) => {
            let (name, nr) = (text(event.name), event.nr.unwrap_or(-1));
            // A kernel that does not know the number has no name for it either.
            let named = !name.is_empty() && !name.starts_with('(');
            (if named { format!("{name} (number {nr})") } else { format!("number {nr}") }, event.at)
        }
        (None, Some((name, at, _))) => (name.clone(), *at),
        (None, None) => return Vec::new(),
    };
    let mut claim = Claim::new(format!(
        "the kernel lacks system call {what}, and the program did not survive without it"
    ))
    .because(0.3, format!("system call {what} is not implemented"), Some(at));
    let died = ctx.program_died() || death.kind == Some(CauseKind::PANIC);
    let exit = ctx
        .case
        .process_exits
        .iter()
        .find(|exit| exit.pid == death.pid && (exit.status != Some(0) || exit.by_signal == Some(true)));
    match (died, exit) {
        (true, _) if refused.is_some() || recent.is_empty() => {
            claim = claim.because(0.45, "it failed within the last system calls before the death", death.at);
        }
        (false, Some(exit)) => {
            claim = claim.because(
                0.3,
                format!("the process ended with status {}", exit.status.unwrap_or(0)),
                Some(exit.at),
            );
        }
        // A kernel may lack calls whose absence programs tolerate.
        (false, None) => return Vec::new(),
        _ => claim = claim.but(0.5, "many system calls succeeded after it", None),
    }
    vec![claim]
}

/// Init ended, which ends the machine.
pub(super) fn init_ended(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.death.message.to_lowercase().contains("attempted to kill init") {
        return Vec::new();
    }
    let told = ctx.death.message.trim();
    let how = match killed_by(told).and_then(signal_name) {
        Some(signal) => format!("died of {signal}"),
        None => "exited".to_owned(),
    };
    let claim = Claim::new(format!("init {how}, and the kernel cannot continue without it: {told}"));
    // What ended it is not known by that: a mechanism that something proves comes first.
    let claim = claim.because(0.65, told.to_owned(), ctx.death.at).because_if(0.1, never_began(ctx));
    vec![claim]
}

/// Init was sent to user mode with no program there: no call, and its first instruction at 0.
fn never_began(ctx: &Context<'_, '_>) -> Option<(Statement, Option<RecordRef>)> {
    let pid = ctx.death.pid.unwrap_or(1);
    let is_its = |set: &&Located<Registers<'_>>| set.role == Some(RegisterRole::USER) && set.pid == Some(pid);
    let set = ctx.case.registers.iter().find(is_its)?;
    let ip = set.regs.as_ref()?.iter().find(|reg| reg.id == Some(RegId::RIP))?.value?;
    let has_called = ctx.case.syscalls.iter().any(|row| row.pid == Some(pid));
    if ip != 0 || has_called || !ctx.case.weakness(&[SectionKind::SYSCALLS]).is_empty() {
        return None;
    }
    let keepers = keepers::in_words(ctx, Promise::Program)?;
    Some((
        keepers.behind("it made no system call and its instruction pointer is 0: no program was started; "),
        Some(set.at),
    ))
}

/// The signal in `exitcode=0x0000000b`, a status as wait4(2) has it; `None` of a program that exited.
fn killed_by(message: &str) -> Option<u32> {
    let (_, digits) = message.split_once("exitcode=0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let signal = u32::from_str_radix(&digits[..end], 16).ok()? & 0x7f;
    (signal != 0).then_some(signal)
}
