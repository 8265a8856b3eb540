//! The overview above triage: where it happened, what ran and was said before, in as many columns as there is room for.
//!
//! It repeats nothing that triage concludes: frames with their source, the instruction with its operands, the last
//! calls and the last lines of the log are parts of other tabs, put beside each other where the terminal is wide
//! enough; where it is high enough too, they have more lines, and registers and the stacks of other processors and
//! tasks follow. On a narrow one the first parts stand below the list while the first row is selected.

use kwab::report::inspect::Report;

use super::View as _;
use super::table::Table;
use crate::text::{Line, cut_cell, width};
use crate::theme::Tone;

/// Frames that are shown at least.
const FRAMES: usize = 4;
/// The last calls and the last lines of the log that are shown at least.
const LAST: usize = 6;
/// Lines of a part at most.
const MOST: usize = 64;
/// Terminals at least this wide have two columns,
const TWO: u16 = 110;
/// and these three.
const THREE: u16 = 180;
/// Functions of another stack that are shown.
const INNERMOST: usize = 4;
/// The first of the registers of x86-64 that programs do not compute with, in the order of dumps.
const SET_UP: &str = "orig_rax";
/// Blanks between columns.
const GAP: usize = 3;

/// What is known of a death beside its conclusions.
#[derive(Debug, Default)]
pub struct Overview {
    place: Vec<Line>,
    /// The instruction that the crashed thread stopped at, and what would name its frames.
    code: Vec<Line>,
    calls: Vec<Line>,
    log: Vec<Line>,
    registers: Vec<Line>,
    /// Those of them that say how the processor was set up, which only three columns have room for.
    set_up: Vec<Line>,
    /// Whose they are.
    registers_of: String,
    elsewhere: Vec<Line>,
}

/// A part of the overview.
#[derive(Debug, Clone, Copy)]
struct Part<'o> {
    title: &'o str,
    lines: &'o [Line],
    /// Lines that it has wherever it is shown.
    least: usize,
    /// Whether its last lines matter most.
    is_end: bool,
    /// What stands below its lines.
    tail: &'o [Line],
}

impl Part<'_> {
    const fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.tail.is_empty()
    }

    fn least(&self) -> usize {
        self.least.min(self.lines.len())
    }

    /// Lines that it takes with `count` lines of its own.
    const fn height(&self, count: usize) -> usize {
        if count == 0 && self.tail.is_empty() { 0 } else { 1 + count + self.tail.len() }
    }

    fn with(&self, count: usize) -> Vec<Line> {
        let from = if self.is_end { self.lines.len() - count } else { 0 };
        let own = self.lines[from..from + count].iter().chain(self.tail);
        if self.height(count) == 0 { Vec::new() } else { titled(self.title, own) }
    }
}

impl Overview {
    /// Takes the frames of the crashed thread with the code of the innermost, the end of what was recorded, and where
    /// others stood.
    #[must_use]
    pub fn new(report: &Report, trace: &Table, registers: &Table) -> Self {
        let rows = trace.rows.iter().skip(1);
        let rows = rows.take_while(|row| !cell(row, 0).is_empty());
        // What the compiler's own library inlined says nothing about the place.
        let frames: Vec<_> = rows.filter(|row| !cell(row, 4).starts_with("/rustc/") || cell(row, 0) != "└").collect();
        let place = frames.iter().take(MOST).map(|row| frame(row)).collect();
        let marked = |line: &&Line| line.text().starts_with('▶');
        let code = frames.first().and_then(|row| row.detail.iter().find(marked)).map(without_bytes);
        let nameless = report.nameless.iter().map(|text| Line::of(Tone::Dim, text.clone()));
        let calls = folded(report.syscalls.iter().map(|row| row.text.as_str()));
        let log = report.log.iter().rev().take(MOST).rev();
        let of_death = report.registers.first().map_or(0, |set| set.registers.len());
        let rows = registers.rows.get(registers.first()..).unwrap_or_default();
        let rows = &rows[..of_death.min(rows.len())];
        let split = rows.iter().position(|row| cell(row, 0) == SET_UP).unwrap_or(rows.len());
        let (general, set_up) = rows.split_at(split);
        Self {
            place,
            code: code.into_iter().chain(nameless).collect(),
            calls: calls.into_iter().map(|call| Line::of(Tone::Code, call)).collect(),
            log: log.map(|row| Line::of(tone_of(row.level), row.text.clone())).collect(),
            registers: general.iter().map(register).collect(),
            set_up: set_up.iter().map(register).collect(),
            registers_of: report.registers.first().map_or_else(String::new, |set| format!("registers, {}", set.title)),
            elsewhere: others(trace),
        }
    }

