//! Bad addresses: null, wild, poisoned, data as code, user pointers in the kernel.

use kwab_format::record::{CauseKind, FlightEvent, FlightKind, RegId};

use crate::analysis::code;
use crate::analysis::context::Context;
use crate::analysis::finding::Claim;
use crate::analysis::frame::TraceFrame;
use crate::analysis::quote::{says, text};
use crate::decode::{PointerClass, is_poison, page_fault_sentence};
use crate::model::{Located, RecordRef};
use crate::unwind::Space;

type Fact = Option<(String, Option<RecordRef>)>;

/// Words of deaths that have an address and are not about its translation: the bus, the alignment or a capability
/// refused the access.
const NOT_TRANSLATED: &[&str] = &[
    "external abort",
    "serror",
    "machine check",
    "hardware error",
    "bus error",
    "alignment",
    "misaligned",
    "unaligned",
    "capability",
    "cheri",
];

/// Whether the death is one by an address at all. What a check of the kernel found is not: the address that it prints
/// is that of the object, or a hash of it. Nor is a double fault: its address is that of the fault that could not be
/// delivered; nor what the bus or a capability refused.
fn by_address(ctx: &Context<'_, '_>) -> bool {
    let death = &ctx.death;
    let message = death.message.to_ascii_lowercase();
    let kernel = matches!(death.kind, Some(CauseKind::EXCEPTION | CauseKind::OOPS | CauseKind::PANIC | CauseKind::BUG))
        && super::panic::check_of(&death.message).is_none()
        && !NOT_TRANSLATED.iter().any(|words| says(&message, words));
    let fault = matches!(death.vector, Some(13 | 14)) || death.fault_addr.is_some() || death.ip == Some(0);
    let signal = death.kind == Some(CauseKind::FATAL_SIGNAL) && matches!(death.signal, Some(7 | 11));
    signal || (kernel && fault && death.in_kernel)
}

fn side(ctx: &Context<'_, '_>) -> &'static str {
    if ctx.death.in_kernel { "the kernel" } else { "the program" }
}

fn error_code(ctx: &Context<'_, '_>) -> Fact {
    let death = &ctx.death;
    let code = death.error_code.filter(|_| death.vector == Some(14))?;
    Some((format!("error code {code:#x}: {}", page_fault_sentence(code)), death.registers_at.or(death.at)))
}

/// Whether the error code says that the page was there and forbade the access.
fn is_present(ctx: &Context<'_, '_>) -> bool {
    page_fault_code(ctx).is_some_and(|code| code & 1 != 0)
}

/// The error code of a page fault; a log names the exception by its words only.
fn page_fault_code(ctx: &Context<'_, '_>) -> Option<u64> {
    let death = &ctx.death;
    death.error_code.filter(|_| death.vector == Some(14) || death.vector.is_none() && death.fault_addr.is_some())
}

fn instruction(ctx: &Context<'_, '_>) -> Fact {
    let found = ctx.instruction.as_ref()?;
    Some((code::row(ctx, found), ctx.death.registers_at))
}

/// Whether zero as instruction pointer only means that the source never recorded one: signals that no instruction
/// causes carry it too.
fn ip_is_never_recorded(ctx: &Context<'_, '_>) -> Option<RecordRef> {
    let by_kill = |number: Option<i64>| matches!(number, Some(1 | 2 | 3 | 9 | 15));
    let zero = ctx.case.signals.iter().filter(|signal| signal.ip == Some(0));
    zero.into_iter().find(|signal| by_kill(signal.signal)).map(|signal| signal.at)
}

/// The instruction pointer is at or near zero.
pub(super) fn jump_to_zero(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let Some(ip) = death.ip.filter(|&ip| ip < 0x1000 && by_address(ctx)) else { return Vec::new() };
    // A log may print frames without addresses; the jump itself has no name.
    let is_caller = |frame: &TraceFrame| (frame.ip != ip || frame.ip == 0) && !frame.machinery;
    let from = ctx.trace.iter().find(|frame| is_caller(frame) && frame.name.is_some());
    let view = ctx.view();
    let top = death.sp.and_then(|sp| Some((view.word(sp)?, view.memory_at(sp)?.0.at)));
    let who = side(ctx);
    let mut claim = match top {
        Some((word, at)) if view.is_code(word) => {
            let caller = from.map_or_else(|| format!("{word:#x}"), TraceFrame::label);
            Claim::new(format!("{who} called a null function pointer (ip={ip:#x}) from {caller}")).proven(
                0.45,
                format!("the top of the stack is a return address: {word:#x}"),
                Some(at),
            )
        }
        Some((0, at)) => emptied_context(ctx, ip, at),
        _ => {
            let place = from.map(|frame| format!(", last known in {}", frame.label())).unwrap_or_default();
            Claim::new(format!(
                "{who} jumped to {ip:#x}: a null function pointer or an overwritten return address{place}"
            ))
        }
    };
    claim = claim.because(0.6, format!("ip = {ip:#x}, where no code can be"), death.registers_at.or(death.at));
    claim = claim.because_if(0.3, error_code(ctx).filter(|_| death.is_fetch()));
    if let Some(at) = ip_is_never_recorded(ctx).filter(|_| death.registers_at.is_none()) {
        claim = claim.but(0.8, "signals sent by kill have ip=0 here too: this source does not record the ip", Some(at));
    }
    vec![claim]
}

