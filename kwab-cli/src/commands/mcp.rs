//! `kwab mcp DIR… [--symbols PATH] [--source DIR] [--timeout SECONDS] [--jobs N]`
//!
//! A server of the Model Context Protocol over stdin and stdout: a language model's client starts it and asks for what
//! kwab's commands report. The tools `list`, `triage`, `inspect`, `print`, `search`, `translate`, `whatis`, `diff` and
//! `check` answer with the JSON of the command of that name, cut to a page that says what it lacks. Nothing is written,
//! and nothing outside of the directories is read but what `--symbols` and `--source` name. Each answer is worked out
//! in a process of its own, which has `--timeout` seconds and the memory of `--max-mem`. The end of stdin ends the
//! server
//! when what was asked is answered; SIGTERM ends it at once.
//! Status 0: the client has gone; 2: a directory cannot be used, or the client does not speak the protocol.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser as _;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::sync::Semaphore;

use super::analyse::check_sources;
use crate::analyses::SymbolOptions;
use crate::cli::Arguments;
use crate::failure::{about, system};
use crate::inputs::{self, Root};
use crate::mcp::{Worker, serve};
use crate::output;
use crate::page::{self, Page};
use crate::serving::{Mcp, McpCall};

/// Answers that are worked out at the same time, unless the user says otherwise.
const MOST_JOBS: usize = 4;

/// Runs `kwab mcp`.
pub(crate) fn run(arguments: &Mcp, max_mem: Option<u64>) -> Result<ExitCode> {
    let (paths, source) = (arguments.symbols.clone(), arguments.source.clone());
    check_sources(&SymbolOptions { paths, source, force: false })?;
    let folder = |path: &PathBuf| {
        if path.to_str().is_none() {
            return Err(about(path, "a folder's name must be UTF-8: clients name it in JSON"));
        }
        match Root::open(path, path) {
            Ok(root) => Ok((path.clone(), root)),
            Err(error) if error.kind() == ErrorKind::NotADirectory => Err(about(path, "is not a directory")),
            Err(error) => Err(about(path, system(&error))),
        }
    };
    let folders = arguments.folders.iter().map(folder).collect::<Result<Vec<_>>>()?;
    let option = |name: &str, path: &PathBuf| {
        let mut word = OsString::from(name);
        word.push(path);
        word
    };
    let symbols = arguments.symbols.iter().map(|path| option("--symbols=", path));
    let source = arguments.source.iter().map(|path| option("--source=", path));
    let jobs = || std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST_JOBS));
    let worker = Worker {
        folders,
        symbols: symbols.chain(source).collect(),
        max_mem,
        timeout: Duration::from_secs(arguments.timeout),
        places: Semaphore::new(arguments.jobs.map_or_else(jobs, usize::from)),
    };
    if std::io::stdin().is_terminal() {
        output::remark("kwab: a client of the Model Context Protocol starts this and writes JSON-RPC to stdin\n");
    }
    serve(worker).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs `kwab mcp-call`: one command for the server that started this process, and that it ends with.
pub(crate) fn run_call(arguments: McpCall) -> Result<ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("cannot end with the server")?;
    // It may have ended before the line above.
    if getppid().map(Pid::as_raw_pid) != Some(arguments.server) {
        bail!("the server has gone");
    }
    let roots = arguments.root.iter().map(|word| root(word)).collect::<Result<Vec<_>>>()?;
    inputs::confine(roots);
    page::want(Page {
        at: arguments.at,
        offset: arguments.offset,
        limit: arguments.limit,
        bytes: arguments.bytes,
        keys: arguments.key,
    });
    let words = std::iter::once("kwab".into()).chain(arguments.command);
    // Clap's words name the option or value that is wrong, and its usage lines are of no use to a client.
    let command = Arguments::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        anyhow::anyhow!("{}", first.trim_start_matches("error: ").to_owned())
    })?;
    super::run_command(command)
}

/// A folder that the server handed down: `3=crashes`.
fn root(word: &str) -> Result<Root> {
    let (number, name) = word.split_once('=').context("--root expects FD=NAME")?;
    let number: u32 = number.parse().context("--root expects the number of a descriptor")?;
    let descriptor = PathBuf::from(format!("/proc/self/fd/{number}"));
    let name = Path::new(name);
    Root::open(name, &descriptor).map_err(|error| about(name, system(&error)))
}
