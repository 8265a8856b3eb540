//! What flowed through memory, within a visit and from one visit to another.
//!
//! The recorder knows which instruction wrote a piece of memory last, and in which visit. A value that one call left
//! and another one reads is found by that, where no path tells of it; so is what an interrupt wrote.

use std::collections::{BTreeMap, HashMap};
use std::str::SplitAsciiWhitespace;

/// An instruction, by its number in the recording.
type Used = u32;

/// Flows that are kept for each so many bytes of a recording: a flow of a real one takes about ten.
const BYTES_OF_A_FLOW: u64 = 6;

/// What an instruction of a visit did with memory that others use too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// It read what this instruction wrote in the same visit.
    Here(Used, Used),
    /// It read what this instruction wrote in another visit; of 0 the recording tells no more.
    There(Used, Used, u64),
    /// It wrote to the program's memory.
    Out(Used),
}

/// The flows of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    /// Addresses of the instructions.
    instructions: Vec<u64>,
    /// Those of each visit, by how many visits ended before it.
    visits: BTreeMap<u32, Box<[Flow]>>,
    /// How many ended before a visit, and its path, by the number that flows name it by.
    numbers: HashMap<u64, (u32, u32)>,
    /// How many are kept yet.
    room: usize,
}

impl Flows {
    /// None yet, of a recording of this length: a hostile one gets no more memory for flows than for its other lines.
    pub(super) fn in_recording(bytes: u64) -> Self {
        Self { room: usize::try_from(bytes / BYTES_OF_A_FLOW).unwrap_or(usize::MAX), ..Self::default() }
    }

    /// Reads the address of the next instruction.
    pub(super) fn instruction(&mut self, words: &mut SplitAsciiWhitespace<'_>) -> Option<()> {
        self.instructions.push(u64::from_str_radix(words.next()?, 16).ok()?);
        Some(())
    }

    /// Reads the flows of a visit, given by how many ended before it, and its path.
    pub(super) fn visit(&mut self, words: &mut SplitAsciiWhitespace<'_>, visit: (u32, u32)) -> Option<()> {
        let number: u64 = words.next()?.parse().ok()?;
        let used = |word: &str| word.parse().ok().filter(|used: &u32| (*used as usize) < self.instructions.len());
        let flow = |word: &str| {
            if let Some(store) = word.strip_suffix('>') {
                return Some(Flow::Out(used(store)?));
            }
            let (load, rest) = word.split_once('<')?;
            Some(match rest.split_once('@') {
                Some((store, other)) => Flow::There(used(load)?, used(store)?, other.parse().ok()?),
                None => Flow::Here(used(load)?, used(rest)?),
            })
        };
        // One more than there is room for tells that the line is too long.
        let flows: Vec<Flow> = words.map(flow).take(self.room.saturating_add(1)).collect::<Option<_>>()?;
        self.room = self.room.checked_sub(flows.len())?;
        let flows = flows.into();
        self.visits.insert(visit.0, flows);
        self.numbers.insert(number, visit);
        Some(())
    }

    /// Those of a visit, given by how many ended before it; `None` where they were not recorded.
    pub(super) fn of(&self, ended: u32) -> Option<&[Flow]> {
        self.visits.get(&ended).map(|flows| &**flows)
    }

    /// How many visits ended before the one with this number, and its path.
    pub(super) fn numbered(&self, number: u64) -> Option<(u32, u32)> {
        self.numbers.get(&number).copied()
    }

    /// The address of an instruction.
    pub(super) fn address(&self, used: Used) -> u64 {
        self.instructions.get(used as usize).copied().unwrap_or_default()
    }
}
