//! Makes bytes of an armoured dump that were lost or damaged on the way from its parity lines (FORMAT.md 5.4).
//!
//! A damaged line still has most of its bytes. What of its frame is known (prefix, the dump's id, colons) says where it
//! stands in the text, its digits and the lines around it where in the dump. Its bytes are *doubtful*: a column may
//! change them, but never a byte of a line whose CRC is right, and a column that would is not mended.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kwab_format::armour::LINE_BYTES;
use kwab_format::parity::{GROUP_BYTES, ROWS, Row, decode_line, group_start};
use kwab_format::reed_solomon::{CHECKS, mend};

use self::frame::{LineKind, TornFrame};

mod frame;

/// Bytes of a damaged line that are kept for a dump that has not begun.
pub const MOST_LINE: usize = 512;
/// Damaged lines of a dump that are kept.
const MOST_TORN: usize = 1 << 16;
/// Parity lines of a dump that are kept: those of 32 MiB.
const MOST_ROWS: usize = (32 << 20) / GROUP_BYTES * ROWS;

/// Check bytes that have to agree beyond those that mending takes: without any, every word is one of the code.
const SPARE: usize = 4;

/// What came of a dump beside its sound lines.
#[derive(Debug, Default)]
pub struct Damage {
    rows: BTreeMap<(u32, u8), [u8; LINE_BYTES]>,
    torn: Vec<TornLine>,
    /// End and row of the last parity line.
    last: Option<(u32, u8)>,
}

/// A damaged line, and what came before it.
#[derive(Debug)]
struct TornLine {
    frame: TornFrame,
    /// The position behind the last byte that came.
    next: u32,
    last: Option<(u32, u8)>,
}

impl Damage {
    /// Takes a sound parity line.
    pub fn row(&mut self, row: &Row) {
        self.last = Some((row.end, row.row));
        if self.rows.len() < MOST_ROWS {
            self.rows.entry((row.end, row.row)).or_insert(row.bytes);
        }
    }

    /// Takes text that may be damaged lines of `dump`, and says whether it looks like that; `next` is the position
    /// behind the last byte that came.
    pub fn line(&mut self, dump: u32, text: &[u8], next: u32) -> bool {
        let mut looks = false;
        for frame in frame::frames(dump, text) {
            looks = true;
            if self.torn.len() < MOST_TORN {
                self.torn.push(TornLine { frame, next, last: self.last });
            }
        }
        looks
    }

    /// Finds out where the damaged lines belong.
    pub fn placed(self) -> Placed {
        let longest = self.rows.last_key_value().map_or(0, |((end, _), _)| *end);
        // Only the last group of a dump may be shorter.
        let ends = self.rows.keys().map(|(end, _)| *end);
        let ends =
            ends.filter(|end| *end == longest || end.is_multiple_of(GROUP_BYTES as u32)).collect::<BTreeSet<_>>();
        let mut doubtful: BTreeMap<u32, Vec<(usize, TornPlace)>> = BTreeMap::new();
        let (mut data, mut parity) = (Chain::default(), Chain::default());
        for (number, TornLine { frame, next, last }) in self.torn.iter().enumerate() {
            match frame.kind {
                LineKind::Data => {
                    let Some(position) = frame.position(data.expected(*next)) else { continue };
                    let end = position.saturating_add(frame.bytes.len() as u32);
                    data.went_on(*next, end);
                    // A line may begin in one group and end in the next.
                    for start in BTreeSet::from([group_start(position.saturating_add(1)), group_start(end)]) {
                        doubtful.entry(start).or_default().push((number, TornPlace::Position(position)));
                    }
                }
                LineKind::Parity => {
                    let expected = last.map(|(end, row)| (end, row + 1));
                    let Some((end, row)) = frame.row(parity.expected(expected), &ends) else { continue };
                    parity.went_on(expected, Some((end, row + 1)));
                    doubtful.entry(group_start(end)).or_default().push((number, TornPlace::Row(row)));
                }
            }
        }
        Placed { damage: self, ends, doubtful }
    }
}

