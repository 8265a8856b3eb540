//! Classes of death that the signal, the faulting instruction and the stack prove: division, illegal instructions,
//! files that end before their mapping, read-only memory, smashed stacks, corrupted heaps, memory that ran out.
//!
//! The kernel's own divisions and undefined instructions are judged here too: the processor reports both alike.

use kwab_format::record::{CauseKind, Vma};

use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::keepers::{self, Promise};
use crate::analysis::quote::{text, without_level};
use crate::analysis::{blame, code};
use crate::decode::Access;
use crate::model::{Located, RecordRef};
use crate::symbols::{Role, is_allocator, plain, role};
use crate::unwind::Space as _;

/// Signal numbers, as the kernel's ABI has them on every architecture that dumps know.
const SIGILL: u32 = 4;
const SIGABRT: u32 = 6;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGKILL: u32 = 9;
const SIGSEGV: u32 = 11;

fn who(ctx: &Context<'_, '_>) -> String {
    match (ctx.death.in_kernel, ctx.death.program.is_empty()) {
        (true, _) => "the kernel".to_owned(),
        (false, true) => "the program".to_owned(),
        (false, false) => ctx.death.program.clone(),
    }
}

/// Whether the processor raised this exception, or the program got the signal for it.
fn raised(ctx: &Context<'_, '_>, vector: u32, signal: u32) -> bool {
    let asked = matches!(ctx.death.kind, Some(CauseKind::SYSRQ | CauseKind::LIVE | CauseKind::NMI));
    let in_kernel = ctx.kernel_died() && !asked && ctx.death.vector == Some(vector);
    in_kernel || (ctx.program_died() && ctx.death.signal == Some(signal))
}

fn instruction_row(ctx: &Context<'_, '_>) -> Option<(String, Option<RecordRef>)> {
    let found = ctx.instruction.as_ref()?;
    Some((code::row(ctx, found), ctx.death.registers_at))
}

/// A division by zero, or one whose quotient does not fit (exception 0, SIGFPE).
pub(super) fn division(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !raised(ctx, 0, SIGFPE) {
        return Vec::new();
    }
    let signal = if ctx.program_died() { "SIGFPE" } else { "exception 0 (divide error)" };
    let divides =
        ctx.instruction.as_ref().is_some_and(|found| found.text.starts_with("div") || found.text.starts_with("idiv"));
    let (what, zero) = match divisor(ctx) {
        Some(0) => ("divided by zero", true),
        Some(_) => ("divided a number that is too large for the quotient", false),
        None => ("divided by zero, or by a number that is too small", false),
    };
    let claim = Claim::new(format!("{} {what}{}", who(ctx), ctx.in_culprit())).because(0.6, signal, ctx.death.at);
    let claim = match instruction_row(ctx).filter(|_| divides) {
        Some((row, at)) if zero => claim.proven(0.5, row, at),
        fact => claim.because_if(0.2, fact),
    };
    vec![claim]
}

/// The value of the divisor of the faulting instruction.
fn divisor(ctx: &Context<'_, '_>) -> Option<u64> {
    let found = ctx.instruction.as_ref()?;
    let operand = found.text.strip_prefix("idiv ").or_else(|| found.text.strip_prefix("div "))?;
    if let Some(memory) = found.operands.first() {
        let word = ctx.view().word(memory.address?)?;
        return Some(if memory.size < 8 { word & ((1 << (memory.size * 8)) - 1) } else { word });
    }
    let (_, value) = found.reads.first()?;
    let narrow = operand.starts_with('e') || operand.ends_with('d');
    Some(if narrow { value & 0xffff_ffff } else { *value })
}

/// An instruction that the processor does not have, or that means "never get here" (exception 6, SIGILL).
pub(super) fn illegal(ctx: &Context<'_, '_>) -> Vec<Claim> {
    // A Rust panic or an assertion that ends in `ud2` has said more already.
    let message = &ctx.death.message;
    let checked = super::panic::check_of(message).is_some() || message.contains("BUG at");
    if !raised(ctx, 6, SIGILL) || checked && !ctx.program_died() {
        return Vec::new();
    }
    let signal = if ctx.program_died() { "SIGILL" } else { "exception 6 (invalid opcode)" };
    let trap = ctx.instruction.as_ref().filter(|found| found.text.starts_with("ud"));
    let claim = match trap {
        Some(_) => Claim::new(format!("{} reached code that must not be reached{}", who(ctx), ctx.in_culprit()))
            .because(0.4, signal, ctx.death.at),
        None => Claim::new(format!("{} ran an illegal instruction{}", who(ctx), ctx.in_culprit())).because(
            0.6,
            signal,
            ctx.death.at,
        ),
    };
    let claim = match (trap, instruction_row(ctx)) {
        (Some(_), Some((row, at))) => {
            claim.proven(0.6, format!("{row}: a trap that compilers emit for unreachable code and assertions"), at)
        }
        (_, fact) => claim.because_if(0.1, fact),
    };
    vec![claim]
}

