//! Turns errors into one clear line and an exit status.

use std::io;
use std::path::Path;
use std::process::ExitCode;

/// An analysis found something wrong with what died.
pub(crate) const FINDINGS: u8 = 1;
/// It could not be done.
pub(crate) const FAILED: u8 = 2;
/// The dump is damaged, or what was made of it is partial.
pub(crate) const DAMAGED: u8 = 3;
/// Something was lost, and `--strict` forbids it.
pub(crate) const LOST: u8 = 3;

/// Says the error on stderr and gives the status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let line = format!("kwab: {error:#}").replace('\n', " ");
    // Nothing can be done about a closed stderr.
    let _ = io::Write::write_fmt(&mut io::stderr(), format_args!("{line}\n"));
    ExitCode::from(FAILED)
}

/// An error about a file, in the words of a person: `serial.log: no such file`.
pub(crate) fn about(path: &Path, error: impl std::fmt::Display) -> anyhow::Error {
    anyhow::anyhow!("{}: {error}", shown(path))
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
        io::ErrorKind::BrokenPipe => "broken pipe: the reader of the output is gone".to_string(),
        io::ErrorKind::IsADirectory => "is a directory".to_string(),
        io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_string(),
        io::ErrorKind::AlreadyExists => "exists; --force overwrites it".to_string(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}
