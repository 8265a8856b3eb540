//! Crashes of serial logs where a dump is expected: `kwab triage serial.log` judges what `kwab import` would make of
//! it.
//!
//! The dump is made in a file without a name; `kwab import` keeps it. `kwab triage` says of a log without a crash what
//! it looked for; every other command refuses a text in which nothing is recognised.

use std::io::{Cursor, Read as _, Seek as _, Write as _};
use std::path::Path;

use anyhow::Result;
use kwab::format::section::FILE_MAGIC;
use kwab::import::{Dialects, ImportReport, Options, PendingDump};
use kwab::model::{DumpFile, DumpsOf, OpenError, memory};
use kwab::units;

use super::import::{Input, of_stream, open, source_name};
use crate::failure::{about, is_stdio, shown, system};
use crate::inputs;

/// Whether bytes begin as no dump does, so that they may be a log.
pub(super) fn may_be(bytes: &[u8]) -> bool {
    !bytes.starts_with(&FILE_MAGIC)
}

/// What a log holds.
pub(super) enum Found {
    /// The dump of a crash, or of a recording with events.
    Dump(DumpFile),
    /// Neither a crash nor an event.
    Quiet(Quiet),
}

/// A log in which nothing was recognised.
pub(super) struct Quiet {
    report: ImportReport,
    dumps: Vec<PendingDump>,
}

impl Quiet {
    /// Whether a line of the log announces a death that was not understood.
    pub(super) fn is_doubtful(&self) -> bool {
        self.report.unexplained.is_some()
    }

    /// The recording that the log becomes all the same.
    pub(super) fn into_dump(self, path: &Path) -> Result<DumpFile> {
        let nothing = || about(path, OpenError::NoSuchDump { held: 0, wanted: 1 });
        opened(path, self.dumps.into_iter().next().ok_or_else(nothing)?)
    }

    /// The same in one line.
    pub(super) fn line(&self) -> String {
        match &self.report.unexplained {
            Some(death) => {
                let said = kwab::plain::line(death.problem.trim());
                format!("no crash that kwab can read; line {} may announce a death: {said}", death.line)
            }
            None => "no crash in this log".to_owned(),
        }
    }

    /// What was looked for, and what a line may mean that was not understood.
    pub(super) fn text(&self) -> String {
        let lines = units::count(self.report.lines, "line", "lines");
        let kernels = Dialects::builtin().kernels();
        let crash = if self.is_doubtful() { "no crash that kwab can read" } else { "no crash" };
        let mut text = format!(
            "{crash} in this log\nlooked at {lines} for reports of Linux and of {kernels} other kernels,\nand for \
             words by which any kernel dies\n"
        );
        if let Some(death) = &self.report.unexplained {
            let said = kwab::plain::line(death.problem.trim());
            text.push_str(&format!(
                "line {} may announce a death, and nothing else tells of one: {said}\n",
                death.line
            ));
        }
        if let Some(cut) = &self.report.cut {
            text.push_str(&format!("{cut}\n"));
        }
        text
    }
}

/// Crash `number`, from 1, of a log: of `text`, or of the file at `path`. `None` when it is not a log.
///
/// # Errors
/// When the log cannot be read, or has fewer crashes.
pub(super) fn crash(path: &Path, text: Option<Vec<u8>>, number: usize) -> Result<Option<Found>> {
    let Some(Imported { report, dumps, is_log }) = imported(path, text)? else { return Ok(None) };
    if is_log && !is_recognised(&report, &dumps) {
        return Ok(Some(Found::Quiet(Quiet { report, dumps })));
    }
    let crashes = dumps.iter().filter(|dump| dump.summary.number > 0).count();
    let held = dumps.len();
    let missing = || about(path, OpenError::NoSuchDump { held, wanted: number });
    let wanted = number.checked_sub(1).and_then(|index| dumps.into_iter().nth(index)).ok_or_else(missing)?;
    let mut file = opened(path, wanted)?;
    (file.number, file.dumps) = (number, held);
    if is_log || report.cut.is_some() {
        say(path, crashes, report.cut.as_deref());
    }
    Ok(Some(Found::Dump(file)))
}

/// What a log is listed by, or what was looked for in it in vain.
pub(super) type Listed = Result<Vec<Result<DumpFile>>, Quiet>;

/// The crashes of a log, or its recording when nothing died; what was looked for when nothing in it is recognised.
/// `None` when it is not a log.
///
/// # Errors
/// When the log cannot be read.
pub(super) fn crashes(path: &Path, text: Option<Vec<u8>>) -> Result<Option<Listed>> {
    let Some(Imported { report, dumps, is_log }) = imported(path, text)? else { return Ok(None) };
    if is_log && !is_recognised(&report, &dumps) {
        return Ok(Some(Err(Quiet { report, dumps })));
    }
    let held = dumps.len();
    let died = dumps.iter().any(|dump| dump.summary.number > 0);
    let numbered = dumps.into_iter().zip(1..).filter(|(dump, _)| !died || dump.summary.number > 0);
    let files = numbered.map(|(dump, number)| {
        let mut file = opened(path, dump)?;
        (file.number, file.dumps) = (number, held);
        Ok(file)
    });
    Ok(Some(Ok(files.collect())))
}

