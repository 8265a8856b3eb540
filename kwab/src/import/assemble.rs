//! Puts a dump that came as armoured lines back together.
//!
//! Lines may come torn, twice, out of order or not at all. The bytes of each line are appended to a temporary file, so
//! that a dump of any size costs little memory and no input costs more disk than its own length; where in the dump they
//! belong is remembered, up to `MOST_PIECES` runs of them. Parity lines and damaged lines are kept aside; from them
//! [`Assembly::mend`] makes bytes that did not come.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use kwab_format::armour::Chunk;
use kwab_format::parity::{Row, group_start};

use super::parity::{Damage, Group};

/// Runs of bytes that are remembered; more of them mean that the input is too fragmented to reassemble.
const MOST_PIECES: usize = 1 << 16;
/// The longest hole that is always kept as zeros.
const LONGEST_HOLE: u64 = 64 << 10;
/// The most bytes of a dump that are put together.
const MOST_BYTES: u64 = 32 << 20;

/// A run of bytes that came.
#[derive(Debug, Clone, Copy)]
struct ReceivedRun {
    /// Position behind its last byte in the dump.
    end: u64,
    /// Where it lies in the temporary file.
    at: u64,
}

/// What parity lines gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Bytes that had not come.
    pub bytes: u64,
    /// Whether every byte up to the last parity line is there.
    pub is_whole: bool,
}

/// A dump in the making.
#[derive(Debug)]
pub struct Assembly {
    /// The short id of the dump.
    pub dump: u32,
    file: BufWriter<File>,
    /// Bytes in the file.
    written: u64,
    /// Disjoint runs by their position in the dump.
    pieces: BTreeMap<u64, ReceivedRun>,
    /// Bytes of all runs.
    came: u64,
    /// Lines that came.
    pub lines: u64,
    /// Damaged lines that were counted as not understood.
    pub damaged: u64,
    damage: Damage,
    failed: Option<io::Error>,
}