    /// The first parts, one below the other.
    #[must_use]
    pub fn below(&self) -> Vec<Line> {
        let parts = [self.place(), self.calls(), self.log()];
        parts.iter().flat_map(|part| part.with(part.least())).collect()
    }

    /// Lines that the first parts take at a width; 0 where there is no room for two columns.
    #[must_use]
    pub fn height(&self, width: u16) -> usize {
        self.height_with(width, |part| part.least.min(part.lines.len()))
    }

    /// Lines that all that is known fills at a width.
    #[must_use]
    pub fn most_height(&self, width: u16) -> usize {
        self.height_with(width, |part| part.lines.len())
    }

    fn height_with(&self, width: u16, count: fn(&Part<'_>) -> usize) -> usize {
        let height = |parts: &Vec<Part<'_>>| parts.iter().map(|part| part.height(count(part))).sum();
        self.columns(width).iter().map(height).max().unwrap_or(0)
    }

    /// The columns at a width, as lines of the whole width.
    #[must_use]
    pub fn beside(&self, columns: u16, height: u16) -> Vec<Line> {
        let parts: Vec<_> = self.columns(columns).iter().map(|parts| fitted(parts, usize::from(height))).collect();
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
    fn columns(&self, width: u16) -> Vec<Vec<Part<'_>>> {
        let (registers, set_up, elsewhere) = (self.registers(), self.set_up(), self.elsewhere());
        let columns = match width {
            ..TWO => Vec::new(),
            TWO..THREE => vec![vec![self.place(), registers, elsewhere], vec![self.calls(), self.log()]],
            _ => vec![vec![self.place(), registers], vec![self.calls(), elsewhere], vec![self.log(), set_up]],
        };
        let said = |parts: Vec<Part<'_>>| parts.into_iter().any(|part| !part.is_empty() && part.least > 0);
        if !columns.iter().any(|parts| said(parts.clone())) {
            return Vec::new();
        }
        let full = columns.into_iter().map(|parts| parts.into_iter().filter(|part| !part.is_empty()).collect());
        full.filter(|parts: &Vec<Part<'_>>| !parts.is_empty()).collect()
    }

    fn place(&self) -> Part<'_> {
        Part { title: "crashed thread", lines: &self.place, least: FRAMES, is_end: false, tail: &self.code }
    }

    fn calls(&self) -> Part<'_> {
        Part { title: "last calls", lines: &self.calls, least: LAST, is_end: true, tail: &[] }
    }

    fn log(&self) -> Part<'_> {
        Part { title: "last lines of the log", lines: &self.log, least: LAST, is_end: true, tail: &[] }
    }

    fn registers(&self) -> Part<'_> {
        Part { title: &self.registers_of, lines: &self.registers, least: 0, is_end: false, tail: &[] }
    }

    fn set_up(&self) -> Part<'_> {
        Part { title: "control and segment registers", lines: &self.set_up, least: 0, is_end: false, tail: &[] }
    }

    fn elsewhere(&self) -> Part<'_> {
        Part { title: "other processors and tasks", lines: &self.elsewhere, least: 0, is_end: false, tail: &[] }
    }
}

/// The parts of a column, each with its least lines, and all with more in turns while there is room.
fn fitted(parts: &[Part<'_>], height: usize) -> Vec<Line> {
    let mut counts: Vec<usize> = parts.iter().map(Part::least).collect();
    let mut used: usize = parts.iter().zip(&counts).map(|(part, count)| part.height(*count)).sum();
    let mut grows = true;
    while std::mem::take(&mut grows) {
        for (part, count) in parts.iter().zip(&mut counts) {
            let more = used - part.height(*count) + part.height(*count + 1);
            if *count < part.lines.len() && more <= height {
                (*count, used, grows) = (*count + 1, more, true);
            }
        }
    }
    parts.iter().zip(counts).flat_map(|(part, count)| part.with(count)).collect()
}

fn titled<'l>(title: &str, lines: impl Iterator<Item = &'l Line>) -> Vec<Line> {
    let mut all = vec![Line::of(Tone::Dim, title)];
    all.extend(lines.cloned());
    all
}