/// A mapping of a file was accessed behind the end of the file (SIGBUS, `BUS_ADRERR`).
pub(super) fn bus(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some(addr) = ctx.death.fault_addr.filter(|_| ctx.program_died() && ctx.death.signal == Some(SIGBUS)) else {
        return Vec::new();
    };
    let Some(vma) = ctx.vma_at(addr) else { return Vec::new() };
    let path = text(vma.path);
    if path.is_empty() {
        return shared_without_file(ctx, addr, vma).into_iter().collect();
    }
    let offset = vma.file_offset.unwrap_or(0).saturating_add(addr - vma.start.unwrap_or(addr));
    let claim = Claim::new(format!(
        "{} accessed {path} beyond its end: at {addr:#x}, offset {offset:#x} of the file{}",
        who(ctx),
        ctx.in_culprit()
    ))
    .because(0.4, "SIGBUS", ctx.death.at)
    .proven(0.6, format!("{addr:#x} lies in a mapping of {path}, beyond the last page of the file"), Some(vma.at))
    .because_if(0.1, instruction_row(ctx));
    vec![claim]
}

/// Memory that processes share without a file has a page for every address that it was made for: only one that
/// mremap(2) made larger ends before its mapping.
fn shared_without_file(ctx: &Context<'_, '_>, addr: u64, vma: &Located<Vma<'_>>) -> Option<Claim> {
    if !text(vma.name).eq_ignore_ascii_case("shared") {
        return None;
    }
    let claim = Claim::new(format!("the kernel sent SIGBUS for shared memory without a file, at {addr:#x}"))
        .because(0.4, "SIGBUS", ctx.death.at)
        .because(0.4, format!("the mapping {} has no file that could be too short", mapping(vma)), Some(vma.at));
    let keepers = keepers::in_words(ctx, Promise::Shared).map(|row| (row, None));
    Some(claim.because_if(0.0, keepers).because_if(0.1, instruction_row(ctx)))
}

/// Right bits of a mapping that the failed access needed, when it is known; and the word for it.
fn needed(ctx: &Context<'_, '_>, addr: u64) -> Option<(u32, &'static str)> {
    if ctx.death.is_fetch() {
        return Some((4, "execute"));
    }
    if let Some(code) = ctx.death.error_code.filter(|_| ctx.death.vector == Some(14)) {
        return Some(if code & 2 != 0 { (2, "write") } else { (1, "read") });
    }
    let operand = ctx.instruction.as_ref()?.operands.iter().find(|operand| operand.address == Some(addr))?;
    Some(match operand.access {
        Access::Write | Access::ReadWrite => (2, "write"),
        Access::Read => (1, "read"),
        Access::Address => return None,
    })
}

fn mapping(vma: &Vma<'_>) -> String {
    let name = text(vma.path.or(vma.name));
    let letters: String = [(1, 'r'), (2, 'w'), (4, 'x')]
        .iter()
        .map(|(bit, c)| if vma.prot.unwrap_or(0) & bit != 0 { *c } else { '-' })
        .collect();
    format!("{:#x}-{:#x} {letters} {name}", vma.start.unwrap_or(0), vma.end.unwrap_or(0)).trim_end().to_owned()
}

/// A write to memory that is mapped without the right to write.
pub(super) fn read_only(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some((addr, vma)) = segv_in_mapping(ctx) else { return Vec::new() };
    let prot = vma.prot.unwrap_or(0);
    if needed(ctx, addr) != Some((2, "write")) || prot & 2 != 0 || prot == 0 {
        return Vec::new();
    }
    let claim = Claim::new(format!("{} wrote to read-only memory at {addr:#x}{}", who(ctx), ctx.in_culprit()))
        .proven(0.7, format!("the mapping {} does not allow writing", mapping(vma)), Some(vma.at))
        .because(0.2, "the failed access is a write", ctx.death.at)
        .because_if(0.1, instruction_row(ctx));
    vec![claim]
}

/// The kernel sent a signal for an access that the mapping allows.
pub(super) fn refused(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let Some((addr, vma)) = segv_in_mapping(ctx) else { return Vec::new() };
    let Some((right, word)) = needed(ctx, addr).filter(|(right, _)| vma.prot.unwrap_or(0) & right != 0) else {
        return Vec::new();
    };
    // Another mapping over the same address may be the one that forbids it; the audit tells of those.
    let over = ctx.case.vmas.iter().filter(|other| other.pid == vma.pid && covers(other, addr));
    if over.count() != 1 || right == 4 {
        return Vec::new();
    }
    let claim =
        Claim::new(format!("the kernel sent SIGSEGV for an access that the mapping allows: {word} at {addr:#x}"))
            .proven(0.72, format!("the mapping {} allows to {word}", mapping(vma)), Some(vma.at))
            .because_if(0.1, instruction_row(ctx));
    vec![claim]
}

