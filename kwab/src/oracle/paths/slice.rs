//! Which functions made the value by which a way went on: a slice backwards through the code that ran.
//!
//! The order of turns says which instructions ran before two ways part, so that the value which the last branch tests
//! can be followed through registers, through the stack and through memory to what wrote it last, and from there on.
//! Only values are followed, not the pointers by which they were reached (a thin slice: Sridharan et al., PLDI 2007).
//! Memory is known by the value that the base register had and an offset; what another call left is not seen.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::places::{CodeLine, Functions, Resolver};
use crate::decode::uses::{Cell, Moved, Named, REGISTERS, RETURNED, STACK, Uses, uses};

/// Instructions before the parting that are looked at.
const MOST_RAN: usize = 1 << 14;
/// Instructions that are decoded for it: a visit of our kernel has a tenth.
const MOST_DECODED: usize = 1 << 16;
/// Instructions that are passed on the way, code without lines too: of a visit the recorder keeps 8,192 turns.
const MOST_PASSED: usize = 1 << 20;
/// Instructions of a slice.
const MOST_SLICE: usize = 256;
/// Branches that may have decided.
const MOST_BRANCHES: usize = 4;

/// The value of the first register at the beginning; those of the others have the numbers below.
const BEGUN: usize = usize::MAX;

/// An instruction that ran.
#[derive(Clone)]
struct Ran {
    block: Rc<[Uses]>,
    at: usize,
    /// The function that it is in, the innermost that was inlined.
    function: Option<u32>,
}

/// A value that is not looked into, with a constant added to it.
type Value = (usize, i64);

/// The state of registers and memory while the instructions run again.
struct State {
    /// What each register holds, and which instruction wrote it.
    registers: [(Value, Option<usize>); REGISTERS],
    flags: Option<usize>,
    /// Which instruction wrote a byte, by the value of the base and an offset.
    memory: HashMap<Value, usize>,
    /// What an instruction stored or loaded, as far as it is known.
    held: HashMap<usize, Value>,
}

/// Where the value came from by which a path went on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Brought {
    /// The functions whose code made it, the nearest first.
    pub functions: Vec<u32>,
    /// Whether a part of it lay in memory before the call began, other than on its stack.
    pub was_left: bool,
}

/// Follows the value by which a path went on; `places` is how many places of its turns ran before, and `common` how
/// many of those until the last that both runs have.
pub(super) fn brought(
    run: &mut Resolver<'_>,
    path: u32,
    (common, places): (usize, usize),
    functions: &mut Functions,
) -> Brought {
    let (ran, from) = before(run, path, (common, places), functions);
    sliced(&ran, from, &|function| functions.tells(function))
}

/// The slice from the branches at the end of what ran, from an instruction on; at least from the last one.
fn sliced(ran: &[Ran], from: usize, tells: &dyn Fn(u32) -> bool) -> Brought {
    let (reads, left) = dependencies(ran);
    let branches: Vec<usize> = (0..ran.len()).rev().filter(|at| ran[*at].uses().decides).take(MOST_BRANCHES).collect();
    let near = branches.iter().filter(|at| **at >= from).count().max(1);
    let mut seen: HashSet<usize> = HashSet::new();
    let mut queue: VecDeque<usize> = branches.into_iter().take(near).collect();
    let mut found = Brought::default();
    while let Some(at) = queue.pop_front() {
        if seen.len() == MOST_SLICE || !seen.insert(at) {
            continue;
        }
        let function = ran[at].function.filter(|function| tells(*function));
        if let Some(function) = function.filter(|function| !found.functions.contains(function)) {
            found.functions.push(function);
        }
        found.was_left |= left.contains(&at);
        queue.extend(reads[at].iter().copied());
    }
    found
}

impl Ran {
    fn uses(&self) -> &Uses {
        &self.block[self.at]
    }
}