/// The last texts, each with how often it stood in a row.
fn folded<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut all: Vec<(&str, usize)> = Vec::new();
    for text in texts {
        match all.last_mut() {
            Some((last, count)) if *last == text => *count += 1,
            _ => all.push((text, 1)),
        }
    }
    let text = |(text, count): &(&str, usize)| match count {
        1 => (*text).to_string(),
        _ => format!("{text} × {count}"),
    };
    all[all.len().saturating_sub(MOST)..].iter().map(text).collect()
}

/// A register in a line, with what it is.
fn register(row: &super::table::TableRow) -> Line {
    let line = Line::of(Tone::Dim, format!("{:<8} ", cell(row, 0))).and(Tone::Plain, cell(row, 1));
    match cell(row, 2) {
        "" => line,
        what => line.and(Tone::Dim, format!("  {what}")),
    }
}

/// The stacks behind the first one of the trace, each in a line: whose it is, and its innermost functions.
fn others(trace: &Table) -> Vec<Line> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    let behind = trace.rows.iter().skip(1).skip_while(|row| !cell(row, 0).is_empty());
    for row in behind {
        let number = cell(row, 0);
        if number.is_empty() && all.len() == MOST {
            break;
        }
        if number.is_empty() {
            all.push((cell(row, 3), Vec::new()));
        } else if let Some((_, frames)) =
            all.last_mut().filter(|(_, frames)| number.starts_with('#') && frames.len() < INNERMOST)
        {
            let name = cell(row, 3).split('+').next().filter(|name| !name.is_empty());
            frames.push(name.unwrap_or_else(|| cell(row, 2)));
        }
    }
    let line = |(owner, frames): (&str, Vec<&str>)| {
        Line::of(Tone::Plain, owner).and(Tone::Code, format!("  {}", frames.join(" < ")))
    };
    all.into_iter().map(line).collect()
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
    pieces.fold(Line::default(), |line, (tone, text)| line.and(tone, text))
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
        let text = cut_cell(text, left);
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
            ..Overview::default()
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
    fn room_is_given_to_every_part_of_a_column_in_turns_and_the_last_lines_of_a_log_stay() {
        let many = |name: &str| (0..20).map(|at| Line::plain(format!("{name}{at}"))).collect::<Vec<_>>();
        let overview = Overview {
            place: many("frame"),
            code: lines(&["▶ mov"]),
            log: many("line"),
            registers: many("r"),
            registers_of: "registers".to_string(),
            elsewhere: many("cpu"),
            ..Overview::default()
        };
        let shown = |height| overview.beside(120, height).iter().map(Line::text).collect::<Vec<_>>();
        let least = shown(6);
        assert!(least[4].starts_with("frame3") && least[5].starts_with("▶ mov"), "{least:?}");
        let more = shown(24).join("\n");
        for said in ["frame9", "▶ mov", "registers", "r4", "other processors and tasks", "cpu4", "line0", "line19"] {
            assert!(more.contains(said), "{said} is missing:\n{more}");
        }
        assert!(shown(12).iter().any(|line| line.ends_with("line19")));
        assert_eq!((overview.height(120), overview.most_height(120)), (7, 64));
        assert_eq!(shown(70).len(), 64);
    }

    #[test]
    fn calls_that_follow_themselves_are_one_line_with_their_number() {
        let calls = ["read() = 0", "sched_yield() = 0", "sched_yield() = 0", "read() = 0"];
        assert_eq!(folded(calls.into_iter()), ["read() = 0", "sched_yield() = 0 × 2", "read() = 0"]);
        assert_eq!(folded((0..100).map(|at| if at % 2 == 0 { "a" } else { "b" })).len(), MOST);
    }

    #[test]
    fn what_is_not_known_takes_no_room() {
        assert_eq!(Overview::default().height(200), 0);
        assert!(Overview::default().beside(200, 9).is_empty() && Overview::default().below().is_empty());
        let only = Overview { log: lines(&["booted"]), ..Overview::default() };
        assert_eq!(only.beside(120, 9).len(), 2);
    }
}
