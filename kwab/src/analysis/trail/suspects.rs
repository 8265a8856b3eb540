//! The functions to look at when the one that died only noticed: those that decided that it panicked, or brought the
//! value that it faulted on.
//!
//! [`suspects`] takes the deciders of the innermost call of the panic machinery, or the bringers of the operands of the
//! faulting instruction, and goes on to the callers while there are few. Functions that stand on the stack are shown by
//! the backtrace and are no suspects here.

use super::deciders::{self, Decider, Place};
use super::walk::{function_of, panic_site};
use crate::analysis::context::Context;
use crate::analysis::evidence::{ListedFunction, Statement};
use crate::analysis::{blame, reach};
use crate::decode::Access;
use crate::decode::flow::RSP;

/// Suspects that are named.
const MOST: usize = 10;
/// Frames whose functions are looked at.
const FRAMES: usize = 3;

/// The suspects of a death in the kernel, likeliest first; empty where the code is not known.
#[must_use]
pub(in crate::analysis) fn suspects(ctx: &Context<'_, '_>) -> Vec<Decider> {
    if !ctx.is_stack_of_death() || !ctx.kernel_died() {
        return Vec::new();
    }
    let pid = ctx.death.code_pid();
    let (frame, mut found) = match faulting(ctx) {
        Some(of_fault) => of_fault,
        None => match panic_site(ctx) {
            Some((frame, function, call)) => (frame, deciders::deciders(ctx.symbols, pid, &function, call)),
            None => return Vec::new(),
        },
    };
    let on_stack = |name: &str| ctx.trace.iter().flat_map(blame::functions).any(|function| function.name == name);
    for outer in frame + 1..frame + FRAMES {
        found.retain(|decider| tells(&decider.name) && !on_stack(&decider.name));
        if found.len() >= MOST {
            break;
        }
        let Some(function) = function_of(ctx, outer) else { break };
        let Some(call) = ctx.trace.get(outer).and_then(|frame| function.ending_at(frame.ip)) else { break };
        for decider in deciders::deciders(ctx.symbols, pid, &function, call) {
            if !found.iter().any(|known| known.name == decider.name) {
                found.push(decider);
            }
        }
    }
    found.retain(|decider| tells(&decider.name) && !on_stack(&decider.name));
    found.truncate(MOST);
    found
}

/// Whether a name says something: not a method of a type of the language, nor what `derive` wrote for one's own.
fn tells(name: &str) -> bool {
    let is_derived = ["core::cmp::", "core::clone::", "core::ops::deref::"].iter().any(|path| name.contains(path));
    !(reach::is_served(name) || is_derived && name.contains(" as "))
}

/// The frame of a fault, and what brought the values of its operands or led to the instruction.
fn faulting(ctx: &Context<'_, '_>) -> Option<(usize, Vec<Decider>)> {
    if ctx.death.fault_addr.is_none() && !matches!(ctx.death.vector, Some(0 | 13 | 14)) {
        return None;
    }
    let frame = ctx.trace.iter().position(|frame| Some(frame.ip) == ctx.death.ip)?;
    let function = function_of(ctx, frame)?;
    let at = function.at(ctx.trace.get(frame)?.ip)?;
    let operands = ctx.instruction.as_ref()?.operands.iter().filter(|operand| operand.access != Access::Address);
    let registers = operands.flat_map(|operand| &operand.registers).filter(|(_, number, _)| *number != RSP);
    let places: Vec<Place> = registers.map(|(_, number, _)| Place::Register(*number)).collect();
    let pid = ctx.death.code_pid();
    let mut found = deciders::bringers(ctx.symbols, pid, &function, at, &places);
    for decider in deciders::deciders(ctx.symbols, pid, &function, at) {
        if !found.iter().any(|known| known.name == decider.name) {
            found.push(decider);
        }
    }
    Some((frame, found))
}

/// The suspects as a fact of a hypothesis, likeliest first; `None` when there are none.
#[must_use]
pub(in crate::analysis) fn listed(suspects: &[Decider]) -> Option<Statement> {
    let functions = suspects.iter().map(|suspect| ListedFunction {
        name: suspect.name.clone(),
        place: None,
        why: Some(suspect.how.clone()),
    });
    Statement::listing("not on the stack, but these led to it, nearest first", functions.collect())
}