/// The instructions that ran before a place of a path, the last of them at the end, and from which on they are behind
/// the last common one.
fn before(
    run: &mut Resolver<'_>,
    path: u32,
    (common, places): (usize, usize),
    functions: &mut Functions,
) -> (Vec<Ran>, usize) {
    let paths = run.paths;
    let mut known: HashMap<u32, Rc<[Uses]>> = HashMap::new();
    let (mut ran, mut from): (VecDeque<Ran>, usize) = (VecDeque::new(), 0);
    let (mut decoded, mut passed, mut count, mut last): (usize, usize, usize, Option<CodeLine>) = (0, 0, 0, None);
    for block in paths.turns.get(&path).into_iter().flat_map(|turns| turns.iter()) {
        let places_of = run.next(*block, functions);
        let code = known.entry(*block).or_insert_with(|| {
            let code = run.uses(*block);
            decoded += code.len();
            code
        });
        let code = code.clone();
        passed += code.len();
        if decoded > MOST_DECODED || passed > MOST_PASSED {
            return (Vec::new(), 0);
        }
        let mut next = places_of.iter().peekable();
        for at in 0..code.len() {
            let mut function = None;
            while let Some((_, place)) = next.next_if(|(addr, _)| *addr == code[at].addr) {
                let place = run.in_good(*place);
                count += usize::from(last != Some(place));
                (last, function) = (Some(place), Some(place.function));
                if count > places {
                    return (ran.into(), from);
                }
            }
            if ran.len() == MOST_RAN {
                ran.pop_front();
                from = from.saturating_sub(1);
            }
            ran.push_back(Ran { block: code.clone(), at, function });
            if count <= common {
                from = ran.len();
            }
        }
    }
    (ran.into(), from)
}

/// Which instructions wrote what each instruction reads, and those that read memory which none of them wrote.
fn dependencies(ran: &[Ran]) -> (Vec<Vec<usize>>, HashSet<usize>) {
    let begun = |register: usize| ((BEGUN - register, 0), None);
    let mut state =
        State { registers: std::array::from_fn(begun), flags: None, memory: HashMap::new(), held: HashMap::new() };
    let (mut all, mut left) = (Vec::with_capacity(ran.len()), HashSet::new());
    let mut returns: Option<(u64, usize)> = None;
    for (at, one) in ran.iter().enumerate() {
        let uses = one.uses();
        // What was called is not in the recording.
        if let Some((_, call)) = returns.take().filter(|(back, _)| *back == uses.addr) {
            let ((_, offset), _) = &mut state.registers[usize::from(STACK)];
            *offset = offset.wrapping_add(8);
            RETURNED.iter().for_each(|register| state.write(*register, call, (call, 0)));
        }
        all.push(state.reads(uses));
        if uses.loads.iter().any(|cell| state.was_left(cell)) {
            left.insert(at);
        }
        state.step(uses, at);
        returns = uses.calls.then_some((uses.end, at));
    }
    (all, left)
}

impl State {
    fn value(&self, register: Named) -> Value {
        self.registers[usize::from(register)].0
    }

    fn write(&mut self, register: Named, at: usize, value: Value) {
        self.registers[usize::from(register)] = (value, Some(at));
    }

    /// The bytes of memory; `None` when the address is not known.
    fn bytes(&self, cell: &Cell) -> Option<impl Iterator<Item = Value> + use<>> {
        let (base, offset) = match cell.base {
            Some(base) => self.value(base),
            None => (BEGUN - REGISTERS, 0),
        };
        let first = offset.wrapping_add(cell.displacement);
        (!cell.indexed).then(|| (0..i64::from(cell.bytes)).map(move |byte| (base, first.wrapping_add(byte))))
    }

