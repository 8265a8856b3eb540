//! The machine code of one function: its instructions, who can come before each, and where the stack pointer is.

use std::collections::HashMap;

use super::MOST_CODE;
use crate::analysis::context::View;
use crate::decode::flow::{Effect, Flow, MemoryOperand, RBP, RSP, Source, Way, flows};
use crate::symbols::{Probe, Symbols};

/// A function whose code is known.
#[derive(Debug)]
pub(super) struct Function {
    /// Its demangled name.
    pub(super) name: String,
    /// Its instructions, in order of address.
    pub(super) code: Vec<Flow>,
    /// For each instruction the numbers of those that can run before it.
    before: Vec<Vec<usize>>,
    /// The stack pointer before each instruction, minus its value at the entry; `None` where it is not known.
    depth: Vec<Option<i64>>,
    /// The frame pointer minus the stack pointer at the entry, in functions that have one.
    frame: Option<i64>,
}

/// Instructions in which a prologue sets the frame pointer.
const PROLOGUE: usize = 24;

impl Function {
    /// The function around an address, from its symbol on.
    pub(super) fn around(
        symbols: &Symbols,
        view: &View<'_, '_>,
        pid: Option<u32>,
        ip: u64,
        probe: Probe,
    ) -> Option<Self> {
        let location = symbols.resolve(ip, pid, probe);
        let symbol = location.symbol.as_ref()?;
        let start = ip.checked_sub(symbol.offset)?;
        let size = if symbol.size == 0 { symbol.offset + 64 } else { symbol.size };
        if size > MOST_CODE || symbol.offset >= size.saturating_add(1) {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(size).ok()?];
        let found = symbols.read(start, pid, &mut bytes);
        bytes.truncate(found);
        if bytes.is_empty() {
            bytes = view.bytes(start).iter().take(size as usize).copied().collect();
        }
        let mut code = flows(&bytes, start);
        code.iter_mut().for_each(|flow| settle(flow, symbols, pid));
        Some(Self::of(symbol.name.to_string(), code))
    }

    /// The function of an image that begins at an address.
    pub(super) fn of_image(symbols: &Symbols, pid: Option<u32>, start: u64) -> Option<Self> {
        let symbol = symbols.resolve(start, pid, Probe::Exact).symbol.filter(|symbol| symbol.offset == 0)?;
        let mut bytes = vec![0; usize::try_from(symbol.size.min(MOST_CODE)).ok()?];
        let found = symbols.read(start, pid, &mut bytes);
        let mut code = flows(&bytes[..found], start);
        code.iter_mut().for_each(|flow| settle(flow, symbols, pid));
        Some(Self::of(symbol.name.to_string(), code))
    }

    /// A function of these instructions.
    pub(super) fn of(name: String, code: Vec<Flow>) -> Self {
        let number: HashMap<u64, usize> = code.iter().enumerate().map(|(at, flow)| (flow.addr, at)).collect();
        let mut before = vec![Vec::new(); code.len()];
        for (at, flow) in code.iter().enumerate() {
            let falls = !matches!(flow.way, Way::Jump(_) | Way::End);
            if falls && at + 1 < code.len() {
                before[at + 1].push(at);
            }
            if let Way::Branch(target) | Way::Jump(Some(target)) = flow.way
                && let Some(to) = number.get(&target)
            {
                before[*to].push(at);
            }
        }
        let depth = depths(&code, &number);
        let frame = code.iter().zip(&depth).take(PROLOGUE).find_map(|(flow, depth)| match flow.effect {
            Effect::Copy(RBP, Source::Register(RSP)) => *depth,
            Effect::Copy(RBP, Source::Address(MemoryOperand { base: Some(RSP), indexed: false, displacement })) => {
                Some((*depth)? + displacement)
            }
            _ => None,
        });
        Self { name, code, before, depth, frame }
    }

    /// The number of the instruction at an address.
    pub(super) fn at(&self, addr: u64) -> Option<usize> {
        self.code.binary_search_by_key(&addr, |flow| flow.addr).ok()
    }

