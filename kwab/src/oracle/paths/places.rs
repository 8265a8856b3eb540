//! Turns paths into places: the functions and lines that ran, inlined ones included.
//!
//! Blocks of two builds lie at other addresses and are cut otherwise, so that paths are compared as lists of places
//! only. What reports and records is left out, since it runs in every call and prints what differs anyway.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::file::Paths;
use crate::analysis::{is_served, owner};
use crate::decode::calls::starts;
use crate::symbols::{Image, Probe, Role, role};

/// The function by which a thread gives up its processor.
const SCHEDULE: &str = "kernel::sched::schedule";
/// Copies between the kernel and programs: helpers, but what they do depends on what is asked alone.
const COPIES: &str = "machine::user::";

/// A line of a function. Lines of the bad run count as in the good build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CodeLine {
    pub function: u32,
    pub line: u32,
}

/// The functions of both runs, each with a number.
#[derive(Default)]
pub(super) struct Functions {
    numbers: HashMap<String, u32>,
    known: Vec<PathFunction>,
}

/// A function of the kernel, with what its way can tell.
struct PathFunction {
    name: String,
    file: Option<String>,
    /// Whether its way tells of what its caller asks, and not of the time or of what memory is free.
    tells: bool,
}

impl Functions {
    pub(super) fn number(&mut self, name: String, file: Option<&str>) -> u32 {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            let tells = role(&name) == Role::Suspect || name.starts_with(COPIES);
            self.known.push(PathFunction { name, file: file.map(str::to_owned), tells });
        }
        number
    }

    pub(super) fn name(&self, function: u32) -> &str {
        self.known.get(function as usize).map_or("?", |known| &known.name)
    }

    /// Whether two ways can part in a function: not in one that schedules, waits, locks or allocates.
    pub(super) fn tells(&self, function: u32) -> bool {
        self.known.get(function as usize).is_some_and(|known| known.tells)
    }

    pub(super) fn file(&self, function: u32) -> Option<&str> {
        self.known.get(function as usize)?.file.as_deref()
    }
}

/// Whether a function only records what happens.
fn is_recording(name: &str) -> bool {
    name.contains("::trace::") || name.contains("recorder")
}

/// A path as places.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// In the order in which they ran first.
    pub list: Vec<CodeLine>,
    /// How often each ran at most.
    pub times: HashMap<CodeLine, u8>,
    pub functions: HashSet<u32>,
    /// Whether another thread may have run in between.
    pub sleeps: bool,
}

impl Way {
    /// Counts an instruction of a block that ran. QEMU also cuts a block where an interrupt comes due, which depends on
    /// time: how often a line ran is told by its instructions, which are in one part or the other, and not by blocks.
    fn ran(&mut self, instruction: Instruction, times: u8, counted: &mut HashMap<Instruction, u8>) {
        let place = instruction.1;
        let sum = counted.entry(instruction).or_default();
        *sum = sum.saturating_add(times);
        let known = self.times.entry(place).or_default();
        if *known == 0 {
            self.functions.insert(place.function);
            self.list.push(place);
        }
        *known = (*known).max(*sum);
    }
}

/// The address of an instruction and a line that it belongs to.
pub(super) type Instruction = (u64, CodeLine);

/// Instructions that are looked at for each byte of a recording, and at least: those of a recording of our kernel are
/// two or three, each time that a path is read.
const STEPS_PER_BYTE: u64 = 16;
const LEAST_STEPS: u64 = 4 << 20;
/// Bytes of paths that are kept as places, for each byte of a recording and at least; one that is not is read again.
const KEPT_PER_BYTE: u64 = 4;
const LEAST_KEPT: u64 = 64 << 20;
/// Bytes that a place of a path takes.
const KEPT_PLACE: u64 = 64;

/// Places of one path in the order of their turns; the recorder keeps 8,192 blocks.
const MOST_TURNS: usize = 1 << 20;

