//! Which functions made the value by which a way went on: a slice backwards through the code that ran.
//!
//! The order of turns says which instructions ran before two ways part, so that the value which the last branch tests
//! can be followed through registers, through the stack and through memory to what wrote it last, and from there on.
//! Only values are followed, not the pointers by which they were reached (a thin slice: Sridharan et al., PLDI 2007).
//! Memory is known by the value that the base register had and an offset, and where flows were recorded ([`Flows`])
//! by them: then the slice goes on in the visit that left a value there.
//!
//! [`Flows`]: super::flows::Flows

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use super::file::Visit;
use super::flows::Flow;
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
/// Other visits that a slice goes on in.
const MOST_VISITS: usize = 8;
/// Instructions that wrote what one reads which are followed.
const MOST_WRITERS: usize = 16;
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

/// Where a value came from.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Brought {
    /// The functions whose code made it, the nearest first.
    pub functions: Vec<u32>,
    /// The functions of other visits that had written what it was made of, and what made that.
    pub left_by: Vec<u32>,
    /// Whether a part of it lay in memory before the call began, other than on its stack.
    pub was_left: bool,
}

/// Follows the value by which a path went on; `places` is how many places of its turns ran before, and `common` how
/// many of those until the last that both runs have.
pub(super) fn brought(
    run: &mut Resolver<'_>,
    visit: Visit,
    (common, places): (usize, usize),
    functions: &mut Functions,
) -> Brought {
    let (ran, from) = before(run, visit.path, (common, places), functions);
    let piece = Piece::new(ran, &flows_of(run, visit.ended));
    let seeds = piece.branches(from);
    sliced(piece, seeds, &mut Visits { run, functions })
}

/// Follows what a call answered: the register in which it returns, or what it wrote to the program's memory.
pub(super) fn answered(run: &mut Resolver<'_>, visit: Visit, in_memory: bool, functions: &mut Functions) -> Brought {
    let (ran, _) = before(run, visit.path, (usize::MAX, usize::MAX), functions);
    let flows = flows_of(run, visit.ended);
    let piece = Piece::new(ran, &flows);
    let seeds = if in_memory {
        let out = flows.iter().filter_map(|flow| if let Access::Out(store) = flow { Some(*store) } else { None });
        out.filter_map(|store| piece.last(store, usize::MAX)).collect()
    } else {
        piece.returned.into_iter().collect()
    };
    sliced(piece, seeds, &mut Visits { run, functions })
}

/// A flow with the addresses of its instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Here(u64, u64),
    There(u64, u64, u64),
    Out(u64),
}

fn flows_of(run: &Resolver<'_>, ended: u32) -> Vec<Access> {
    let paths = run.paths;
    let flows = &paths.flows;
    let address = |used| flows.address(used);
    let access = |flow: &Flow| match *flow {
        Flow::Here(load, store) => Access::Here(address(load), address(store)),
        Flow::There(load, store, visit) => Access::There(address(load), address(store), visit),
        Flow::Out(store) => Access::Out(address(store)),
    };
    flows.of(ended).unwrap_or_default().iter().map(access).collect()
}

/// The instructions of a visit, with what each depends on.
struct Piece {
    ran: Vec<Ran>,
    /// The instructions that wrote what each reads.
    reads: Vec<Vec<usize>>,
    /// Those that read memory which none of them wrote.
    left: HashSet<usize>,
    /// What wrote that, each an instruction in the visit with this number.
    far: HashMap<u64, Vec<(u64, u64)>>,
    /// Where each instruction ran, ascending.
    at: HashMap<u64, Vec<usize>>,
    /// What wrote the register in which the visit returned.
    returned: Option<usize>,
}

impl Piece {
    fn new(ran: Vec<Ran>, flows: &[Access]) -> Self {
        let mut at: HashMap<u64, Vec<usize>> = HashMap::new();
        for (index, one) in ran.iter().enumerate() {
            at.entry(one.uses().addr).or_default().push(index);
        }
        let mut near: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut far: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
        for flow in flows {
            match *flow {
                Access::Here(load, store) => near.entry(load).or_default().push(store),
                Access::There(load, store, visit) => far.entry(load).or_default().push((store, visit)),
                Access::Out(_) => {}
            }
        }
        let (mut reads, mut left, returned) = dependencies(&ran);
        let mut piece = Self { reads: Vec::new(), left: HashSet::new(), far, at, returned, ran };
        if !flows.is_empty() {
            for (index, one) in piece.ran.iter().enumerate() {
                let addr = one.uses().addr;
                let stores = near.get(&addr).into_iter().flatten();
                reads[index].extend(stores.take(MOST_WRITERS).filter_map(|store| piece.last(*store, index)));
            }
            left.retain(|index| piece.far.contains_key(&piece.ran[*index].uses().addr));
        }
        (piece.reads, piece.left) = (reads, left);
        piece
    }