/// Nothing but zeros where a return address must be: the code did not call, it returned into an emptied frame.
fn emptied_context(ctx: &Context<'_, '_>, ip: u64, at: RecordRef) -> Claim {
    let death = &ctx.death;
    let view = ctx.view();
    let sp = death.sp.unwrap_or(0);
    let zeros = (0..64).map_while(|word| view.word(sp + word * 8)).take_while(|word| *word == 0).count();
    let who = side(ctx);
    let mut claim = Claim::new(format!(
        "{who} returned to {ip:#x} through a zeroed stack: a saved context or its stack was overwritten or freed"
    ))
    .because(
        0.5,
        format!("the {zeros} words from rsp on are zero; a call would have left a return address"),
        Some(at),
    );
    let preserved = [RegId::RBX, RegId::RBP, RegId::R12, RegId::R13, RegId::R14, RegId::R15];
    if preserved.iter().all(|&register| death.register(register) == Some(0)) {
        claim = claim.proven(
            0.4,
            "rbx, rbp and r12 to r15 are all zero: they came from zeroed memory too",
            death.registers_at,
        );
    }
    // Each processor has its own ring: the switch that matters is one of the processor that died.
    let here = |cpu: Option<u32>| death.cpu.is_none() || cpu.is_none() || cpu == death.cpu;
    let is_last =
        |event: &&Located<FlightEvent<'_>>| event.kind == Some(FlightKind::CONTEXT_SWITCH) && here(event.stamp.cpu);
    let last = ctx.case.flight.iter().rev().find(is_last);
    if let Some(switch) = last {
        let detail = text(switch.detail.or(switch.name));
        claim = claim.because(0.25, format!("the last recorded context switch: {}", detail.trim()), Some(switch.at));
    }
    claim
}

/// Code was fetched from where there is data, or nothing.
pub(super) fn jump_to_data(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let Some(ip) = death.ip.filter(|&ip| ip >= 0x1000 && by_address(ctx) && death.is_fetch()) else {
        return Vec::new();
    };
    let who = side(ctx);
    let vma = ctx.vma_at(ip).filter(|_| !death.in_kernel);
    let claim = match vma {
        Some(vma) if vma.prot.unwrap_or(0) & 4 == 0 => {
            let name = text(vma.path.or(vma.name));
            Claim::new(format!("{who} jumped to data at {ip:#x} ({name})")).because(
                0.6,
                format!("the mapping of {ip:#x} is not executable"),
                Some(vma.at),
            )
        }
        Some(vma) => {
            // The mapping allows it, so the page table must forbid it: the audit knows more.
            Claim::new(format!("{who} may not execute {ip:#x} although its mapping allows it")).because(
                0.5,
                "the mapping is executable",
                Some(vma.at),
            )
        }
        None if is_present(ctx) => Claim::new(format!("{who} jumped to {ip:#x}, a page that may not be executed"))
            .because(0.45, "the page is present, and the fetch was refused", death.registers_at.or(death.at)),
        None => Claim::new(format!("{who} jumped to the unmapped address {ip:#x}")).because(
            0.45,
            format!("no mapping and no image holds {ip:#x}"),
            death.registers_at.or(death.at),
        ),
    };
    let claim = claim.because_if(0.3, error_code(ctx)).because(0.3, "the failed access is the fetch itself", death.at);
    vec![claim]
}

