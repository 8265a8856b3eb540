//! Runs a command of kwab in a process of its own, confined to the server's folders, and takes its answer.
//!
//! A process can be ended: at the limit of time, when the client cancels, when the server goes. What a hostile dump
//! does to it, it does to nothing else. The process is this program again, called as `kwab mcp-call`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use kwab::plain;
use kwab::report::command;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::tools::{Call, MOST_BYTES};
use crate::inputs::Root;
use crate::page::Part;

/// Bytes of a process's answer: a page, its places that miss something, and the JSON around them.
const MOST_ANSWERED: u64 = MOST_BYTES as u64 + (64 << 10);
/// Bytes of what a process may remark.
const MOST_SAID: u64 = 8 << 10;

/// What commands are run with.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The folders with their names.
    pub folders: Vec<(PathBuf, Root)>,
    /// Options that the server was started with.
    pub symbols: Vec<OsString>,
    /// The limit of memory that the server was started with.
    pub max_mem: Option<u64>,
    /// The most time that an answer may take.
    pub timeout: Duration,
    /// Places for processes.
    pub places: Semaphore,
}

/// The longest parameter, in bytes: longer than any path, and than any pattern that is searched for.
const LONGEST_WORD: usize = 16 << 10;
/// All parameters together.
const MOST_WORDS: usize = 64 << 10;
/// Letters of a parameter that a refusal quotes.
const QUOTED: usize = 60;

/// What a command answered.
#[derive(Debug)]
pub(super) struct Done {
    pub status: u8,
    pub part: Part,
    pub remarks: Vec<String>,
    /// The command line that gives the same report.
    pub command: String,
}

impl Worker {
    /// Runs a call.
    ///
    /// # Errors
    /// The words of the command, or why it gave no answer.
    pub(super) async fn run(&self, call: &Call) -> Result<Done, String> {
        let command = self.command(call)?;
        let place = self.places.acquire().await.map_err(|error| error.to_string())?;
        let done = tokio::time::timeout(self.timeout, self.answer(call, &command)).await;
        drop(place);
        done.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs();
            Err(format!("kwab: no answer within {seconds} s, the limit of this server (kwab mcp --timeout)"))
        })
    }

    /// The command line whose report is asked for.
    fn command(&self, call: &Call) -> Result<Vec<OsString>, String> {
        let mut words: Vec<OsString> = call.words.iter().map(OsString::from).collect();
        if call.words.first().is_some_and(|word| word == "schema") {
            return Ok(words);
        }
        words.push("--json".into());
        if call.symbols {
            words.extend(self.symbols.iter().cloned());
        }
        words.push("--".into());
        let is_list = call.words.first().is_some_and(|word| word == "list");
        match call.paths.as_slice() {
            [] if is_list => words.extend(self.folders.iter().map(|(name, _)| name.into())),
            paths => {
                for path in paths {
                    words.push(self.named(path)?.into());
                }
            }
        }
        words.extend(call.rest.iter().map(OsString::from));
        bounded(&words)?;
        Ok(words)
    }

    /// The name of a path with that of its folder before it: a client may leave out the name of the only one.
    fn named(&self, path: &str) -> Result<PathBuf, String> {
        let wanted = Path::new(path);
        if self.folders.iter().any(|(name, _)| wanted.starts_with(name)) {
            return Ok(wanted.to_path_buf());
        }
        match self.folders.as_slice() {
            [(only, _)] if wanted.is_relative() && !path.is_empty() => Ok(only.join(wanted)),
            folders => {
                let names: Vec<String> = folders.iter().map(|(name, _)| name.display().to_string()).collect();
                let (path, names) = (plain::line(path), names.join(", "));
                Err(format!("kwab: {path}: lies outside of the folders of this server: {names}"))
            }
        }
    }

    async fn answer(&self, call: &Call, words: &[OsString]) -> Result<Done, String> {
        let mut child =
            self.process(call, words)?.spawn().map_err(|error| format!("kwab: cannot start a process: {error}"))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (out, err) = tokio::join!(read(out, MOST_ANSWERED), read(err, MOST_SAID));
        let status = child.wait().await.map_err(|error| format!("kwab: lost a process: {error}"))?;
        let said = plain::page_of_bytes(&err);
        let Some(code) = status.code() else {
            return Err(format!("kwab: the process that worked it out was ended ({status}) {said}")
                .trim_end()
                .to_owned());
        };
        let part: Part = match serde_json::from_slice(&out) {
            Ok(part) => part,
            Err(_) if said.is_empty() => return Err(format!("kwab: no answer, status {code}")),
            Err(_) => return Err(said.trim_end().to_owned()),
        };
        let remarks = said.lines().map(str::to_owned).collect();
        let words: Vec<String> = words.iter().map(|word| command::word(&word.to_string_lossy())).collect();
        let line = words.join(" ");
        Ok(Done { status: u8::try_from(code).unwrap_or(u8::MAX), part, remarks, command: format!("kwab {line}") })
    }

    /// The process: this program, whatever its file has become meanwhile.
    fn process(&self, call: &Call, words: &[OsString]) -> Result<Command, String> {
        let mut command = Command::new("/proc/self/exe");
        if let Some(bytes) = self.max_mem {
            command.arg(format!("--max-mem={bytes}"));
        }
        command.args(["--color=never", "mcp-call"]).arg(format!("--server={}", std::process::id()));
        for (name, root) in &self.folders {
            let number = root.inherit().map_err(|error| format!("kwab: {}: {error}", name.display()))?;
            let mut word = OsString::from(format!("--root={number}="));
            word.push(name);
            command.arg(word);
        }
        let page = &call.page;
        command.arg(format!("--at={}", page.at)).arg(format!("--offset={}", page.offset));
        command.arg(format!("--bytes={}", page.bytes()));
        command.args(page.limit.map(|limit| format!("--limit={limit}")));
        command.args(call.keys.iter().map(|key| format!("--key={key}")));
        command.arg("--").args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok(command)
    }
}

/// Refuses parameters that no process can be given, or that an answer would quote at length.
fn bounded(words: &[OsString]) -> Result<(), String> {
    if let Some(word) = words.iter().find(|word| word.len() > LONGEST_WORD) {
        let first: String = word.to_string_lossy().chars().take(QUOTED).collect();
        let (first, length) = (plain::line(&first), word.len());
        return Err(format!("kwab: a parameter has {length} bytes, at most {LONGEST_WORD} are taken: {first}…"));
    }
    if words.iter().any(|word| word.as_encoded_bytes().contains(&0)) {
        return Err("kwab: a parameter has a NUL character, which no parameter takes".to_owned());
    }
    let length: usize = words.iter().map(|word| word.len()).sum();
    if length > MOST_WORDS {
        let count = words.len();
        return Err(format!("kwab: {count} parameters have {length} bytes, at most {MOST_WORDS} are taken"));
    }
    Ok(())
}

/// What a process writes, up to a limit; the pipe is closed there.
async fn read(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What came before an error is what there is.
        let _ = pipe.take(most).read_to_end(&mut bytes).await;
    }
    bytes
}
