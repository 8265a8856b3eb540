//! Runs other programs: the only module of this package that starts a process.
//!
//! A [`Call`] is a program with its arguments, folder, environment and time limit. It runs in one of five ways:
//! [`Call::show`] lets the user see the program's output, [`Call::capture`] returns it, [`Call::stage`] returns it and
//! says meanwhile how long it takes, [`Call::spawn`] leaves it to the caller, [`Call::converse`] with its input too.
//! Every error carries the command line as one could type it, so that a failure can be repeated by hand; a program past
//! its limit is killed by its own process id, and nothing else.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Why a program did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be started at all.
    #[error("cannot start `{command}`: {source}")]
    Start {
        /// The command line.
        command: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// It ended with a status other than zero.
    #[error("`{command}` ended with {status}{}", tail(.stderr))]
    Failed {
        /// The command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error, when that was captured.
        stderr: String,
    },
    /// It ran longer than its limit and was killed.
    #[error("`{command}` was killed after {} s", limit.as_secs())]
    TimedOut {
        /// The command line.
        command: String,
        /// The time after which it was killed.
        limit: Duration,
    },
}

/// What a captured program left.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output, invalid UTF-8 replaced.
    pub stdout: String,
    /// Standard error, invalid UTF-8 replaced.
    pub stderr: String,
}

/// A program to run.
#[derive(Clone, Debug)]
pub struct Call {
    program: OsString,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    limit: Option<Duration>,
}

impl Call {
    /// A call of `program`, looked up in `PATH` unless it has a slash.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            folder: None,
            environment: Vec::new(),
            limit: None,
        }
    }

    /// The cargo that runs this program, or the one in `PATH`.
    pub fn cargo() -> Self {
        Self::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Sets one environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Kills the program when it runs longer than this.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Runs it with the caller's terminal; a status other than zero is an error.
    pub fn show(&self) -> Result<(), Error> {
        let status = self.show_status()?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Failed { command: self.to_string(), status, stderr: String::new() })
    }

    /// Runs it with the caller's terminal and returns how it ended.
    pub fn show_status(&self) -> Result<ExitStatus, Error> {
        let mut child = self.start(self.command())?;
        self.wait(&mut child)
    }

    /// Runs it without input and returns its output; a status other than zero is an error.
    pub fn capture(&self) -> Result<Output, Error> {
        let output = self.capture_any()?;
        if output.status.success() {
            return Ok(output);
        }
        Err(Error::Failed { command: self.to_string(), status: output.status, stderr: output.stderr })
    }

    /// Runs it without input and returns its output whatever its status.
    pub fn capture_any(&self) -> Result<Output, Error> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.start(command)?;
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let status = self.wait(&mut child)?;
        Ok(Output { status, stdout: joined(stdout), stderr: joined(stderr) })
    }

    /// Runs it without input as a stage with a name: while it takes time, that is said, and how far cargo is. A status
    /// other than zero is an error.
    pub fn stage(&self, name: &str) -> Result<Output, Error> {
        let command = self.to_string();
        match stage::run(name, &mut self.command(), self.limit) {
            Err(source) => Err(Error::Start { command, source }),
            Ok(None) => Err(Error::TimedOut { command, limit: self.limit.unwrap_or_default() }),
            Ok(Some(ended)) if !ended.status.success() => {
                Err(Error::Failed { command, status: ended.status, stderr: ended.told })
            }
            Ok(Some(ended)) => {
                let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
                Ok(Output { status: ended.status, stdout, stderr: ended.told })
            }
        }
    }

    /// The same for a build: what the compiler says is shown as a whole.
    pub fn build(&self, name: &str) -> Result<(), Error> {
        match self.stage(name) {
            Ok(output) => {
                eprint!("{}", output.stderr);
                Ok(())
            }
            Err(Error::Failed { command, status, stderr }) => {
                eprint!("{stderr}");
                Err(Error::Failed { command, status, stderr: String::new() })
            }
            Err(error) => Err(error),
        }
    }

    /// Starts it without input, its standard output piped to the caller, who waits for it; its complaints are shown.
    pub fn spawn(&self) -> Result<Child, Error> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        self.start(command)
    }

    /// Starts it with its standard input and output piped to the caller, who waits for it.
    pub fn converse(&self) -> Result<Child, Error> {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        self.start(command)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    fn start(&self, mut command: Command) -> Result<Child, Error> {
        command.spawn().map_err(|source| Error::Start { command: self.to_string(), source })
    }

    fn wait(&self, child: &mut Child) -> Result<ExitStatus, Error> {
        let broken = |source| Error::Start { command: self.to_string(), source };
        let Some(limit) = self.limit else { return child.wait().map_err(broken) };
        let started = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(broken)? {
                return Ok(status);
            }
            if started.elapsed() >= limit {
                child.kill().and_then(|()| child.wait()).map_err(broken)?;
                return Err(Error::TimedOut { command: self.to_string(), limit });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The command line, quoted where a shell would need it.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(f, "{}={} ", name.to_string_lossy(), quoted(value))?;
        }
        f.write_str(&quoted(&self.program))?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn tail(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.trim_end().lines().collect();
    lines[lines.len().saturating_sub(20)..].iter().map(|line| format!("\n    {line}")).collect()
}

type Drain = Option<thread::JoinHandle<Vec<u8>>>;

fn drain(pipe: Option<impl Read + Send + 'static>) -> Drain {
    let mut pipe = pipe?;
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        // A pipe that breaks has given what it had; the exit status tells the rest.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    }))
}

fn joined(drain: Drain) -> String {
    let bytes = drain.and_then(|thread| thread.join().ok()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_reported_with_its_command_line_and_its_last_words() {
        let error = Call::new("sh").args(["-c", "echo broken disk >&2; exit 3"]).capture().unwrap_err().to_string();
        assert!(error.contains("`sh -c 'echo broken disk >&2; exit 3'`"), "{error}");
        assert!(error.contains("exit status: 3") && error.contains("\n    broken disk"), "{error}");
    }

    #[test]
    fn a_program_past_its_limit_is_killed_and_said_to_be() {
        let started = Instant::now();
        let error = Call::new("sleep").arg("60").limit(Duration::from_millis(50)).capture().unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Call::new("no-such-program-here").arg("x").capture().unwrap_err().to_string();
        assert!(error.starts_with("cannot start `no-such-program-here x`"), "{error}");
    }
}
