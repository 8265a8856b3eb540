//! `kwab import LOG|- [-o FILE|DIR] [--crash N] [--dry-run] [--force] [--strict] [--json]`
//!
//! Reads a serial log of any mixture and writes one dump per crash, or one recording when nothing crashed; or the file of a
//! dump channel (a memory region, a disk), and writes every dump in it. Without `-o`
//! the dumps lie beside the log under its name: `serial.kwab`, or `serial-1.kwab`, `serial-2.kwab` … . The paths go to
//! stdout, everything else to stderr. Nothing is overwritten without `--force`, and no dump is ever half there.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kwab::format::section::FILE_MAGIC;
use kwab::import::{ImportError, ImportReport, Options, PendingDump, import, import_channel, is_channel};

use crate::cli::Import;
use crate::failure::{LOST, about, is_stdio, shown, system};
use crate::{output, render};

/// Runs the command.
pub(crate) fn run(arguments: &Import) -> Result<ExitCode> {
    let started = Instant::now();
    let input = open(&arguments.log)?;
    let target = Target::of(arguments)?;
    let folder = if arguments.dry_run { None } else { Some(target.folder()?) };
    let options = Options { source: source_name(&arguments.log), folder };
    let imported = match input {
        Input::Channel(bytes) => import_channel(&bytes, &options),
        Input::Log(log, length) => import_log(log, length, &options),
    };
    let (mut report, dumps) = imported.map_err(|error| match error {
        ImportError::Read { error, .. } => about(&arguments.log, system(&error)),
        ImportError::Write(error) => about(&target.named(), system(&error)),
    })?;
    if report.bytes == 0 {
        return Err(about(&arguments.log, "is empty: 0 bytes"));
    }
    let total = dumps.len();
    let dumps = chosen(dumps, &mut report, arguments)?;
    let paths = if arguments.dry_run { Vec::new() } else { place(dumps, total, &mut report, &target, arguments)? };
    if arguments.json {
        output::json(&report)?;
    } else {
        let summary = render::import::summary(&report, started.elapsed(), arguments.dry_run);
        // A closed stderr costs the summary, not the dumps.
        let _ = io::stderr().write_all(summary.as_bytes());
        if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
            output::to_stdout(|out| paths.iter().try_for_each(|path| writeln!(out, "{}", path.display())))?;
        }
    }
    let lost = report.not_understood.count > 0;
    Ok(ExitCode::from(if arguments.strict && lost { LOST } else { 0 }))
}

/// What there is to import.
enum Input {
    /// A log's bytes and, for a file, its length.
    Log(Box<dyn Read>, Option<u64>),
    /// A dump channel.
    Channel(Vec<u8>),
}

/// Imports a log, with a bar.
fn import_log(
    log: Box<dyn Read>,
    length: Option<u64>,
    options: &Options,
) -> Result<(ImportReport, Vec<PendingDump>), ImportError> {
    let bar = progress_bar(length);
    let mut progress = |offset| {
        if let Some(bar) = &bar {
            bar.set_position(offset);
        }
    };
    let imported = import(log, options, &mut progress);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    imported
}

/// A file longer than this is taken for a log without a look inside: channels are small.
const LONGEST_CHANNEL: u64 = 1 << 30;

/// The log, or the channel.
fn open(path: &Path) -> Result<Input> {
    if is_stdio(path) {
        return Ok(Input::Log(Box::new(io::stdin().lock()), None));
    }
    let mut file = File::open(path).map_err(|error| about(path, system(&error)))?;
    let meta = file.metadata().map_err(|error| about(path, system(&error)))?;
    if meta.is_dir() {
        return Err(about(path, "is a directory; import takes one log"));
    }
    let mut head = [0; FILE_MAGIC.len()];
    let got = file.read(&mut head).map_err(|error| about(path, system(&error)))?;
    if meta.is_file() && got == 0 {
        return Err(about(path, "is empty: 0 bytes"));
    }
    let mut input: Box<dyn Read> = Box::new(io::Cursor::new(head[..got].to_vec()).chain(file));
    let maybe_channel = meta.is_file() && meta.len() <= LONGEST_CHANNEL && (head == FILE_MAGIC || head == [0; 8]);
    if maybe_channel {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes).map_err(|error| about(path, system(&error)))?;
        if is_channel(&bytes) {
            return Ok(Input::Channel(bytes));
        }
        input = Box::new(io::Cursor::new(bytes));
    }
    if head == FILE_MAGIC {
        return Err(about(path, "is a dump already; kwab inspect shows it"));
    }
    let length = meta.is_file().then_some(meta.len());
    Ok(Input::Log(input, length))
}

