//! Reports of kernels other than Linux, driven by a table: a dialect is a row of `builtin.toml`, or of a user's file.
//!
//! # A worked example
//! A kernel prints:
//! ```text
//! *** lemon: core 1 died of page fault at 0xdeadb000
//! task 12 "shell", pc 0xffffffff80001234
//! A=0x0000000000000001 B=0x0000000000000002
//! [0] 0xffffffff80001234 vfs_read+0x24
//! [1] 0xffffffff80005678 sys_read+0x18
//! *** lemon: halted
//! ```
//! Its row, in a file given by the user:
//! ```toml
//! [[dialect]]
//! name = "lemon"
//! begins = [
//!   { line = "*** lemon: core {cpu:dec} died of {kind} at {address:hex}", class = "page-fault", title = "{kind}" },
//! ]
//! lines = ["task {pid:dec} \"{comm}\", pc {ip:hex}"]
//! frames = ["[{:dec}] {address:hex} {symbol:sym}+{offset:hex}"]
//! registers = ["A", "B"]
//! ends = ["*** lemon: halted"]
//! skip = ["lemon_panic"]
//! ```
//! Templates are those of [`super::template`]. Captures: `cpu`, `pid`, `comm`, `address` (that could not be accessed;
//! of a frame, its own), `ip`, `sp`, `code`, `error`, `file`, `line`, `function`, `message`, `kind`, `version`,
//! `symbol`, `offset`, `size`, `module`; any other name may be used in the title. Classes are the names in
//! [`super::class`]. Registers that have the names of a known architecture need not be listed.
//!
//! A line that opens a report may say `stage` (it counts inside another report too), `weak` (programs print such lines
//! as well: what only a kernel prints must follow) and `program` (a program failed, the kernel goes on).
//!
//! `skip` has beginnings of names of functions that are never guilty: those that enter the panic. Where they lead a
//! stack they are parted from it, as a stack of their own.
//!
//! A first line that several kernels share (`panic: …`) belongs to the row `generic`; the first line that fits the
//! `marks` of another row makes the report one of that row. A row with `variant_of` only has a name and marks: its
//! kernel prints the reports of another row, which becomes one of the variant by a mark.

pub mod read;

use std::borrow::Cow;
use std::sync::OnceLock;

use serde::Deserialize;

use super::class::Class;
use super::table::Index;
use super::template::{Captures, Template, TemplateError};

// `BUILTIN`, the rows that come with the importer: `build.rs` makes it of `builtin.toml`.
include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Rows that a file may have.
pub const MOST_ROWS: usize = 256;
/// Templates that a row may have.
pub const MOST_TEMPLATES: usize = 256;

/// A file of rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    dialect: Vec<Row>,
}

/// A text of a row.
type Text = Cow<'static, str>;
/// Texts of a row.
type Texts = Cow<'static, [Text]>;

/// A row as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Name of the kernel.
    pub name: Text,
    /// The row that reads the reports of this kernel, when only its marks are its own.
    pub variant_of: Text,
    /// What stands before every line (`(XEN) `), taken off first; its captures count.
    pub prefix: Texts,
    /// Lines that open a report.
    pub begins: Cow<'static, [Begin]>,
    /// Lines that tell something, by their captures.
    pub lines: Texts,
    /// Lines that only this kernel prints in a report: they make a generic report one of this row.
    pub marks: Texts,
    /// Lines before a backtrace.
    pub stacks: Texts,
    /// Lines of a backtrace.
    pub frames: Texts,
    /// Names of registers beyond those of the known architectures.
    pub registers: Texts,
    /// Lines behind which the report is over.
    pub ends: Texts,
    /// Functions that are never guilty, by the beginning of their names.
    pub skip: Texts,
}

/// A line that opens a report.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Begin {
    /// Template of the line.
    pub line: Text,
    /// Name of the class.
    pub class: Text,
    /// The headline; `{kind}`, `{message}`, `{function}` and other captures in braces.
    pub title: Text,
    /// Whether the line counts also inside another report of this kernel, as a later stage of it.
    pub stage: bool,
    /// Whether a program failed, and the kernel goes on.
    pub program: bool,
    /// Whether programs print such lines too: a stack of two frames, registers, a processor or a position in the source
    /// must follow.
    pub weak: bool,
}