/// Where a damaged line belongs.
#[derive(Debug, Clone, Copy)]
enum TornPlace {
    /// Its first byte in the dump.
    Position(u32),
    /// A parity line of its group.
    Row(u8),
}

/// What came of a dump beside its sound lines, by group.
#[derive(Debug)]
pub struct Placed {
    damage: Damage,
    ends: BTreeSet<u32>,
    /// The damaged lines by the start of their group.
    doubtful: BTreeMap<u32, Vec<(usize, TornPlace)>>,
}

impl Placed {
    /// The ends of the groups that have parity lines.
    pub fn ends(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().copied()
    }

    /// Whether the group that ends there can be mended at all, if so many of its bytes did not come on sound lines: a
    /// column needs as many of its bytes and check bytes as it has bytes.
    pub fn may_mend(&self, end: u32, missing: u64) -> bool {
        let doubtful = self.doubtful.get(&group_start(end)).map_or(0, Vec::len);
        let rows = self.damage.rows.range((end, 0)..=(end, u8::MAX)).count();
        let length = u64::from(end - group_start(end));
        let most = length - missing + (rows + doubtful * LINE_BYTES) as u64;
        missing > 0 && most >= length.div_ceil(LINE_BYTES as u64)
    }

    /// The group that ends there, with its parity lines and damaged lines.
    pub fn group(&self, end: u32) -> Group {
        let mut group = Group::new(end);
        for ((_, row), bytes) in self.damage.rows.range((end, 0)..=(end, u8::MAX)) {
            group.row(*row, bytes.iter().map(|byte| Some(*byte)), Trust::Sound);
        }
        for (number, place) in self.doubtful.get(&group.start).into_iter().flatten() {
            let bytes = self.damage.torn.get(*number).map_or(&[][..], |torn| &torn.frame.bytes);
            match *place {
                TornPlace::Row(row) => group.row(row, bytes.iter().copied(), Trust::Doubtful),
                TornPlace::Position(position) => {
                    for (at, byte) in (u64::from(position)..).zip(bytes) {
                        byte.iter().for_each(|byte| group.put(at, *byte, Trust::Doubtful));
                    }
                }
            }
        }
        group
    }
}

/// Where the next of several damaged lines in a row belongs.
#[derive(Debug, Default)]
struct Chain<T> {
    /// What was expected behind the last sound line, and what is expected now.
    now: Option<(T, T)>,
}

impl<T: Copy + PartialEq> Chain<T> {
    fn expected(&self, behind_sound: T) -> T {
        self.now.filter(|(from, _)| *from == behind_sound).map_or(behind_sound, |(_, now)| now)
    }

    fn went_on(&mut self, behind_sound: T, now: T) {
        self.now = Some((behind_sound, now));
    }
}

/// How far a byte is to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Trust {
    /// It did not come.
    Missing,
    /// It came on a damaged line.
    Doubtful,
    /// It came on a line whose CRC is right.
    Sound,
}

/// The bytes of a group and its parity lines.
#[derive(Debug)]
pub struct Group {
    start: u32,
    end: u32,
    /// The bytes of the dump, then the parity lines, each with a byte for each column.
    cells: Vec<(u8, Trust)>,
}

impl Group {
    fn new(end: u32) -> Self {
        let start = group_start(end);
        Self { start, end, cells: vec![(0, Trust::Missing); (end - start) as usize + ROWS * LINE_BYTES] }
    }

    /// The positions of its bytes.
    pub fn range(&self) -> Range<u64> {
        u64::from(self.start)..u64::from(self.end)
    }

    /// Bytes at `position` that came on sound lines.
    pub fn sound(&mut self, position: u64, bytes: &[u8]) {
        for (at, byte) in (position..).zip(bytes) {
            self.put(at, *byte, Trust::Sound);
        }
    }

    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn put(&mut self, position: u64, byte: u8, trust: Trust) {
        if self.range().contains(&position) {
            self.set((position - u64::from(self.start)) as usize, byte, trust);
        }
    }

