//! Lends the memory of a process from the file that recorded it: which bytes of the file are which addresses.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use super::process::CapturedMemory;
use crate::units;

/// Memory that a file says to hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    /// Address of the first byte.
    pub start: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}

/// Memory in the file.
#[derive(Debug, Clone, Copy)]
struct LoadedRange {
    start: u64,
    end: u64,
    offset: u64,
}

/// The memory of a process in a file.
#[derive(Debug)]
pub(super) struct FileMemory<'f> {
    file: &'f File,
    ranges: Vec<LoadedRange>,
    /// Bytes that were claimed and are not there.
    pub lost: u64,
}

impl<'f> FileMemory<'f> {
    /// What the file of `length` bytes has of these claims, in order and without overlap. No byte of the file is taken
    /// twice by claims of different addresses.
    pub(super) fn of(file: &'f File, length: u64, mut claims: Vec<Claim>) -> Self {
        claims.retain(|claim| claim.length > 0);
        claims.sort_by_key(|claim| claim.start);
        let (mut ranges, mut covered, mut left, mut lost) = (Vec::new(), 0_u64, length, 0_u64);
        for claim in claims {
            let there = claim.length.min(length.saturating_sub(claim.offset)).min(u64::MAX - claim.start);
            let skip = covered.saturating_sub(claim.start).min(there);
            let taken = (there - skip).min(left);
            lost = lost.saturating_add(claim.length - there).saturating_add(there - skip - taken);
            if taken > 0 {
                let start = claim.start + skip;
                ranges.push(LoadedRange { start, end: start + taken, offset: claim.offset + skip });
                (covered, left) = (start + taken, left - taken);
            }
        }
        Self { file, ranges, lost }
    }

    /// What is lost, in words.
    pub(super) fn missing(&self) -> Option<String> {
        (self.lost > 0).then(|| format!("{} of memory: the file is cut", units::memory(self.lost)))
    }
}

impl CapturedMemory for FileMemory<'_> {
    fn ranges(&self) -> Vec<Range<u64>> {
        self.ranges.iter().map(|range| range.start..range.end).collect()
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(at) = addr.checked_add(done as u64) else { break };
            let behind = self.ranges.partition_point(|range| range.start <= at);
            let range = behind.checked_sub(1).and_then(|number| self.ranges.get(number));
            let Some(range) = range.filter(|range| at < range.end) else { break };
            let count = (out.len() - done).min(usize::try_from(range.end - at).unwrap_or(usize::MAX));
            self.file.read_exact_at(&mut out[done..done + count], range.offset + (at - range.start))?;
            done += count;
        }
        Ok(done)
    }
}
