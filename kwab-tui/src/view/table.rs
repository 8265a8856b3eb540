//! A view that is a list of finished rows, for lists that are short: findings, tasks, locks, costs, sections,
//! comparisons.

use kwab::model::RecordRef;
use kwab::model::memory::Budget;
use kwab::report::filter::FieldValue;

use super::flame::Flame;
use super::{Column, Key, Link, Look, Row, Slot, Target, View, meaning};
use crate::text::Line;
use crate::theme::Tone;

/// A list of finished rows.
pub struct Table {
    /// Which list it is.
    pub slot: Slot,
    /// Columns of the list, from left to right.
    pub columns: &'static [Column],
    /// The fields a filter can name, in the order of the rows' values.
    pub fields: &'static [&'static str],
    /// Rows in the order of the dump.
    pub rows: Vec<TableRow>,
    /// The command that prints the same; `DUMP` stands for the dump.
    pub command: &'static str,
    /// Why there are no rows.
    pub when_empty: String,
    /// A line above the rows.
    pub summary: Option<Line>,
    /// A picture above the rows.
    pub flame: Option<Flame>,
    /// Rows that the dump's memory limit left no room for.
    pub left_out: usize,
}

/// A finished row.
#[derive(Default)]
pub struct TableRow {
    /// What is drawn.
    pub row: Row,
    /// What is beside it.
    pub detail: Vec<Line>,
    /// Where it leads.
    pub links: Vec<Link>,
    /// What it is; its number in the list when absent.
    pub target: Option<Target>,
    /// The record it comes from.
    pub at: Option<RecordRef>,
    /// The source line that it is about, as `file:line`.
    pub source: Option<String>,
    /// The values of the fields.
    pub values: Vec<Option<FieldValue<'static>>>,
    /// What its columns are sorted by; their text when absent.
    pub keys: Vec<Key>,
    /// What it is in any crash; what its cells say without their numbers when absent.
    pub alike: Option<String>,
}

/// What a row takes of the dump's budget is this often what it holds: its allocations have gaps, and while a dump is
/// read again the rows before it are still shown.
const PRICE: usize = 3;

impl TableRow {
    /// Bytes that it holds.
    fn weight(&self) -> usize {
        let pieces = self.row.cells.iter().chain(self.detail.iter().flat_map(|line| &line.pieces));
        let texts = pieces.map(|(_, text)| size_of::<(Tone, String)>() + text.len()).sum::<usize>();
        let links: usize = self.links.iter().map(|link| size_of::<Link>() + link.label.len()).sum();
        let values = self.values.len() * size_of::<Option<FieldValue<'_>>>() + self.keys.len() * size_of::<Key>();
        let said = self.alike.as_ref().map_or(0, String::len) + self.source.as_ref().map_or(0, String::len);
        size_of::<Self>() + self.detail.len() * size_of::<Line>() + texts + links + values + said
    }
}

/// The first rows, as many as half of the budget's rest has room for (the other lists need theirs), and the number of
/// those that it has none for.
pub(super) fn kept(rows: impl Iterator<Item = TableRow>, budget: &Budget) -> (Vec<TableRow>, usize) {
    let (mut kept, mut left_out) = (Vec::new(), 0);
    let mut room = budget.left() / 2;
    for row in rows {
        let price = (PRICE * row.weight()) as u64;
        if left_out == 0 && price <= room && budget.take(price) {
            room -= price;
            kept.push(row);
        } else {
            left_out += 1;
        }
    }
    kept.shrink_to_fit();
    (kept, left_out)
}

impl View for Table {
    fn columns(&self) -> &[Column] {
        self.columns
    }

    fn has_column(&self, column: usize) -> bool {
        let says = |row: &TableRow| row.row.cells.get(column).is_some_and(|(_, cell)| !matches!(cell.trim(), "" | "–"));
        self.rows.is_empty() || self.rows.iter().any(says)
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// The first frame or register, not the heading above it.
    fn first(&self) -> usize {
        let has_headings = matches!(self.slot, Slot::Backtrace | Slot::Registers);
        let is_heading = |row: &TableRow| has_headings && row.row.cells.first().is_none_or(|(_, cell)| cell.is_empty());
        self.rows.iter().position(|row| !is_heading(row)).unwrap_or(0)
    }

    fn row(&self, index: usize, _look: &Look) -> Row {
        self.rows[index].row.clone()
    }

    fn detail(&self, index: usize, _look: &Look) -> Vec<Line> {
        self.rows[index].detail.clone()
    }

    fn links(&self, index: usize, _look: &Look) -> Vec<Link> {
        self.rows[index].links.clone()
    }

    fn target(&self, index: usize, _look: &Look) -> Option<Target> {
        Some(self.rows[index].target.clone().unwrap_or(Target::Row(self.slot, index)))
    }

    fn find(&self, target: &Target) -> Option<usize> {
        match target {
            Target::Row(slot, row) if *slot == self.slot => Some(*row).filter(|row| *row < self.rows.len()),
            Target::Record(at) => self.rows.iter().position(|row| row.at.as_ref() == Some(at)),
            wanted => self.rows.iter().position(|row| row.target.as_ref() == Some(wanted)),
        }
    }

    fn source(&self, index: usize) -> Option<String> {
        self.rows.get(index)?.source.clone()
    }

    fn fields(&self) -> &'static [&'static str] {
        self.fields
    }

    fn field(&self, index: usize, name: &str) -> Option<FieldValue<'static>> {
        let at = self.fields.iter().position(|field| *field == name)?;
        self.rows[index].values.get(at)?.clone()
    }

    fn key(&self, index: usize, column: usize) -> Option<Key> {
        let row = &self.rows[index];
        let text = || Some(Key::Text(row.row.cells.get(column)?.1.to_lowercase()));
        row.keys.get(column).cloned().or_else(text)
    }

    fn command(&self, dump: &str) -> String {
        self.command.replace("DUMP", dump)
    }

    fn when_empty(&self) -> String {
        if self.left_out > 0 {
            return format!("the memory limit leaves no room for {} rows; --max-mem raises it", self.left_out);
        }
        self.when_empty.clone()
    }

    fn summary(&self) -> Option<Line> {
        self.summary.clone()
    }

    fn alike(&self, index: usize) -> String {
        let row = &self.rows[index];
        row.alike.clone().unwrap_or_else(|| meaning(&row.row, self.columns))
    }

    fn picture_height(&self, _width: u16) -> usize {
        self.flame.as_ref().map_or(0, Flame::height)
    }

    fn picture(&self, selected: usize, look: &Look, width: u16, height: u16) -> Vec<Line> {
        self.flame.as_ref().map_or_else(Vec::new, |flame| flame.draw(selected, look, width, height))
    }

    fn focus(&self, index: usize) -> Option<(u64, u64)> {
        self.flame.as_ref()?.focus(index)
    }

    fn around(&self, window: (u64, u64)) -> Option<(u64, u64)> {
        self.flame.as_ref()?.around(window)
    }

    fn neighbour(&self, index: usize, right: bool) -> Option<usize> {
        self.flame.as_ref()?.neighbour(index, right)
    }

    fn row_at(&self, at: (u16, u16), selected: usize, look: &Look, size: (u16, u16)) -> Option<usize> {
        self.flame.as_ref()?.row_at(at, selected, look, size)
    }
}
