//! Turns errors into one clear line and an exit status; [`STATUSES`] says what each command's statuses mean.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use kwab::output::OutputError;
use kwab::plain;

use crate::paint::remark;

/// An analysis found something wrong with what died.
pub(crate) const FINDINGS: u8 = 1;
/// It could not be done.
pub(crate) const FAILED: u8 = 2;
/// The dump is damaged, or what was made of it is partial.
pub(crate) const DAMAGED: u8 = 3;
/// Something was lost, and `--strict` forbids it.
pub(crate) const LOST: u8 = 3;
/// The reader of stdout has gone: what a shell reports for a program that SIGPIPE ended.
pub(crate) const GONE: u8 = 141;

/// The exit statuses of every command, printed by `--help`, the manual and this crate's tests.
///
/// Of several, the greatest of 1, 2 and 3 does not win: 2 comes before 1, and 1 before 3.
pub(crate) const STATUSES: &str = "\
Exit status:
  0    clean
       import, export, report, salvage, redact, cat, capture, pack, open: all
       of it; check, list, inspect: sound; triage, audit-vm, verify-pages:
       nothing found in a sound dump; translate, search, whatis: answered;
       print, trends: shown; index: up to date; prune: done, or said what
       would go; symbols: kept, listed, removed; doctor: nothing is lacking
  1    findings
       triage: a bug or a death; audit-vm: a violated rule; verify-pages: a
       wrong page; import: a kernel's death that was not understood; bisect:
       no boundary; oracle: a difference; ci: a new crash; follow: a crash;
       doctor: something lacks
  2    usage or I/O
       every command: arguments, files that are absent or of another kind,
       targets that are refused, a full disk; check, list: for any of several
       files
  3    damaged, partial
       check, inspect, list, cat, export, report, redact: defects; triage,
       audit-vm, verify-pages, ci: nothing found, but something is damaged;
       salvage: something was lost; capture: some memory could not be read;
       translate, search, whatis, print: what the answer needs was not
       captured or is damaged; oracle: runs that are incomplete or cannot be
       compared; pack: defects, or an image is lacking; follow: the console
       fell silent; list, trends: dumps are there that the index does not
       know; prune, symbols: what had to go could not; symbols: no image to
       keep; import: input cut, or with --strict something not understood
  141  the reader of stdout has gone (head); nothing is printed";

/// The reader of the output has gone; ends the program without a word.
#[derive(Debug, thiserror::Error)]
#[error("the reader of the output has gone")]
pub(crate) struct Gone;

/// Says the error on stderr and gives the status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<Gone>() {
        return ExitCode::from(GONE);
    }
    say(error);
    ExitCode::from(FAILED)
}

/// Says an error on stderr, in one line.
pub(crate) fn say(error: &anyhow::Error) {
    remark(&format!("kwab: {}\n", plain::line(&format!("{error:#}").replace('\n', " "))));
}

/// An error about a file, in the words of a person: `serial.log: no such file`.
pub(crate) fn about(path: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{}: {error}", shown(path))
}

/// An error about a directory that cannot be read; what is there may be something else.
pub(crate) fn about_folder(folder: &Path, error: &io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotADirectory && folder.exists() {
        return about(folder, "is not a directory; name the one that holds the dumps");
    }
    about(folder, system(error))
}

/// An error about an output.
pub(crate) fn about_output(path: &Path, error: OutputError) -> anyhow::Error {
    let name = if is_stdio(path) { "stdout".to_string() } else { shown(path) };
    let error = match error {
        OutputError::Io(error) => system(&error),
        error => error.to_string(),
    };
    anyhow::anyhow!("{name}: {error}")
}

/// The name of a file as the user gave it; stdin has a name too.
pub(crate) fn shown(path: &Path) -> String {
    if is_stdio(path) { "stdin".to_string() } else { path.display().to_string() }
}

/// Whether a path means stdin or stdout.
pub(crate) fn is_stdio(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What the system says, without its number.
pub(crate) fn system(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_string(),
        io::ErrorKind::PermissionDenied => "permission denied".to_string(),
        io::ErrorKind::StorageFull => "no space left on the device; nothing was kept".to_string(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up; nothing was kept".to_string(),
        io::ErrorKind::FileTooLarge => "larger than the limit for files (ulimit -f); nothing was kept".to_string(),
        io::ErrorKind::BrokenPipe => "broken pipe: the reader of the output is gone".to_string(),
        io::ErrorKind::IsADirectory => "is a directory".to_string(),
        io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_string(),
        io::ErrorKind::AlreadyExists => "exists; --force overwrites it".to_string(),
        // What kwab itself says has its own spelling.
        _ if error.raw_os_error().is_none() => error.to_string(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}
