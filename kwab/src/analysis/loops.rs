//! The loop that keeps a processor busy, from the machine code of the functions on its stack.
//!
//! An instruction is in a loop when it can be reached from itself within its function. What the loop calls, or has
//! inlined, is what should have ended it. Jumps through tables are not followed.

use std::collections::HashMap;

use super::frame::TraceFrame;
use super::{blame, reach};
use crate::decode::flow::{Flow, Way, flows};
use crate::symbols::{Probe, Role, Symbols, role};
use crate::unwind::Trust;

/// Frames whose functions are looked at.
const MOST_FRAMES: usize = 12;
/// Bytes of a function that is looked at.
const MOST_CODE: u64 = 32 << 10;
/// Frames of a program that are taken as they were found.
const NEAR: usize = 4;
/// Functions that are named.
const MOST: usize = 8;

/// `function repeats a loop that calls a, b`: the innermost function of a kernel stack that stands in a loop, and what
/// that loop calls that is not on the stack; and the next one further out, since the inner loop may well have ended.
pub(super) fn in_words(symbols: &Symbols, stack: &[TraceFrame]) -> Option<String> {
    let counts = |role| role == Role::Suspect;
    let inner = innermost(symbols, stack, counts)?;
    let outer = innermost(symbols, stack.get(inner.frame + 1..).unwrap_or_default(), counts);
    let words =
        |found: &Repeated| format!("{} repeats a loop that calls {}", found.function, found.calls.names.join(", "));
    let outer = outer.map(|outer| format!("; {}", words(&outer))).unwrap_or_default();
    Some(format!("{}{outer}", words(&inner)))
}

/// What a thread that sleeps looks at before it goes to sleep again: the innermost loop around its sleep.
pub(super) fn condition(symbols: &Symbols, stack: &[TraceFrame]) -> Option<String> {
    let mut calls = innermost(symbols, stack, |role| matches!(role, Role::Suspect | Role::Waiter))?.calls;
    // What every sleep looks at says nothing while there is something else.
    if calls.names.iter().any(|name| !is_general(name)) {
        calls.names.retain(|name| !is_general(name));
    }
    let asked = asked(symbols, stack, &calls);
    let ask = if asked.is_empty() { String::new() } else { format!("; they ask {}", asked.join(", ")) };
    Some(format!("it sleeps again until {} lets it go on{ask}", calls.names.join(" or ")))
}

/// Whether a function only tells a sleep that a signal or a deadline came, or whose sleep it is.
fn is_general(name: &str) -> bool {
    const GENERAL: &[&str] = &["is_interrupted", "signal::is_pending", "time::now", "thread::Current<T>::to_arc"];
    GENERAL.iter().any(|end| name.ends_with(end))
}

/// What the functions that a loop calls call themselves, without those that are known.
fn asked(symbols: &Symbols, stack: &[TraceFrame], loop_calls: &Calls) -> Vec<String> {
    let on_stack: Vec<&str> = stack.iter().flat_map(blame::functions).map(|function| function.name).collect();
    let mut names: Vec<String> = Vec::new();
    for start in &loop_calls.targets {
        let location = symbols.resolve(*start, None, Probe::Exact);
        let Some(symbol) = location.symbol.filter(|symbol| symbol.offset == 0 && symbol.size <= MOST_CODE) else {
            continue;
        };
        if !loop_calls.names.contains(&blame::owner(&symbol.name)) {
            continue;
        }
        let mut bytes = vec![0; usize::try_from(symbol.size).unwrap_or_default()];
        let found = symbols.read(*start, None, &mut bytes);
        let code = flows(&bytes[..found], *start);
        let all: Vec<usize> = (0..code.len()).collect();
        let own = called(symbols, None, &code, &all, &on_stack).names;
        let new = own.into_iter().filter(|name| !loop_calls.names.contains(name) && !reach::is_served(name));
        for name in new {
            if !names.contains(&name) && names.len() < MOST {
                names.push(name);
            }
        }
    }
    names
}

/// A function that stands in a loop.
struct Repeated {
    /// The number of its frame.
    frame: usize,
    function: String,
    /// What the loop calls.
    calls: Calls,
    /// The first and the last instruction of the loop; `None` outside of loops.
    span: Option<(u64, u64)>,
}

/// The innermost function on a stack that stands in a loop which calls something, and has a role that counts.
fn innermost(symbols: &Symbols, stack: &[TraceFrame], counts: fn(Role) -> bool) -> Option<Repeated> {
    let standing =
        (0..stack.len().min(MOST_FRAMES)).filter_map(|number| standing(symbols, None, stack, number, counts));
    standing.into_iter().find(|found| !found.calls.names.is_empty())
}

/// The loop in which the function of a frame stands, if its role counts.
fn standing(
    symbols: &Symbols,
    pid: Option<u32>,
    stack: &[TraceFrame],
    number: usize,
    counts: fn(Role) -> bool,
) -> Option<Repeated> {
    let frame = stack.get(number)?;
    let probe = if number == 0 { Probe::Exact } else { Probe::Return };
    let at = probe.instruction(frame.ip);
    let symbol = symbols.resolve(at, pid, Probe::Exact).symbol.filter(|symbol| symbol.size <= MOST_CODE)?;
    // A shim of the library through which the function was called is shown by what is inlined there.
    if !counts(role(&symbol.name)) && !symbol.name.contains("FnOnce") {
        return None;
    }
    let start = at.checked_sub(symbol.offset)?;
    let mut bytes = vec![0; usize::try_from(symbol.size).ok()?];
    let found = symbols.read(start, pid, &mut bytes);
    let code = flows(&bytes[..found], start);
    let on_stack: Vec<&str> = stack.iter().flat_map(blame::functions).map(|function| function.name).collect();
    let numbers = around(&code, at);
    let calls = called(symbols, pid, &code, &numbers, &on_stack);
    let bounds = numbers.first().zip(numbers.last());
    let span = bounds.map(|(first, last)| (code[*first].addr, code[*last].addr));
    Some(Repeated { frame: number, function: symbol.name.to_string(), calls, span })
}