    fn row(&mut self, row: u8, bytes: impl Iterator<Item = Option<u8>>, trust: Trust) {
        let first = self.len() + usize::from(row) * LINE_BYTES;
        for (at, byte) in (first..).zip(bytes.take(LINE_BYTES)) {
            if let Some(byte) = byte {
                self.set(at, byte, trust);
            }
        }
    }

    fn set(&mut self, at: usize, byte: u8, trust: Trust) {
        if let Some(cell) = self.cells.get_mut(at).filter(|cell| cell.1 < trust) {
            *cell = (byte, trust);
        }
    }

    /// The runs of bytes that did not come on sound lines and that parity gives, with their positions.
    pub fn mended(mut self) -> Vec<(u64, Vec<u8>)> {
        let length = self.len();
        let mut given = vec![false; length];
        for column in 0..LINE_BYTES {
            let places: Vec<usize> = (column..length).step_by(LINE_BYTES).collect();
            let checks = (0..ROWS).map(|row| length + row * LINE_BYTES + column);
            let cells: Vec<usize> = places.iter().copied().chain(checks).collect();
            let Some(word) = self.column(&cells) else { continue };
            for (at, byte) in places.into_iter().zip(word) {
                given[at] = self.cells[at].1 != Trust::Sound;
                self.cells[at].0 = byte;
            }
        }
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for at in (0..length).filter(|at| given[*at]) {
            let position = u64::from(self.start) + at as u64;
            match runs.last_mut() {
                Some((first, bytes)) if *first + bytes.len() as u64 == position => bytes.push(self.cells[at].0),
                _ => runs.push((position, vec![self.cells[at].0])),
            }
        }
        runs
    }

    /// The word that stands in `cells`, mended.
    fn column(&self, cells: &[usize]) -> Option<Vec<u8>> {
        // Without the doubtful bytes no wrong one is among the rest.
        self.without(cells, Trust::Doubtful).or_else(|| self.without(cells, Trust::Missing))
    }

    /// The same, with what is trusted no more than `least` taken for missing.
    fn without(&self, cells: &[usize], least: Trust) -> Option<Vec<u8>> {
        let known = cells.iter().map(|at| self.cells[*at]);
        let missing: Vec<u8> =
            (0u8..).zip(known.clone()).filter(|(_, cell)| cell.1 <= least).map(|(at, _)| at).collect();
        if missing.len() > CHECKS {
            return None;
        }
        let mut word: Vec<u8> = known.clone().map(|cell| cell.0).collect();
        mend(&mut word, &missing)?;
        let changed = known.zip(&word).filter(|(cell, byte)| cell.1 > least && cell.0 != **byte);
        let (sound, wrong) =
            changed.fold((false, 0), |(sound, wrong), (cell, _)| (sound | (cell.1 == Trust::Sound), wrong + 1));
        let spare = CHECKS - missing.len();
        (!sound && (least == Trust::Doubtful || 2 * wrong + SPARE <= spare)).then_some(word)
    }
}

/// The sound parity lines in a line of text, and whether there is nothing else in it.
pub fn rows_in(text: &[u8]) -> (Vec<Row>, bool) {
    let (mut rows, mut only, mut rest) = (Vec::new(), true, text);
    while let Some(found) = memchr::memmem::find(rest, kwab_format::parity::PREFIX) {
        let (before, line) = rest.split_at(found);
        let (row, length) = decode_line(line).map_or((None, 1), |(row, length)| (Some(row), length));
        only &= row.is_some() && before.iter().all(u8::is_ascii_whitespace);
        rows.extend(row);
        rest = &line[length..];
    }
    (rows, only && rest.iter().all(u8::is_ascii_whitespace))
}

#[cfg(test)]
mod tests;
