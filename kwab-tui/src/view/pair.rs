//! Two lists of the same kind side by side: the same row of both on one line, and what differs.
//!
//! Which rows belong together the library decides ([`kwab::report::align`]); a line is of both or of one side, and it
//! differs when it lacks a side or when a column that means something says something else.

use std::sync::Arc;

use kwab::report::align::{Beside, align, fingerprint};
use kwab::report::filter::FieldValue;

use super::{Column, Key, Link, Look, Row, Target, View, text};
use crate::text::{Line, grouped};
use crate::theme::Tone;

/// Rows that are read between two looks whether to go on.
const AT_ONCE: usize = 512;

/// Two lists, line by line.
pub struct PairView {
    left: Arc<dyn View>,
    right: Arc<dyn View>,
    /// What the two crashes are called.
    names: (String, String),
    columns: Vec<Column>,
    lines: Vec<Beside>,
    differ: Vec<bool>,
    /// The line of every row of each side.
    left_at: Vec<u32>,
    right_at: Vec<u32>,
    /// Lines that differ, those without a right side, those without a left one.
    counts: (usize, usize, usize),
}

impl PairView {
    /// Puts two lists beside each other; `go_on` is told how far it is, and `None` is its no.
    pub fn new(
        left: Arc<dyn View>,
        right: Arc<dyn View>,
        names: (String, String),
        go_on: &mut dyn FnMut(usize, usize) -> bool,
    ) -> Option<Self> {
        let total = left.len() + right.len() + left.len().max(right.len());
        let mut done = 0;
        let prints = |view: &dyn View, done: &mut usize, go_on: &mut dyn FnMut(usize, usize) -> bool| {
            let mut prints = Vec::with_capacity(view.len());
            for index in 0..view.len() {
                if (*done).is_multiple_of(AT_ONCE) && !go_on(*done, total) {
                    return None;
                }
                *done += 1;
                prints.push(fingerprint(&view.alike(index)));
            }
            Some(prints)
        };
        let of_left = prints(left.as_ref(), &mut done, go_on)?;
        let of_right = prints(right.as_ref(), &mut done, go_on)?;
        let lines = align(&of_left, &of_right, &mut || go_on(done, total))?;
        let mark = [Column::new("", 1, 0)];
        let columns = mark.iter().chain(left.columns()).chain(right.columns()).copied().collect();
        let (left_at, right_at) = (vec![0; left.len()], vec![0; right.len()]);
        let mut pair =
            Self { left, right, names, columns, lines, differ: Vec::new(), left_at, right_at, counts: (0, 0, 0) };
        for index in 0..pair.lines.len() {
            if index.is_multiple_of(AT_ONCE) && !go_on((done + index).min(total), total) {
                return None;
            }
            let differs = pair.cells_differ(index).is_none_or(|cells| cells.contains(&true));
            pair.differ.push(differs);
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            let (here, there) = pair.sides(index);
            here.into_iter().for_each(|row| pair.left_at[row] = number);
            there.into_iter().for_each(|row| pair.right_at[row] = number);
        }
        let differ = pair.differ.iter().filter(|differs| **differs).count();
        let lacks = |of: fn(&Beside) -> bool| pair.lines.iter().filter(|line| of(line)).count();
        pair.counts = (differ, lacks(|line| line.right.is_none()), lacks(|line| line.left.is_none()));
        Some(pair)
    }

    /// The rows of a line: this crash's and the other's.
    #[must_use]
    pub fn sides(&self, index: usize) -> (Option<usize>, Option<usize>) {
        let line = self.lines.get(index).copied().unwrap_or(Beside { left: None, right: None });
        (line.left.map(|row| row as usize), line.right.map(|row| row as usize))
    }

    /// The two lists.
    #[must_use]
    pub fn views(&self) -> (&dyn View, &dyn View) {
        (self.left.as_ref(), self.right.as_ref())
    }

    /// What the two crashes are called.
    #[must_use]
    pub fn names(&self) -> (&str, &str) {
        (&self.names.0, &self.names.1)
    }

    /// Which cells of a line differ; absent when one side has no such row.
    fn cells_differ(&self, index: usize) -> Option<Vec<bool>> {
        let (left, right) = self.sides(index);
        let look = Look::default();
        let (left, right) = (self.left.row(left?, &look), self.right.row(right?, &look));
        let cells = left.cells.iter().zip(&right.cells).zip(self.left.columns());
        Some(cells.map(|((left, right), column)| !column.incidental && left.1 != right.1).collect())
    }
}

/// The cells of a side: what differs stands out, what does not steps back.
fn side(row: Option<Row>, columns: usize, differs: bool, cells: Option<&[bool]>) -> Vec<(Tone, String)> {
    let Some(row) = row else { return vec![(Tone::Dim, String::new()); columns] };
    let of_cell = |index: usize, tone: Tone| match (differs, cells) {
        (false, _) => Tone::Dim,
        (true, Some(cells)) if cells.get(index) == Some(&true) => Tone::Care,
        (true, Some(_)) => Tone::Plain,
        (true, None) => tone,
    };
    let shown = row.cells.into_iter().enumerate().map(|(index, (tone, cell))| (of_cell(index, tone), cell));
    let mut shown: Vec<(Tone, String)> = shown.collect();
    shown.resize(columns, (Tone::Dim, String::new()));
    shown
}

