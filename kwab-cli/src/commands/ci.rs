//! `kwab ci LOG|DUMP|DIR… --baseline FILE [--write-baseline] [--github] [--junit F] [--sarif F] [--md F] [--json]`
//!
//! The crashes of a run beside those that the project knows: what is new, known and gone, grouped as `kwab list`
//! groups. The baseline is a TOML file to commit; `--write-baseline` adds what is new and keeps every comment. Logs of
//! any kind are read as by `kwab import`, dumps as by `kwab list`; a directory is searched for `.kwab` and `.log`.
//! Reports for CI systems go to files, annotations of GitHub to stdout. No text of a log becomes a command of a runner.
//! Status 0: nothing new; 1: a new crash, or a death that was not understood; 2: usage, or a file that cannot be read;
//! 3: nothing new in what could be read, but something is damaged or cut.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use kwab::analysis::triage;
use kwab::analysis::verify::Backing;
use kwab::import::ImportReport;
use kwab::model::DumpFile;
use kwab::report::catalogue::{CatalogueEntry, concluded, unreadable};
use kwab::report::ci::{self, Baseline, CiReport, Location, Seen, compare, github};
use kwab::report::inspect::{Options, conclude};
use kwab::report::signature;
use kwab::symbols::Symbols;

use super::analyse::{check_sources, load_images, source_lines};
use super::inspect::inspected_file;
use super::log::{self, Beginning};
use crate::cli::{Ci, Color};
use crate::failure::{DAMAGED, FAILED, FINDINGS, about, is_stdio, say, shown, system};
use crate::output::{self, Output, Style};
use crate::render;

/// Runs the command.
pub(crate) fn run(arguments: &Ci, color: Color) -> Result<ExitCode> {
    check_sources(&arguments.symbols)?;
    let files = files(&arguments.runs);
    let outputs = Outputs::of(arguments, &files)?;
    let baseline = read_baseline(arguments)?;
    let mut reading = Reading { arguments, seen: Vec::new(), cut: Vec::new(), readable: true };
    files.iter().for_each(|path| reading.file(path));
    if files.is_empty() {
        bail!("no .kwab and no .log in the directories: a run that left nothing cannot be judged");
    }
    let Reading { seen, cut, readable, .. } = reading;
    let names = files.iter().map(|path| shown(path)).collect();
    let mut report = compare(&seen, &baseline, &arguments.baseline.display().to_string(), names);
    report.damaged.extend(cut);
    outputs.write(&report)?;
    if arguments.write_baseline {
        let text = report.accepted(baseline).to_toml().map_err(|error| about(&arguments.baseline, error))?;
        Output::of(Some(&arguments.baseline), true, [])?.write(|out| out.write_all(text.as_bytes()))?;
    }
    say_it(arguments, &report, color)?;
    let is_new = !report.new.is_empty() && !arguments.write_baseline;
    Ok(ExitCode::from(match (readable, is_new, report.damaged.is_empty()) {
        (false, ..) => FAILED,
        (true, true, _) => FINDINGS,
        (true, false, false) => DAMAGED,
        (true, false, true) => 0,
    }))
}

/// The page, the JSON or the annotations on stdout.
fn say_it(arguments: &Ci, report: &CiReport, color: Color) -> Result<()> {
    output::beside(report)?;
    if arguments.json {
        let mut text = Vec::new();
        serde_json::to_writer_pretty(kwab::plain::JsonWriter(&mut text), report)?;
        let text = String::from_utf8(text)?;
        return output::to_stdout(|out| {
            out.write_all(github::tame_json(&text).as_bytes())?;
            out.write_all(b"\n")
        });
    }
    if [&arguments.junit, &arguments.sarif, &arguments.md].into_iter().flatten().any(|path| is_stdio(path)) {
        return Ok(());
    }
    let style = Style::of_stdout(color, arguments.wide);
    let mut page = github::tame(&render::ci::page(report, arguments.write_baseline, style));
    if arguments.github {
        page.push_str(&github::annotations(report));
    }
    output::text(&page)
}

/// The baseline; with `--write-baseline` one that is absent or of other signatures is an empty one, comments kept.
fn read_baseline(arguments: &Ci) -> Result<Baseline> {
    let path = &arguments.baseline;
    let text = match super::written_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && arguments.write_baseline => {
            return Ok(Baseline::default());
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(about(path, "no such file; --write-baseline makes it of what is found now"));
        }
        Err(error) => return Err(about(path, system(&error))),
    };
    let read = if arguments.write_baseline { Baseline::renewed(&text) } else { Baseline::from_toml(&text) };
    read.map_err(|error| about(path, error))
}

/// Where the reports go; looked at before anything is read.
struct Outputs {
    junit: Option<Output>,
    sarif: Option<Output>,
    md: Option<Output>,
}

