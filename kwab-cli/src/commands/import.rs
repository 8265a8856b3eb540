//! `kwab import LOG|- [-o FILE|DIR|-] [--crash N] [--dialects FILE] [--dry-run] [--force] [--strict] [--json]`
//!
//! Reads a serial log of any mixture, also gzip, zlib, zstd, xz or UTF-16, and writes a dump per crash, or a recording
//! when nothing crashed; or the file of a dump channel (a memory region, a disk), and writes every dump in it; or what
//! another tool has recorded (`docs/exchange.md`): a core file becomes the dump of its process or machine. Without `-o`
//! the dumps lie beside the log under its name: `serial.kwab`, or `serial-1.kwab`, `serial-2.kwab` … . The paths go to
//! stdout, everything else to stderr; with `-o -` the dump goes to stdout. Nothing is overwritten without `--force`,
//! the log never, and no dump is ever half there. A target that is taken is refused before the log is read:
//! `serial.kwab` and `serial-1.kwab` both are, because only the end of the log tells which of the names is used.
//!
//! Crash reports of Linux and of some other kernels are recognised in console text. `--dialects FILE` adds rows of the
//! user's for others, which count before those that come with kwab; `kwab import --help` shows one.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kwab::exchange::{self, ExchangeError, Format, TextFormat, import_file, import_text};
use kwab::format::section::FILE_MAGIC;
use kwab::import::{
    Dialects, ImportError, ImportReport, InputError, LogInput, Options, PendingDump, import_channel, import_with,
    is_channel,
};
use kwab::output::folder_of;

use crate::cli::Import;
use crate::failure::{DAMAGED, FINDINGS, LOST, about, is_stdio, say, shown, system};
use crate::inputs;
use crate::output::{self, Output};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Import) -> Result<ExitCode> {
    let started = Instant::now();
    let input = open(&arguments.log)?;
    let dialects = dialects(arguments.dialects.as_deref())?;
    let destination = Destination::of(arguments)?;
    let folder = if arguments.dry_run { None } else { Some(destination.prepare(arguments)?) };
    let options = Options { source: source_name(&arguments.log), folder };
    let (mut report, dumps) = imported(&arguments.log, input, &options, dialects, &destination.named())?;
    if dumps.is_empty() {
        return Err(about(&arguments.log, "is a dump channel without a dump: no kernel has written one into it"));
    }
    let total = dumps.len();
    let dumps = chosen(dumps, &mut report, &destination, arguments)?;
    let paths = if arguments.dry_run { Vec::new() } else { put(dumps, total, &mut report, &destination, arguments)? };
    output::beside(&report)?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::remark(&render::import::summary(&report, started.elapsed(), arguments.dry_run));
        print(&paths)?;
    }
    if let Some(cut) = &report.cut {
        say(&about(&arguments.log, cut));
    }
    if let Some(death) = &report.unexplained {
        let text = format!("line {} announces a death that was not understood: {}", death.line, death.problem);
        say(&about(&arguments.log, text));
        return Ok(ExitCode::from(FINDINGS));
    }
    let lost = report.not_understood.count > 0;
    Ok(ExitCode::from(match (arguments.strict && lost, &report.cut) {
        (true, _) => LOST,
        (false, Some(_)) => DAMAGED,
        (false, None) => 0,
    }))
}

/// The dialects of a file before those that come with kwab.
fn dialects(file: Option<&Path>) -> Result<Dialects> {
    let Some(file) = file else { return Ok(Dialects::builtin()) };
    let text = super::written_text(file).map_err(|error| about(file, system(&error)))?;
    Dialects::from_toml(&text).map_err(|error| about(file, error))
}

/// Prints the paths for the next program, as bytes; a person who reads the summary has them already.
fn print(paths: &[PathBuf]) -> Result<()> {
    if io::stdout().is_terminal() {
        if io::stderr().is_terminal() {
            return Ok(());
        }
        let line = |path: &PathBuf| format!("{}\n", kwab::plain::line(&path.display().to_string()));
        return output::text(&paths.iter().map(line).collect::<String>());
    }
    output::to_stdout(|out| {
        paths.iter().try_for_each(|path| out.write_all(path.as_os_str().as_bytes()).and_then(|()| out.write_all(b"\n")))
    })
}

/// Imports whatever it is; errors name the input, or `target` where a dump cannot be written.
pub(super) fn imported(
    path: &Path,
    input: Input,
    options: &Options,
    dialects: Dialects,
    target: &Path,
) -> Result<(ImportReport, Vec<PendingDump>)> {
    let imported = match input {
        Input::Channel(bytes) => import_channel(&bytes, options),
        Input::Log(log, length) => import_log(log, length, options, dialects),
        Input::Foreign(file, format, problem) => match import_file(file, format, options) {
            Err(ExchangeError::Import(error)) => Err(error),
            Err(ExchangeError::Io(error)) => return Err(about(path, system(&error))),
            Err(error) => return Err(about(path, error)),
            Ok((report, dumps)) => Ok((ImportReport { cut: problem.or(report.cut), ..report }, dumps)),
        },
    };
    imported.map_err(|error| match error {
        ImportError::Read { error, .. } => about(path, system(&error)),
        ImportError::Write(error) => about(target, system(&error)),
    })
}

