//! Writes results: to stdout with its width and colours, or to a file that is whole or absent.
//!
//! Text passes [`kwab::plain`] here, so nothing from a dump, a log or a file name can steer the terminal. The program's own
//! colours carry a mark that no input can know ([`sgr`]).

use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Result;
use kwab::output::{Inputs, OutputError, Replace, Target, Unnamed};
use kwab::plain;

use crate::cli::Color;
use crate::failure::{Gone, about, about_output, system};

/// How stdout wants its text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; `usize::MAX` when nothing is to be cut.
    pub width: usize,
    /// Whether to use colours.
    pub color: bool,
}

impl Style {
    /// As stdout is. A pipe is as wide as `COLUMNS` says, or 80.
    pub(crate) fn of_stdout(color: Color, wide: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
        let measured = if terminal { crossterm::terminal::size().ok().map(|size| usize::from(size.0)) } else { None };
        let width = measured.or(columns).filter(|width| *width > 0).unwrap_or(80).max(40);
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        Self { width: if wide { usize::MAX } else { width }, color }
    }
}

/// The program's own control sequence `CSI code m`; [`text`] prints it as such and escapes every other.
pub(crate) fn sgr(code: &str) -> String {
    format!("{}{code}m", mark())
}

/// What begins an own control sequence: escape and 64 bits that differ from run to run.
fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\u{1b}{:016x}[", std::hash::RandomState::new().build_hasher().finish()))
}

/// `text` in one line, its own control sequences kept for [`text`].
pub(crate) fn one_line(text: &str) -> String {
    own_and_others(text, sgr, |rest| plain::line(rest).into_owned())
}

/// Columns of `text` without own control sequences.
pub(crate) fn columns(text: &str) -> usize {
    own_and_others(text, |_| String::new(), str::to_owned).chars().count()
}

fn own_and_others(text: &str, own: impl Fn(&str) -> String, other: impl Fn(&str) -> String) -> String {
    let mut pieces = text.split(mark());
    let mut out = other(pieces.next().unwrap_or_default());
    for piece in pieces {
        let (code, rest) = piece.split_once('m').unwrap_or(("0", piece));
        out.push_str(&own(code));
        out.push_str(&other(rest));
    }
    out
}

/// A page as it is printed: own control sequences as such, everything else that is no line end escaped.
fn printable(page: &str) -> String {
    own_and_others(page, |code| format!("\u{1b}[{code}m"), |rest| plain::page(rest).into_owned())
}

/// Prints a page of text.
pub(crate) fn text(page: &str) -> Result<()> {
    to_stdout(|out| out.write_all(printable(page).as_bytes()))
}

/// Says something on stderr; that it cannot be said is not worth an error.
pub(crate) fn remark(text: &str) {
    let _ = io::stderr().write_all(printable(text).as_bytes());
}

/// Writes `body` to stdout, byte by byte as it is.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| {
        // What is still in the buffer has no reader; dropping the writer must not try again.
        let _ = out.into_parts();
        if kwab::output::is_gone(&error) { Gone.into() } else { anyhow::anyhow!("stdout: {}", system(&error)) }
    })
}

/// Writes a value as JSON to stdout.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    to_stdout(|out| {
        serde_json::to_writer_pretty(plain::JsonWriter(&mut *out), value)?;
        out.write_all(b"\n")
    })
}

/// Where a command's result goes: looked at before any input is read.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// The path as the user gave it.
    path: PathBuf,
    target: Target,
    replace: Replace,
}

impl Output {
    /// What `-o` names, or stdout without it. `inputs` are the files that the command reads.
    pub(crate) fn of<'a>(path: Option<&Path>, force: bool, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Self> {
        let inputs = Inputs::of(inputs);
        let path = path.unwrap_or(Path::new("-"));
        let replace = Replace::of(force);
        let target = Target::of(path, replace, &inputs).map_err(|error| about_output(path, error))?;
        Ok(Self { path: path.to_path_buf(), target, replace })
    }

    /// Whether the result goes to stdout, so that nothing else may.
    pub(crate) fn is_stdout(&self) -> bool {
        self.target == Target::Stdout
    }

    /// The path as the user gave it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory for files that have no name yet.
    pub(crate) fn folder(&self) -> PathBuf {
        self.target.folder()
    }

    /// Refuses to write bytes that are not text to a terminal.
    pub(crate) fn of_binary(self) -> Result<Self> {
        if self.is_stdout() && io::stdout().is_terminal() {
            anyhow::bail!("stdout: is a terminal, and this form is not text; redirect it or name a file with -o");
        }
        Ok(self)
    }

    /// Writes it: a file is whole or as it was.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        match &self.target {
            Target::Stdout => return to_stdout(write),
            Target::Stream(_) => self.write_stream(write),
            Target::File(path) => self.write_file(path, write),
        }
        .map_err(|error| {
            if kwab::output::is_gone(&error) { Gone.into() } else { about_output(&self.path, error.into()) }
        })
    }

    fn write_stream(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(256 << 10, self.target.open_stream()?);
        write(&mut out)?;
        out.flush()
    }

    fn write_file(&self, path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(256 << 10, Unnamed::in_folder(&self.folder())?);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.name(path, self.replace)
    }

    /// Gives a finished dump its name, or copies it into the stream.
    pub(crate) fn put(&self, mut file: kwab::import::PendingFile) -> Result<()> {
        match &self.target {
            Target::File(path) => file.name(path, self.replace).map_err(|error| about(&self.path, system(&error))),
            _ => self.write(|out| file.copy_to(out).map(drop)),
        }
    }
}

/// An output error in the words of this program.
pub(crate) fn of_output(error: &OutputError) -> String {
    match error {
        OutputError::Io(error) => system(error),
        error => error.to_string(),
    }
}
