//! Says what a command does while it takes time: the name of the stage, the elapsed time, and how far cargo is.
//!
//! [`run`] runs a program with its output captured. On a terminal one line is rewritten while it runs; elsewhere a line
//! is added every [`PLAIN`], so that no reader of a log waits longer without a word. What ended within [`SHORT`] is not
//! mentioned, nor is a cargo that found everything built, nor anything under `CARGO_TERM_QUIET=true`. Cargo is asked
//! for its progress bar, which says how many of the crates are built, and is read instead of shown; what else it prints
//! is handed to the caller.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What takes less time is not mentioned.
pub const SHORT: Duration = Duration::from_secs(1);
/// How often a line is added where there is no terminal.
pub const PLAIN: Duration = Duration::from_secs(4);
/// How often a [`Pulse`] speaks.
const BEAT: Duration = Duration::from_secs(30);
/// How often the line of a terminal is rewritten.
const REDRAWN: Duration = Duration::from_millis(200);

/// What cargo is asked to build, by the way into `cargo xtask` and by `cargo xtask` for the program `kwab`: always the
/// same, because cargo builds half of the dependencies again for another choice although their features are the same
/// (what procedural macros share with a program is built as the program has it).
pub const CHOSEN: [&str; 8] = ["--package", "testing", "--package", "kwab-cli", "--bin", "xtask", "--bin", "kwab"];

/// The profile of a first `cargo xtask demo`, and the folder of what it builds below `target`.
pub const QUICK: &str = "quick";

/// The target of the kernel.
pub const BARE: &str = "x86_64-unknown-none";

/// What cargo is asked for a program of the kernel, but for the profile and the program's name.
pub const KERNEL: [&str; 6] = ["build", "--locked", "-p", "kernel", "--target", BARE];

/// How a program ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error without cargo's reports of progress.
    pub told: String,
}

/// Runs a program without input. `None` when it was killed because it ran longer than `limit`.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn run(name: &str, command: &mut Command, limit: Option<Duration>) -> io::Result<Option<Ended>> {
    let on_terminal = io::stderr().is_terminal();
    let is_cargo = Path::new(command.get_program()).file_stem().is_some_and(|stem| stem == "cargo");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if is_cargo {
        command.env("CARGO_TERM_PROGRESS_WHEN", "always").env("CARGO_TERM_PROGRESS_WIDTH", "100");
        command.env("CARGO_TERM_QUIET", "false");
        if on_terminal && std::env::var_os("NO_COLOR").is_none() {
            command.env("CARGO_TERM_COLOR", "always");
        }
    }
    let started = Instant::now();
    let mut child = command.spawn()?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let heard = Mutex::new(Heard { is_cargo, ..Heard::default() });
    thread::scope(|scope| {
        let output = scope.spawn(move || collected(stdout));
        let errors = scope.spawn(|| listen(stderr, &heard));
        let mut line = Line { name, on_terminal, is_cargo, quiet: is_quiet(), started, said: started, width: 0 };
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if limit.is_some_and(|limit| started.elapsed() >= limit) {
                child.kill()?;
                child.wait()?;
                break None;
            }
            line.go_on(&heard);
            thread::sleep(Duration::from_millis(10));
        };
        let stdout = output.join().unwrap_or_default();
        // A thread that only reads ends with its pipe.
        let _ = errors.join();
        line.end(&heard, status.is_some_and(|status| status.success()));
        let told = heard.lock().map(|mut heard| std::mem::take(&mut heard.told)).unwrap_or_default();
        Ok(status.map(|status| Ended { status, stdout, told }))
    })
}

/// Says every now and then that something goes on, until it is dropped: for a stage that prints by itself, but seldom.
#[derive(Debug)]
pub struct Pulse {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Says `name` and the elapsed time every half a minute.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (name, started) = (name.to_owned(), Instant::now());
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{name}: {:.0} s", started.elapsed().as_secs_f64());
            }
        };
        Self { stop: Some(stop), thread: Some(thread::spawn(beat)) }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that only prints has nothing to tell.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The line that a stage shows.
struct Line<'a> {
    name: &'a str,
    on_terminal: bool,
    is_cargo: bool,
    quiet: bool,
    started: Instant,
    said: Instant,
    /// Characters on the terminal's line.
    width: usize,
}

impl Line<'_> {
    /// Says where the stage is, when it is time to.
    fn go_on(&mut self, heard: &Mutex<Heard>) {
        let pause = if self.on_terminal { REDRAWN } else { PLAIN };
        if self.quiet || self.started.elapsed() < SHORT || self.said.elapsed() < pause {
            return;
        }
        self.said = Instant::now();
        let doing = heard.lock().map(|heard| heard.doing.clone()).unwrap_or_default();
        let text = format!("{}: {:.0} s{doing}", self.name, self.started.elapsed().as_secs_f64());
        if self.on_terminal {
            let text: String = text.chars().take(79).collect();
            let blanks = " ".repeat(self.width.saturating_sub(text.chars().count()));
            self.width = text.chars().count();
            eprint!("\r{text}{blanks}\r");
            // A terminal that does not take it shows less.
            let _ = io::stderr().flush();
        } else {
            eprintln!("{text}");
        }
    }

    /// Says how long the stage took, when that was long.
    fn end(&mut self, heard: &Mutex<Heard>, success: bool) {
        if self.width > 0 {
            eprint!("\r{}\r", " ".repeat(self.width));
        }
        let crates = heard.lock().map(|heard| heard.crates).unwrap_or_default();
        let is_fresh = self.is_cargo && success && crates == 0;
        if self.quiet || is_fresh || self.started.elapsed() < SHORT {
            return;
        }
        let mut text = format!("{}: {:.1} s", self.name, self.started.elapsed().as_secs_f64());
        let _ = match (success, crates) {
            (false, _) => write!(text, ", failed"),
            (true, 0) => Ok(()),
            (true, 1) => write!(text, ", 1 crate built"),
            (true, crates) => write!(text, ", {crates} crates built"),
        };
        eprintln!("{text}");
    }
}

