//! Which functions decided that an instruction ran: a bounded slice backwards over control and data.
//!
//! A panic, or an error that is returned, is the last step of a decision. [`deciders`] looks for the conditional
//! branches that lead to an instruction and not past it, for the values they compare, and for what defines those: the
//! functions that returned or wrote them, the functions whose code was inlined there. Other than a trail, which follows
//! the one value that is known, the slice follows all ways, and what it finds are suspects, nearest decision first.

use std::collections::{HashSet, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;

use super::function::Function;
use crate::decode::flow::{Effect, RSP, Source, Way};
use crate::symbols::{Probe, Role, Symbols, role};

/// A function that had a part in a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Decider {
    /// Its demangled name.
    pub name: String,
    /// What it did: `returned the tested value`.
    pub how: String,
    /// Its first instruction, of a function that was called.
    #[serde(skip)]
    pub(in crate::analysis) entry: Option<u64>,
}

/// Where a value is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// In a register, by its DWARF number.
    Register(u16),
    /// On the stack, at this offset from the stack pointer at the function's entry.
    Slot(i64),
}

/// Branches that are looked at.
const MOST_BRANCHES: usize = 12;
/// Definitions that are followed.
const MOST_STEPS: usize = 96;
/// Callees that are looked into.
const MOST_CALLEES: usize = 3;
/// Instructions between a branch and what sets its flags, and between an argument and its call.
const NEAR: usize = 16;
/// Bytes from the address that a callee is given to what it may write there.
const WRITTEN: i64 = 64;
/// Registers in which a function returns: rax, rdx.
const RETURNED: [u16; 2] = [0, 1];
/// Arguments of a function by register (System V ABI, section 3.2.3).
const ARGUMENTS: [u16; 6] = [5, 4, 1, 2, 8, 9];

/// A slice in progress.
struct Slice<'s> {
    symbols: &'s Symbols,
    pid: Option<u32>,
    function: &'s Function,
    seen: HashSet<(usize, Place)>,
    queue: VecDeque<(usize, Place)>,
    found: Vec<Decider>,
    callees: Vec<u64>,
}

/// The functions that decided that an instruction of a function ran, nearest decision first, then those that decided
/// what the nearest of them returned.
pub(super) fn deciders(symbols: &Symbols, pid: Option<u32>, function: &Function, at: usize) -> Vec<Decider> {
    let mut slice = Slice::of(symbols, pid, function);
    for branch in branches_to(function, at) {
        slice.condition(branch);
        slice.run();
    }
    slice.with_callees()
}

/// The functions that brought a value to an instruction, nearest first.
pub(super) fn bringers(
    symbols: &Symbols,
    pid: Option<u32>,
    function: &Function,
    at: usize,
    places: &[Place],
) -> Vec<Decider> {
    let mut slice = Slice::of(symbols, pid, function);
    places.iter().for_each(|place| slice.push(at, *place));
    slice.run();
    slice.with_callees()
}

/// The conditional branches of which one way leads to an instruction and the other does not, nearest first.
fn branches_to(function: &Function, at: usize) -> Vec<usize> {
    let mut leads = vec![false; function.code.len()];
    let mut order = VecDeque::from([at]);
    let mut behind = Vec::new();
    leads[at] = true;
    while let Some(one) = order.pop_front() {
        for before in function.before(one) {
            if !std::mem::replace(&mut leads[*before], true) {
                order.push_back(*before);
                behind.push(*before);
            }
        }
    }
    let decides = |branch: &usize| {
        let Way::Branch(target) = function.code[*branch].way else { return false };
        let taken = function.at(target).is_some_and(|to| leads[to]);
        let falls = leads.get(branch + 1).is_some_and(|leads| *leads);
        taken != falls
    };
    behind.into_iter().filter(decides).take(MOST_BRANCHES).collect()
}

impl<'s> Slice<'s> {
    fn of(symbols: &'s Symbols, pid: Option<u32>, function: &'s Function) -> Self {
        let (seen, queue) = (HashSet::new(), VecDeque::new());
        Self { symbols, pid, function, seen, queue, found: Vec::new(), callees: Vec::new() }
    }

    fn push(&mut self, at: usize, place: Place) {
        if place != Place::Register(RSP) && self.seen.len() < MOST_STEPS && self.seen.insert((at, place)) {
            self.queue.push_back((at, place));
        }
    }

    /// Begins at what a branch tests.
    fn condition(&mut self, branch: usize) {
        let from = branch.saturating_sub(NEAR);
        let Some(test) = (from..branch).rev().find(|at| self.function.code[*at].sets_flags) else { return };
        self.inlined(test);
        let flow = &self.function.code[test];
        let compared = flow.compares.clone();
        compared.iter().for_each(|source| self.source(test, *source));
        if compared.is_empty() {
            (0..16).filter(|number| flow.writes >> number & 1 == 1).for_each(|number| {
                self.push(test, Place::Register(number));
            });
        }
    }

