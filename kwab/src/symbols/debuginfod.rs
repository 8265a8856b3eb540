//! Asks elfutils' client for the debug file of a build-id, where the user names servers in `DEBUGINFOD_URLS`.
//!
//! The client (`debuginfod-find`, debuginfod(1)) keeps a cache, knows TLS and proxies, and bounds sizes and times by
//! its own variables; where those are not set, an answer may take [`SECONDS`] and have [`MOST_BYTES`]. Nothing is
//! asked without the variable. What comes is used only if it has the build-id that was asked for.

use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BuildId, debug_files};

/// How long a transfer may take, and how many bytes it may have.
const SECONDS: &str = "60";
const MOST_BYTES: &str = "2147483648";
/// How long the client itself may take, which asks its servers one behind the other at worst.
const PATIENCE: Duration = Duration::from_secs(90);
/// The longest path that it may answer with.
const LONGEST: u64 = 4096;

/// The debug file with this build-id, in the client's cache.
pub(super) fn find(id: &[u8]) -> Option<PathBuf> {
    std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
    let mut client = Command::new("debuginfod-find");
    for (name, value) in [("DEBUGINFOD_MAXTIME", SECONDS), ("DEBUGINFOD_MAXSIZE", MOST_BYTES)] {
        if std::env::var_os(name).is_none() {
            client.env(name, value);
        }
    }
    client.arg("debuginfo").arg(BuildId(id.to_vec()).to_string());
    // A file takes what is said without being read.
    let mut said = tempfile::tempfile().ok()?;
    client.stdin(Stdio::null()).stdout(said.try_clone().ok()?).stderr(Stdio::null());
    let mut client = client.spawn().ok()?;
    let until = Instant::now() + PATIENCE;
    let ended = loop {
        match client.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => break false,
        }
    };
    if !ended {
        // One that has ended already cannot be killed, and is waited for.
        let _ = client.kill();
        let _ = client.wait();
        return None;
    }
    said.seek(SeekFrom::Start(0)).ok()?;
    let mut answer = Vec::new();
    said.take(LONGEST).read_to_end(&mut answer).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(answer.trim_ascii()));
    (path.is_absolute() && debug_files::is_image(&path, id)).then_some(path)
}