/// What there is to import.
pub(super) enum Input {
    /// What another tool has recorded, and why it could not be unpacked to its end.
    Foreign(File, Format, Option<String>),
    /// A log's bytes and, for a file, its length.
    Log(LogInput<'static>, Option<u64>),
    /// A dump channel.
    Channel(Vec<u8>),
}

/// Imports a log, with a bar.
fn import_log(
    log: LogInput<'_>,
    length: Option<u64>,
    options: &Options,
    dialects: Dialects,
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let bar = progress_bar(length);
    let mut progress = |offset| {
        if let Some(bar) = &bar {
            bar.set_position(offset);
        }
    };
    let problem = log.problem();
    let imported = match TextFormat::of_head(log.head()) {
        Some(format) => {
            let head = log.head().to_vec();
            import_text(log, &head, format, options, &mut progress)
        }
        None => import_with(log, options, dialects, &mut progress),
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    imported.map(|(report, dumps)| (ImportReport { cut: problem.take().or(report.cut), ..report }, dumps))
}

/// A file longer than this is taken for a log without a look inside: channels are small.
const LONGEST_CHANNEL: u64 = 1 << 30;

/// The log, the channel or the file of another tool.
pub(super) fn open(path: &Path) -> Result<Input> {
    if is_stdio(path) {
        return of_stream(path, io::stdin().lock(), None);
    }
    let mut file = inputs::open(path).map_err(|error| about(path, system(&error)))?;
    let meta = file.metadata().map_err(|error| about(path, system(&error)))?;
    if meta.is_dir() {
        return Err(about(path, "is a directory; import takes one log"));
    }
    if !meta.is_file() {
        return of_stream(path, file, None);
    }
    let head = head_of(path, &mut file)?;
    if let Some(format) = Format::of_head(&head) {
        return Ok(Input::Foreign(file, format, None));
    }
    let magic = head.get(..FILE_MAGIC.len());
    let maybe_channel = meta.len() <= LONGEST_CHANNEL && (magic == Some(&FILE_MAGIC) || magic == Some(&[0; 8]));
    let mut whole = io::Cursor::new(head).chain(file);
    if !maybe_channel {
        let log = log(path, whole)?;
        let length = log.form.is_none().then_some(meta.len());
        return of_log(path, log, length);
    }
    let mut bytes = Vec::new();
    whole.read_to_end(&mut bytes).map_err(|error| about(path, system(&error)))?;
    if is_channel(&bytes) {
        return Ok(Input::Channel(bytes));
    }
    Ok(Input::Log(log(path, io::Cursor::new(bytes))?, Some(meta.len())))
}

/// The same of what can be read once. A core is not read in order: it goes into a file without a name.
pub(super) fn of_stream(path: &Path, mut stream: impl Read + 'static, length: Option<u64>) -> Result<Input> {
    let head = head_of(path, &mut stream)?;
    let format = Format::of_head(&head);
    let mut whole = io::Cursor::new(head).chain(stream);
    match format {
        Some(format) => Ok(Input::Foreign(kept(path, &mut whole)?, format, None)),
        None => of_log(path, log(path, whole)?, length),
    }
}

/// A log, or the file that was packed in it.
fn of_log(path: &Path, mut log: LogInput<'static>, length: Option<u64>) -> Result<Input> {
    if !log.is_recorded {
        return Ok(Input::Log(log, length));
    }
    let format = Format::of_head(log.head());
    let problem = log.problem();
    let file = kept(path, &mut log)?;
    format
        .map(|format| Input::Foreign(file, format, problem.take()))
        .ok_or_else(|| about(path, "is of a machine that kwab cannot read"))
}

/// What is not read in order, in a file without a name.
fn kept(path: &Path, stream: &mut impl Read) -> Result<File> {
    let mut file = tempfile::tempfile().map_err(|error| about(&std::env::temp_dir(), system(&error)))?;
    io::copy(stream, &mut file).map_err(|error| about(path, system(&error)))?;
    Ok(file)
}

fn head_of(path: &Path, input: &mut impl Read) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    input.take(exchange::HEAD as u64).read_to_end(&mut head).map_err(|error| about(path, system(&error)))?;
    Ok(head)
}

/// An input as a log, or what else it is.
fn log(path: &Path, input: impl Read + 'static) -> Result<LogInput<'static>> {
    LogInput::open(input).map_err(|error| match error {
        InputError::Io(error) => about(path, system(&error)),
        error => about(path, error),
    })
}

pub(super) fn source_name(path: &Path) -> String {
    if is_stdio(path) {
        return "stdin".to_string();
    }
    path.file_name().map_or_else(|| shown(path), |name| name.to_string_lossy().into_owned())
}

/// Where the dumps go.
enum Destination {
    /// One destination for one dump.
    One(Output),
    /// Files in this folder, named after the log.
    Folder { folder: PathBuf, stem: String },
}

impl Destination {
    fn of(arguments: &Import) -> Result<Self> {
        let log = &arguments.log;
        let stem = log.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stem = if is_stdio(log) { "stdin".to_string() } else { stem.unwrap_or_else(|| "log".to_string()) };
        let Some(output) = &arguments.output else {
            let folder = if is_stdio(log) { PathBuf::from(".") } else { folder_of(log).to_path_buf() };
            return Ok(Self::Folder { folder, stem });
        };
        if output.is_dir() || output.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR) {
            return Ok(Self::Folder { folder: output.clone(), stem });
        }
        let inputs = [log.as_path()];
        let output = Output::of(Some(output), arguments.force || arguments.dry_run, inputs)?;
        if output.is_stdout() && arguments.json {
            bail!("--json and the dump would both go to stdout; name a file with -o");
        }
        Ok(Self::One(if arguments.dry_run { output } else { output.of_binary()? }))
    }

    /// Makes the folder, refuses names that are taken already, and gives the folder for files without a name.
    fn prepare(&self, arguments: &Import) -> Result<PathBuf> {
        match self {
            Self::One(output) => Ok(output.folder()),
            Self::Folder { folder, .. } => {
                std::fs::create_dir_all(folder).map_err(|error| about(folder, system(&error)))?;
                let number = arguments.crash.unwrap_or(1);
                self.output(number, usize::MAX, arguments)?;
                if number == 1 {
                    self.output(number, 1, arguments)?;
                }
                Ok(folder.clone())
            }
        }
    }

    /// What an error about writing names.
    fn named(&self) -> PathBuf {
        match self {
            Self::One(output) => output.path().to_path_buf(),
            Self::Folder { folder, .. } => folder.clone(),
        }
    }

    /// The target of dump `number` when the log has `count` dumps.
    fn output(&self, number: u32, count: usize, arguments: &Import) -> Result<Output> {
        let path = match self {
            Self::One(output) => return Ok(output.clone()),
            Self::Folder { folder, stem } if count == 1 => folder.join(format!("{stem}.kwab")),
            Self::Folder { folder, stem } => folder.join(format!("{stem}-{number}.kwab")),
        };
        Output::of(Some(&path), arguments.force, [arguments.log.as_path()])
    }
}

/// The dumps that are wanted: all, or the one that `--crash` names.
fn chosen(
    dumps: Vec<PendingDump>,
    report: &mut ImportReport,
    destination: &Destination,
    arguments: &Import,
) -> Result<Vec<PendingDump>> {
    let crashes = dumps.iter().filter(|dump| dump.summary.number > 0).count();
    let Some(wanted) = arguments.crash else {
        if matches!(destination, Destination::One(_)) && dumps.len() > 1 && !arguments.dry_run {
            let log = shown(&arguments.log);
            bail!(
                "{log} holds {crashes} crashes and -o names one file; \
                 use -o DIR/ or --crash N (see kwab import --dry-run)"
            );
        }
        return Ok(dumps);
    };
    let dumps: Vec<_> = dumps.into_iter().filter(|dump| dump.summary.number == wanted).collect();
    if dumps.is_empty() {
        let held = match crashes {
            0 => "no crash".to_string(),
            1 => "1 crash".to_string(),
            more => format!("{more} crashes"),
        };
        bail!("{}: crash {wanted} does not exist; the log holds {held}", shown(&arguments.log));
    }
    report.dumps.retain(|dump| dump.number == wanted);
    Ok(dumps)
}

/// Gives the dumps their names: all targets are looked at before the first is touched.
fn put(
    dumps: Vec<PendingDump>,
    total: usize,
    report: &mut ImportReport,
    destination: &Destination,
    arguments: &Import,
) -> Result<Vec<PathBuf>> {
    let outputs = dumps.iter().map(|dump| destination.output(dump.summary.number, total, arguments));
    let outputs: Vec<Output> = outputs.collect::<Result<_>>()?;
    let mut paths = Vec::new();
    for ((dump, output), summary) in dumps.into_iter().zip(outputs).zip(&mut report.dumps) {
        let Some(file) = dump.file else { continue };
        output.put(file)?;
        if !output.is_stdout() {
            summary.path = Some(output.path().display().to_string());
            paths.push(output.path().to_path_buf());
        }
    }
    Ok(paths)
}

/// A bar for work that takes a while, on a terminal only.
fn progress_bar(length: Option<u64>) -> Option<ProgressBar> {
    /// A log shorter than this is imported before a bar could be read.
    const WORTH_A_BAR: u64 = 32 << 20;
    if !io::stderr().is_terminal() || length.is_some_and(|length| length < WORTH_A_BAR) {
        return None;
    }
    let bar = match length {
        Some(length) => ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr()),
        None => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()),
    };
    let template = if length.is_some() {
        "{bytes:>11} of {total_bytes}  {wide_bar}  {bytes_per_sec}  {eta} left"
    } else {
        "{bytes:>11}  {spinner}  {bytes_per_sec}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    Some(bar)
}