/// Data at or near address zero was accessed.
pub(super) fn null(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let Some(addr) = death.fault_addr.filter(|_| by_address(ctx) && !death.is_fetch()) else { return Vec::new() };
    let what = match ctx.class_of(addr) {
        PointerClass::Null => "a null pointer".to_owned(),
        PointerClass::NearNull => format!("a null pointer plus {addr:#x}"),
        PointerClass::BelowNull => {
            // Of 32 or of 64 bits: its lower half says how far below zero it is.
            let below = (addr as u32).cast_signed();
            format!("{addr:#x} ({below}): an error number or a negative offset from null")
        }
        _ => return Vec::new(),
    };
    // Without registers a zero may only mean that the address was not recorded.
    let sure = if death.registers.is_empty() && addr == 0 { 0.45 } else { 0.7 };
    let mut claim = Claim::new(format!("{} dereferenced {what}{}", side(ctx), ctx.in_culprit()))
        .because(sure, format!("the failed access is at {addr:#x}"), death.fault_at.or(death.registers_at).or(death.at))
        .because_if(0.2, error_code(ctx));
    if let Some(found) = &ctx.instruction
        && let Some(operand) = found.operands.iter().find(|operand| operand.address == Some(addr))
    {
        claim = claim.because_if(0.4, instruction(ctx));
        if let Some((name, ..)) = operand.registers.iter().find(|(_, _, value)| *value == Some(0)) {
            claim = claim.because(0.2, format!("{name} is zero"), death.registers_at);
        }
    }
    vec![claim]
}

/// An address that no pointer should have, and none of the better known kinds.
pub(super) fn wild(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if !by_address(ctx) || death.is_fetch() {
        return Vec::new();
    }
    let is_wild = |ip: u64| death.vector != Some(14) && ctx.class_of(ip) == PointerClass::NonCanonical;
    if let Some(ip) = death.ip.filter(|ip| is_wild(*ip)) {
        let claim =
            Claim::new(format!("{} jumped to the non-canonical address {ip:#x}{}", side(ctx), ctx.in_culprit()))
                .because(0.8, format!("ip = {ip:#x}, which no page table can map"), death.registers_at.or(death.at));
        return vec![claim];
    }
    if let Some((register, value)) = non_canonical_operand(ctx) {
        let claim = Claim::new(format!(
            "{} used the non-canonical address {value:#x} ({register}){}",
            side(ctx),
            ctx.in_culprit()
        ))
        .because(0.75, format!("{register} makes {value:#x}, which no page table can map"), death.registers_at)
        .because_if(0.2, instruction(ctx));
        return vec![claim];
    }
    let told = death.fault_addr.filter(|addr| is_wild(*addr) && death.in_kernel);
    if let Some(addr) = told {
        let near = |value: u64| value.wrapping_sub(addr).wrapping_add(4096) <= 8192;
        let register = death.registers.iter().find(|(_, value)| near(*value)).and_then(|(id, _)| id.name());
        let claim = Claim::new(format!("the kernel used the non-canonical address {addr:#x}{}", ctx.in_culprit()))
            .because(0.65, format!("the kernel says that the access was at {addr:#x}"), death.fault_at.or(death.at))
            .because_if(0.1, register.map(|name| (format!("{name} has its value"), death.registers_at)))
            .because_if(0.1, instruction(ctx));
        return vec![claim];
    }
    // Of an address that a pattern makes, the rule of freed memory says more. A general protection fault does not name
    // the address, but its instruction does.
    let protection = death.vector == Some(13) && death.in_kernel;
    let operands = ctx.instruction.iter().filter(|_| protection).flat_map(|at| &at.operands);
    let mut addresses = death.fault_addr.or(death.ip).into_iter().chain(operands.filter_map(|it| it.address));
    if addresses.any(|addr| is_poison(addr).is_some()) {
        return Vec::new();
    }
    if protection {
        let claim = Claim::new(format!("general protection fault in the kernel{}", ctx.in_culprit()))
            .because(0.4, "exception 13: often a non-canonical address; the dump does not show which", death.at)
            .because_if(0.1, instruction(ctx));
        return vec![claim];
    }
    let Some(addr) =
        death.fault_addr.filter(|&addr| matches!(ctx.class_of(addr), PointerClass::User | PointerClass::Kernel))
    else {
        return Vec::new();
    };
    if !death.in_kernel && ctx.vma_at(addr).is_some() {
        return Vec::new();
    }
    // Without an error code or a map nothing says whether a page was there: other machines have codes of their own.
    let who = side(ctx);
    let what = match death.error_code.is_some() || !death.in_kernel && ctx.has_map() {
        true if page_fault_code(ctx).is_some_and(|code| code & 8 != 0) => {
            format!("{who} accessed {addr:#x} through a page-table entry with a reserved bit set")
        }
        true if is_present(ctx) => format!("{who} violated the page protection of {addr:#x}"),
        true => format!("{who} accessed the unmapped address {addr:#x}"),
        false => format!("{who}'s access to {addr:#x} failed"),
    };
    let mut claim = Claim::new(format!("{what}{}", ctx.in_culprit()))
        .because(0.5, format!("the failed access is at {addr:#x}"), death.fault_at.or(death.registers_at).or(death.at))
        .because_if(0.1, error_code(ctx))
        .because_if(0.15, instruction(ctx));
    if !death.in_kernel && ctx.has_map() && !is_present(ctx) {
        claim = claim.because(0.2, "no mapping of the process contains it", None);
    }
    vec![claim]
}