impl Row {
    const EMPTY: Self = Self {
        name: Text::Borrowed(""),
        variant_of: Text::Borrowed(""),
        prefix: Texts::Borrowed(&[]),
        begins: Cow::Borrowed(&[]),
        lines: Texts::Borrowed(&[]),
        marks: Texts::Borrowed(&[]),
        stacks: Texts::Borrowed(&[]),
        frames: Texts::Borrowed(&[]),
        registers: Texts::Borrowed(&[]),
        ends: Texts::Borrowed(&[]),
        skip: Texts::Borrowed(&[]),
    };

    /// The templates of the lines inside a report, in the order in which they count.
    fn body(&self) -> impl Iterator<Item = (&Text, Use)> {
        let lists = [
            (&self.ends, Use::End),
            (&self.lines, Use::Line),
            (&self.stacks, Use::Stack),
            (&self.frames, Use::Frame),
            (&self.marks, Use::Mark),
        ];
        lists.into_iter().flat_map(|(list, what)| list.iter().map(move |template| (template, what)))
    }

    /// Refuses a row that has a template or a class that cannot be understood, or too many templates.
    fn check(&self) -> Result<(), DialectError> {
        if self.body().count() + self.begins.len() > MOST_TEMPLATES {
            return Err(DialectError::TooMany(self.name.to_string()));
        }
        let body = self.body().map(|(template, _)| template);
        for template in body.chain(self.begins.iter().map(|begin| &begin.line)).chain(self.prefix.iter()) {
            let wrong =
                |error| DialectError::Template { row: self.name.to_string(), template: template.to_string(), error };
            Template::new(template).map_err(wrong)?;
        }
        match self.begins.iter().find(|begin| begin.class().is_none()) {
            Some(begin) => Err(DialectError::Class { row: self.name.to_string(), class: begin.class.to_string() }),
            None => Ok(()),
        }
    }
}

impl Default for Row {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Begin {
    const EMPTY: Self = Self {
        line: Text::Borrowed(""),
        class: Text::Borrowed(""),
        title: Text::Borrowed(""),
        stage: false,
        program: false,
        weak: false,
    };

    /// What the report is about; absent when the class does not exist.
    fn class(&self) -> Option<Class> {
        if self.class.is_empty() { Some(Class::Panic) } else { Class::named(&self.class) }
    }
}

impl Default for Begin {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Why rows were refused.
#[derive(Debug, thiserror::Error)]
pub enum DialectError {
    /// The file is not TOML of the documented form.
    #[error("the dialect file cannot be read: {0}")]
    Form(String),
    /// A template cannot be read.
    #[error("dialect {row}: template {template:?}: {error}")]
    Template {
        /// Row of the table with the bad template.
        row: String,
        /// The template that cannot be read.
        template: String,
        /// What is wrong.
        error: TemplateError,
    },
    /// A class that does not exist.
    #[error("dialect {row}: unknown class {class:?}")]
    Class {
        /// Row of the table with the unknown class.
        row: String,
        /// The class that is not known.
        class: String,
    },
    /// The table is larger than the limits.
    #[error("dialect {0}: more than {MOST_TEMPLATES} templates, or more than {MOST_ROWS} rows")]
    TooMany(String),
}

/// What a line of a report means in a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Line,
    Mark,
    Stack,
    Frame,
    End,
}

/// A row made ready for matching.
#[derive(Debug)]
pub struct Dialect {
    row: Cow<'static, Row>,
    prefix: Vec<Template>,
    /// Built by the first line inside a report of this row.
    body: OnceLock<Index<Use>>,
}

impl Dialect {
    fn new(row: Cow<'static, Row>) -> Self {
        let prefix = row.prefix.iter().filter_map(|template| Template::new(template).ok()).collect();
        Self { row, prefix, body: OnceLock::new() }
    }

    /// Name of the dialect, as reports name it.
    pub fn name(&self) -> &str {
        &self.row.name
    }

