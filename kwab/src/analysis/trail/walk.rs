//! The walk itself: which definition reaches a use, what it says, and where to look next.

use super::function::Function;
use super::{Link, MOST_STEPS, Trail};
use crate::analysis::blame::Guilty;
use crate::analysis::context::Context;
use crate::analysis::frame::TraceFrame;
use crate::decode::flow::{Effect, MemoryOperand, RSP, Source, Way};
use crate::decode::{Access, register_name};
use crate::symbols::{Probe, Role, role};
use crate::unwind::Space as _;

/// Where a value is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueLocation {
    /// In a register, by its DWARF number.
    Register(u16),
    /// On the stack, at this offset from the stack pointer at the function's entry.
    Slot(i64),
}

/// A definition that reaches a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definition {
    /// By this instruction.
    At(usize),
    /// Before the function began.
    Entry,
}

/// A walk in progress.
pub(super) struct Walk<'w, 'c, 'a> {
    ctx: &'w Context<'c, 'a>,
    /// The frame whose function is walked.
    frame: usize,
    function: Function,
    /// The instruction before which the value is looked for.
    at: usize,
    location: ValueLocation,
    /// The value, as long as it is moved unchanged.
    value: Option<u64>,
    trail: Trail,
}

/// Arguments of a function by register (System V ABI, section 3.2.3).
const ARGUMENTS: [u16; 6] = [5, 4, 1, 2, 8, 9];
/// Registers that a function preserves for its caller: rbx, rbp, r12 to r15.
const PRESERVED: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// Definitions that are named when several reach a use.
const MOST_PATHS: usize = 3;

impl<'w, 'c, 'a> Walk<'w, 'c, 'a> {
    /// Begins at the operand of the faulting instruction, or of the call that jumped to a bad address.
    pub(super) fn of_fault(ctx: &'w Context<'c, 'a>) -> Option<Self> {
        let by_address = ctx.death.fault_addr.is_some() || matches!(ctx.death.vector, Some(13 | 14));
        if !by_address && ctx.death.ip != Some(0) {
            return None;
        }
        let frame = ctx.trace.iter().position(|frame| Some(frame.ip) == ctx.death.ip).unwrap_or(0);
        if let Some(function) = function_of(ctx, frame)
            && let Some(at) = function.at(ctx.trace.get(frame)?.ip)
        {
            let found = ctx.instruction.as_ref()?;
            let operands = found.operands.iter().filter(|operand| operand.access != Access::Address);
            let bad = operands.flat_map(|operand| &operand.registers).find(|(_, number, _)| *number != RSP)?;
            return Some(Self::new(ctx, frame, function, at, ValueLocation::Register(bad.1), bad.2));
        }
        // No code at the instruction pointer: the call that led there is in the next frame.
        let caller = frame + 1;
        let function = function_of(ctx, caller)?;
        let at = function.ending_at(ctx.trace.get(caller)?.ip)?;
        let (location, value) = called_through(&function, at)?;
        Some(Self::new(ctx, caller, function, at, location, value.then_some(ctx.death.ip?)))
    }

    /// Begins at the condition that led to the call of the panic machinery.
    pub(super) fn of_panic(ctx: &'w Context<'c, 'a>) -> Option<Self> {
        let (frame, function, call) = panic_site(ctx)?;
        let (branch, taken) = branch_to(&function, call)?;
        let compare = (0..branch).rev().take(16).find(|at| function.code[*at].sets_flags)?;
        let compared = function.code[compare].compares.clone();
        let is_zero = compared.first() == compared.get(1) && function.code[branch].on_equal == Some(taken);
        let location = compared.iter().find_map(|source| match source {
            Source::Register(number) => Some(ValueLocation::Register(*number)),
            Source::Memory(operand) => function.slot(compare, *operand).map(ValueLocation::Slot),
            _ => None,
        })?;
        let text = format!("{:x}: {}", function.code[compare].addr, function.code[compare].text);
        let mut walk = Self::new(ctx, frame, function, compare, location, is_zero.then_some(0));
        walk.trail.start = format!("the check {text} in {}: {}", walk.function.name, walk.name());
        Some(walk)
    }

    fn new(
        ctx: &'w Context<'c, 'a>,
        frame: usize,
        function: Function,
        at: usize,
        location: ValueLocation,
        value: Option<u64>,
    ) -> Self {
        let mut walk = Self { ctx, frame, function, at, location, value, trail: Trail::default() };
        let known = value.map(|value| format!("={value:#x}")).unwrap_or_default();
        walk.trail.start = format!("{}{known} in {}", walk.name(), walk.function.name);
        walk
    }