impl Outputs {
    /// None of them may be a file that is read, whether it was named or found in a directory.
    fn of(arguments: &Ci, files: &[PathBuf]) -> Result<Self> {
        let inputs = || files.iter().map(PathBuf::as_path).chain([arguments.baseline.as_path()]);
        let output =
            |path: &Option<PathBuf>| path.as_deref().map(|path| Output::of(Some(path), true, inputs())).transpose();
        let outputs =
            Self { junit: output(&arguments.junit)?, sarif: output(&arguments.sarif)?, md: output(&arguments.md)? };
        let all = [&outputs.junit, &outputs.sarif, &outputs.md];
        let to_stdout = all.into_iter().flatten().filter(|output| output.is_stdout()).count();
        if to_stdout + usize::from(arguments.json) > 1 {
            bail!("several reports would go to stdout; name files for all but one");
        }
        let mut paths: Vec<&Path> =
            all.into_iter().flatten().map(Output::path).filter(|path| !is_stdio(path)).collect();
        paths.sort_unstable();
        if let Some(same) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("{}: two reports would go to one file; name one for each", shown(same[0]));
        }
        Ok(outputs)
    }

    fn write(&self, report: &CiReport) -> Result<()> {
        if let Some(output) = &self.junit {
            let text = ci::junit(report)?;
            output.write(|out| out.write_all(text.as_bytes()))?;
        }
        if let Some(output) = &self.sarif {
            let text = format!("{:#}\n", ci::sarif(report));
            output.write(|out| out.write_all(github::tame_json(&kwab::plain::json(&text)).as_bytes()))?;
        }
        if let Some(output) = &self.md {
            let text = ci::markdown(report);
            output.write(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(())
    }
}

/// The files of the arguments: of directories what ends in `.kwab` or `.log`.
fn files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(super::list::files_in(path, &["kwab", "log"]));
        } else {
            files.push(path.clone());
        }
    }
    files
}

/// What has been read so far.
struct Reading<'a> {
    arguments: &'a Ci,
    seen: Vec<Seen>,
    /// Logs that ended before their input did.
    cut: Vec<String>,
    readable: bool,
}

impl Reading<'_> {
    /// Reads every dump of a file, or every crash of a log; a file that cannot be read costs only itself.
    fn file(&mut self, path: &Path) {
        let read = match log::beginning(path) {
            Ok(Beginning::Dump(dumps)) => dumps.and_then(|mut dumps| {
                dumps.try_for_each(|dump| self.dump(dump.map_err(|error| about(path, error))?, &shown(path), None))
            }),
            Ok(Beginning::Other(text)) => self.log(path, text),
            Err(error) => Err(about(path, system(&error))),
        };
        if let Err(error) = read {
            say(&error);
            self.readable = false;
        }
    }

    fn log(&mut self, path: &Path, text: Option<Vec<u8>>) -> Result<()> {
        let name = shown(path);
        let (report, dumps) = log::everything(path, text)?;
        let total = dumps.len();
        for (index, pending) in dumps.into_iter().enumerate() {
            let line = pending.summary.line;
            let mut file = log::opened(path, pending)?;
            (file.number, file.dumps) = (index + 1, total);
            self.dump(file, &name, line)?;
        }
        self.seen.extend(not_understood(&report, &name));
        self.cut.extend(report.cut.map(|cut| format!("{name}: {cut}")));
        Ok(())
    }

    fn dump(&mut self, file: DumpFile, name: &str, log_line: Option<u64>) -> Result<()> {
        let (dump, mut report) = inspected_file(file, name, Options { rows: 1, ..Options::default() });
        let case = dump.case();
        // Without symbols, as lists do: a baseline must not depend on which images a machine has.
        let judged = triage(&case, &Symbols::new(), &Backing::none(), name);
        let entry = concluded(&dump, name, &judged);
        let is_bug = judged.has_findings() && !entry.is_quiet_live();
        let location = if is_bug {
            let symbols = &self.arguments.symbols;
            let images = load_images(&case, symbols)?;
            conclude(&mut report, &case, &images.symbols, &mut source_lines(symbols), name);
            let folder = std::env::current_dir().unwrap_or_default();
            Location::of(&report).map(|location| location.within(&folder))
        } else {
            None
        };
        self.seen.push(Seen { entry, is_bug, location, log_line });
        Ok(())
    }
}

/// The death that a log announces and of which nothing else was understood, as a crash.
fn not_understood(report: &ImportReport, name: &str) -> Option<Seen> {
    let death = report.unexplained.as_ref()?;
    let parts =
        signature::Parts { kind: "not understood", message: death.problem.as_bytes(), ..signature::Parts::default() };
    let entry = CatalogueEntry {
        kind: "not understood".to_string(),
        signature: signature::of(&parts),
        sound: true,
        ..unreadable(name, &format!("a death that was not understood: {}", death.problem))
    };
    Some(Seen { entry, is_bug: true, location: None, log_line: Some(death.line) })
}
