//! Puts a dump that came as armoured lines back together.
//!
//! Lines may come torn, twice, out of order or not at all. What came is written to its place in a temporary file, so that
//! a dump of any size costs little memory; the ranges that came are remembered, up to `MOST_RANGES` of them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use kwab_format::armour::Chunk;

/// Ranges that are remembered; more holes than this mean that the input is no dump worth keeping apart.
const MOST_RANGES: usize = 1 << 16;

/// The longest hole that is always kept as zeros.
const LONGEST_HOLE: u64 = 64 << 10;
/// The most bytes of a dump that are put together.
const MOST_BYTES: u64 = 32 << 20;

/// A dump in the making.
#[derive(Debug)]
pub struct Assembly {
    /// The short id of the dump.
    pub dump: u32,
    file: File,
    /// Sorted, disjoint ranges that have come.
    ranges: Vec<(u64, u64)>,
    /// Lines that came.
    pub lines: u64,
    failed: Option<io::Error>,
}

impl Assembly {
    /// Starts a dump with its first line.
    ///
    /// # Errors
    /// When no temporary file can be made.
    pub fn new(chunk: &Chunk) -> io::Result<Self> {
        let mut assembly =
            Self { dump: chunk.dump, file: tempfile::tempfile()?, ranges: Vec::new(), lines: 0, failed: None };
        assembly.add(chunk);
        Ok(assembly)
    }

    /// Takes a line of this dump.
    pub fn add(&mut self, chunk: &Chunk) {
        self.lines += 1;
        let start = u64::from(chunk.position);
        let end = start + chunk.bytes().len() as u64;
        let written = self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.write_all(chunk.bytes()));
        match written {
            Ok(()) => self.cover(start, end),
            Err(error) => self.failed = Some(error),
        }
    }

    fn cover(&mut self, start: u64, end: u64) {
        // The usual line goes on where the last one ended.
        if let Some(last) = self.ranges.last_mut()
            && last.1 == start
        {
            last.1 = end;
            return;
        }
        let at = self.ranges.partition_point(|range| range.1 < start);
        let touching = self.ranges[at..].iter().take_while(|range| range.0 <= end).count();
        let joined = self.ranges[at..at + touching]
            .iter()
            .fold((start, end), |sum, range| (sum.0.min(range.0), sum.1.max(range.1)));
        if touching == 0 && self.ranges.len() >= MOST_RANGES {
            return;
        }
        self.ranges.splice(at..at + touching, [joined]);
    }

    /// Bytes that came, and bytes that are missing before the last of them.
    pub fn coverage(&self) -> (u64, u64) {
        let came = self.ranges.iter().map(|range| range.1 - range.0).sum();
        let end = self.ranges.last().map_or(0, |range| range.1);
        (came, end - came)
    }

    /// The bytes, missing ones as zeros; a hole that is longer than everything that came is shortened, so that a line which
    /// claims a far position costs no more than any other. The sections behind it then stand before their positions.
    ///
    /// # Errors
    /// Those of the temporary file, also earlier ones.
    pub fn read(mut self) -> io::Result<Vec<u8>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (came, _) = self.coverage();
        let mut zeros = came + LONGEST_HOLE;
        let mut bytes = Vec::new();
        let mut at = 0;
        for (start, end) in self.ranges {
            let hole = (start - at).min(zeros);
            zeros -= hole;
            bytes.resize(bytes.len() + usize::try_from(hole).unwrap_or(0), 0);
            self.file.seek(SeekFrom::Start(start))?;
            let room = MOST_BYTES.saturating_sub(bytes.len() as u64);
            (&self.file).take((end - start).min(room)).read_to_end(&mut bytes)?;
            at = end;
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
}