impl Assembly {
    /// Starts a dump with its first line.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(chunk: &Chunk) -> io::Result<Self> {
        let mut assembly = Self {
            dump: chunk.dump,
            file: BufWriter::with_capacity(4096, tempfile::tempfile()?),
            written: 0,
            pieces: BTreeMap::new(),
            came: 0,
            lines: 0,
            damaged: 0,
            damage: Damage::default(),
            failed: None,
        };
        assembly.add(chunk);
        Ok(assembly)
    }

    /// Takes a parity line of this dump.
    pub fn add_row(&mut self, row: &Row) {
        self.lines += 1;
        self.damage.row(row);
    }

    /// Takes a line of text that may be a damaged one of this dump; says whether it looks like one.
    pub fn add_damaged(&mut self, text: &[u8]) -> bool {
        let next = self.pieces.last_key_value().map_or(0, |(_, last)| last.end);
        self.damage.line(self.dump, text, u32::try_from(next).unwrap_or(u32::MAX))
    }

    /// Makes bytes that did not come from parity lines, as far as that goes, and says how many.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn mend(&mut self) -> io::Result<Mended> {
        let before = self.came;
        let placed = std::mem::take(&mut self.damage).placed();
        let end = placed.ends().max();
        for end in placed.ends() {
            let range = u64::from(group_start(end))..u64::from(end);
            let missing = self.fresh(range).iter().map(|hole| hole.end - hole.start).sum();
            if !placed.may_mend(end, missing) {
                continue;
            }
            let mut group = placed.group(end);
            self.file.flush()?;
            self.fill(&mut group)?;
            for (position, bytes) in group.mended() {
                self.put(position, &bytes);
            }
        }
        let (covered, missing) = self.coverage();
        let is_whole = missing == 0 && end.is_some_and(|end| covered >= u64::from(end));
        Ok(Mended { bytes: self.came - before, is_whole })
    }

    /// Puts what came of a group into it.
    fn fill(&self, group: &mut Group) -> io::Result<()> {
        let Range { start, end } = group.range();
        let first = self.pieces.range(..=start).next_back().map_or(start, |(first, _)| *first);
        for (from, piece) in self.pieces.range(first..end) {
            let (begin, stop) = ((*from).max(start), piece.end.min(end));
            if begin < stop {
                let mut bytes = vec![0; usize::try_from(stop - begin).unwrap_or(0)];
                self.file.get_ref().read_exact_at(&mut bytes, piece.at + (begin - from))?;
                group.sound(begin, &bytes);
            }
        }
        Ok(())
    }

    /// Takes a line of this dump; of bytes that came before the first line counts.
    pub fn add(&mut self, chunk: &Chunk) {
        self.lines += 1;
        self.put(u64::from(chunk.position), chunk.bytes());
    }

    fn put(&mut self, start: u64, bytes: &[u8]) {
        for fresh in self.fresh(start..start + bytes.len() as u64) {
            let bytes = &bytes[(fresh.start - start) as usize..(fresh.end - start) as usize];
            match self.file.write_all(bytes) {
                Ok(()) => self.cover(fresh),
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// The parts of a range that have not come yet.
    fn fresh(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut fresh = Vec::new();
        let mut at = range.start;
        let before = self.pieces.range(..=range.start).next_back();
        for (start, piece) in
            before.into_iter().chain(self.pieces.range(range.start + 1..range.end.max(range.start + 1)))
        {
            if *start > at {
                fresh.push(at..*start);
            }
            at = at.max(piece.end);
        }
        if at < range.end {
            fresh.push(at..range.end);
        }
        fresh
    }

    /// Remembers that a range was appended to the file.
    fn cover(&mut self, range: Range<u64>) {
        let at = self.written;
        self.written += range.end - range.start;
        // The usual line goes on where the last one ended, in the dump and in the file.
        if let Some((start, last)) = self.pieces.range_mut(..range.start).next_back()
            && last.end == range.start
            && last.at + (last.end - start) == at
        {
            last.end = range.end;
        } else if self.pieces.len() < MOST_PIECES {
            self.pieces.insert(range.start, ReceivedRun { end: range.end, at });
        } else {
            return;
        }
        self.came += range.end - range.start;
    }

    /// Bytes that came, and bytes that are missing before the last of them.
    pub fn coverage(&self) -> (u64, u64) {
        let end = self.pieces.last_key_value().map_or(0, |(_, last)| last.end);
        (self.came, end - self.came)
    }

    /// The bytes, missing ones as zeros; a hole that is longer than everything that came is shortened, so that a line
    /// which claims a far position costs no more than any other. The sections behind it then stand before their
    /// positions.
    ///
    /// # Errors
    /// Those of the temporary file, also earlier ones.
    pub fn read(self) -> io::Result<Vec<u8>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut zeros = self.came + LONGEST_HOLE;
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut bytes = Vec::new();
        let mut at = 0;
        for (start, piece) in self.pieces {
            let hole = (start - at).min(zeros);
            zeros -= hole;
            bytes.resize(bytes.len() + usize::try_from(hole).unwrap_or(0), 0);
            file.seek(SeekFrom::Start(piece.at))?;
            let room = MOST_BYTES.saturating_sub(bytes.len() as u64);
            (&file).take((piece.end - start).min(room)).read_to_end(&mut bytes)?;
            at = piece.end;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use kwab_format::DumpId;
    use kwab_format::armour::{LINE_LEN, decode_line, encode_line};

    use super::*;

    fn chunk(position: u32, bytes: &[u8]) -> Chunk {
        let mut out = [0; LINE_LEN + 1];
        decode_line(encode_line(DumpId(7), position, bytes, &mut out)).expect("a sound line").0
    }

    #[test]
    fn lines_out_of_order_and_twice_give_the_bytes_and_a_lost_one_a_hole() {
        let mut assembly = Assembly::new(&chunk(48, &[2; 48])).expect("a temporary file");
        for again in [chunk(0, &[1; 48]), chunk(0, &[1; 48]), chunk(144, &[4; 10])] {
            assembly.add(&again);
        }
        assert_eq!(assembly.coverage(), (106, 48));
        let bytes = assembly.read().expect("readable");
        assert_eq!(bytes.len(), 154);
        assert_eq!((bytes[47], bytes[48], bytes[96], bytes[150]), (1, 2, 0, 4));
    }

    #[test]
    fn lines_at_far_positions_cost_the_disk_no_more_than_their_own_bytes() {
        let mut assembly = Assembly::new(&chunk(0, &[1; 48])).expect("a temporary file");
        for number in 1..1000 {
            assembly.add(&chunk(number * 4_000_000, &[3; 48]));
            assembly.add(&chunk(number * 4_000_000, &[3; 48]));
        }
        assembly.file.flush().expect("written");
        let length = assembly.file.get_ref().metadata().expect("it is open").len();
        assert_eq!(length, 1000 * 48, "each byte lies in the file once");
        assert_eq!(assembly.coverage().0, 1000 * 48);
    }

    #[test]
    fn a_line_that_overlaps_others_adds_what_is_new_of_it() {
        let mut assembly = Assembly::new(&chunk(10, &[1; 10])).expect("a temporary file");
        assembly.add(&chunk(30, &[2; 10]));
        assembly.add(&chunk(5, &[3; 40]));
        assembly.add(&chunk(0, &[4; 10]));
        let expected = [[4; 5].as_slice(), &[3; 5], &[1; 10], &[3; 10], &[2; 10], &[3; 5]].concat();
        assert_eq!(assembly.coverage(), (45, 0));
        assert_eq!(assembly.read().expect("readable"), expected);
    }
}