    /// Follows what was pushed.
    fn run(&mut self) {
        while let Some((at, place)) = self.queue.pop_front() {
            for definition in self.definitions(at, place) {
                self.defined(definition, place);
            }
        }
    }

    /// What lies behind the nearest callees, after what was found.
    fn with_callees(mut self) -> Vec<Decider> {
        for target in std::mem::take(&mut self.callees).into_iter().take(MOST_CALLEES) {
            let Some(callee) = Function::of_image(self.symbols, self.pid, target) else { continue };
            let mut slice = Slice::of(self.symbols, self.pid, &callee);
            let ends = (0..callee.code.len()).filter(|at| callee.code[*at].way == Way::End);
            for end in ends.take(MOST_BRANCHES) {
                slice.push(end, Place::Register(RETURNED[0]));
                slice.run();
            }
            let name = callee.name.clone();
            for decider in slice.found {
                self.add(decider.name, format!("{}, in {name}", decider.how), None);
            }
        }
        self.found
    }

    /// The instructions that define a value before it is used.
    fn definitions(&self, at: usize, place: Place) -> Vec<usize> {
        let mut seen = vec![false; self.function.code.len()];
        let mut found = Vec::new();
        let mut open: VecDeque<usize> = self.function.before(at).iter().copied().collect();
        while let Some(one) = open.pop_front() {
            if std::mem::replace(&mut seen[one], true) {
                continue;
            }
            if self.defines(one, place) {
                found.push(one);
            } else {
                open.extend(self.function.before(one));
            }
        }
        found
    }

    fn defines(&self, at: usize, place: Place) -> bool {
        let flow = &self.function.code[at];
        match (place, flow.effect) {
            (Place::Register(number), _) => flow.writes >> number & 1 == 1,
            (Place::Slot(slot), Effect::Store(operand, _)) => self.function.slot(at, operand) == Some(slot),
            (Place::Slot(slot), _) => matches!(flow.way, Way::Call(_)) && self.is_given(at, slot),
        }
    }

    /// Whether a call is given the address of a slot, or of what holds it.
    fn is_given(&self, call: usize, slot: i64) -> bool {
        let arguments = (call.saturating_sub(NEAR)..call).rev();
        let own = arguments.take_while(|at| self.function.code[*at].way == Way::Next);
        own.filter_map(|at| match self.function.code[at].effect {
            Effect::Copy(to, Source::Address(operand)) if ARGUMENTS.contains(&to) => self.function.slot(at, operand),
            _ => None,
        })
        .any(|given| (given..given + WRITTEN).contains(&slot))
    }

    fn defined(&mut self, at: usize, place: Place) {
        let flow = &self.function.code[at];
        if let Way::Call(target) = flow.way {
            let returned = matches!(place, Place::Register(number) if RETURNED.contains(&number));
            if let Some(target) = target.filter(|_| returned || matches!(place, Place::Slot(_))) {
                let name = self.symbols.resolve(target, self.pid, Probe::Exact).function().map(ToString::to_string);
                let how = if returned { "returned the tested value" } else { "was to write the tested value" };
                if let Some(name) = name.filter(|name| role(name) != Role::Reporter) {
                    self.callees.push(target);
                    self.add(name, how.to_owned(), Some(target));
                }
            }
            return;
        }
        let effect = flow.effect;
        self.inlined(at);
        match effect {
            Effect::Copy(_, source) | Effect::Store(_, source) | Effect::Choose(_, source) => self.source(at, source),
            Effect::Change(number) => self.push(at, Place::Register(number)),
            Effect::None => {}
        }
    }

    fn source(&mut self, at: usize, source: Source) {
        match source {
            Source::Register(number) => self.push(at, Place::Register(number)),
            Source::Memory(operand) | Source::Address(operand) => match self.function.slot(at, operand) {
                Some(slot) => self.push(at, Place::Slot(slot)),
                None => operand.base.into_iter().for_each(|base| self.push(at, Place::Register(base))),
            },
            Source::Constant(_) => {}
        }
    }

    /// Adds the functions whose code at an instruction was inlined.
    fn inlined(&mut self, at: usize) {
        let addr = self.function.code[at].addr;
        let location = self.symbols.resolve(addr, self.pid, Probe::Exact);
        for frame in location.frames.iter().filter(|frame| frame.inlined) {
            if let Some(name) = frame.function.as_deref().filter(|name| role(name) != Role::Reporter) {
                self.add(name.to_owned(), "inlined code makes the tested value".to_owned(), None);
            }
        }
    }

    fn add(&mut self, name: String, how: String, entry: Option<u64>) {
        if !self.found.iter().any(|known| known.name == name) {
            self.found.push(Decider { name, how, entry });
        }
    }
}