    /// The number of the instruction that ends at an address: the call before a return address.
    pub(super) fn ending_at(&self, addr: u64) -> Option<usize> {
        let next = self.code.partition_point(|flow| flow.addr < addr);
        let flow = self.code.get(next.checked_sub(1)?)?;
        (flow.addr + flow.len as u64 == addr).then(|| next - 1)
    }

    /// The instructions that can run before one.
    pub(super) fn before(&self, at: usize) -> &[usize] {
        &self.before[at]
    }

    /// The stack pointer before an instruction, minus its value at the entry.
    pub(super) fn depth(&self, at: usize) -> Option<i64> {
        self.depth.get(at).copied().flatten()
    }

    /// The stack slot that an operand means, as an offset from the stack pointer at the entry.
    pub(super) fn slot(&self, at: usize, operand: MemoryOperand) -> Option<i64> {
        let base = match operand.base.filter(|_| !operand.indexed)? {
            RSP => self.depth(at)?,
            RBP => self.frame?,
            _ => return None,
        };
        Some(base + operand.displacement)
    }
}

/// Finds the target of a call through the global offset table, and ends the code behind a call that does not return.
fn settle(flow: &mut Flow, symbols: &Symbols, pid: Option<u32>) {
    if let (Way::Call(target @ None) | Way::Jump(target @ None), Some(through)) = (&mut flow.way, flow.through) {
        *target = pointer_at(symbols, pid, through);
    }
    if let Way::Call(Some(target)) = flow.way {
        let location = symbols.resolve(target, pid, Probe::Exact);
        if location.function().is_some_and(|name| never_returns(name)) {
            flow.way = Way::End;
        }
    }
}

/// The run-time address that a pointer in an image's data has once the image is relocated.
fn pointer_at(symbols: &Symbols, pid: Option<u32>, addr: u64) -> Option<u64> {
    let loaded = symbols.image_at(addr, pid)?;
    let mut word = [0; 8];
    let link = (symbols.read(addr, pid, &mut word) == word.len()).then(|| u64::from_le_bytes(word))?;
    loaded.image.is_code(link).then(|| link.wrapping_add(loaded.bias))
}

/// Whether a function ends the program, so that the code behind its call belongs to another way.
fn never_returns(name: &str) -> bool {
    let last = name.rsplit("::").next().unwrap_or(name);
    (name.starts_with("core::") || name.starts_with("alloc::") || name.starts_with("std::"))
        && (name.contains("::panicking::") || DIVERGING.contains(&last) || last.ends_with("_fail"))
        || ABORTS.contains(&name)
}

/// Functions of Rust's library that panic, by the last part of their path.
const DIVERGING: &[&str] = &[
    "unwrap_failed",
    "expect_failed",
    "handle_error",
    "handle_alloc_error",
    "capacity_overflow",
    "slice_error_fail",
    "panic_already_borrowed",
    "panic_already_mutably_borrowed",
    "begin_panic",
    "abort",
];

/// Functions of C libraries that end a program.
const ABORTS: &[&str] = &["__assert_fail", "__stack_chk_fail", "__fortify_fail", "abort", "exit", "_exit"];

/// Follows the stack pointer through the code in order of address. Behind a jump it is what a branch to there had, else
/// what the body of the function has: epilogues end with a return, and what follows belongs to the body.
fn depths(code: &[Flow], number: &HashMap<u64, usize>) -> Vec<Option<i64>> {
    let mut depths: Vec<Option<i64>> = vec![None; code.len()];
    let mut branched: HashMap<usize, Option<i64>> = HashMap::new();
    let (mut depth, mut body) = (Some(0), Some(0));
    for (at, flow) in code.iter().enumerate() {
        let falls_here = at == 0 || !matches!(code[at - 1].way, Way::Jump(_) | Way::End);
        if !falls_here {
            depth = branched.get(&at).copied().unwrap_or(body);
        }
        depths[at] = depth;
        depth = depth.zip(flow.stack).map(|(depth, change)| depth + change);
        if depth.is_some() && depth < body {
            body = depth;
        }
        if let Way::Branch(target) | Way::Jump(Some(target)) = flow.way
            && let Some(to) = number.get(&target)
        {
            branched.entry(*to).or_insert(depth);
        }
    }
    depths
}
