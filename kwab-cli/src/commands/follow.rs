//! `kwab follow SOURCE|--exec COMMAND [-o DIR] [--before N] [--quiet-after MS] [--silence S] [--on-crash COMMAND]
//! [--once] [--reconnect] [--live]`
//!
//! Reads a console while it is written: a file that grows and may be rotated or truncated, stdin, a FIFO or terminal, a
//! Unix socket, TCP on this machine, or what a command such as `qemu-system-x86_64 -nographic …` prints. Each crash
//! gets a dump, with the lines before it; while it comes in, the dump on disk is whole and at most half a second old,
//! so that `kill -9` of kwab loses no more. A crash is announced when its report has ended, or after silence; what
//! comes right after, such as the panic behind an oops, is added to the same dump. `--on-crash` runs a command with the
//! dump as last argument and as `KWAB_DUMP`; `KWAB_EVENT` is `crash` or `silent`, `KWAB_SIGNATURE` its signature. No
//! text of the console reaches its arguments. SIGINT and SIGTERM end with everything written; the command of
//! `--exec` gets SIGTERM, and SIGKILL three seconds later; hooks have five seconds then. That command's end is the
//! console's, also when a process that it left keeps its output open. The end of a connection is the console's too,
//! unless `--reconnect` waits for the next. With `--live` the last lines are in a dump while nothing has crashed too.
//!
//! Status 0: ended without a crash; 1: with one; 2: usage or I/O; 3: without one, but the console had fallen silent or
//! a part of it was rotated away unread.

mod child;
mod chunk;
mod growing;
mod hook;
mod late;
mod rotation;
mod socket;
mod source;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Result;
use kwab::follow::{FollowEvent, FollowLine, Follower, SCHEMA, Settings};
use kwab::import::{Dialects, ImportError};
use kwab::output::signals;

use self::chunk::Chunk;
use self::hook::Hooks;
use self::source::Console;
use crate::cli::Follow;
use crate::failure::{DAMAGED, FINDINGS, about, say, shown, system};
use crate::output;
use crate::render;

/// The longest sleep: signals and hooks are looked at in between.
const NAP: Duration = Duration::from_millis(50);

/// Runs the command.
pub(crate) fn run(arguments: &Follow) -> Result<ExitCode> {
    let asked = signals::requests();
    let mut hooks = Hooks::new(arguments.on_crash.as_deref())?;
    let dialects = match &arguments.dialects {
        Some(file) => Some(super::written_text(file).map_err(|error| about(file, system(&error)))?),
        None => None,
    };
    if let (Some(file), Some(text)) = (&arguments.dialects, &dialects) {
        Dialects::from_toml(text).map_err(|error| about(file, error))?;
    }
    let folder = &arguments.output;
    std::fs::create_dir_all(folder).map_err(|error| about(folder, system(&error)))?;
    let mut console = Console::open(arguments)?;
    let settings = Settings {
        source: console.name.clone(),
        folder: folder.clone(),
        stem: console.stem.clone(),
        before: arguments.before as usize,
        quiet_after: Duration::from_millis(arguments.quiet_after),
        silence: arguments.silence.map(Duration::from_secs),
        dialects,
        live: arguments.live,
    };
    let follower = Follower::new(settings, Instant::now()).map_err(|error| about(folder, system(&error)))?;
    if std::io::stderr().is_terminal() {
        let (name, folder) = (&console.name, shown(folder));
        output::remark(&format!("kwab: following {name}, dumps go to {folder}; Ctrl-C ends\n"));
    }
    let mut session =
        Session { arguments, follower, hooks: &mut hooks, crashes: 0, is_silent: false, is_partial: false };
    let ended = session.follow(&mut console, || asked.load(Ordering::SeqCst));
    let (crashes, is_partial) = (session.crashes, session.is_silent || session.is_partial);
    console.close();
    hooks.finish(|| asked.load(Ordering::SeqCst));
    ended?;
    Ok(ExitCode::from(match (crashes, is_partial) {
        (1.., _) => FINDINGS,
        (0, true) => DAMAGED,
        (0, false) => 0,
    }))
}

/// A console being followed.
struct Session<'a> {
    arguments: &'a Follow,
    follower: Follower,
    hooks: &'a mut Hooks,
    crashes: u32,
    is_silent: bool,
    /// Whether a part of the console was not read.
    is_partial: bool,
}

impl Session<'_> {
    /// Reads until the console ends, the user asks, or with `--once` something has happened.
    fn follow(&mut self, console: &mut Console, asked: impl Fn() -> bool) -> Result<()> {
        let mut problem = None;
        while !asked() {
            let has_happened = self.crashes > 0 && self.follower.is_idle() || self.is_silent;
            if self.arguments.once && has_happened {
                break;
            }
            let now = Instant::now();
            let due = self.follower.next_due().map_or(NAP, |due| due.saturating_duration_since(now)).min(NAP);
            let events = match console.chunks.recv_timeout(due) {
                Ok(Chunk::Bytes(bytes, at)) => self.follower.take(&bytes, at),
                Ok(Chunk::Skipped(files)) => Ok(vec![FollowEvent::Skipped { files }]),
                Ok(Chunk::Failed(error)) => {
                    problem = Some(about(Path::new(&console.name), system(&error)));
                    break;
                }
                Err(RecvTimeoutError::Timeout) if console.is_orphaned() => {
                    self.tell(Ok(vec![FollowEvent::Orphaned]))?;
                    break;
                }
                Err(RecvTimeoutError::Timeout) => self.follower.tick(Instant::now()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            self.tell(events)?;
            self.hooks.poll();
        }
        let events = self.follower.end();
        self.tell(events)?;
        problem.map_or(Ok(()), Err)
    }

    /// Prints events and starts hooks.
    fn tell(&mut self, events: Result<Vec<FollowEvent>, ImportError>) -> Result<()> {
        let events = events.map_err(|error| match error {
            ImportError::Write(error) => about(&self.arguments.output, system(&error)),
            other => other.into(),
        })?;
        for event in &events {
            let line = serde_json::to_string(&FollowLine { schema: SCHEMA, event })?;
            let line = kwab::plain::json(&line);
            if self.arguments.json {
                output::to_stdout(|out| writeln!(out, "{line}"))?;
            } else {
                output::text(&render::follow::line(event))?;
            }
            output::beside_line(&line)?;
            match event {
                FollowEvent::Crash(found) => {
                    self.crashes += 1;
                    self.hooks.crash(&found.path, &found.signature);
                }
                FollowEvent::Silent { path, .. } => {
                    self.is_silent = true;
                    self.hooks.silent(path.as_deref());
                }
                FollowEvent::Resumed => self.is_silent = false,
                FollowEvent::Skipped { .. } => self.is_partial = true,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Says an error that ends nothing.
fn complain(path: &Path, error: &std::io::Error) {
    say(&about(path, system(error)));
}
