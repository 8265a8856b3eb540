//! Stacks that ran out, and faults while delivering a fault.

use std::collections::HashMap;

use kwab_format::record::CauseKind;

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::quote::text;
use crate::model::RecordRef;

/// Bytes below the stack pointer that a function may use without moving it (System V ABI, "red zone"); `push` and
/// `call` write the first eight of them.
const RED_ZONE: u64 = 128;

/// How far below a stack an access still counts as running out of it: one large frame.
const REACH: u64 = 1 << 20;

/// A stack pointer or a failed access in or below the guard of a stack.
pub(super) fn overflow(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if !ctx.kernel_died() && !ctx.program_died() {
        return Vec::new();
    }
    let said = death.kind == Some(CauseKind::STACK_OVERFLOW);
    let whose = if death.in_kernel { "kernel" } else { "user" };
    let mut claim = Claim::new(format!("{whose} stack overflow{}", ctx.in_culprit()));
    let mut found = said;
    if said {
        claim = claim.proven(0.85, "the kernel reports an access to its guard page", death.at);
    }
    for (what, addr) in [("the failed access", death.fault_addr), ("the stack pointer", death.sp)] {
        let Some(addr) = addr else { continue };
        // Within one stack, how far it is from another's (of another processor, say) means nothing.
        if ctx.stack_at(addr).is_some_and(|stack| stack.low.is_some_and(|low| low <= addr)) {
            continue;
        }
        let near = ctx.case.stacks.iter().filter(|stack| (stack.label.is_none_or(|l| l != b"user")) == death.in_kernel);
        for stack in near {
            let (Some(low), Some(high)) = (stack.low, stack.high) else { continue };
            let guard = low.saturating_sub(stack.guard.unwrap_or(0));
            let label = text(stack.label);
            if (guard..low).contains(&addr) {
                let row = format!("{what} {addr:#x} is in the guard below the {label} stack {low:#x}-{high:#x}");
                (claim, found) = (claim.proven(0.8, row, Some(stack.at)), true);
            } else if what == "the stack pointer" && addr < guard && guard - addr < REACH && near_sp(ctx, addr) {
                let row = format!("{what} {addr:#x} is {} bytes below the {label} stack", low - addr);
                (claim, found) = (claim.because(0.7, row, Some(stack.at)), true);
            }
        }
    }
    if !death.in_kernel
        && let Some((row, at, is_proven)) = below_user_stack(ctx)
    {
        claim = if is_proven { claim.proven(0.8, row, Some(at)) } else { claim.because(0.65, row, Some(at)) };
        found = true;
    }
    if let Some((name, times)) = recursion(ctx) {
        claim = claim.because(0.4, format!("{name} is on the stack {times} times"), None);
    }
    if !found {
        return Vec::new();
    }
    vec![claim]
}

/// Whether the failed access belongs to the stack pointer: it is near it, or unknown.
fn near_sp(ctx: &Context<'_, '_>, sp: u64) -> bool {
    ctx.death.fault_addr.is_none_or(|addr| addr.abs_diff(sp) < REACH)
}

/// A user access just below the mapping of the stack, near the stack pointer. It is proven to be the stack's where the
/// stack pointer is below the mapping too, or where the access is in the red zone of one that is not yet: a `call`
/// at the very end of the stack.
fn below_user_stack(ctx: &Context<'_, '_>) -> Option<(String, RecordRef, bool)> {
    let (addr, sp) = (ctx.death.fault_addr?, ctx.death.sp?);
    let above = ctx.vma_above(addr)?;
    let is_stack =
        text(above.name.or(above.path)).to_lowercase().contains("stack") || above.flags.unwrap_or(0) & 2 != 0;
    let start = above.start?;
    let gap = start - addr;
    let fits = ctx.vma_at(addr).is_none() && is_stack && addr.abs_diff(sp) < 65536 && gap < REACH;
    let row = format!("the failed access {addr:#x} is {gap} bytes below the stack, near rsp={sp:#x}");
    fits.then_some((row, above.at, sp < start || (sp.saturating_sub(RED_ZONE)..sp).contains(&addr)))
}

/// The function that fills the backtrace, when one does.
fn recursion(ctx: &Context<'_, '_>) -> Option<(String, usize)> {
    let function = |label| <str>::split(label, '+').next().unwrap_or(label);
    let names = || ctx.trace.iter().filter_map(|frame| frame.name.as_deref().map(function));
    let mut times: HashMap<&str, usize> = HashMap::new();
    names().for_each(|name| *times.entry(name).or_default() += 1);
    let most = names().max_by_key(|name| times.get(name))?;
    let times = times.get(most).copied()?;
    (times >= 8).then(|| (most.to_owned(), times))
}

/// A double fault whose first fault is not otherwise explained.
pub(super) fn double_fault(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if death.kind != Some(CauseKind::DOUBLE_FAULT) && death.vector != Some(8) {
        return Vec::new();
    }
    let claim = Claim::new(format!("a fault while delivering a fault{}", ctx.in_culprit()))
        .because(0.5, "exception 8 (double fault)", death.at)
        .because_if(
            0.1,
            death.sp.map(|sp| (format!("rsp = {sp:#x}: a bad stack pointer is the usual reason"), death.registers_at)),
        );
    vec![claim]
}