    /// Where an instruction ran last before another one.
    fn last(&self, address: u64, before: usize) -> Option<usize> {
        let at = self.at.get(&address)?;
        at[..at.partition_point(|at| *at < before)].last().copied()
    }

    /// The branches at the end, from an instruction on; at least the last one.
    fn branches(&self, from: usize) -> Vec<usize> {
        let all = (0..self.ran.len()).rev().filter(|at| self.ran[*at].uses().decides);
        let branches: Vec<usize> = all.take(MOST_BRANCHES).collect();
        let near = branches.iter().filter(|at| **at >= from).count().max(1);
        branches.into_iter().take(near).collect()
    }
}

/// What a slice asks of a recording.
trait Recording {
    /// The visit with this number.
    fn piece(&mut self, visit: u64) -> Option<Piece>;
    /// The function that an instruction is in.
    fn function(&mut self, address: u64) -> Option<u32>;
    /// Whether a function says anything.
    fn tells(&self, function: u32) -> bool;
}

struct Visits<'s, 'a> {
    run: &'s mut Resolver<'a>,
    functions: &'s mut Functions,
}

impl Recording for Visits<'_, '_> {
    fn piece(&mut self, visit: u64) -> Option<Piece> {
        let (ended, path) = self.run.paths.flows.numbered(visit)?;
        let (ran, _) = before(self.run, path, (usize::MAX, usize::MAX), self.functions);
        Some(Piece::new(ran, &flows_of(self.run, ended)))
    }

    fn function(&mut self, address: u64) -> Option<u32> {
        self.run.at(address, self.functions).last().map(|place| place.function)
    }

    fn tells(&self, function: u32) -> bool {
        self.functions.tells(function)
    }
}

/// The slice from some instructions of a visit.
fn sliced(piece: Piece, seeds: Vec<usize>, recording: &mut dyn Recording) -> Brought {
    let mut found = Brought::default();
    let mut seen: HashSet<(usize, usize)> = HashSet::new();
    let mut queue: VecDeque<(usize, usize)> = seeds.into_iter().map(|at| (0, at)).collect();
    let mut pieces = vec![piece];
    let mut known: HashMap<u64, Option<usize>> = HashMap::new();
    while let Some((which, at)) = queue.pop_front() {
        if seen.len() == MOST_SLICE || !seen.insert((which, at)) {
            continue;
        }
        let piece = &pieces[which];
        found.add(which > 0, piece.ran[at].function, recording);
        found.was_left |= which == 0 && piece.left.contains(&at);
        queue.extend(piece.reads[at].iter().map(|read| (which, *read)));
        let far = piece.far.get(&piece.ran[at].uses().addr).map_or(&[][..], Vec::as_slice);
        let far = far[..far.len().min(MOST_WRITERS)].to_vec();
        for (store, visit) in far {
            found.was_left |= which == 0;
            let other = *known.entry(visit).or_insert_with(|| {
                let other = (pieces.len() < MOST_VISITS).then(|| recording.piece(visit)).flatten()?;
                pieces.push(other);
                Some(pieces.len() - 1)
            });
            match other.and_then(|other| Some((other, pieces[other].last(store, usize::MAX)?))) {
                Some(there) => queue.push_back(there),
                // It ran in an interrupt, or too late in a long visit.
                None => found.add(true, recording.function(store), recording),
            }
        }
    }
    found
}