    /// What a line inside a report means, and its captures.
    fn learn<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t Use, Captures<'t, 'l>)> {
        let body = self.body.get_or_init(|| {
            let mut body = Index::default();
            self.row.body().for_each(|(template, what)| body.add(template.clone(), what));
            body
        });
        body.find(line)
    }

    /// Whether a report of `family` may turn out to be one of this row.
    fn may_claim(&self, family: &str) -> bool {
        family == "generic" || !self.row.variant_of.is_empty() && family == self.row.variant_of
    }

    /// Whether the row names this register.
    fn has_register(&self, name: &str) -> bool {
        self.row.registers.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// A line that opens a report, as the table says it.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Index of the row in the dialect's table.
    pub row: usize,
    /// What a report with this first line is about.
    pub class: Class,
    /// Headline of such a report, with captures in braces.
    pub title: Cow<'static, str>,
    /// Whether it is also a later stage.
    pub stage: bool,
    /// Whether a program failed, and the kernel goes on.
    pub program: bool,
    /// Whether it is worth a report only with evidence behind it.
    pub weak: bool,
}

/// The dialects of an import: builtin ones behind those of the user. The tables are built by the first question.
#[derive(Debug)]
pub struct Dialects {
    given: Vec<Row>,
    tables: OnceLock<Tables>,
}

/// The rows with their templates compiled.
#[derive(Debug)]
struct Tables {
    rows: Vec<Dialect>,
    begins: Index<Opening>,
    /// Built by the first line that may show which kernel a generic report is of.
    marks: OnceLock<Index<usize>>,
}

impl Dialects {
    /// The builtin rows.
    pub fn builtin() -> Self {
        Self { given: Vec::new(), tables: OnceLock::new() }
    }

    /// The rows of a file before the builtin ones.
    ///
    /// # Errors
    /// [`DialectError`] names the row and what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, DialectError> {
        let file: File = toml::from_str(text).map_err(|error| DialectError::Form(error.to_string()))?;
        if file.dialect.len() + BUILTIN.len() > MOST_ROWS {
            return Err(DialectError::TooMany("file".into()));
        }
        file.dialect.iter().try_for_each(Row::check)?;
        Ok(Self { given: file.dialect, tables: OnceLock::new() })
    }

    fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| {
            let given = self.given.iter().cloned().map(Cow::Owned);
            Tables::new(given.chain(BUILTIN.iter().map(Cow::Borrowed)).map(Dialect::new).collect())
        })
    }

    /// The row of that number.
    pub fn row(&self, number: usize) -> Option<&Dialect> {
        self.tables().rows.get(number)
    }

    /// How many kernels have a row; the one of what any kernel may print is not counted.
    pub fn kernels(&self) -> usize {
        self.given.len() + BUILTIN.len() - 1
    }

    /// The number of the row `generic`.
    pub fn generic(&self) -> usize {
        self.number("generic").unwrap_or(usize::MAX)
    }

    /// The number of the row of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.tables().rows.iter().position(|row| row.name() == name)
    }

    /// The row of a kernel that alone prints a line like this one.
    fn marked(&self, line: &[u8]) -> Option<usize> {
        let Tables { rows, marks, .. } = self.tables();
        let marks = marks.get_or_init(|| {
            let mut marks = Index::default();
            for (number, dialect) in rows.iter().enumerate() {
                dialect.row.marks.iter().for_each(|template| marks.add(template.clone(), number));
            }
            marks
        });
        marks.find(line).map(|(number, _)| *number)
    }

    /// The row that reads the reports of row `number`.
    fn reader(&self, number: usize) -> usize {
        let rows = &self.tables().rows;
        let base = rows.get(number).map_or("", |dialect| dialect.row.variant_of.as_ref());
        let reader = rows.iter().position(|dialect| !base.is_empty() && dialect.name() == base);
        reader.unwrap_or(number)
    }

    /// Takes the prefix of any dialect off a line: the rest, and what the prefix says.
    pub fn unprefixed<'t, 'l>(&'t self, line: &'l [u8]) -> (&'l [u8], Captures<'t, 'l>) {
        if !line.trim_ascii_start().first().is_some_and(|byte| self.may_begin_prefix(*byte)) {
            return (line, Captures::default());
        }
        for row in &self.tables().rows {
            for prefix in &row.prefix {
                if let Some((captures, rest)) = prefix.prefix(line) {
                    return (rest, captures);
                }
            }
        }
        (line, Captures::default())
    }

    /// Whether the prefix of a row may begin with that byte; the tables need not be built to tell.
    fn may_begin_prefix(&self, byte: u8) -> bool {
        let given = || self.given.iter().flat_map(|row| row.prefix.iter());
        // What begins with a capture may begin with anything.
        let begins = |text: &Text| text.trim_start().bytes().next().is_some_and(|first| first == b'{' || first == byte);
        matches!(byte, b'[' | b'(' | b'<' | b'C' | b'E' | b'W' | b'c' | b'0'..=b'9') || given().any(begins)
    }

    /// For each template that opens a report the texts that every line which it opens one with holds.
    pub fn needles(&self) -> impl Iterator<Item = Vec<Vec<u8>>> {
        self.tables().begins.needles()
    }

    /// Whether a line opens a report.
    pub fn opens<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t Opening, Captures<'t, 'l>)> {
        self.tables().begins.find(line)
    }
}