    /// The location that is looked for, in words.
    fn name(&self) -> String {
        match self.location {
            ValueLocation::Register(number) => register_name(number).to_owned(),
            ValueLocation::Slot(offset) => match self.slot_address(offset) {
                Some(addr) => format!("stack slot {addr:#x}"),
                None => "a stack slot".to_owned(),
            },
        }
    }

    /// Walks to the end.
    pub(super) fn finish(mut self) -> Trail {
        for _ in 0..MOST_STEPS {
            let definitions = self.definitions();
            let chosen = match self.agreeing(&definitions).as_slice() {
                [one] => *one,
                [] => return self.ended("no instruction of the function defines it"),
                several => {
                    let texts: Vec<String> = several.iter().take(MOST_PATHS).map(|one| self.said(*one)).collect();
                    let more = several.len().saturating_sub(MOST_PATHS);
                    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
                    return self.ended(&format!("{} paths define it: {}{rest}", several.len(), texts.join("; ")));
                }
            };
            let step = match chosen {
                Definition::At(at) => self.defined(at),
                Definition::Entry => self.enter_caller(),
            };
            if let Some(why) = step {
                return self.ended(&why);
            }
        }
        self.ended(&format!("it is longer than {MOST_STEPS} steps"))
    }

    fn ended(mut self, why: &str) -> Trail {
        self.trail.ends = format!("the trail ends here: {why}");
        self.trail
    }