impl Brought {
    /// Adds a function, once.
    fn add(&mut self, was_left: bool, function: Option<u32>, recording: &dyn Recording) {
        let list = if was_left { &mut self.left_by } else { &mut self.functions };
        list.extend(function.filter(|function| recording.tells(*function) && !list.contains(function)));
    }
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

/// Which instructions wrote what each instruction reads, those that read memory which none of them wrote, and the one
/// that wrote the register in which the last of them returns.
fn dependencies(ran: &[Ran]) -> (Vec<Vec<usize>>, HashSet<usize>, Option<usize>) {
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
    (all, left, state.registers[usize::from(RETURNED[0])].1)
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
    use object::{Object as _, ObjectSection as _};

    use super::super::file::Paths;
    use super::*;
    use crate::symbols::{Image, IndexCache};

    /// Other visits, each with the code that ran in it and its number.
    struct Recorded(Vec<(u64, Vec<Ran>)>);

    impl Recording for Recorded {
        fn piece(&mut self, visit: u64) -> Option<Piece> {
            let (_, ran) = self.0.iter().find(|(number, _)| *number == visit)?;
            Some(Piece::new(ran.clone(), &[]))
        }

        fn function(&mut self, address: u64) -> Option<u32> {
            (address == INTERRUPT).then_some(7)
        }

        fn tells(&self, function: u32) -> bool {
            function != NOISE
        }
    }

    const INTERRUPT: u64 = 0x7000;

    /// Pieces of code that ran one behind the other, each with the number of its function.
    fn code(start: u64, pieces: &[(u32, &[u8])]) -> Vec<Ran> {
        let mut ran: Vec<Ran> = Vec::new();
        let mut start = start;
        for (function, code) in pieces {
            let block: Rc<[Uses]> = uses(code, start).into();
            assert_eq!(block.last().map(|last| last.end), Some(start + code.len() as u64), "{code:x?}");
            ran.extend((0..block.len()).map(|at| Ran { block: block.clone(), at, function: Some(*function) }));
            start += code.len() as u64;
        }
        ran
    }

    #[test]
    fn a_value_that_another_visit_left_is_followed_there_to_its_maker() {
        // mov eax, 1 | mov [rdi+8], eax, in the visit 4; mov eax, [rdi+8] | test, in this one.
        let other = code(0x2000, &[(1, ONE), (2, &[0x89, 0x47, 8])]);
        let here = code(0x1000, &[(3, &[0x8b, 0x47, 8]), (5, TEST)]);
        let slice = |flows: &[Access]| {
            let piece = Piece::new(here.clone(), flows);
            let seeds = piece.branches(here.len() - 1);
            sliced(piece, seeds, &mut Recorded(vec![(4, other.clone())]))
        };
        let found = slice(&[Access::There(0x1000, 0x2005, 4)]);
        assert_eq!((found.functions, found.left_by, found.was_left), (vec![5, 3], vec![2, 1], true));
        // What an interrupt wrote is known by its instruction only.
        let found = slice(&[Access::There(0x1000, INTERRUPT, 0)]);
        assert_eq!((found.left_by, found.was_left), (vec![7], true));
        // Memory that was never written holds what it was loaded with.
        let found = slice(&[Access::Here(0x1800, 0x1900)]);
        assert_eq!((found.left_by, found.was_left), (vec![], false));
    }

    #[test]
    fn what_wrote_memory_by_another_pointer_in_the_same_visit_made_the_value() {
        // mov [rsi], eax | mov eax, [rdi]: that both are one place is recorded.
        let here = code(0x1000, &[(1, ONE), (2, &[0x89, 0x06]), (3, &[0x8b, 0x07]), (5, TEST)]);
        let piece = Piece::new(here.clone(), &[Access::Here(0x1007, 0x1005)]);
        let seeds = piece.branches(here.len() - 1);
        assert_eq!(sliced(piece, seeds, &mut Recorded(Vec::new())).functions, [5, 3, 2, 1]);
    }

    #[test]
    fn the_answer_of_a_visit_is_made_by_what_wrote_the_register_that_it_returns() {
        // mov [rsp+8], eax | mov eax, edx | mov eax, [rsp+8]
        let here =
            code(0x1000, &[(1, ONE), (2, &[0x89, 0x44, 0x24, 8]), (3, &[0x89, 0xd0]), (4, &[0x8b, 0x44, 0x24, 8])]);
        let piece = Piece::new(here, &[]);
        let seeds = piece.returned.into_iter().collect();
        assert_eq!(sliced(piece, seeds, &mut Recorded(Vec::new())).functions, [4, 2, 1]);
    }

    #[test]
    fn a_visit_that_lists_more_code_than_a_recorder_keeps_is_not_followed() {
        let program = std::env::current_exe().expect("this program");
        let bytes = std::fs::read(&program).expect("read");
        let elf = object::File::parse(&*bytes).expect("ELF");
        let at = elf.section_by_name(".text").expect("code").address();
        let image = Image::open(&program, &IndexCache::none()).expect("an image");
        let ran = |turns: usize| {
            // Twice the same block is one turn.
            let text = format!("kwab-paths 2\nb {at:x} 8192\nb {at:x} 64\np 0 1\no{}\n", " 0 1".repeat(turns / 2));
            let paths = Paths::of(text.as_bytes()).expect("a recording");
            let (mut resolver, mut functions) = (Resolver::new(&image, &paths), Functions::default());
            before(&mut resolver, 0, (usize::MAX, usize::MAX), &mut functions).0.len()
        };
        let of_one = ran(2);
        assert!(of_one > 1000 && MOST_PASSED / of_one > 8, "{of_one} instructions in a block");
        assert!(ran(8) > of_one);
        assert_eq!(ran(2 * (MOST_PASSED / of_one + 1)), 0);
    }

    /// The slice of pieces of code that ran one behind the other, each with the number of its function.
    fn slice(pieces: &[(u32, &[u8])]) -> Brought {
        let ran = code(0x1000, pieces);
        let from = ran.len() - 1;
        let piece = Piece::new(ran, &[]);
        let seeds = piece.branches(from);
        sliced(piece, seeds, &mut Recorded(Vec::new()))
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
