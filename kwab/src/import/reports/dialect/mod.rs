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
//! A first line that several kernels share (`panic: …`) belongs to the row `generic`; the first line that fits the
//! `marks` of another row makes the report one of that row.

pub mod read;

use serde::Deserialize;

use super::class::Class;
use super::table::Index;
use super::template::{Captures, Template, TemplateError};

/// The rows that come with the importer.
const BUILTIN: &str = include_str!("builtin.toml");
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

/// A row as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Name of the kernel.
    pub name: String,
    /// What stands before every line (`(XEN) `), taken off first; its captures count.
    pub prefix: Vec<String>,
    /// Lines that open a report.
    pub begins: Vec<Begin>,
    /// Lines that tell something, by their captures.
    pub lines: Vec<String>,
    /// Lines that only this kernel prints in a report: they make a generic report one of this row.
    pub marks: Vec<String>,
    /// Lines before a backtrace.
    pub stacks: Vec<String>,
    /// Lines of a backtrace.
    pub frames: Vec<String>,
    /// Names of registers beyond those of the known architectures.
    pub registers: Vec<String>,
    /// Lines behind which the report is over.
    pub ends: Vec<String>,
    /// Functions that are never guilty, by the beginning of their names.
    pub skip: Vec<String>,
}

/// A line that opens a report.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Begin {
    /// Template of the line.
    pub line: String,
    /// Name of the class.
    pub class: String,
    /// The headline; `{kind}`, `{message}`, `{function}` and other captures in braces.
    pub title: String,
    /// Whether the line counts also inside another report of this kernel, as a later stage of it.
    pub stage: bool,
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
    /// Name of the dialect, as reports name it.
    pub name: String,
    prefix: Vec<Template>,
    body: Index<Use>,
    registers: Vec<String>,
    skip: Vec<String>,
}

/// A line that opens a report, as the table says it.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Index of the row in the dialect's table.
    pub row: usize,
    /// What a report with this first line is about.
    pub class: Class,
    /// Headline of such a report, with captures in braces.
    pub title: String,
    /// Whether it is also a later stage.
    pub stage: bool,
}

/// The rows of a dialect, with their templates compiled.
#[derive(Debug)]
pub struct Dialects {
    rows: Vec<Dialect>,
    begins: Index<Opening>,
    marks: Index<usize>,
}

impl Dialects {
    /// The builtin rows.
    pub fn builtin() -> Self {
        Self::from_toml("").unwrap_or_else(|_| Self {
            rows: Vec::new(),
            begins: Index::default(),
            marks: Index::default(),
        })
    }

    /// The rows of a file before the builtin ones.
    ///
    /// # Errors
    /// [`DialectError`] names the row and what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, DialectError> {
        let parse = |text| toml::from_str::<File>(text).map_err(|error| DialectError::Form(error.to_string()));
        let mut rows = parse(text)?.dialect;
        rows.extend(parse(BUILTIN)?.dialect);
        if rows.len() > MOST_ROWS {
            return Err(DialectError::TooMany("file".into()));
        }
        let mut all = Self { rows: Vec::new(), begins: Index::default(), marks: Index::default() };
        for row in &rows {
            all.add(row)?;
        }
        Ok(all)
    }

    fn add(&mut self, row: &Row) -> Result<(), DialectError> {
        let number = self.rows.len();
        let check = |template: &str| {
            let wrong = |error| DialectError::Template { row: row.name.clone(), template: template.to_string(), error };
            Template::new(template).map_err(wrong)
        };
        let mut body = Index::default();
        let lists = [
            (&row.ends, Use::End),
            (&row.lines, Use::Line),
            (&row.stacks, Use::Stack),
            (&row.frames, Use::Frame),
            (&row.marks, Use::Mark),
        ];
        if lists.iter().map(|(list, _)| list.len()).sum::<usize>() + row.begins.len() > MOST_TEMPLATES {
            return Err(DialectError::TooMany(row.name.clone()));
        }
        for (list, what) in lists {
            for template in list {
                let template = check(template)?;
                if what == Use::Mark {
                    self.marks.insert(template.clone(), number);
                }
                body.insert(template, what);
            }
        }
        for begin in &row.begins {
            let line = check(&begin.line)?;
            let class = if begin.class.is_empty() { Some(Class::Panic) } else { Class::named(&begin.class) };
            let class =
                class.ok_or_else(|| DialectError::Class { row: row.name.clone(), class: begin.class.clone() })?;
            let title = if begin.title.is_empty() { "panic: {message}".to_string() } else { begin.title.clone() };
            self.begins.insert(line, Opening { row: number, class, title, stage: begin.stage });
        }
        let prefix = row.prefix.iter().map(|template| check(template)).collect::<Result<_, _>>()?;
        let registers = row.registers.iter().map(|name| name.to_ascii_lowercase()).collect();
        self.rows.push(Dialect { name: row.name.clone(), prefix, body, registers, skip: row.skip.clone() });
        Ok(())
    }

    /// The row of that number.
    pub fn row(&self, number: usize) -> Option<&Dialect> {
        self.rows.get(number)
    }

    /// The number of the row `generic`.
    pub fn generic(&self) -> usize {
        self.rows.iter().position(|row| row.name == "generic").unwrap_or(usize::MAX)
    }

    /// Takes the prefix of any dialect off a line: the rest, and what the prefix says.
    pub fn unprefixed<'t, 'l>(&'t self, line: &'l [u8]) -> (&'l [u8], Captures<'t, 'l>) {
        if !matches!(line.trim_ascii_start().first(), Some(b'[' | b'(' | b'<' | b'E' | b'W' | b'0'..=b'9')) {
            return (line, Captures::default());
        }
        for row in &self.rows {
            for prefix in &row.prefix {
                if let Some((captures, rest)) = prefix.prefix(line) {
                    return (rest, captures);
                }
            }
        }
        (line, Captures::default())
    }

    /// For each template that opens a report the texts that every line which it opens one with holds.
    pub fn needles(&self) -> impl Iterator<Item = Vec<Vec<u8>>> {
        self.begins.needles()
    }

    /// Whether a line opens a report.
    pub fn opens<'t, 'l>(&'t self, line: &'l [u8]) -> Option<(&'t Opening, Captures<'t, 'l>)> {
        self.begins.find(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_rows_are_sound() {
        let all = Dialects::from_toml("").unwrap_or_else(|error| panic!("{error}"));
        assert!(all.rows.len() >= 20);
        assert!(all.rows.iter().any(|row| row.name == "generic"));
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
