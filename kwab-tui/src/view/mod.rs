//! What every view has in common: rows, what is beside a row, where it leads, and the command that says the same.
//!
//! A view is a value that is made once from a dump, in the background, and then only looked at: any row by its number,
//! as often as it is drawn. Selection, filter, search, sorting, export and drawing are written once, over this trait.

pub mod audit;
pub mod backtrace;
pub mod catalogue;
pub mod compare;
mod coverage;
pub mod flame;
mod folds;
pub mod hex;
pub mod integrity;
pub mod log;
pub mod marks;
pub mod memory;
pub mod overview;
pub mod pages;
pub mod pair;
pub mod partners;
pub mod profile;
pub mod registers;
pub mod syscalls;
pub mod table;
pub mod tasks;
pub mod timeline;
pub mod triage;

use std::borrow::Cow;

use kwab::report::align::shape;
use kwab::report::filter::{FieldValue, Fields};

pub use crate::target::{Slot, Target};
use crate::text::Line;
use crate::theme::Tone;

/// A column of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Heading of the column.
    pub name: &'static str,
    /// Its width; 0 takes what the others leave.
    pub width: u16,
    /// Whether it is aligned at the right.
    pub right: bool,
    /// Narrow terminals leave out the columns with the highest numbers first.
    pub rank: u8,
    /// Whether it differs from one run to the next without meaning anything: times, numbers of processes.
    pub incidental: bool,
}

impl Column {
    /// A column of fixed width.
    #[must_use]
    pub const fn new(name: &'static str, width: u16, rank: u8) -> Self {
        Self { name, width, right: false, rank, incidental: false }
    }

    /// A column of numbers.
    #[must_use]
    pub const fn number(name: &'static str, width: u16, rank: u8) -> Self {
        Self { name, width, right: true, rank, incidental: false }
    }

    /// The column that takes the rest.
    #[must_use]
    pub const fn rest(name: &'static str) -> Self {
        Self { name, width: 0, right: false, rank: 0, incidental: false }
    }

    /// The same for what says nothing when two crashes are compared.
    #[must_use]
    pub const fn incidental(self) -> Self {
        Self { incidental: true, ..self }
    }
}

/// A row as it is drawn: one text per column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The cells, in the order of the columns.
    pub cells: Vec<(Tone, String)>,
}

impl Row {
    /// A row of one tone.
    pub fn of(tone: Tone, cells: impl IntoIterator<Item = String>) -> Self {
        Self { cells: cells.into_iter().map(|cell| (tone, cell)).collect() }
    }

    /// The same with one cell in another tone.
    #[must_use]
    pub fn tone(mut self, column: usize, tone: Tone) -> Self {
        if let Some(cell) = self.cells.get_mut(column) {
            cell.0 = tone;
        }
        self
    }

    /// Its cells, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let cells: Vec<&str> = self.cells.iter().map(|(_, cell)| cell.trim()).filter(|cell| !cell.is_empty()).collect();
        cells.join("  ")
    }
}

/// A link from a row to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Label that a menu shows.
    pub label: String,
    /// Where it leads.
    pub target: Target,
}

impl Link {
    /// Makes a link with the label that a menu shows.
    pub fn new(label: impl Into<String>, target: Target) -> Self {
        Self { label: label.into(), target }
    }
}

/// How a list is looked at, beyond which row is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The byte of a hex row under the cursor, 0 to 15.
    pub byte: u8,
    /// Bytes of a word: 1, 2, 4, 8.
    pub word: u8,
    /// Whether words are big-endian.
    pub big_endian: bool,
    /// What part of the timeline its lanes show; all of it when absent.
    pub window: Option<(u64, u64)>,
    /// Whether the picture is shown, so that the detail need not say the same.
    pub pictured: bool,
    /// Columns of the screen that the list has.
    pub room: u16,
}

impl Default for Look {
    fn default() -> Self {
        Self { byte: 0, word: 1, big_endian: false, window: None, pictured: false, room: u16::MAX }
    }
}

