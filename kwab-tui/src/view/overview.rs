//! The overview above triage: where it happened, what ran and was said before, in as many columns as there is room for.
//!
//! It repeats nothing that triage concludes: frames with their source, the instruction with its operands, the last
//! calls and the last lines of the log are parts of other tabs, put beside each other where the terminal is wide
//! enough. On a narrow one the same stands below the list while the first row is selected.

use kwab::report::inspect::Report;

use super::table::Table;
use crate::text::{Line, cut, width};
use crate::theme::Tone;

/// Frames that are shown.
const FRAMES: usize = 4;
/// The last calls and the last lines of the log that are shown.
const LAST: usize = 6;
/// Terminals at least this wide have two columns,
const TWO: u16 = 110;
/// and these three.
const THREE: u16 = 180;
/// Blanks between columns.
const GAP: usize = 3;

/// What is known of a death beside its conclusions.
#[derive(Debug, Default)]
pub struct Overview {
    place: Vec<Line>,
    calls: Vec<Line>,
    log: Vec<Line>,
}

impl Overview {
    /// Takes the first frames of the crashed thread with the code of the innermost, and the end of what was recorded.
    #[must_use]
    pub fn new(report: &Report, trace: &Table) -> Self {
        let rows = trace.rows.iter().skip(1);
        let rows = rows.take_while(|row| !cell(row, 0).is_empty());
        // What the compiler's own library inlined says nothing about the place.
        let frames: Vec<_> = rows.filter(|row| !cell(row, 4).starts_with("/rustc/") || cell(row, 0) != "└").collect();
        let frames = &frames[..frames.len().min(FRAMES)];
        let mut place: Vec<Line> = frames.iter().map(|row| frame(row)).collect();
        let marked = |line: &&Line| line.text().starts_with('▶');
        place.extend(frames.first().and_then(|row| row.detail.iter().find(marked)).map(without_bytes));
        let calls = report.syscalls.iter().rev().take(LAST).rev();
        let calls = calls.map(|row| Line::of(Tone::Code, row.text.clone())).collect();
        let log = report.log.iter().rev().take(LAST).rev();
        let log = log.map(|row| Line::of(tone_of(row.level), row.text.clone())).collect();
        Self { place, calls, log }
    }

    /// All of it, one part below the other.
    #[must_use]
    pub fn below(&self) -> Vec<Line> {
        self.parts().flat_map(|(title, lines)| titled(title, lines)).collect()
    }

    /// Lines that the columns take at a width; 0 where there is no room for two columns.
    #[must_use]
    pub fn height(&self, width: u16) -> usize {
        self.columns(width).iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The columns at a width, as lines of the whole width.
    #[must_use]
    pub fn beside(&self, columns: u16, height: u16) -> Vec<Line> {
        let parts = self.columns(columns);
        let each = (usize::from(columns) + GAP) / parts.len().max(1) - GAP.min(usize::from(columns));
        let rows = parts.iter().map(Vec::len).max().unwrap_or(0).min(usize::from(height));
        let row = |number: usize| {
            let mut line = Line::default();
            for (at, part) in parts.iter().enumerate() {
                let last = at + 1 == parts.len();
                line = append(line, part.get(number), each, if last { 0 } else { GAP });
            }
            line
        };
        (0..rows).map(row).collect()
    }

    /// What stands in each column.
    fn columns(&self, width: u16) -> Vec<Vec<Line>> {
        let parts: Vec<_> = self.parts().map(|(title, lines)| titled(title, lines)).collect();
        match (width, parts.len()) {
            (..TWO, _) | (_, 0) => Vec::new(),
            (TWO..THREE, 3) => {
                let mut parts = parts.into_iter();
                let first = parts.next().unwrap_or_default();
                vec![first, parts.flatten().collect()]
            }
            _ => parts,
        }
    }

    /// The parts that say something, with their titles.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &[Line])> {
        let all = [("crashed thread", &self.place), ("last calls", &self.calls), ("last lines of the log", &self.log)];
        all.into_iter().filter(|(_, lines)| !lines.is_empty()).map(|(title, lines)| (title, lines.as_slice()))
    }
}

fn titled(title: &str, lines: &[Line]) -> Vec<Line> {
    let mut all = vec![Line::of(Tone::Dim, title)];
    all.extend(lines.iter().cloned());
    all
}

/// A cell of a row of the trace.
fn cell(row: &super::table::TableRow, column: usize) -> &str {
    row.row.cells.get(column).map_or("", |(_, text)| text.as_str())
}

/// A frame in a line: number, function, source.
fn frame(row: &super::table::TableRow) -> Line {
    let (name, address) = (cell(row, 3), cell(row, 2));
    let line = Line::of(Tone::Dim, format!("{:<3} ", cell(row, 0)));
    let line = line.and(Tone::Code, if name.is_empty() { address } else { name });
    match cell(row, 4) {
        "" => line,
        source => line.and(Tone::Dim, format!("  {source}")),
    }
}

/// The marked instruction without its bytes: mark and address, text, operands.
fn without_bytes(line: &Line) -> Line {
    let pieces = line.pieces.iter().filter(|(tone, _)| *tone != Tone::Dim);
    let pieces = pieces.map(|(tone, text)| (*tone, text.split_whitespace().collect::<Vec<_>>().join(" ") + "  "));
    Line { pieces: pieces.collect() }
}

/// Levels up to `warning` (syslog(2)) stand out.
fn tone_of(level: Option<u8>) -> Tone {
    match level {
        Some(0..=3) => Tone::Alarm,
        Some(4) => Tone::Care,
        _ => Tone::Plain,
    }
}

/// `line` with another part behind it, cut or filled up to `room` columns, and a gap.
fn append(mut line: Line, part: Option<&Line>, room: usize, gap: usize) -> Line {
    let mut left = room;
    for (tone, text) in part.iter().flat_map(|part| &part.pieces) {
        if left == 0 {
            break;
        }
        let text = cut(text, left);
        left = left.saturating_sub(width(&text));
        line = line.and(*tone, text);
    }
    if gap > 0 { line.and(Tone::Plain, " ".repeat(left + gap)) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| Line::plain(*text)).collect()
    }

    #[test]
    fn parts_stand_beside_each_other_where_there_is_room_and_are_cut_to_their_columns() {
        let overview = Overview {
            place: lines(&["#0  load", "#1  users_of_first"]),
            calls: lines(&[&"x".repeat(300)]),
            log: lines(&["booted"]),
        };
        assert_eq!((overview.height(80), overview.beside(80, 9).len()), (0, 0));
        let two: Vec<String> = overview.beside(120, 9).iter().map(Line::text).collect();
        assert_eq!(two.len(), 4);
        assert!(two[0].starts_with("crashed thread ") && two[0].ends_with("   last calls"), "{two:?}");
        assert!(two[1].ends_with('…') && two.iter().all(|line| width(line) <= 120), "{two:?}");
        assert_eq!(two[3].trim(), "booted");
        let three: Vec<String> = overview.beside(200, 2).iter().map(Line::text).collect();
        assert_eq!(three.len(), 2);
        assert!(three[1].ends_with("   booted"), "{three:?}");
        assert_eq!(overview.below().len(), 7);
    }

    #[test]
    fn what_is_not_known_takes_no_room() {
        assert_eq!(Overview::default().height(200), 0);
        assert!(Overview::default().beside(200, 9).is_empty() && Overview::default().below().is_empty());
        let only = Overview { log: lines(&["booted"]), ..Overview::default() };
        assert_eq!(only.beside(120, 9).len(), 2);
    }
}