/// A run with the image of its kernel.
pub(super) struct Resolver<'a> {
    image: &'a Image,
    pub paths: &'a Paths,
    blocks: HashMap<u32, Rc<[Instruction]>>,
    ways: HashMap<u32, Rc<Way>>,
    /// Bytes that these take.
    kept: u64,
    /// Instructions that may still be looked at.
    steps: u64,
    /// Lines that functions have moved down by since the good build.
    moved: HashMap<u32, i64>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(image: &'a Image, paths: &'a Paths) -> Self {
        let steps = LEAST_STEPS.saturating_add(STEPS_PER_BYTE.saturating_mul(paths.length));
        let (blocks, ways) = (HashMap::new(), HashMap::new());
        Self { image, paths, blocks, ways, kept: 0, steps, moved: HashMap::new() }
    }

    /// Whether paths were cut, since they list more code than a recording of that length does.
    pub(super) fn is_spent(&self) -> bool {
        self.steps == 0
    }

    /// The places of a block of a path; none when more was looked at than a recording of that length needs.
    pub(super) fn next(&mut self, block: u32, functions: &mut Functions) -> Rc<[Instruction]> {
        let places = self.block(block, functions);
        self.steps = self.steps.saturating_sub(places.len().max(1) as u64);
        if self.steps == 0 { Rc::new([]) } else { places }
    }

    /// A path of the run.
    pub(super) fn way(&mut self, path: u32, functions: &mut Functions) -> Rc<Way> {
        if let Some(known) = self.ways.get(&path) {
            return known.clone();
        }
        let (mut way, mut counted) = (Way::default(), HashMap::new());
        let paths = self.paths;
        for (block, times) in paths.paths.get(path as usize).into_iter().flatten() {
            for (at, place) in self.next(*block, functions).iter() {
                way.ran((*at, self.in_good(*place)), *times, &mut counted);
            }
        }
        way.sleeps = way.functions.iter().any(|function| functions.name(*function) == SCHEDULE);
        let way = Rc::new(way);
        self.kept += KEPT_PLACE * way.list.len() as u64;
        if self.kept > LEAST_KEPT + KEPT_PER_BYTE * paths.length {
            (self.ways, self.kept) = (HashMap::new(), KEPT_PLACE * way.list.len() as u64);
        }
        self.ways.insert(path, way.clone());
        way
    }

    /// The places of a path in the order of all their turns, as far as that was recorded; `None` where it was not.
    pub(super) fn turns(&mut self, path: u32, functions: &mut Functions) -> Option<Vec<CodeLine>> {
        let paths = self.paths;
        let mut turns: Vec<CodeLine> = Vec::new();
        for block in paths.turns.get(&path)?.iter() {
            for (_, place) in self.next(*block, functions).iter() {
                let place = self.in_good(*place);
                if turns.last() != Some(&place) {
                    turns.push(place);
                }
            }
            if turns.len() > MOST_TURNS {
                break;
            }
        }
        Some(turns)
    }

    /// The line that a place of this run has in the good build.
    pub(super) fn in_good(&self, place: CodeLine) -> CodeLine {
        let moved = self.moved.get(&place.function).copied().unwrap_or_default();
        let line = u32::try_from(i64::from(place.line) - moved).unwrap_or(place.line);
        CodeLine { line, ..place }
    }

    /// The line of the source in this run's build.
    pub(super) fn line(&self, place: CodeLine) -> u32 {
        let moved = self.moved.get(&place.function).copied().unwrap_or_default();
        u32::try_from(i64::from(place.line) + moved).unwrap_or(place.line)
    }

    /// The address of a block, and its machine code.
    pub(super) fn code(&self, block: u32) -> (u64, Vec<u8>) {
        let (address, bytes) = self.paths.blocks.get(block as usize).copied().unwrap_or_default();
        let mut code = vec![0; bytes as usize];
        let read = self.image.read(address, &mut code);
        code.truncate(read);
        (address, code)
    }

    fn block(&mut self, block: u32, functions: &mut Functions) -> Rc<[Instruction]> {
        if let Some(known) = self.blocks.get(&block) {
            return known.clone();
        }
        let (address, code) = self.code(block);
        let mut places: Vec<Instruction> = Vec::new();
        for at in starts(&code, address) {
            places.extend(self.at(at, functions).into_iter().map(|place| (at, place)));
        }
        let places: Rc<[Instruction]> = places.into();
        self.blocks.insert(block, places.clone());
        places
    }

    /// The places that an instruction belongs to, from the outermost function to the innermost.
    pub(super) fn at(&self, address: u64, functions: &mut Functions) -> Vec<CodeLine> {
        let mut places = Vec::new();
        let Ok(location) = self.image.locate(address, Probe::Exact) else { return places };
        if location.frames.iter().filter_map(|frame| frame.function.as_deref()).any(is_recording) {
            return places;
        }
        for frame in location.frames.iter().rev() {
            let (Some(name), Some(line)) = (frame.function.as_deref(), frame.line) else { continue };
            let is_library = frame.file.as_deref().is_some_and(|file| file.contains("/library/"));
            if !is_library && !is_served(name) && role(name) != Role::Reporter {
                places.push(CodeLine { function: functions.number(owner(name), frame.file.as_deref()), line });
            }
        }
        places
    }

    /// The lines that were seen of each function.
    fn lines(&mut self, functions: &mut Functions) -> BTreeMap<u32, BTreeSet<u32>> {
        let mut lines: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for block in 0..u32::try_from(self.paths.blocks.len()).unwrap_or(u32::MAX) {
            for (_, place) in self.block(block, functions).iter() {
                lines.entry(place.function).or_default().insert(place.line);
            }
        }
        lines
    }

    /// Finds out by how many lines each function has moved since another build: as many as lie between the first lines
    /// that ran in either, when more lines agree then.
    pub(super) fn moved_since(&mut self, good: &mut Resolver<'_>, functions: &mut Functions) {
        if self.image.build_id() == good.image.build_id() && self.image.build_id().is_some() {
            return;
        }
        let (here, there) = (self.lines(functions), good.lines(functions));
        for (function, lines) in &here {
            let Some(before) = there.get(function) else { continue };
            let (Some(first), Some(first_before)) = (lines.first(), before.first()) else { continue };
            let moved = i64::from(*first) - i64::from(*first_before);
            let is_there =
                |line: u32, by: i64| u32::try_from(i64::from(line) - by).is_ok_and(|line| before.contains(&line));
            let agree = |by: i64| lines.iter().filter(|line| is_there(**line, by)).count();
            if moved != 0 && agree(moved) > agree(0) {
                self.moved.insert(*function, moved);
            }
        }
        self.ways.clear();
    }
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSection as _};

    use super::*;
    use crate::symbols::IndexCache;

    #[test]
    fn paths_that_list_more_code_than_a_recording_has_are_cut_and_said_to_be() {
        let program = std::env::current_exe().expect("this program");
        let bytes = std::fs::read(&program).expect("read");
        let elf = object::File::parse(&*bytes).expect("ELF");
        let code = elf.section_by_name(".text").expect("code");
        let image = Image::open(&program, &IndexCache::none()).expect("an image");
        // Not every 8 KiB of this program has code of ours.
        let candidates = (0..64).map(|part| code.address() + code.size() / 64 * part);
        let blocks: String = candidates.clone().map(|at| format!("b {at:x} 8192\n")).collect();
        let all = Paths::of(format!("kwab-paths 2\n{blocks}").as_bytes()).expect("a recording");
        let (mut resolver, mut functions) = (Resolver::new(&image, &all), Functions::default());
        let (places, at) = (0..)
            .zip(candidates)
            .map(|(block, at)| (resolver.block(block, &mut functions).len(), at))
            .max()
            .expect("one");
        assert!(places > 1000, "{places} places");
        // A path of 4,000 times the same 8 KiB, and 200 of their kind: 25 KB a path that say 32 MB of code.
        let rounds = " 0".repeat(4000);
        let text = format!("kwab-paths 2\nb {at:x} 8192\n{}", format!("p{rounds}\no{rounds}\n").repeat(200));
        let paths = Paths::of(text.as_bytes()).expect("a recording");
        assert_eq!((paths.paths.len(), paths.turns.len()), (200, 200), "{:?}", paths.gaps);
        let (mut resolver, mut functions) = (Resolver::new(&image, &paths), Functions::default());
        let most = resolver.steps;
        let mut looked_at = 0;
        for path in 0..200 {
            looked_at += resolver.way(path, &mut functions).list.len();
            let turns = resolver.turns(path, &mut functions).expect("turns");
            assert!(turns.len() <= MOST_TURNS + places);
            looked_at += turns.len();
        }
        assert!(resolver.is_spent() && looked_at as u64 <= most, "{looked_at} of {most}");
        assert!(resolver.kept <= LEAST_KEPT + KEPT_PER_BYTE * text.len() as u64);
    }

    #[test]
    fn a_loop_runs_as_often_whether_an_interrupt_cut_one_of_its_rounds_or_not() {
        let line = |line| CodeLine { function: 0, line };
        // Two lines; the second has the instructions from 4 on.
        let code = [(0, line(1)), (4, line(2)), (8, line(2)), (12, line(2))];
        let way = |blocks: &[(std::ops::Range<usize>, u8)]| {
            let (mut way, mut counted) = (Way::default(), HashMap::new());
            for (block, times) in blocks {
                code[block.clone()].iter().for_each(|instruction| way.ran(*instruction, *times, &mut counted));
            }
            (way.list, way.times)
        };
        let whole = way(&[(0..4, 132)]);
        assert_eq!(whole.1[&line(2)], 132);
        for cut in 1..4 {
            assert_eq!(way(&[(0..4, 100), (0..cut, 1), (cut..4, 1), (0..4, 31)]), whole);
        }
        // What is counted up to 255 only.
        assert_eq!(way(&[(0..4, 255), (0..2, 1), (2..4, 1)]), way(&[(0..4, 255)]));
    }
}