/// Everything that a log becomes, in its order, when something in it is recognised; `text` when it was read already.
///
/// # Errors
/// When the log cannot be read.
pub(super) fn all(path: &Path, text: Option<Vec<u8>>) -> Result<Option<Vec<PendingDump>>> {
    let imported = imported(path, text)?;
    let known = |it: &Imported| !it.is_log || is_recognised(&it.report, &it.dumps) || it.report.unexplained.is_some();
    Ok(imported.filter(known).map(|imported| imported.dumps))
}

/// Opens a dump that was made of a log.
pub(super) fn opened(path: &Path, dump: PendingDump) -> Result<DumpFile> {
    let file = dump.file.ok_or_else(|| about(path, "has a dump that was not kept"))?;
    let file = file.into_file().map_err(|error| about(path, system(&error)))?;
    DumpFile::of_file(file, 1).map_err(|error| about(path, error))
}

/// Whether a log tells of a crash or of events.
fn is_recognised(report: &ImportReport, dumps: &[PendingDump]) -> bool {
    report.events > 0 || dumps.iter().any(|dump| dump.summary.number > 0)
}

/// What a file became that is not a dump.
struct Imported {
    report: ImportReport,
    dumps: Vec<PendingDump>,
    /// It is text; what another tool has recorded is what it is, whether something died or not.
    is_log: bool,
}

/// Imports the text, or the file at `path`; `None` when it is not one.
fn imported(path: &Path, text: Option<Vec<u8>>) -> Result<Option<Imported>> {
    // What is neither a dump nor a log is described as the dump it is not.
    let Ok(input) = input(path, text) else { return Ok(None) };
    let is_log = match input {
        Input::Log(..) => true,
        Input::Foreign(..) => false,
        Input::Channel(_) => return Ok(None),
    };
    let (report, dumps) = import(path, input)?;
    Ok(Some(Imported { report, dumps, is_log }))
}

/// Imports the text, or the log or dump channel at `path`, whatever it holds.
///
/// # Errors
/// When it is neither, or cannot be read.
pub(super) fn everything(path: &Path, text: Option<Vec<u8>>) -> Result<(ImportReport, Vec<PendingDump>)> {
    import(path, input(path, text)?)
}

fn input(path: &Path, text: Option<Vec<u8>>) -> Result<Input> {
    match text {
        Some(text) => {
            let length = text.len() as u64;
            of_stream(path, Cursor::new(text), Some(length))
        }
        None => open(path),
    }
}

fn import(path: &Path, input: Input) -> Result<(ImportReport, Vec<PendingDump>)> {
    let folder = std::env::temp_dir();
    let options = Options { source: source_name(path), folder: Some(folder.clone()) };
    super::import::imported(path, input, &options, Dialects::builtin(), &folder)
}

/// What a file is by its first bytes.
pub(super) enum Beginning {
    /// Dumps, or why they cannot be opened.
    Dump(Result<DumpsOf>),
    /// Something else: probably a log. The bytes are those of stdin or a FIFO, which can be read once.
    Other(Option<Vec<u8>>),
}

/// Looks at the first bytes of a file or of stdin.
///
/// # Errors
/// When it cannot be read.
pub(super) fn beginning(path: &Path) -> std::io::Result<Beginning> {
    let dump = |opened: Result<DumpsOf, OpenError>| Beginning::Dump(opened.map_err(|error| about(path, error)));
    let once =
        |bytes: Vec<u8>| if may_be(&bytes) { Beginning::Other(Some(bytes)) } else { dump(DumpsOf::within(bytes)) };
    if is_stdio(path) {
        return Ok(once(memory::read_stream(std::io::stdin().lock())?));
    }
    let mut file = inputs::open_dump(path)?;
    if !file.metadata()?.is_file() {
        return Ok(once(memory::read_unsized(file)?));
    }
    let mut head = Vec::new();
    (&mut file).take(FILE_MAGIC.len() as u64).read_to_end(&mut head)?;
    if may_be(&head) {
        return Ok(Beginning::Other(None));
    }
    file.rewind()?;
    Ok(dump(DumpsOf::of_file(file)))
}

/// Says on stderr what was read and how to keep it.
fn say(path: &Path, crashes: usize, cut: Option<&str>) {
    // That there are more crashes than one is told where the dump is chosen.
    if crashes > 0 && cut.is_none() {
        return;
    }
    let name = shown(path);
    let found = match crashes {
        0 => "no crash, only a recording".to_owned(),
        1 => "1 crash".to_owned(),
        more => format!("{more} crashes"),
    };
    let kept = if crashes > 1 { "their dumps" } else { "its dump" };
    let cut = cut.map(|cut| format!("; {cut}")).unwrap_or_default();
    let text = format!("kwab: {name}: {found}{cut}; kwab import writes {kept}\n");
    // Nothing can be done about a closed stderr.
    let _ = std::io::stderr().write_all(kwab::plain::line(text.trim_end()).as_bytes());
    let _ = std::io::stderr().write_all(b"\n");
}