    /// The definitions that reach the use.
    fn definitions(&self) -> Vec<Definition> {
        let mut seen = vec![false; self.function.code.len()];
        let mut found = Vec::new();
        let mut open: Vec<usize> = self.function.before(self.at).to_vec();
        if self.at == 0 {
            found.push(Definition::Entry);
        }
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if self.defines(at) {
                found.push(Definition::At(at));
                continue;
            }
            if at == 0 {
                found.push(Definition::Entry);
            }
            open.extend(self.function.before(at));
        }
        found.sort_by_key(|definition| match definition {
            Definition::At(at) => at + 1,
            Definition::Entry => 0,
        });
        found
    }

    fn defines(&self, at: usize) -> bool {
        let flow = &self.function.code[at];
        match self.location {
            ValueLocation::Register(number) => flow.writes >> number & 1 == 1,
            ValueLocation::Slot(slot) => match flow.effect {
                Effect::Store(operand, _) => self.function.slot(at, operand) == Some(slot),
                _ => false,
            },
        }
    }

    /// The definitions that do not contradict the known value: a constant is what it is.
    fn agreeing(&self, definitions: &[Definition]) -> Vec<Definition> {
        let constant = |definition: &Definition| match definition {
            Definition::At(at) => match self.function.code[*at].effect {
                Effect::Copy(_, Source::Constant(value)) | Effect::Store(_, Source::Constant(value)) => Some(value),
                _ => None,
            },
            Definition::Entry => None,
        };
        let Some(value) = self.value else { return definitions.to_vec() };
        let fits = |definition: &&Definition| constant(definition).is_none_or(|constant| constant == value);
        definitions.iter().filter(fits).copied().collect()
    }

    fn said(&self, definition: Definition) -> String {
        match definition {
            Definition::At(at) => match self.function.code[at].way {
                Way::Call(target) => format!("returned by {}", self.called(target)),
                _ => self.text(at),
            },
            Definition::Entry => format!("what {} was called with", self.function.name),
        }
    }

    fn text(&self, at: usize) -> String {
        let flow = &self.function.code[at];
        format!("{:x}: {}", flow.addr, flow.text)
    }

    fn called(&self, target: Option<u64>) -> String {
        let name = target.and_then(|target| {
            let location = self.ctx.symbols.resolve(target, self.ctx.death.code_pid(), Probe::Exact);
            location.function().map(ToString::to_string)
        });
        name.unwrap_or_else(|| "a function called through a pointer".to_owned())
    }

    /// The function at an instruction, as the source has it: the innermost of interest.
    fn function_at(&self, at: usize) -> Guilty {
        let addr = self.function.code[at].addr;
        let location = self.ctx.symbols.resolve(addr, self.ctx.death.code_pid(), Probe::Exact);
        let inner = location
            .frames
            .iter()
            .find(|inner| inner.function.as_deref().is_some_and(|name| role(name) == Role::Suspect));
        Guilty {
            name: inner.and_then(|inner| inner.function.as_deref()).unwrap_or(&self.function.name).to_owned(),
            file: inner.and_then(|inner| inner.file.as_deref()).map(str::to_owned),
            line: inner.and_then(|inner| inner.line),
            ..Guilty::default()
        }
    }

    fn link(&mut self, text: String, at: Option<usize>) {
        let function = at.map_or_else(|| self.function.name.clone(), |at| self.function_at(at).name);
        let instruction = at.map(|at| self.text(at));
        self.trail.links.push(Link { text, instruction, function });
    }

    /// Goes on from the instruction that defines the value; says why when the trail ends there.
    fn defined(&mut self, at: usize) -> Option<String> {
        let flow = &self.function.code[at];
        if let Way::Call(target) = flow.way {
            return Some(self.returned(at, target));
        }
        let (source, sure) = match flow.effect {
            Effect::Copy(_, source) | Effect::Store(_, source) => (source, true),
            Effect::Choose(_, source) => (source, false),
            Effect::Change(number) => {
                let text = format!("{} (computed)", flow.text);
                self.value = None;
                self.link(text, Some(at));
                (self.at, self.location) = (at, ValueLocation::Register(number));
                return None;
            }
            Effect::None => {
                let text = self.text(at);
                return Some(format!("{text} computes it"));
            }
        };
        if !sure {
            self.value = None;
        }
        self.at = at;
        match source {
            Source::Register(number) => {
                self.link(register_name(number).to_owned(), Some(at));
                self.location = ValueLocation::Register(number);
                None
            }
            Source::Constant(value) => {
                self.link(format!("{value:#x}, a constant"), Some(at));
                self.trail.origin = Some(self.function_at(at));
                Some(format!("{} sets it", self.function_at(at).in_words()))
            }
            Source::Memory(operand) => self.loaded(at, operand),
            Source::Address(operand) => self.computed(at, operand),
        }
    }

    fn returned(&mut self, at: usize, target: Option<u64>) -> String {
        if self.location != ValueLocation::Register(0) && self.location != ValueLocation::Register(1) {
            return "a call overwrites the register".to_owned();
        }
        let name = self.called(target);
        self.link(format!("returned by {name}"), Some(at));
        let location = target.map(|target| self.ctx.symbols.resolve(target, self.ctx.death.code_pid(), Probe::Exact));
        let inner = location.as_ref().and_then(|location| location.frames.last());
        self.trail.origin = target.filter(|_| role(&name) == Role::Suspect).map(|_| Guilty {
            name: name.clone(),
            file: inner.and_then(|inner| inner.file.as_deref()).map(str::to_owned),
            line: inner.and_then(|inner| inner.line),
            ..Guilty::default()
        });
        format!("{name} has returned, and its frame is gone")
    }

    /// A value that was read from memory: from the frame it is followed on, else the pointer to it is.
    fn loaded(&mut self, at: usize, operand: MemoryOperand) -> Option<String> {
        if let Some(slot) = self.function.slot(at, operand) {
            self.location = ValueLocation::Slot(slot);
            let word = self.slot_address(slot).and_then(|addr| self.ctx.view().word(addr));
            self.value = self.value.or(word);
            self.link(self.name(), Some(at));
            return None;
        }
        let text = self.memory_text(operand);
        self.link(text, Some(at));
        self.value = None;
        match operand.base.filter(|_| !operand.indexed) {
            Some(base) => {
                self.location = ValueLocation::Register(base);
                None
            }
            None => Some("the memory was written earlier, and its writer is not recorded".to_owned()),
        }
    }

    fn computed(&mut self, at: usize, operand: MemoryOperand) -> Option<String> {
        self.value = None;
        self.link(format!("address {}", self.memory_text(operand)), Some(at));
        match operand.base.filter(|base| *base != RSP && !operand.indexed) {
            Some(base) if self.function.slot(at, operand).is_none() => {
                self.location = ValueLocation::Register(base);
                None
            }
            _ => Some("it is the address of a variable".to_owned()),
        }
    }

    fn memory_text(&self, operand: MemoryOperand) -> String {
        let index = if operand.indexed { "+…" } else { "" };
        match operand.base {
            Some(base) if operand.displacement == 0 => format!("[{}{index}]", register_name(base)),
            Some(base) if operand.displacement < 0 => {
                format!("[{}{index}-{:#x}]", register_name(base), operand.displacement.unsigned_abs())
            }
            Some(base) => format!("[{}{index}+{:#x}]", register_name(base), operand.displacement),
            None => format!("[{:#x}{index}]", operand.displacement),
        }
    }

    /// The address of a slot of this frame, when its stack pointer is known.
    fn slot_address(&self, slot: i64) -> Option<u64> {
        let frame = self.ctx.trace.get(self.frame)?;
        let at = self.function.at(frame.ip).or_else(|| self.function.ending_at(frame.ip))?;
        let entry = frame.sp?.wrapping_add_signed(self.function.depth(at)?.wrapping_neg());
        Some(entry.wrapping_add_signed(slot))
    }

    /// Goes on in the caller: an argument, a register that the function preserves, a slot of the caller's frame.
    fn enter_caller(&mut self) -> Option<String> {
        let callee = self.function.name.clone();
        let location = match self.location {
            ValueLocation::Register(number) => match ARGUMENTS.iter().position(|argument| *argument == number) {
                Some(argument) => {
                    self.link(format!("argument {} of {callee}", argument + 1), None);
                    self.location
                }
                None if PRESERVED.contains(&number) => self.location,
                None => return Some(format!("{} is not defined in {callee}", register_name(number))),
            },
            ValueLocation::Slot(slot) if slot >= 8 => {
                self.link(format!("an argument of {callee} on the stack"), None);
                self.location
            }
            ValueLocation::Slot(_) => return Some(format!("{callee} reads a slot that it never wrote")),
        };
        let next = self.frame + 1;
        let Some(frame) = self.ctx.trace.get(next) else { return Some("the caller is not in the dump".to_owned()) };
        let entered = format!("the code of the caller {} is not known", frame.label());
        let Some(function) = function_of(self.ctx, next) else { return Some(entered) };
        let Some(at) = function.ending_at(frame.ip) else { return Some(entered) };
        self.location = match location {
            ValueLocation::Slot(slot) => match function.depth(at) {
                // At the entry of the callee the return address lies on top of what the caller had there.
                Some(depth) => ValueLocation::Slot(depth + slot - 8),
                None => return Some("the stack pointer of the caller is not known".to_owned()),
            },
            register => register,
        };
        (self.frame, self.function, self.at) = (next, function, at);
        None
    }
}

