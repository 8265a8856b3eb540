//! Reads which code of the kernel ran in which call: the text that the plugin `testing/plugin/paths.c` writes.
//!
//! The form is described there. Damage is counted and left out; only a file of another kind is an error.

use std::collections::BTreeMap;

use super::flows::Flows;
use crate::units::count;

/// What the first line says. Recordings of the first format have no order of turns, those of the second no flows.
const HEAD: &str = "kwab-paths 3";
const EARLIER_HEADS: [&str; 2] = ["kwab-paths 1", "kwab-paths 2"];
/// Bytes of a block beyond which a line is damaged: a translated block lies in two pages.
const LONGEST_BLOCK: u32 = 8192;
/// Bytes of all blocks, whatever a file claims: a few times the code of a kernel, and of a short file a few times what
/// its lines have. A block of a line of 22 bytes has about 20.
const MOST_CODE: u64 = 64 << 20;
const LEAST_CODE: u64 = 1 << 20;
const CODE_PER_BYTE: u64 = 4;

/// Exceptions of a thread before its first call that are looked at.
const MOST_FIRST: usize = 4096;

/// The paths of one run.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Address and bytes of each block.
    pub(super) blocks: Vec<(u64, u32)>,
    /// The blocks of each path in the order in which they ran first, and how often each ran.
    pub(super) paths: Vec<Box<[(u32, u8)]>>,
    /// The blocks of paths in the order of their turns, by the number of the path.
    pub(super) turns: BTreeMap<u32, Box<[u32]>>,
    /// The system calls, by how many of the machine began before each.
    pub(super) calls: BTreeMap<u32, Visit>,
    /// The exceptions from user mode.
    pub(super) traps: Vec<Trap>,
    /// What threads ran before they were first in user mode, by how many threads began before each; the boot is 0.
    pub(super) starts: BTreeMap<u32, Start>,
    /// What flowed through memory.
    pub(super) flows: Flows,
    /// The stack of the thread that ran when the machine ended; `None` when the recording does not say.
    pub(super) ended: Option<u64>,
    /// Visits that were read.
    visits: u32,
    /// The path of the last one.
    last_path: u32,
    /// Bytes of the recording.
    pub(super) length: u64,
    /// What is known to be missing, for people.
    pub gaps: Vec<String>,
}

/// A thread's way through the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Visit {
    /// The thread, by where its stack lies.
    pub stack: u64,
    /// Which of [`Paths::paths`].
    pub path: u32,
    /// How many visits ended before it.
    pub ended: u32,
    /// Whether an interrupt fell into it; recordings without the word do not tell.
    pub is_interrupted: bool,
}

/// An exception from user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trap {
    /// How many calls of the machine had begun.
    pub number: u32,
    pub visit: Visit,
    pub vector: u32,
}

/// The start of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub visit: Visit,
    /// Whether the machine ended before it did.
    pub is_cut: bool,
}

/// Why a file has no paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a recording of paths: the first line is not `{HEAD}`")]
pub struct NoPaths;

impl Paths {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the text begins otherwise.
    pub fn of(text: &[u8]) -> Result<Self, NoPaths> {
        let mut lines = text.split(|byte| *byte == b'\n');
        let head = lines.next().unwrap_or_default();
        if head != HEAD.as_bytes() && EARLIER_HEADS.iter().all(|earlier| head != earlier.as_bytes()) {
            return Err(NoPaths);
        }
        let length = text.len() as u64;
        let mut paths = Self { length, flows: Flows::in_recording(length), ..Self::default() };
        let (mut damaged, mut code) = (0u64, 0u64);
        let mut is_full = false;
        for line in lines.filter(|line| !line.is_empty()) {
            is_full |= line == b"x";
            damaged += u64::from(line != b"x" && paths.line(line, &mut code).is_none());
        }
        if is_full {
            paths.gaps.push("the recording of paths reached its limit: later calls are missing".to_owned());
        }
        if damaged > 0 {
            paths.gaps.push(format!("damage in {} of the recording of paths", count(damaged, "line", "lines")));
        }
        Ok(paths)
    }

