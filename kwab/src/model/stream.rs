//! Goes through all records of a dump of any size, in the order of the log they came from.
//!
//! Sections of one kind are in order among themselves; the kinds are merged by the line of the log each record names,
//! so one section per kind is in memory. Records without a line come where they stand.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kwab_format::{Defect, RawRecord, Records, SectionKind};

use super::DumpFile;
use super::memory::Payload;

/// The sections of one kind, one of them loaded.
struct Run {
    kind: SectionKind,
    sections: Vec<usize>,
    next: usize,
    payload: Payload,
    at: usize,
    line: u64,
}

/// Calls `each` with every record. Gives the sections that could not be read.
///
/// # Errors
/// The first error of `each` ends the walk.
pub fn for_each<E>(
    file: &DumpFile,
    wanted: impl Fn(SectionKind) -> bool,
    mut each: impl FnMut(SectionKind, RawRecord<'_>) -> Result<(), E>,
) -> Result<Vec<Defect>, E> {
    let mut kinds: BTreeMap<SectionKind, Vec<usize>> = BTreeMap::new();
    for (index, section) in file.sections.iter().enumerate() {
        if wanted(section.header.kind) {
            kinds.entry(section.header.kind).or_default().push(index);
        }
    }
    let mut defects = Vec::new();
    let mut runs: Vec<Run> = kinds
        .into_iter()
        .map(|(kind, sections)| Run { kind, sections, next: 0, payload: Payload::default(), at: 0, line: 0 })
        .collect();
    for run in &mut runs {
        run.advance(file, &mut defects);
    }
    let waiting = runs.iter().enumerate().filter(|(_, run)| run.at < run.payload.len());
    let mut waiting: BinaryHeap<Reverse<(u64, usize)>> =
        waiting.map(|(index, run)| Reverse((run.line, index))).collect();
    while let Some(Reverse((_, first))) = waiting.pop() {
        // As long as no other kind has an earlier line, stay with this one.
        let limit = waiting.peek().map(|Reverse((line, _))| *line);
        let run = &mut runs[first];
        while let Some((record, length)) = run.current() {
            each(run.kind, record)?;
            run.at += length;
            run.advance(file, &mut defects);
            if run.at >= run.payload.len() || limit.is_some_and(|limit| run.line > limit) {
                break;
            }
        }
        if run.at < run.payload.len() {
            waiting.push(Reverse((run.line, first)));
        }
    }
    Ok(defects)
}

impl Run {
    /// The record at hand and its length in the payload.
    fn current(&self) -> Option<(RawRecord<'_>, usize)> {
        let rest = self.payload.get(self.at..)?;
        let mut records = Records::new(rest);
        let record = records.next()?;
        Some((record, rest.len() - records.rest().len()))
    }

    /// Makes the record at hand the next one there is, loading sections as needed.
    fn advance(&mut self, file: &DumpFile, defects: &mut Vec<Defect>) {
        loop {
            if let Some((record, _)) = self.current() {
                let line = record.decode().ok().and_then(|record| record.stamp().line);
                // Records without a line stay behind their predecessor.
                self.line = line.unwrap_or(self.line);
                return;
            }
            let Some(index) = self.sections.get(self.next) else {
                self.payload = Payload::default();
                self.at = 0;
                return;
            };
            self.next += 1;
            self.at = 0;
            // Its room is needed for the next one.
            self.payload = Payload::default();
            match file.payload(*index) {
                Ok(payload) => self.payload = payload,
                Err(defect) => defects.push(defect),
            }
        }
    }
}
