//! Asks elfutils' client for the debug file of a build-id, where the user names servers in `DEBUGINFOD_URLS`.
//!
//! The client (`debuginfod-find`, debuginfod(1)) keeps a cache, knows TLS and proxies, and bounds sizes and times by
//! its own variables; where those are not set, an answer may take [`SECONDS`] and have [`MOST_BYTES`]. Nothing is
//! asked without the variable. What comes is used only if it has the build-id that was asked for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{BuildId, debug_files};
use crate::units;

/// How long a transfer may take, and how many bytes it may have.
const SECONDS: &str = "60";
const MOST_BYTES: &str = "2147483648";
/// How long all questions of one search may take; the client asks its servers one behind the other at worst.
const PATIENCE: Duration = Duration::from_secs(90);
/// Build-ids that one search asks for: a dump may claim thousands, and each question tells the servers of it.
const MOST_ASKED: usize = 64;
/// The longest path that it may answer with.
const LONGEST: u64 = 4096;

/// What one search has asked the servers for.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Each build-id with what came of it.
    asked: HashMap<Vec<u8>, Option<PathBuf>>,
    spent: Duration,
    /// How many build-ids were not asked for, because there were too many or it took too long.
    unasked: usize,
}

impl Servers {
    /// The debug file with this build-id, in the client's cache. Each is asked for once.
    pub(super) fn find(&mut self, id: &[u8]) -> Option<PathBuf> {
        std::env::var_os("DEBUGINFOD_URLS").filter(|urls| !urls.is_empty())?;
        if let Some(known) = self.asked.get(id) {
            return known.clone();
        }
        let left = PATIENCE.saturating_sub(self.spent);
        if self.asked.len() >= MOST_ASKED || left.is_zero() {
            self.unasked += 1;
            return None;
        }
        let began = Instant::now();
        let found = ask(id, began + left);
        self.spent += began.elapsed();
        self.asked.insert(id.to_vec(), found.clone());
        found
    }

    /// What was not asked for, in words.
    pub(super) fn remark(&self) -> Option<String> {
        let unasked = self.unasked;
        (unasked > 0).then(|| {
            let images = units::count(unasked as u64, "image", "images");
            format!("DEBUGINFOD_URLS: {images} not asked for, after {} in {} s", self.asked.len(), self.spent.as_secs())
        })
    }
}

fn ask(id: &[u8], until: Instant) -> Option<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_said() {
        let mut servers = Servers::default();
        assert_eq!(servers.remark(), None);
        servers.unasked = 2;
        servers.asked.insert(vec![1], None);
        servers.spent = PATIENCE;
        assert_eq!(servers.remark().unwrap(), "DEBUGINFOD_URLS: 2 images not asked for, after 1 in 90 s");
    }
}