fn non_canonical_operand(ctx: &Context<'_, '_>) -> Option<(&'static str, u64)> {
    if ctx.death.vector == Some(14) {
        return None;
    }
    let is_wild = |addr: u64| ctx.class_of(addr) == PointerClass::NonCanonical;
    let operand = ctx.instruction.as_ref()?.operands.iter().find(|operand| operand.address.is_some_and(is_wild))?;
    let name = operand.registers.iter().find(|(_, _, value)| value.is_some_and(is_wild)).map_or("operand", |r| r.0);
    Some((name, operand.address?))
}

/// A byte pattern of freed memory is in the address or in the registers it was made of.
pub(super) fn poison(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    if !ctx.kernel_died() && !ctx.program_died() {
        return Vec::new();
    }
    let mut claim = None;
    let known = |addr: u64| is_poison(addr).map(|name| (addr, name));
    let operands = ctx.instruction.iter().flat_map(|found| &found.operands).filter_map(|operand| operand.address);
    if let Some((addr, name)) = death.fault_addr.into_iter().chain(operands).chain(death.ip).find_map(known) {
        let text =
            format!("{} used freed memory: the address {addr:#x} is made of {name}{}", side(ctx), ctx.in_culprit());
        claim = Some(Claim::new(text).proven(
            0.85,
            format!("{addr:#x} is the pattern of {name}"),
            death.registers_at.or(death.at),
        ));
    }
    let registers = death.registers.iter().filter_map(|&(id, value)| Some((id, known(value)?)));
    for (id, (value, name)) in registers {
        let register = id.name().unwrap_or("a register");
        let row = format!("{register} = {value:#x}: {name}");
        claim = Some(match claim {
            Some(claim) => claim.because(0.3, row, death.registers_at),
            // Code that takes an object off a list holds its poison for a moment; the access was elsewhere.
            None => Claim::new(format!("{} uses freed memory: {register} holds {name}{}", side(ctx), ctx.in_culprit()))
                .because(if name.starts_with("removed list") { 0.35 } else { 0.6 }, row, death.registers_at),
        });
    }
    claim.map(|claim| claim.because_if(0.15, instruction(ctx))).into_iter().collect()
}

/// Kernel code used an address of the user's half outside of the copy routines.
pub(super) fn user_pointer(ctx: &Context<'_, '_>) -> Vec<Claim> {
    let death = &ctx.death;
    let Some(addr) = death.fault_addr.filter(|_| ctx.kernel_died() && by_address(ctx) && !death.is_fetch()) else {
        return Vec::new();
    };
    // A kernel whose own code lies there has no user's half: those of 32 bits, of one space, of embedded systems.
    let in_half = |addr: u64| ctx.class_of(addr) == PointerClass::User;
    let code = ctx.code_at();
    if !in_half(addr) || code.is_some_and(in_half) || code.is_none() && ctx.is_foreign_kernel() {
        return Vec::new();
    }
    // Of a kernel that is not known, nothing says that it gives the lower half to programs.
    let sure = if ctx.is_foreign_kernel() && !ctx.is_linux() { 0.4 } else { 0.6 };
    let mut claim = Claim::new(format!(
        "the kernel used the user pointer {addr:#x} without checking or copying it{}",
        ctx.in_culprit()
    ))
    .because(sure, format!("{addr:#x} is a user-space address"), death.registers_at.or(death.at))
    .because_if(0.15, error_code(ctx));
    let mut call = ctx
        .case
        .syscalls
        .iter()
        .filter(|call| call.pid == death.pid && (call.in_progress == Some(true) || call.result.is_none()));
    let entered = ctx.case.entries.iter().rev().find(|entry| entry.pid == death.pid);
    let args = call.next_back().map(|call| (call.args(), text(call.name), call.at));
    if let Some((args, name, at)) = args.or_else(|| entered.map(|entry| (entry.args(), text(entry.name), entry.at)))
        && let Some(number) = args.iter().position(|arg| arg.is_some_and(|arg| arg != 0 && addr.abs_diff(arg) < 4096))
    {
        claim = claim.proven(0.6, format!("it is argument {} of {name}", number + 1), Some(at));
    }
    if let Some(vma) = ctx.vma_at(addr) {
        claim = claim.because(
            0.1,
            format!("it lies in a mapping of the process ({})", text(vma.path.or(vma.name))),
            Some(vma.at),
        );
    }
    vec![claim.because_if(0.1, instruction(ctx))]
}