fn source_name(path: &Path) -> String {
    if is_stdio(path) {
        return "stdin".to_string();
    }
    path.file_name().map_or_else(|| shown(path), |name| name.to_string_lossy().into_owned())
}

/// Where the dumps go.
enum Target {
    /// One file of this name.
    File(PathBuf),
    /// Files in this folder, named after the log.
    Folder { folder: PathBuf, stem: String },
}

impl Target {
    fn of(arguments: &Import) -> Result<Self> {
        let log = &arguments.log;
        let stem = log.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let stem = if is_stdio(log) { "stdin".to_string() } else { stem.unwrap_or_else(|| "log".to_string()) };
        let Some(output) = &arguments.output else {
            let folder = if is_stdio(log) { PathBuf::from(".") } else { output::folder_of(log).to_path_buf() };
            return Ok(Self::Folder { folder, stem });
        };
        if is_stdio(output) {
            bail!("-o - is not possible: a dump is written to a file; name one");
        }
        let is_folder = output.is_dir() || output.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
        Ok(if is_folder { Self::Folder { folder: output.clone(), stem } } else { Self::File(output.clone()) })
    }

    /// The folder for temporary files; a folder that was named with a slash is made.
    fn folder(&self) -> Result<PathBuf> {
        match self {
            Self::File(path) => {
                let folder = output::folder_of(path);
                if !folder.is_dir() {
                    return Err(about(path, format!("there is no directory {}", folder.display())));
                }
                Ok(folder.to_path_buf())
            }
            Self::Folder { folder, .. } => {
                std::fs::create_dir_all(folder).map_err(|error| about(folder, system(&error)))?;
                Ok(folder.clone())
            }
        }
    }

    /// What an error about writing names.
    fn named(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder { folder, .. } => folder.clone(),
        }
    }

    /// The name of dump `number` when the log has `count` dumps.
    fn path(&self, number: u32, count: usize) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder { folder, stem } if count == 1 => folder.join(format!("{stem}.kwab")),
            Self::Folder { folder, stem } => folder.join(format!("{stem}-{number}.kwab")),
        }
    }
}

/// The dumps that are wanted: all, or the one that `--crash` names.
fn chosen(dumps: Vec<PendingDump>, report: &mut ImportReport, arguments: &Import) -> Result<Vec<PendingDump>> {
    let crashes = dumps.iter().filter(|dump| dump.summary.number > 0).count();
    let Some(wanted) = arguments.crash else {
        let one_file = arguments.output.as_ref().is_some_and(|output| {
            !output.is_dir() && !output.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR)
        });
        if one_file && dumps.len() > 1 && !arguments.dry_run {
            let log = shown(&arguments.log);
            bail!(
                "{log} holds {crashes} crashes and -o names one file; use -o DIR/ or --crash N (see kwab import --dry-run)"
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
        bail!("{} holds {held}; there is no crash {wanted}", shown(&arguments.log));
    }
    report.dumps.retain(|dump| dump.number == wanted);
    Ok(dumps)
}

/// Gives the dumps their names: all targets are looked at before the first is touched.
fn place(
    dumps: Vec<PendingDump>,
    total: usize,
    report: &mut ImportReport,
    target: &Target,
    arguments: &Import,
) -> Result<Vec<PathBuf>> {
    let paths: Vec<_> = dumps.iter().map(|dump| target.path(dump.summary.number, total)).collect();
    for path in &paths {
        if path.is_dir() {
            return Err(about(path, "is a directory"));
        }
        if !arguments.force && path.exists() {
            return Err(about(path, "exists; --force overwrites it"));
        }
    }
    for ((dump, path), summary) in dumps.into_iter().zip(&paths).zip(&mut report.dumps) {
        let Some(file) = dump.file else { continue };
        let kept = if arguments.force { file.persist(path) } else { file.persist_noclobber(path) };
        kept.map_err(|error| about(path, system(&error.error)))?;
        summary.path = Some(path.display().to_string());
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