/// The frame, the function and the call by which a panic left the code of interest.
pub(super) fn panic_site(ctx: &Context<'_, '_>) -> Option<(usize, Function, usize)> {
    let physical = |frame: &TraceFrame| {
        let name = frame.functions.last().and_then(|function| function.function.as_deref());
        let label = frame.name.as_deref().map(|label| label.rsplit_once("+0x").map_or(label, |(name, _)| name));
        name.or(label).is_some_and(|name| role(name) != Role::Reporter)
    };
    let frame = ctx.trace.iter().position(physical).filter(|frame| *frame > 0)?;
    let function = function_of(ctx, frame)?;
    let call = function.ending_at(ctx.trace.get(frame)?.ip)?;
    Some((frame, function, call))
}

/// The function of a frame.
pub(super) fn function_of(ctx: &Context<'_, '_>, frame: usize) -> Option<Function> {
    let number = frame;
    let frame = ctx.trace.get(number)?;
    let probe = if Some(frame.ip) == ctx.death.ip { Probe::Exact } else { Probe::Return };
    Function::around(ctx.symbols, &ctx.view(), ctx.death.code_pid(), frame.ip, probe)
}

/// What an indirect call goes through, and whether its value is the address that was jumped to.
fn called_through(function: &Function, at: usize) -> Option<(ValueLocation, bool)> {
    let flow = &function.code[at];
    let operand = flow.text.strip_prefix("call ")?;
    let number = (0..16).find(|number| register_name(*number) == operand);
    if let Some(number) = number {
        return Some((ValueLocation::Register(number), true));
    }
    let inner = operand.split_once('[')?.1;
    let base = (0..16).find(|number| inner.starts_with(register_name(*number)) && *number != RSP)?;
    Some((ValueLocation::Register(base), false))
}

/// The conditional branch that leads to a block without return, and whether it is taken then.
fn branch_to(function: &Function, call: usize) -> Option<(usize, bool)> {
    let mut at = call;
    for _ in 0..64 {
        let before = function.before(at);
        let &[one] = before else { return None };
        if let Way::Branch(target) = function.code[one].way {
            return Some((one, target == function.code[at].addr));
        }
        at = one;
    }
    None
}
