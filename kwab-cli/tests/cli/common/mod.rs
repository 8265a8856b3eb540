//! What the tests of the real binary share: where the logs are, and how to run `kwab` in a folder of its own.

pub(crate) mod client;
pub(crate) mod hostile;
pub(crate) mod peak;
pub(crate) mod terminal;
pub(crate) mod values;

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// The captured logs.
pub(crate) const LOGS: &[&str] =
    &["kevlar-panic-socket", "kevlar-pipe-profile", "kevlar-segv-children", "linux-6.1-sysrq-panic"];

/// Where a captured log lies.
pub(crate) fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/data/logs").join(format!("{name}.log"))
}

/// A folder of its own for one test.
pub(crate) fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

/// The binary, run in `folder` with nothing that depends on the machine.
pub(crate) fn kwab(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("kwab").expect("the binary is built");
    command
        .current_dir(folder)
        .env("XDG_DATA_HOME", folder.join("data"))
        .env_remove("NO_COLOR")
        .env_remove("DEBUGINFOD_URLS")
        .env_remove("COLUMNS")
        .env("TERM", "xterm");
    command
}

/// Runs the binary to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    kwab(folder).args(arguments).output().expect("the binary runs")
}

/// Copies a captured log into `folder` and imports it; gives the name of the dump.
pub(crate) fn imported(folder: &Path, name: &str) -> String {
    std::fs::copy(log(name), folder.join(format!("{name}.log"))).expect("the log is there");
    let output = run(folder, &["import", &format!("{name}.log")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_string()
}

/// Bytes as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// stdout of a run that must succeed.
pub(crate) fn stdout_of(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}