impl View for PairView {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn len(&self) -> usize {
        self.lines.len()
    }

    fn row(&self, index: usize, look: &Look) -> Row {
        let (left, right) = self.sides(index);
        let differs = self.differ.get(index) == Some(&true);
        let cells = if differs { self.cells_differ(index) } else { None };
        let mark = match (left, right) {
            _ if !differs => " ",
            (Some(_), Some(_)) => "≠",
            (Some(_), None) => "<",
            _ => ">",
        };
        let of = |view: &dyn View, row: Option<usize>| {
            side(row.map(|row| view.row(row, look)), view.columns().len(), differs, cells.as_deref())
        };
        let mut all = vec![(Tone::Alarm, mark.to_string())];
        all.extend(of(self.left.as_ref(), left));
        all.extend(of(self.right.as_ref(), right));
        Row { cells: all }
    }

    fn detail(&self, index: usize, look: &Look) -> Vec<Line> {
        let (left, right) = self.sides(index);
        let mut lines = Vec::new();
        for (view, row, name) in [(&self.left, left, &self.names.0), (&self.right, right, &self.names.1)] {
            lines.push(Line::of(Tone::Dim, name.clone()));
            match row {
                Some(row) => lines.extend(view.detail(row, look)),
                None => lines.push(Line::of(Tone::Care, "no such row")),
            }
        }
        lines
    }

    fn links(&self, index: usize, look: &Look) -> Vec<Link> {
        let (left, right) = self.sides(index);
        let mut links = left.map_or_else(Vec::new, |row| self.left.links(row, look));
        let others = right.map_or_else(Vec::new, |row| self.right.links(row, look)).into_iter();
        links.extend(
            others.map(|link| Link::new(format!("other: {}", link.label), Target::Other(Box::new(link.target)))),
        );
        links
    }

    fn target(&self, index: usize, look: &Look) -> Option<Target> {
        match self.sides(index) {
            (Some(row), _) => self.left.target(row, look),
            (None, row) => self.right.target(row?, look).map(|target| Target::Other(Box::new(target))),
        }
    }

    fn find(&self, target: &Target) -> Option<usize> {
        let (row, at) = match target {
            Target::Other(target) => (self.right.find(target), &self.right_at),
            target => (self.left.find(target), &self.left_at),
        };
        at.get(row?).map(|line| *line as usize)
    }

    fn fields(&self) -> &'static [&'static str] {
        self.left.fields()
    }

    fn all_fields(&self) -> Vec<&'static str> {
        self.fields().iter().copied().chain(["same"]).collect()
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        if name == "same" {
            return text(if self.differ.get(index) == Some(&true) { "no" } else { "yes" });
        }
        let (left, right) = self.sides(index);
        let of_left = left.and_then(|row| self.left.field(row, name));
        of_left.or_else(|| self.right.field(right?, name))
    }

    fn text(&self, index: usize) -> String {
        let (left, right) = self.sides(index);
        let of_left = left.map(|row| self.left.text(row)).unwrap_or_default();
        format!("{of_left} {}", right.map(|row| self.right.text(row)).unwrap_or_default())
    }

    fn key(&self, index: usize, column: usize) -> Option<Key> {
        let (left, right) = self.sides(index);
        let own = self.left.columns().len();
        match column.checked_sub(1) {
            None => Some(Key::Number(u64::from(self.differ.get(index) != Some(&true)))),
            Some(column) if column < own => self.left.key(left?, column),
            Some(column) => self.right.key(right?, column - own),
        }
    }

    fn command(&self, dump: &str) -> String {
        self.left.command(dump)
    }

    fn when_empty(&self) -> String {
        format!("neither has any: {}", self.left.when_empty())
    }

    fn picture_height(&self, width: u16) -> usize {
        self.left.picture_height(width / 2).max(self.right.picture_height(width / 2))
    }

    fn summary(&self) -> Option<Line> {
        let (differ, of_left, of_right) = self.counts;
        let number = |count: usize| grouped(count as u64);
        let tone = if differ == 0 { Tone::Good } else { Tone::Care };
        let said = match differ {
            0 => "no difference".to_string(),
            _ => format!(
                "{} of {} differ: ≠ {}, < {}, > {}; n the next",
                number(differ),
                number(self.len()),
                number(differ - of_left - of_right),
                number(of_left),
                number(of_right)
            ),
        };
        Some(Line::of(tone, said).and(Tone::Dim, format!("   {}  |  {}", self.names.0, self.names.1)))
    }

    fn pair(&self) -> Option<&PairView> {
        Some(self)
    }
}