fn covers(vma: &Vma<'_>, addr: u64) -> bool {
    vma.start.is_some_and(|start| start <= addr) && vma.end.is_some_and(|end| addr < end)
}

fn segv_in_mapping<'c, 'a>(ctx: &'c Context<'_, 'a>) -> Option<(u64, &'c Located<Vma<'a>>)> {
    let addr = ctx.death.fault_addr.filter(|_| ctx.program_died() && ctx.death.signal == Some(SIGSEGV))?;
    Some((addr, ctx.vma_at(addr)?))
}

/// Frames from the innermost on in which the check of a library speaks.
const REPORTING: usize = 8;

/// The names of the innermost functions.
fn innermost<'c>(ctx: &'c Context<'_, '_>) -> Vec<&'c str> {
    ctx.trace.iter().take(REPORTING).flat_map(blame::functions).map(|function| function.name).collect()
}

/// A function found its stack canary overwritten before it returned.
pub(super) fn smashed(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let checks = ["__stack_chk_fail", "__stack_chk_fail_local"];
    let names = innermost(ctx);
    let Some(at) = names.iter().position(|name| checks.contains(&plain(name))) else { return Vec::new() };
    if !ctx.program_died() && !ctx.kernel_died() {
        return Vec::new();
    }
    let victim = names[at + 1..].iter().find(|name| role(name) != Role::Reporter).copied().unwrap_or("its caller");
    let claim = Claim::new(format!("{} smashed its stack: a write beyond a local variable of {victim}", who(ctx)))
        .proven(0.85, format!("{} was called at the end of {victim}: the canary had changed", names[at]), ctx.death.at);
    vec![claim]
}

/// The allocator of a program found its own records wrong, or tripped over them.
pub(super) fn heap(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let names = innermost(ctx);
    let telling = |name: &&&str| role(name) != Role::Reporter;
    let Some(allocator) = names.iter().find(telling).filter(|name| is_allocator(name)) else { return Vec::new() };
    let deadly = matches!(ctx.death.signal, Some(SIGABRT | SIGSEGV | SIGILL | SIGBUS));
    if !ctx.program_died() || !deadly {
        return Vec::new();
    }
    let caller = names.iter().find(|name| role(name) == Role::Suspect);
    let by = caller.map(|caller| format!(", called by {caller}")).unwrap_or_default();
    let stopped = ctx.instruction.as_ref().is_some_and(|found| found.text == "hlt" || found.text.starts_with("ud"));
    let claim = if ctx.death.signal == Some(SIGABRT) || stopped {
        Claim::new(format!("the heap of {} was corrupted before: {allocator} noticed it{by}", who(ctx))).proven(
            0.8,
            format!("{allocator} ended the program: a double free, or a write beyond a block"),
            ctx.death.at,
        )
    } else {
        // A program that gives a wild pointer back has a sound heap.
        let what = "was corrupted before, or was given a pointer that is not its own";
        Claim::new(format!("the heap of {} {what}: {allocator} faulted{by}", who(ctx))).proven(
            0.72,
            format!("{allocator} faulted on its own bookkeeping: a double free, or a write beyond a block"),
            ctx.death.at,
        )
    };
    vec![claim]
}

/// The kernel killed a program because no memory was left.
pub(super) fn killed_for_memory(ctx: &Context<'_, '_>) -> Vec<Claim> {
    if !ctx.program_died() || ctx.death.signal != Some(SIGKILL) {
        return Vec::new();
    }
    // `killed process 3 (` of this kernel and of Linux: the digits alone may be part of a time or of another number.
    let victim = format!("process {} (", ctx.death.pid.unwrap_or_default());
    let said = ctx.case.logs.iter().rev().take(MOST_LOGS).find_map(|chunk| {
        let is_told = |line: &&str| {
            let lower = line.to_lowercase();
            lower.contains("out of memory") && lower.contains(&victim)
        };
        Some((without_level(text(chunk.bytes).lines().find(is_told)?).to_owned(), chunk.at))
    });
    // A log's own line about the death is its message.
    let told = ctx.death.message.lines().next().filter(|line| line.starts_with("Out of memory: killed process "));
    let said = said.map(|(line, at)| (line, Some(at))).or_else(|| Some((told?.to_owned(), ctx.death.at)));
    let Some((line, at)) = said else { return Vec::new() };
    let claim = Claim::new(format!("{} was killed because the machine ran out of memory", who(ctx))).proven(
        0.85,
        line.trim().to_owned(),
        at,
    );
    vec![claim]
}

/// Chunks of the log that are looked at.
const MOST_LOGS: usize = 64;