/// A list of rows about a dump.
pub trait View: Send + Sync {
    /// Columns of the list, from left to right.
    fn columns(&self) -> &[Column];
    /// Columns of a list that has so many columns of the screen.
    fn columns_in(&self, _room: u16) -> &[Column] {
        self.columns()
    }
    /// Whether any row says something in a column; one that is empty in all of them is not drawn.
    fn has_column(&self, _column: usize) -> bool {
        true
    }
    /// How many rows it has.
    fn len(&self) -> usize;
    /// Whether it has none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The row that is selected when the list is first shown.
    fn first(&self) -> usize {
        0
    }
    /// Cells of a row; `index` is less than `len`.
    fn row(&self, index: usize, look: &Look) -> Row;
    /// What is shown beside or below a row.
    fn detail(&self, index: usize, look: &Look) -> Vec<Line>;
    /// Where a row leads.
    fn links(&self, _index: usize, _look: &Look) -> Vec<Link> {
        Vec::new()
    }
    /// The source line that a row is about, as `file:line`.
    fn source(&self, _index: usize) -> Option<String> {
        None
    }
    /// The rows that caused this one.
    fn causes(&self, _index: usize, _look: &Look) -> Vec<Link> {
        Vec::new()
    }
    /// The rows that this one caused.
    fn effects(&self, _index: usize, _look: &Look) -> Vec<Link> {
        Vec::new()
    }
    /// What a row is, for marks and for copying its address.
    fn target(&self, _index: usize, _look: &Look) -> Option<Target> {
        None
    }
    /// The row that is, or holds, a target.
    fn find(&self, _target: &Target) -> Option<usize> {
        None
    }
    /// The fields that a filter can name.
    fn fields(&self) -> &'static [&'static str] {
        &[]
    }
    /// The same with those that only some lists of its kind have.
    fn all_fields(&self) -> Vec<&'static str> {
        self.fields().to_vec()
    }
    /// A field of a row.
    fn field(&self, _index: usize, _name: &str) -> Option<FieldValue<'static>> {
        None
    }
    /// The text of a row that a filter looks into.
    fn text(&self, index: usize) -> String {
        self.row(index, &Look::default()).text()
    }
    /// What a column is sorted by; `None` when the order of the view is its meaning.
    fn key(&self, _index: usize, _column: usize) -> Option<Key> {
        None
    }
    /// The command that prints the same.
    fn command(&self, dump: &str) -> String;
    /// What is said when there are no rows: why, and what to record next time.
    fn when_empty(&self) -> String;
    /// A picture above the rows: at most `height` lines of `width` columns.
    fn picture(&self, _selected: usize, _look: &Look, _width: u16, _height: u16) -> Vec<Line> {
        Vec::new()
    }
    /// The lines that the picture would like to have at a width; 0 when there is none.
    fn picture_height(&self, _width: u16) -> usize {
        0
    }

    /// Lines that the picture fills where the list leaves them.
    fn most_picture_height(&self, width: u16) -> usize {
        self.picture_height(width)
    }
    /// The byte of a row at an address, for views of bytes.
    fn byte_of(&self, _target: &Target) -> Option<u8> {
        None
    }
    /// A line above the columns: totals, what is missing.
    fn summary(&self) -> Option<Line> {
        None
    }
    /// What a row is in any crash: rows of two crashes with the same stand beside each other when they are compared.
    fn alike(&self, index: usize) -> String {
        meaning(&self.row(index, &Look::default()), self.columns())
    }
    /// The two lists that this one puts side by side.
    fn pair(&self) -> Option<&pair::PairView> {
        None
    }
    /// What a look closer at a row shows, as a part of the extent; absent when that depends on what is shown now.
    fn focus(&self, _index: usize) -> Option<(u64, u64)> {
        None
    }
    /// The next larger part of the extent around a window; absent when that is everything.
    fn around(&self, _window: (u64, u64)) -> Option<(u64, u64)> {
        None
    }
    /// The row at the left of a row or at its right, in pictures that have one there.
    fn neighbour(&self, _index: usize, _right: bool) -> Option<usize> {
        None
    }
    /// The row that a cell of the picture stands for: column and line of a picture of this size.
    fn row_at(&self, _at: (u16, u16), _selected: usize, _look: &Look, _size: (u16, u16)) -> Option<usize> {
        None
    }
    /// The whole extent that [`Look::window`] is a part of, and where a row lies in it.
    fn extent(&self, _index: usize) -> Option<((u64, u64), u64)> {
        None
    }
}

/// What rows are sorted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Value unknown; sorts first.
    Nothing,
    /// Sorts by value.
    Number(u64),
    /// Sorts by bytes.
    Text(String),
}

/// A row, as the filter of the library sees it.
pub struct RowFields<'v> {
    /// View that the row is of.
    pub view: &'v dyn View,
    /// Index of the row in the view.
    pub index: usize,
}

impl Fields for RowFields<'_> {
    fn text(&self) -> Cow<'_, str> {
        self.view.text(self.index).into()
    }

    fn field(&self, name: &str) -> Option<FieldValue<'_>> {
        self.view.field(self.index, name)
    }
}

/// What a row says without its numbers and what is incidental.
fn meaning(row: &Row, columns: &[Column]) -> String {
    let cells = row.cells.iter().zip(columns).filter(|(_, column)| !column.incidental);
    shape(&cells.map(|((_, cell), _)| cell.trim()).collect::<Vec<_>>().join(" "))
}

/// A number as a field.
pub(crate) fn number(value: impl Into<u64>) -> Option<FieldValue<'static>> {
    Some(FieldValue::Number(value.into()))
}

/// A text as a field.
pub(crate) fn text(value: impl Into<String>) -> Option<FieldValue<'static>> {
    Some(FieldValue::Text(Cow::Owned(value.into())))
}