    /// The instructions that wrote what one reads.
    fn reads(&self, uses: &Uses) -> Vec<usize> {
        let registers = uses.reads.iter().filter(|register| **register != STACK);
        let mut all: Vec<usize> = registers.filter_map(|register| self.registers[usize::from(*register)].1).collect();
        all.extend(self.flags.filter(|_| uses.reads_flags));
        for cell in &uses.loads {
            let bytes = self.bytes(cell).into_iter().flatten();
            all.extend(bytes.filter_map(|byte| self.memory.get(&byte)));
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        all
    }

    /// Whether memory was written before the first instruction, and lies neither on the stack nor at a fixed address.
    fn was_left(&self, cell: &Cell) -> bool {
        let is_stack = cell.base.is_none_or(|base| self.value(base).0 == BEGUN - usize::from(STACK));
        let mut bytes = self.bytes(cell).into_iter().flatten();
        !is_stack && bytes.next().is_some_and(|byte| !self.memory.contains_key(&byte))
    }

    fn step(&mut self, uses: &Uses, at: usize) {
        let loaded = uses.loads.first().and_then(|cell| self.bytes(cell)?.next());
        // Two loads of what was not written meanwhile are one value.
        let of_memory = loaded.and_then(|byte| self.memory.get(&byte)).and_then(|by| self.held.get(by)).copied();
        let moved = uses.moved.map(|(to, moved)| match moved {
            Moved::Sum(from, by) => (to, (self.value(from).0, self.value(from).1.wrapping_add(by))),
            Moved::Loaded => (to, of_memory.unwrap_or((at, 0))),
        });
        let stored = uses.stored.map(|register| self.value(register));
        let cells: Vec<Value> = uses.stores.iter().filter_map(|cell| self.bytes(cell)).flatten().collect();
        for byte in cells {
            self.memory.insert(byte, at);
        }
        if let Some(value) = stored {
            self.held.insert(at, value);
        }
        for register in &uses.writes {
            let value = moved.filter(|(to, _)| to == register).map_or((at, 0), |(_, value)| value);
            self.write(*register, at, value);
        }
        if uses.writes_flags {
            self.flags = Some(at);
        }
    }
}

impl Resolver<'_> {
    /// What the instructions of a block use.
    fn uses(&self, block: u32) -> Rc<[Uses]> {
        let (address, code) = self.code(block);
        uses(&code, address).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slice of pieces of code that ran one behind the other, each with the number of its function.
    fn slice(pieces: &[(u32, &[u8])]) -> Brought {
        let mut ran: Vec<Ran> = Vec::new();
        let mut start = 0x1000;
        for (function, code) in pieces {
            let block: Rc<[Uses]> = uses(code, start).into();
            assert_eq!(block.last().map(|last| last.end), Some(start + code.len() as u64), "{code:x?}");
            ran.extend((0..block.len()).map(|at| Ran { block: block.clone(), at, function: Some(*function) }));
            start += code.len() as u64;
        }
        let from = ran.len() - 1;
        sliced(&ran, from, &|function| function != NOISE)
    }

    const NOISE: u32 = 9;
    /// `mov eax, 1`
    const ONE: &[u8] = &[0xb8, 1, 0, 0, 0];
    /// `mov edx, 2`
    const TWO: &[u8] = &[0xba, 2, 0, 0, 0];
    /// `cmp eax, ecx; jne +0`
    const TEST: &[u8] = &[0x39, 0xc8, 0x75, 0];

    #[test]
    fn the_functions_that_made_the_tested_value_are_named_the_nearest_first() {
        // What made another register, and what made this one before, is not part of it.
        let found = slice(&[(1, TWO), (2, ONE), (3, ONE), (4, TWO), (5, TEST)]);
        assert_eq!((found.functions, found.was_left), (vec![5, 3], false));
        assert_eq!(slice(&[(NOISE, ONE), (5, TEST)]).functions, [5]);
    }

    #[test]
    fn a_value_is_followed_through_the_stack_whatever_is_pushed_meanwhile() {
        // mov [rsp+8], eax | push rbx; mov eax, [rsp+0x10] | and one of another slot.
        let (store, load) = ([0x89, 0x44, 0x24, 8], [0x53, 0x8b, 0x44, 0x24, 0x10]);
        assert_eq!(slice(&[(1, ONE), (2, &store), (3, &load), (4, TEST)]).functions, [4, 3, 2, 1]);
        let other = [0x53, 0x8b, 0x44, 0x24, 0x18];
        assert_eq!(slice(&[(1, ONE), (2, &store), (3, &other), (4, TEST)]).functions, [4, 3]);
    }

    #[test]
    fn memory_that_was_written_before_the_call_was_left_by_another() {
        // mov eax, [rdi+8]
        let load: &[u8] = &[0x8b, 0x47, 8];
        let found = slice(&[(1, load), (2, TEST)]);
        assert_eq!((found.functions, found.was_left), (vec![2, 1], true));
        // mov [rsi+8], eax, where rsi is a copy of rdi: this call wrote it, and not by the pointer's value.
        let store: &[u8] = &[0x48, 0x89, 0xfe, 0x89, 0x46, 8];
        let found = slice(&[(1, ONE), (2, store), (3, load), (4, TEST)]);
        assert_eq!((found.functions, found.was_left), (vec![4, 3, 2, 1], false));
    }

    #[test]
    fn a_call_that_was_not_recorded_made_what_it_returned_and_gave_the_stack_back() {
        // mov [rsp+8], eax | call +0, of which nothing is recorded | mov eax, [rsp+8]
        let (store, call) = ([0x89, 0x44, 0x24, 8], [0xe8, 0, 0, 0, 0]);
        assert_eq!(slice(&[(1, ONE), (2, &call), (3, TEST)]).functions, [3, 2]);
        let load = [0x8b, 0x44, 0x24, 8];
        assert_eq!(slice(&[(1, ONE), (2, &store), (5, &call), (3, &load), (4, TEST)]).functions, [4, 3, 2, 1]);
    }
}