impl Tables {
    fn new(rows: Vec<Dialect>) -> Self {
        let mut begins = Index::default();
        for (number, dialect) in rows.iter().enumerate() {
            for begin in dialect.row.begins.iter() {
                let Some(class) = begin.class() else { continue };
                let title = if begin.title.is_empty() { "panic: {message}".into() } else { begin.title.clone() };
                let Begin { stage, program, weak, .. } = *begin;
                begins.add(begin.line.clone(), Opening { row: number, class, title, stage, program, weak });
            }
        }
        Self { rows, begins, marks: OnceLock::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_rows_are_sound() {
        BUILTIN.iter().try_for_each(Row::check).unwrap_or_else(|error| panic!("{error}"));
        assert!(BUILTIN.len() >= 20);
        let prefixes = BUILTIN.iter().flat_map(|row| row.prefix.iter()).map(|text| text.replace("{:dec}", "0"));
        for prefix in prefixes {
            assert!(Dialects::builtin().may_begin_prefix(prefix.as_bytes()[0]), "{prefix}");
        }
        assert!(Dialects::builtin().row(Dialects::builtin().generic()).is_some());
    }

    #[test]
    fn tables_are_built_by_the_first_line_that_may_need_them() {
        let all = Dialects::from_toml("[[dialect]]\nname = \"x\"\nbegins = [{ line = \"boom\" }]\n").unwrap();
        assert!(all.tables.get().is_none());
        assert_eq!(all.unprefixed(b"text").0, b"text");
        let given = Dialects::from_toml("[[dialect]]\nname = \"x\"\nprefix = [\"os: \"]\n").unwrap();
        assert_eq!(given.unprefixed(b"os: boom").0, b"boom", "of a user's row any text is a prefix");
        assert!(all.tables.get().is_none(), "no prefix begins with a letter like this");
        assert!(all.opens(b"boom").is_some_and(|(opening, _)| opening.title == "panic: {message}"));
        let tables = all.tables.get().expect("a line was looked up");
        assert!(tables.marks.get().is_none() && tables.rows.iter().all(|row| row.body.get().is_none()));
    }

    #[test]
    fn a_wrong_row_is_named() {
        let wrong = "[[dialect]]\nname = \"x\"\nbegins = [{ line = \"boom {a\", class = \"panic\" }]\n";
        let error = Dialects::from_toml(wrong).unwrap_err().to_string();
        assert!(error.contains("dialect x") && error.contains("brace"), "{error}");
        let wrong = "[[dialect]]\nname = \"x\"\nbegins = [{ line = \"boom\", class = \"nonsense\" }]\n";
        assert!(Dialects::from_toml(wrong).unwrap_err().to_string().contains("nonsense"));
        assert!(Dialects::from_toml("[[dialect]]\nnome = 1\n").is_err());
    }
}
