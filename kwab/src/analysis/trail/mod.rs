//! Follows a bad value backwards through the machine code of the frames on the stack, to where it came from.
//!
//! [`follow`] begins at the operand of the faulting instruction (or at the condition that led to a panic) and looks for
//! the instruction that defined it, through registers, spills and arguments, from callee to caller. The chain reads
//! from the bad value outwards: `rax ← [rdi+0x18] ← argument 1 of close_file ← …`, and says where the trail ends and
//! why: a constant, a function that returned the value and whose frame is gone, memory whose last writer is unknown,
//! several paths. RETracer (Cui et al., ICSE 2016) is the reference for the idea.
//!
//! The work is bounded: `MOST_STEPS` links, `MOST_CODE` bytes of a function, each instruction looked at once per link.

mod deciders;
mod function;
mod suspects;
mod walk;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use super::blame::Guilty;
use super::context::Context;
use crate::decode::flow::Way;
use crate::symbols::{Probe, Symbols};
use function::Function;
use walk::Walk;

pub use deciders::Decider;
pub(super) use suspects::{listed as listed_suspects, suspects};

/// Links of a trail.
pub(super) const MOST_STEPS: usize = 24;
/// Bytes of code of a function that is followed.
pub(super) const MOST_CODE: u64 = 64 << 10;

/// Where a bad value came from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trail {
    /// What is followed: `rax=0x0 in close_file`.
    pub start: String,
    /// The links, from the bad value outwards.
    pub links: Vec<Link>,
    /// Why it ends there.
    pub ends: String,
    /// The function that brought the value in, when the trail names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Guilty>,
}

/// One step of a trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Link {
    /// Where the value was: `[rdi+0x18]`, `argument 1 of close_file`, `0x0, a constant`.
    pub text: String,
    /// The instruction that brought it on, with its address; absent for a step from callee to caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// The function with that instruction.
    pub function: String,
}

impl Trail {
    /// The chain in one line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let links: String = self.links.iter().map(|link| format!(" ← {}", link.text)).collect();
        format!("{}{links}; {}", self.start, self.ends)
    }
}

/// Follows the bad value of a death; `None` when the dump has no code or no operand to begin with.
#[must_use]
pub fn follow(ctx: &Context<'_, '_>) -> Option<Trail> {
    if !ctx.is_stack_of_death() {
        return None;
    }
    Walk::of_fault(ctx).or_else(|| Walk::of_panic(ctx)).map(Walk::finish)
}

/// The functions that decided that the instruction at an address of the kernel ran, nearest first.
pub(super) fn deciders_at(symbols: &Symbols, addr: u64) -> Vec<String> {
    let location = symbols.resolve(addr, None, Probe::Exact);
    let start = location.symbol.and_then(|symbol| addr.checked_sub(symbol.offset));
    let Some(function) = start.and_then(|start| Function::of_image(symbols, None, start)) else { return Vec::new() };
    let Some(at) = function.at(addr) else { return Vec::new() };
    deciders::deciders(symbols, None, &function, at).into_iter().map(|decider| decider.name).collect()
}

/// The instructions of the kernel's function that begins at an address, each with the function that it calls.
pub(super) fn places(symbols: &Symbols, start: u64) -> Vec<(u64, Option<u64>)> {
    let Some(function) = Function::of_image(symbols, None, start) else { return Vec::new() };
    let own = start..function.code.last().map_or(start, |flow| flow.addr + flow.len as u64);
    let called = |way: Way| match way {
        Way::Call(target) => target,
        // A call as the last thing that the function does.
        Way::Jump(target) => target.filter(|target| !own.contains(target)),
        _ => None,
    };
    function.code.iter().map(|flow| (flow.addr, called(flow.way))).collect()
}
