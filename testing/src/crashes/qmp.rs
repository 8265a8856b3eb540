//! Talks to QEMU's machine protocol over a socket.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// QEMU's arguments for a session at `socket`.
pub fn arguments(socket: &Path) -> [String; 2] {
    ["-qmp".into(), format!("unix:{},server=on,wait=off", socket.display())]
}

/// A connection to QEMU's monitor protocol, capabilities negotiated.
#[derive(Debug)]
pub struct Session {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
    /// Lines that were no answers: events.
    events: Vec<String>,
}

impl Session {
    /// Connects and leaves negotiation mode.
    pub fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("cannot connect to QEMU")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let answers = BufReader::new(stream.try_clone()?);
        let mut session = Self { stream, answers, events: Vec::new() };
        session.line()?;
        session.execute("qmp_capabilities", "")?;
        Ok(session)
    }

    /// Runs a command; `arguments` is a JSON object or nothing.
    pub fn execute(&mut self, command: &str, arguments: &str) -> Result<()> {
        let rest = if arguments.is_empty() { String::new() } else { format!(",\"arguments\":{arguments}") };
        writeln!(self.stream, "{{\"execute\":\"{command}\"{rest}}}")?;
        loop {
            let line = self.line()?;
            // Events come in between.
            if line.contains("\"return\"") {
                return Ok(());
            }
            ensure!(!line.contains("\"error\""), "QEMU refuses {command}: {line}");
            self.events.push(line);
        }
    }

    /// Whether an event of this name has come or comes before QEMU ends.
    pub fn hears(mut self, event: &str) -> bool {
        while let Ok(line) = self.line() {
            self.events.push(line);
        }
        let name = format!("\"{event}\"");
        self.events.iter().any(|line| line.contains("\"event\"") && line.contains(&name))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.answers.read_line(&mut line)? > 0, "QEMU hung up");
        Ok(line)
    }
}
