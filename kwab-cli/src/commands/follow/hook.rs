//! Runs the user's command for crashes and silence, one at a time, beside the reading of the console.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::{NAP, child, complain};
use crate::output::remark;

/// How long calls may take after the user asked to end.
const LAST: Duration = Duration::from_secs(5);
/// Calls that wait; a crash loop must not fill the memory.
const MOST: usize = 1024;

/// The command, and the calls of it that wait or run.
pub(super) struct Hooks {
    words: Vec<String>,
    waiting: VecDeque<Call>,
    running: Option<Child>,
}

/// What a call is told.
struct Call {
    event: &'static str,
    dump: Option<PathBuf>,
    signature: String,
}

impl Hooks {
    /// Splits the command into words as a shell does.
    ///
    /// # Errors
    /// When quotes do not match, or there is no word.
    pub(super) fn new(command: Option<&str>) -> Result<Self> {
        let words = command.map(|command| words(command, "--on-crash")).transpose()?.unwrap_or_default();
        Ok(Self { words, waiting: VecDeque::new(), running: None })
    }

    /// A crash has been announced.
    pub(super) fn crash(&mut self, dump: &Path, signature: &str) {
        self.add(Call { event: "crash", dump: Some(dump.to_path_buf()), signature: signature.to_string() });
    }

    /// The console has fallen silent.
    pub(super) fn silent(&mut self, dump: Option<&Path>) {
        self.add(Call { event: "silent", dump: dump.map(Path::to_path_buf), signature: String::new() });
    }

    fn add(&mut self, call: Call) {
        if !self.words.is_empty() && self.waiting.len() < MOST {
            self.waiting.push_back(call);
            self.poll();
        }
    }

    /// Starts the next call when none runs.
    pub(super) fn poll(&mut self) {
        if let Some(child) = &mut self.running {
            match child.try_wait() {
                Ok(None) => return,
                Ok(Some(_)) => {}
                Err(error) => complain(self.program(), &error),
            }
            self.running = None;
        }
        let Some(call) = self.waiting.pop_front() else { return };
        match self.start(&call) {
            Ok(child) => self.running = Some(child),
            Err(error) => complain(self.program(), &error),
        }
    }

    /// Waits for all calls; from when the user asks to end on, for [`LAST`], and then ends the one that runs.
    pub(super) fn finish(&mut self, asked: impl Fn() -> bool) {
        let mut last = None;
        while self.running.is_some() || !self.waiting.is_empty() {
            if asked() && *last.get_or_insert_with(|| Instant::now() + LAST) <= Instant::now() {
                self.running.take().into_iter().for_each(child::end);
                let left = self.waiting.len();
                self.waiting.clear();
                remark(&format!("kwab: --on-crash: ended while it ran; {left} more calls are left out\n"));
                return;
            }
            if let Some(child) = &mut self.running {
                child::ends_within(child, NAP, &asked);
            }
            if asked() {
                thread::sleep(NAP);
            }
            self.poll();
        }
    }

    fn program(&self) -> &Path {
        Path::new(self.words.first().map_or("", String::as_str))
    }

    fn start(&self, call: &Call) -> io::Result<Child> {
        // stdout is for our own lines.
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let mut command = Command::new(self.program());
        command.args(self.words.iter().skip(1)).args(&call.dump).env("KWAB_EVENT", call.event);
        if let Some(dump) = &call.dump {
            command.env("KWAB_DUMP", dump);
        }
        command.env("KWAB_SIGNATURE", &call.signature).stdin(Stdio::null()).stdout(stderr).spawn()
    }
}

/// The words of a command, as a shell splits them.
///
/// # Errors
/// When quotes do not match, or there is no word.
pub(super) fn words(command: &str, option: &str) -> Result<Vec<String>> {
    let words = shlex::split(command).with_context(|| format!("{option}: the quotes do not match"))?;
    if words.is_empty() {
        bail!("{option}: names no command");
    }
    Ok(words)
}
