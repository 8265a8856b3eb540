//! Disassembles the code around the fault, with what the operands of the faulting instruction were worth.
//!
//! The bytes come from the dump, else from the image. Where the instruction pointer holds no code, the call that led
//! there is shown instead: the innermost frame of the backtrace whose code is known.

use super::context::{CodeKind, Context, Printed, function_of, machine, printed_code};
use crate::decode::{Instruction, around};

/// Bytes before the fault that are looked at.
const BEFORE: u64 = 48;
/// Bytes from the fault on.
const BEHIND: usize = 48;
/// Lines before and behind it that are shown.
const LINES: (usize, usize) = (6, 4);

/// Instructions around an address.
#[derive(Clone, Debug)]
pub struct Code {
    /// The instruction that faulted, or the call that did not return.
    pub marked: u64,
    /// Whether `marked` is the fault itself.
    pub is_fault: bool,
    /// The instructions, in the order of their addresses.
    pub lines: Vec<Instruction>,
    /// The function that the addresses count from, of a log that prints none; empty when it has no name either.
    pub within: Option<String>,
}

/// The code of the death; `None` when neither the dump nor an image has it.
#[must_use]
pub fn of_death(ctx: &Context<'_, '_>) -> Option<Code> {
    let Some(ip) = ctx.death.ip else { return without_address(ctx) };
    if let Some(lines) = lines(ctx, ip).filter(|lines| lines.iter().any(|line| line.addr == ip)) {
        return Some(Code { marked: ip, is_fault: true, lines, within: None });
    }
    let callers = ctx.trace.iter().filter(|frame| frame.ip != ip).take(4);
    callers.filter_map(|frame| call_before(ctx, frame.ip)).next()
}

/// The faulting instruction as a line of evidence, with its address where the log prints one.
pub(super) fn row(ctx: &Context<'_, '_>, found: &Instruction) -> String {
    let place = ctx.death.ip.map_or_else(String::new, |_| format!("{:x}: ", found.addr));
    format!("{place}{}  {}", found.text, found.explain()).trim_end().to_owned()
}

/// The call that pushed a return address.
fn call_before(ctx: &Context<'_, '_>, back: u64) -> Option<Code> {
    let lines = lines(ctx, back)?;
    let call = lines.iter().rfind(|line| line.addr < back)?;
    let ends_there = call.addr.checked_add(call.bytes.len() as u64) == Some(back);
    let marked = call.addr;
    ends_there.then_some(Code { marked, is_fault: false, lines, within: None })
}

fn lines(ctx: &Context<'_, '_>, at: u64) -> Option<Vec<Instruction>> {
    let (start, bytes) = bytes_around(ctx, at)?;
    read(ctx, &bytes, start, at)
}

fn read(ctx: &Context<'_, '_>, bytes: &[u8], start: u64, at: u64) -> Option<Vec<Instruction>> {
    let view = &ctx.view();
    let lines = match machine(ctx.case) {
        CodeKind::X86 => around(bytes, start, at, LINES.0, LINES.1, view),
        CodeKind::Fixed(isa) => isa.around(bytes, start, at, LINES, &Printed { view, isa }),
        CodeKind::Unknown => return None,
    };
    (!lines.is_empty()).then_some(lines)
}

/// The code that a log prints without an address; the addresses count from the start of the function, and what lies
/// before it is left out.
fn without_address(ctx: &Context<'_, '_>) -> Option<Code> {
    let (bytes, marked) = printed_code(ctx.case)?;
    let (within, offset) = function_of(&ctx.death).unwrap_or_default();
    let before = if within.is_empty() { marked } else { marked.min(usize::try_from(offset).ok()?) };
    let at = if within.is_empty() { marked as u64 } else { offset };
    let lines = read(ctx, &bytes[marked - before..], at - before as u64, at)?;
    Some(Code { marked: at, is_fault: true, lines, within: Some(within) })
}

/// Bytes around an address and where they begin.
fn bytes_around(ctx: &Context<'_, '_>, at: u64) -> Option<(u64, Vec<u8>)> {
    let view = ctx.view();
    if let Some((memory, skip)) = view.memory_at(at) {
        let before = skip.min(BEFORE as usize);
        let bytes = memory.bytes?;
        let end = bytes.len().min(skip.saturating_add(BEHIND));
        return Some((at - before as u64, bytes.get(skip - before..end)?.to_vec()));
    }
    let start = at.saturating_sub(BEFORE);
    let mut bytes = vec![0; BEFORE as usize + BEHIND];
    let found = ctx.symbols.read(start, ctx.death.code_pid(), &mut bytes);
    bytes.truncate(found);
    if found > (at - start) as usize {
        return Some((start, bytes));
    }
    // Code without an address, as Linux prints it: the marked byte is the fault.
    let (bytes, marked) = printed_code(ctx.case).filter(|_| ctx.death.ip == Some(at))?;
    Some((at.checked_sub(marked as u64)?, bytes.to_vec()))
}