    fn line(&mut self, line: &[u8], code: &mut u64) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        let (kind, rest) = line.split_at_checked(1)?;
        let mut words = rest.split_ascii_whitespace();
        match kind {
            "b" => {
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                let bytes: u32 = words.next()?.parse().ok()?;
                *code += u64::from(bytes.min(LONGEST_BLOCK));
                // A block too many keeps its number, and nothing of it is looked at.
                let most = MOST_CODE.min(LEAST_CODE + CODE_PER_BYTE * self.length);
                self.blocks.push((address, if *code > most { 0 } else { bytes.min(LONGEST_BLOCK) }));
                (*code <= most && bytes <= LONGEST_BLOCK).then_some(())?;
            }
            "p" => {
                let blocks = words.map(|word| {
                    let (id, times) = word.split_once('*').unwrap_or((word, "1"));
                    Some((id.parse().ok().filter(|id: &u32| (*id as usize) < self.blocks.len())?, times.parse().ok()?))
                });
                // A damaged path keeps its number.
                self.paths.push(blocks.collect::<Option<_>>().unwrap_or_default());
            }
            "o" => {
                let path = u32::try_from(self.paths.len()).ok()?.checked_sub(1)?;
                let is_known = |id: &u32| (*id as usize) < self.blocks.len();
                let turns = words.map(|word| word.parse().ok().filter(is_known)).collect::<Option<_>>()?;
                self.turns.insert(path, turns);
            }
            "e" => self.ended = Some(u64::from_str_radix(words.next()?, 16).ok()?),
            "c" | "u" | "t" | "s" => {
                let number: u32 = words.next()?.parse().ok()?;
                let stack = u64::from_str_radix(words.next()?, 16).ok()?;
                let path: u32 = words.next()?.parse().ok().filter(|id: &u32| (*id as usize) < self.paths.len())?;
                let vector = if kind == "t" { words.next()?.parse().ok()? } else { 0 };
                let visit = Visit { stack, path, ended: self.visits, is_interrupted: words.next() == Some("i") };
                (self.visits, self.last_path) = (self.visits.saturating_add(1), path);
                match kind {
                    "t" => self.traps.push(Trap { number, visit, vector }),
                    "s" => drop(self.starts.insert(number, Start { visit, is_cut: self.ended.is_some() })),
                    _ => drop(self.calls.insert(number, visit)),
                }
            }
            "i" => self.flows.instruction(&mut words)?,
            "r" => self.flows.visit(&mut words, (self.visits.checked_sub(1)?, self.last_path))?,
            _ => return None,
        }
        Some(())
    }

    /// Which start of a thread the machine ended in.
    pub(super) fn last_start(&self) -> Option<u32> {
        let of = |visit: &Visit| Some(visit.stack) == self.ended;
        let last = self.starts.iter().rfind(|(_, start)| of(&start.visit));
        let (number, start) = last?;
        (start.is_cut && !self.calls.values().any(of)).then_some(*number)
    }

    /// The exceptions of each thread before its first call, by the number of its start. A thread on a stack that was
    /// another's is left out.
    pub(super) fn traps_first(&self) -> BTreeMap<u32, Vec<Trap>> {
        let mut by_stack: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (number, start) in &self.starts {
            by_stack.entry(start.visit.stack).or_default().push(*number);
        }
        let mut called: BTreeMap<u64, u32> = BTreeMap::new();
        for (number, visit) in &self.calls {
            called.entry(visit.stack).or_insert(*number);
        }
        let mut first: BTreeMap<u32, Vec<Trap>> = BTreeMap::new();
        for trap in &self.traps {
            let Some([start]) = by_stack.get(&trap.visit.stack).map(Vec::as_slice) else { continue };
            let traps = first.entry(*start).or_default();
            if called.get(&trap.visit.stack).is_none_or(|call| trap.number <= *call) && traps.len() < MOST_FIRST {
                traps.push(*trap);
            }
        }
        first
    }

    /// The exceptions behind each call of their thread, in their order.
    pub(super) fn traps_behind(&self) -> BTreeMap<u32, Vec<Trap>> {
        let mut by_stack: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (number, visit) in &self.calls {
            by_stack.entry(visit.stack).or_default().push(*number);
        }
        let mut behind: BTreeMap<u32, Vec<Trap>> = BTreeMap::new();
        for trap in &self.traps {
            let Some(calls) = by_stack.get(&trap.visit.stack) else { continue };
            let at = calls.partition_point(|number| *number < trap.number);
            if let Some(call) = at.checked_sub(1).and_then(|at| calls.get(at)) {
                behind.entry(*call).or_default().push(*trap);
            }
        }
        behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::paths::flows::Flow;

    #[test]
    fn damage_is_counted_and_a_path_keeps_its_number() {
        let text = b"kwab-paths 2\nb ffff8000 9\nb ffff8009 4\np 0 1*3\no 0 1 0 1\np 7\no 7\n\
                     c 0 a1 0\nu 1 a1 9\nt 1 a1 1 14 i\nzz\nx\n";
        let paths = Paths::of(text).expect("a recording");
        assert_eq!((paths.blocks.len(), paths.paths.len()), (2, 2));
        assert_eq!(*paths.paths[0], [(0, 1), (1, 3)]);
        assert!(paths.paths[1].is_empty());
        assert_eq!(paths.turns, BTreeMap::from([(0, Box::from([0, 1, 0, 1]))]));
        assert_eq!(paths.calls.get(&0), Some(&Visit { stack: 0xa1, path: 0, ended: 0, is_interrupted: false }));
        assert_eq!(paths.calls.get(&1), None);
        let trap = paths.traps_behind()[&0][0];
        assert!(trap.vector == 14 && trap.visit.is_interrupted);
        assert_eq!(paths.gaps.len(), 2);
        assert_eq!(paths.gaps[1], "damage in 3 lines of the recording of paths");
        assert!(Paths::of(b"kwab-paths 1\n").is_ok());
        assert!(Paths::of(b"kwab-paths 4\n").is_err() && Paths::of(b"").is_err());
    }

    #[test]
    fn flows_belong_to_the_visit_before_them_and_one_that_is_damaged_has_none() {
        let text = b"kwab-paths 3\nb f0 9\np 0\nc 0 a1 0\ni f0\ni f4\nr 7 0<1 1<0@3 0<1@0 1>\n\
                     p 0*2\nc 1 a1 1\nr 9 0<2\nc 2 a1 1\n";
        let paths = Paths::of(text).expect("a recording");
        let flows = [Flow::Here(0, 1), Flow::There(1, 0, 3), Flow::There(0, 1, 0), Flow::Out(1)];
        assert_eq!((paths.flows.of(0), paths.flows.of(1), paths.flows.of(2)), (Some(&flows[..]), None, None));
        assert_eq!((paths.flows.numbered(7), paths.flows.numbered(9)), (Some((0, 0)), None));
        assert_eq!((paths.flows.address(1), paths.flows.address(2), paths.gaps.len()), (0xf4, 0, 1));
        assert_eq!(Paths::of(b"kwab-paths 3\ni f0\nr 7 0>\n").expect("a recording").gaps.len(), 1);
    }

    #[test]
    fn flows_take_no_more_memory_than_the_length_of_a_recording_allows() {
        let head = "kwab-paths 3\nb f0 9\np 0\nc 0 a1 0\ni f0\n";
        let kept = |visits: usize, flows: usize| {
            let text = format!("{head}{}", format!("r 7{}\n", " 0>".repeat(flows)).repeat(visits));
            let paths = Paths::of(text.as_bytes()).expect("a recording");
            (paths.flows.of(0).map(<[Flow]>::len), paths.gaps.len())
        };
        assert_eq!(kept(1, 4), (Some(4), 0));
        // A line of flows of three bytes has twice as many as there is room for.
        assert_eq!(kept(1, 1000), (None, 1));
    }

    #[test]
    fn the_start_in_which_the_machine_ended_is_one_of_a_thread_without_calls() {
        let of = |ended: &str| {
            let text = format!("kwab-paths 1\nb f0 9\np 0\ns 1 a1 0\nc 0 a1 0\ne {ended}\ns 0 a0 0\nu 1 a1 0\n");
            Paths::of(text.as_bytes()).expect("a recording")
        };
        let paths = of("a0");
        assert_eq!((paths.starts[&0].is_cut, paths.starts[&1].is_cut, paths.last_start()), (true, false, Some(0)));
        assert_eq!((of("a1").last_start(), of("zz").ended, of("zz").gaps.len()), (None, None, 1));
    }

    #[test]
    fn exceptions_before_the_first_call_of_a_thread_belong_to_its_start() {
        let text = b"kwab-paths 1\nb f0 9\np 0\ns 2 a1 0\ns 3 a2 0\ns 4 a2 0\nt 0 a1 0 14\nt 0 a1 0 6\nt 0 a2 0 14\n\
                     c 0 a1 0\nt 1 a1 0 14\n";
        let first = Paths::of(text).expect("a recording").traps_first();
        let vectors: Vec<u32> = first[&2].iter().map(|trap| trap.vector).collect();
        assert_eq!((vectors, first.len()), (vec![14, 6], 1));
    }

    #[test]
    fn blocks_that_claim_more_code_than_their_lines_tell_of_are_not_looked_at() {
        let text = format!("kwab-paths 1\n{}", "b ffff8000 8192\n".repeat(8200));
        let paths = Paths::of(text.as_bytes()).expect("a recording");
        assert_eq!(paths.blocks.len(), 8200);
        let most = LEAST_CODE + CODE_PER_BYTE * text.len() as u64;
        let kept = paths.blocks.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>();
        assert_eq!(kept, most / 8192 * 8192);
        let left_out = 8200 - kept / 8192;
        assert_eq!(paths.gaps, [format!("damage in {} of the recording of paths", count(left_out, "line", "lines"))]);
    }
}
