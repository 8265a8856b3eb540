//! Writes results: to stdout with its width and colours, or to a file that is whole or absent.
//!
//! Text passes [`crate::paint`] on its way, so nothing from a dump, a log or a file name can steer the terminal.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::Result;
use kwab::output::{Inputs, Replace, Target, Unnamed};
use kwab::plain;

use crate::cli::Color;
use crate::failure::{Gone, about, about_output, system};
use crate::inputs;
use crate::page;
use crate::paint::printable;
pub(crate) use crate::paint::{columns, one_line, remark, sgr};

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

/// Prints a page of text.
pub(crate) fn text(page: &str) -> Result<()> {
    to_stdout(|out| out.write_all(printable(page).as_bytes()))
}

/// Prints pieces of a page as they are made.
pub(crate) fn texts<E>(pieces: impl Iterator<Item = Result<String, E>>) -> Result<()>
where
    anyhow::Error: From<E>,
{
    let mut failed = None;
    to_stdout(|out| {
        for piece in pieces {
            match piece {
                Ok(piece) => out.write_all(printable(&piece).as_bytes())?,
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        Ok(())
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
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

/// Writes a value as JSON to stdout, or the page of it that is wanted.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    if let Some(page) = page::wanted() {
        let part = page.of(serde_json::to_value(value)?)?;
        return to_stdout(|out| Ok(serde_json::to_writer(out, &part)?));
    }
    to_stdout(|out| {
        serde_json::to_writer_pretty(plain::JsonWriter(&mut *out), value)?;
        out.write_all(b"\n")
    })
}

/// Where the JSON of this run's report goes beside its text (`--json-out`).
#[derive(Debug)]
struct Beside {
    output: Output,
    /// Device and inode of the file that was there before.
    before: Option<(u64, u64)>,
    written: AtomicBool,
    /// The file, once it has the first line of a command that reports as it goes on.
    lines: Mutex<Option<File>>,
}

/// Files that were written.
static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

static BESIDE: OnceLock<Beside> = OnceLock::new();

/// Has the JSON of this run's report written to `path` too; a file there is replaced, unless the command line names it.
pub(crate) fn set_beside(path: &Path) -> Result<()> {
    if inputs::is_confined() {
        anyhow::bail!("--json-out: this server writes no file");
    }
    // Any file that an argument names may be an input: the command's own, its symbols, its baseline.
    let named: Vec<PathBuf> = std::env::args_os().skip(1).flat_map(|word| parts(&word)).collect();
    let mentions = named.iter().filter(|name| *name == path).count();
    let inputs = named.iter().filter(|name| *name != path || mentions > 1).map(PathBuf::as_path);
    let output = Output::of(Some(path), true, inputs.chain([Path::new("-")]))?;
    if output.is_stdout() {
        anyhow::bail!("--json-out: the text goes to stdout; name a file, or use --json");
    }
    // A dump in a directory that the command reads is not named by an argument.
    let mut first = [0];
    let is_other = |mut file: File| io::Read::read(&mut file, &mut first).is_ok_and(|n| n == 1) && first != *b"{";
    if let Target::File(file) = &output.target
        && File::open(file).is_ok_and(is_other)
    {
        anyhow::bail!("--json-out: {}: exists and is not a report; it is not replaced", crate::failure::shown(path));
    }
    // A second call would be a defect; the first one holds.
    let before = output.there();
    let _ = BESIDE.set(Beside { output, before, written: AtomicBool::new(false), lines: Mutex::new(None) });
    Ok(())
}

/// The paths that a word of the command line can name: itself, and what stands behind `=`.
fn parts(word: &std::ffi::OsStr) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt as _;
    let value = word.as_bytes().splitn(2, |byte| *byte == b'=').nth(1);
    [Some(word), value.map(std::ffi::OsStr::from_bytes)].into_iter().flatten().map(PathBuf::from).collect()
}

/// Whether a file waits for the JSON of the report.
pub(crate) fn has_beside() -> bool {
    BESIDE.get().is_some()
}

/// Writes a report as JSON beside what is printed, where `--json-out` asks for it.
pub(crate) fn beside(value: &impl serde::Serialize) -> Result<()> {
    let Some(beside) = BESIDE.get() else { return Ok(()) };
    if beside.written.swap(true, Ordering::Relaxed) {
        anyhow::bail!("--json-out: there is more than one report; choose a dump with --dump");
    }
    beside.check_unchanged()?;
    beside.output.write(|out| {
        serde_json::to_writer_pretty(plain::JsonWriter(&mut *out), value)?;
        out.write_all(b"\n")
    })
}

/// Adds a line of JSON to the file of `--json-out`, which has whole lines at every moment.
pub(crate) fn beside_line(line: &str) -> Result<()> {
    let Some(beside) = BESIDE.get() else { return Ok(()) };
    let line = format!("{line}\n");
    let path = beside.output.path();
    let mut lines = beside.lines.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = lines.as_mut() {
        return file.write_all(line.as_bytes()).map_err(|error| about(path, system(&error)));
    }
    beside.check_unchanged()?;
    *lines = Some(beside.output.begin(line.as_bytes())?);
    Ok(())
}

impl Beside {
    /// That the file is the one that was there when the command began.
    fn check_unchanged(&self) -> Result<()> {
        if self.output.there() != self.before {
            let name = crate::failure::shown(self.output.path());
            anyhow::bail!("--json-out: {name}: was written while this command ran; it is not replaced");
        }
        Ok(())
    }
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

    /// Refuses to replace a file that does not begin so: where a command reads a directory, any other may be an input.
    pub(crate) fn only_over(self, magic: &[u8], why: &str) -> Result<Self> {
        let mut first = Vec::new();
        if let Target::File(file) = &self.target
            && let Ok(file) = File::open(file)
        {
            io::Read::read_to_end(&mut io::Read::take(file, magic.len() as u64), &mut first)
                .map_err(|error| about(&self.path, system(&error)))?;
            if !first.is_empty() && first != magic {
                return Err(about(&self.path, format_args!("exists and {why}; it is not replaced")));
            }
        }
        Ok(self)
    }

    /// Refuses to write bytes that are not text to a terminal.
    pub(crate) fn of_binary(self) -> Result<Self> {
        if self.is_stdout() && io::stdout().is_terminal() {
            anyhow::bail!("stdout: is a terminal, and this form is not text; redirect it or name a file with -o");
        }
        Ok(self)
    }

    /// Device and inode of the file that is there.
    fn there(&self) -> Option<(u64, u64)> {
        let Target::File(path) = &self.target else { return None };
        std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
    }

    /// Refuses a file that this command has written, and one that was found and read meanwhile, as an image in a
    /// directory is.
    fn is_free(&self) -> Result<()> {
        let Target::File(path) = &self.target else { return Ok(()) };
        if WRITTEN.lock().is_ok_and(|mut written| !written.insert(path.clone())) {
            return Err(about(&self.path, "is another output of this command; name two files"));
        }
        let found = inputs::found();
        if found.is_empty() {
            return Ok(());
        }
        let inputs = Inputs::of(found.iter().map(PathBuf::as_path));
        Target::of(&self.path, Replace::Force, &inputs).map(drop).map_err(|error| about_output(&self.path, error))
    }

    /// Writes it: a file is whole or as it was.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.is_free()?;
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
        let mut out = BufWriter::with_capacity(256 << 10, self.open_stream()?);
        write(&mut out)?;
        out.flush()
    }

    /// Opens a stream; a FIFO without a reader makes the command wait, and it says so.
    fn open_stream(&self) -> io::Result<File> {
        inputs::patiently(&self.path, "reads", || self.target.open_stream())
    }

    /// Opens it for lines that come one after another, and writes the first: the reader of a stream must see no end
    /// between two of them.
    fn begin(&self, line: &[u8]) -> Result<File> {
        let wrong = |error: io::Error| about(&self.path, system(&error));
        if matches!(self.target, Target::Stream(_)) {
            let mut file = self.open_stream().map_err(wrong)?;
            file.write_all(line).map_err(wrong)?;
            return Ok(file);
        }
        self.write(|out| out.write_all(line))?;
        OpenOptions::new().append(true).open(&self.path).map_err(wrong)
    }

    fn write_file(&self, path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(256 << 10, Unnamed::in_folder(&self.folder())?);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.name(path, self.replace)
    }

    /// Gives a finished dump its name, or copies it into the stream.
    pub(crate) fn put(&self, mut file: kwab::import::PendingFile) -> Result<()> {
        self.is_free()?;
        match &self.target {
            Target::File(path) => file.name(path, self.replace).map_err(|error| about(&self.path, system(&error))),
            _ => self.write(|out| file.copy_to(out).map(drop)),
        }
    }
}