/// What a program has said on its standard error.
#[derive(Debug, Default, PartialEq, Eq)]
struct Heard {
    /// Whether it is cargo that speaks.
    is_cargo: bool,
    /// What cargo does, with a comma before it.
    doing: String,
    /// Crates whose compilation began.
    crates: usize,
    /// Warnings, errors and the rest.
    told: String,
}

impl Heard {
    /// Takes a line, or a state of the progress bar.
    fn take(&mut self, line: &str) {
        let plain = without_escapes(line);
        let words = plain.trim();
        if let Some(progress) = bar(words).filter(|_| self.is_cargo) {
            self.doing = progress;
        } else if let Some(doing) = status(words).filter(|_| self.is_cargo) {
            if doing.starts_with("Compiling") || doing.starts_with("Checking") {
                self.crates += 1;
            } else {
                self.doing = format!(", {}", doing.to_lowercase());
            }
        } else if !words.is_empty() || !self.told.is_empty() {
            self.told.push_str(line.trim_end());
            self.told.push('\n');
        }
    }
}

/// Cargo's progress bar, `Building [==>  ] 34/120: syn, serde`, as words.
fn bar(words: &str) -> Option<String> {
    let (verb, rest) = words.split_once(" [")?;
    let (bar, rest) = rest.split_once("] ")?;
    if verb.contains(' ') || !bar.chars().all(|c| "=> ".contains(c)) {
        return None;
    }
    let (counts, names) = rest.split_once(": ").unwrap_or((rest, ""));
    let (done, all) = counts.split_once('/')?;
    let (done, all): (u32, u32) = (done.trim().parse().ok()?, all.trim().parse().ok()?);
    let names = if names.is_empty() { String::new() } else { format!(" ({names})") };
    Some(format!(", crate {done} of {all}{names}"))
}

/// A line in which cargo says what it does: its first word is one of these.
fn status(words: &str) -> Option<&str> {
    const VERBS: &[&str] = &[
        "Compiling",
        "Checking",
        "Finished",
        "Downloading",
        "Downloaded",
        "Updating",
        "Locking",
        "Adding",
        "Blocking",
        "Fresh",
        "Running",
        "Building",
        "Documenting",
        "Generated",
        "Packaging",
        "Archiving",
    ];
    let first = words.split(' ').next()?;
    VERBS.contains(&first).then_some(words)
}

/// The text without the terminal's colours.
fn without_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    plain + rest
}

/// Whether the user has asked cargo, and so what calls it, for silence.
fn is_quiet() -> bool {
    std::env::var_os("CARGO_TERM_QUIET").is_some_and(|value| value == "true")
}

fn collected(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A pipe that breaks has given what it had; the status tells the rest.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    bytes
}

/// Reads lines and states of the progress bar, which end with a carriage return.
fn listen(pipe: Option<impl Read>, heard: &Mutex<Heard>) {
    let Some(mut pipe) = pipe else { return };
    let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
    let take = |line: &mut Vec<u8>| {
        if let Ok(mut heard) = heard.lock() {
            heard.take(&String::from_utf8_lossy(line));
        }
        line.clear();
    };
    while let Ok(count @ 1..) = pipe.read(&mut buffer) {
        for byte in buffer.iter().take(count) {
            match byte {
                b'\n' | b'\r' => take(&mut line),
                byte => line.push(*byte),
            }
        }
    }
    if !line.is_empty() {
        take(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_progress_of_cargo_is_read_and_its_complaints_are_kept() {
        let mut heard = Heard { is_cargo: true, ..Heard::default() };
        heard.take("    Updating crates.io index");
        assert_eq!(heard.doing, ", updating crates.io index");
        heard.take("\x1b[1m\x1b[92m   Compiling\x1b[0m syn v2.0.1");
        heard.take("\x1b[1m\x1b[96m    Building\x1b[0m [=====>      ]  34/120: syn, serde(build)");
        assert_eq!((heard.doing.as_str(), heard.crates), (", crate 34 of 120 (syn, serde(build))", 1));
        assert_eq!(heard.told, "");
        heard.take("error[E0308]: mismatched types");
        heard.take("");
        heard.take("  --> src/main.rs:3:5");
        heard.take("    Finished `dev` profile in 1s");
        assert_eq!(heard.told, "error[E0308]: mismatched types\n\n  --> src/main.rs:3:5\n");
    }

    #[test]
    fn output_is_whole_and_a_program_past_its_limit_is_killed() {
        let mut echo = Command::new("sh");
        let ended = run("x", echo.args(["-c", "echo out; echo 'Building is hard' >&2; echo no >&2; exit 3"]), None);
        let ended = ended.unwrap().unwrap();
        assert_eq!((ended.status.code(), ended.stdout.as_slice()), (Some(3), &b"out\n"[..]));
        assert_eq!(ended.told, "Building is hard\nno\n");
        let started = Instant::now();
        assert!(run("x", Command::new("sleep").arg("60"), Some(Duration::from_millis(50))).unwrap().is_none());
        assert!(started.elapsed() < Duration::from_secs(20));
    }
}