/// A loop in which a program stands.
#[derive(Debug)]
pub(super) struct OfProgram {
    /// The number of the frame of its function.
    pub(super) frame: usize,
    /// `wait_for_turn repeats a loop (0x401200..0x401220) that calls is_my_turn`.
    pub(super) words: String,
}

/// The innermost loop that the functions on a stack of a program stand in.
pub(super) fn of_program(symbols: &Symbols, pid: Option<u32>, stack: &[TraceFrame]) -> Option<OfProgram> {
    // Far out, a frame that was found by looking for return addresses may be left over from a call before.
    let is_near = |number: &usize| *number < NEAR || stack.get(*number).is_some_and(|frame| frame.trust != Trust::Scan);
    let counts = |role| matches!(role, Role::Suspect | Role::Helper);
    let mut found =
        (0..MOST_FRAMES).take_while(is_near).filter_map(|number| standing(symbols, pid, stack, number, counts));
    let Repeated { frame, function, calls, span } = found.find(|found| found.span.is_some())?;
    let (first, last) = span?;
    let inner = stack[..frame].iter().flat_map(blame::functions).map(|function| function.name.to_owned());
    let mut names: Vec<String> = inner.chain(calls.names).collect();
    names.dedup();
    let calls = if names.is_empty() { String::new() } else { format!(" that calls {}", names.join(", ")) };
    Some(OfProgram { frame, words: format!("{function} repeats a loop ({first:#x}..{last:#x}){calls}") })
}

/// The numbers of the instructions that form a loop with the one that holds an address; empty outside of loops.
fn around(code: &[Flow], addr: u64) -> Vec<usize> {
    let Some(from) = code.partition_point(|flow| flow.addr <= addr).checked_sub(1) else { return Vec::new() };
    let number: HashMap<u64, usize> = code.iter().enumerate().map(|(at, flow)| (flow.addr, at)).collect();
    let mut after: Vec<Vec<usize>> = Vec::with_capacity(code.len());
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); code.len()];
    for (at, flow) in code.iter().enumerate() {
        let falls = !matches!(flow.way, Way::Jump(_) | Way::End) && at + 1 < code.len();
        let target = match flow.way {
            Way::Branch(target) | Way::Jump(Some(target)) => number.get(&target).copied(),
            _ => None,
        };
        let next: Vec<usize> = falls.then_some(at + 1).into_iter().chain(target).collect();
        next.iter().for_each(|to| before[*to].push(at));
        after.push(next);
    }
    let (ahead, behind) = (reached(&after, from), reached(&before, from));
    let in_loop = (0..code.len()).filter(|at| ahead[*at] && behind[*at]);
    in_loop.collect()
}

/// Which nodes are reached from one over at least one edge.
fn reached(edges: &[Vec<usize>], from: usize) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut todo = vec![from];
    while let Some(at) = todo.pop() {
        for next in &edges[at] {
            if !std::mem::replace(&mut seen[*next], true) {
                todo.push(*next);
            }
        }
    }
    seen
}

/// What some instructions call.
struct Calls {
    /// The functions that they call or were inlined from, in order of address, without those on the stack.
    names: Vec<String>,
    /// Where the called ones begin.
    targets: Vec<u64>,
}

fn called(symbols: &Symbols, pid: Option<u32>, code: &[Flow], numbers: &[usize], on_stack: &[&str]) -> Calls {
    let (mut names, mut targets): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut name = |function: Option<&str>| {
        let telling = function.filter(|name| role(name) == Role::Suspect && !on_stack.contains(name));
        if let Some(own) = telling.map(blame::owner).filter(|own| !names.contains(own) && names.len() < MOST) {
            names.push(own);
        }
    };
    for flow in numbers.iter().map(|at| &code[*at]) {
        let location = symbols.resolve(flow.addr, pid, Probe::Exact);
        location.frames.iter().filter(|frame| frame.inlined).for_each(|frame| name(frame.function.as_deref()));
        if let Way::Call(Some(target)) = flow.way {
            name(symbols.resolve(target, pid, Probe::Exact).function().map(|found| &**found));
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Calls { names, targets }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_is_in_a_loop_when_it_can_be_reached_from_itself() {
        let code = [
            &[0x90][..],               // 0x1000 nop
            &[0xe8, 0xfa, 0x0f, 0, 0], // 0x1001 call 0x2000
            &[0x85, 0xc0],             // 0x1006 test eax,eax
            &[0x74, 0xf7],             // 0x1008 je 0x1001
            &[0xe8, 0xf1, 0x1f, 0, 0], // 0x100a call 0x3000
            &[0xc3],                   // 0x100f ret
        ]
        .concat();
        let code = flows(&code, 0x1000);
        // A return address is behind the call that is in the loop.
        assert_eq!(around(&code, 0x1005), [1, 2, 3]);
        assert_eq!(around(&code, 0x1008), [1, 2, 3]);
        for outside in [0x1000, 0x100e, 0x100f, 0xfff] {
            assert!(around(&code, outside).is_empty(), "{outside:#x}");
        }
    }
}
