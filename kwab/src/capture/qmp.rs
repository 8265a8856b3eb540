//! Speaks QEMU's machine protocol: a greeting, then a line of JSON per command and per answer, events in between.

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::CaptureError;

/// The longest line that is taken.
const LONGEST: usize = 8 << 20;
/// How long the greeting may take, which QEMU sends to a client as soon as it serves it.
const GREETING: Duration = Duration::from_secs(5);
/// How long an answer may take. Events in between do not lengthen it.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a session waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub greeting: Duration,
    pub answer: Duration,
}

/// A message of the monitor: a greeting, an answer or an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// An event of this name.
    Event(String),
    /// Nothing, for as long as the stream waits.
    Nothing,
    /// The other side is gone.
    Gone,
}

/// A session. The streams should have a timeout: a limit of time is looked at after every read.
pub struct Session {
    input: Box<dyn Read>,
    output: Box<dyn Write>,
    pending: Vec<u8>,
    version: String,
    limits: Limits,
}

enum Line {
    Json(Value),
    Nothing,
    Gone,
}

impl Session {
    /// Waits for the greeting and leaves negotiation mode.
    ///
    /// # Errors
    /// [`CaptureError`] when the other side is not QEMU or does not answer.
    pub fn open(input: Box<dyn Read>, output: Box<dyn Write>) -> Result<Self, CaptureError> {
        Self::open_within(Limits { greeting: GREETING, answer: ANSWER }, input, output)
    }

    /// As [`Session::open`], with limits of its own.
    pub(super) fn open_within(
        limits: Limits,
        input: Box<dyn Read>,
        output: Box<dyn Write>,
    ) -> Result<Self, CaptureError> {
        let mut session = Self { input, output, pending: Vec::new(), version: String::new(), limits };
        let Some(greeting) = session.message("a greeting", Instant::now() + limits.greeting, |_| true)? else {
            let why = format!(
                "no greeting within {} s; QEMU serves one client of a monitor at a time: does another program hold it?",
                limits.greeting.as_secs()
            );
            return Err(CaptureError::Protocol(why));
        };
        let number = |part: &str| greeting["QMP"]["version"]["qemu"][part].as_u64();
        let (Some(major), Some(minor), Some(micro)) = (number("major"), number("minor"), number("micro")) else {
            return Err(CaptureError::Protocol("the first line is not its greeting".to_owned()));
        };
        session.version = format!("QEMU {major}.{minor}.{micro}");
        session.execute("qmp_capabilities", None)?;
        Ok(session)
    }

    /// What the greeting says, as `QEMU 7.2.22`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs a command; its answer.
    ///
    /// # Errors
    /// [`CaptureError::Refused`] with QEMU's words; otherwise as [`Session::open`].
    pub fn execute(&mut self, command: &str, arguments: Option<Value>) -> Result<Value, CaptureError> {
        let mut line = json!({ "execute": command });
        if let Some(arguments) = arguments {
            line["arguments"] = arguments;
        }
        self.output.write_all(format!("{line}\n").as_bytes())?;
        self.output.flush()?;
        let is_answer = |line: &Value| line.get("return").is_some() || line["error"]["desc"].is_string();
        let Some(mut answer) = self.message(command, Instant::now() + self.limits.answer, is_answer)? else {
            let seconds = self.limits.answer.as_secs();
            return Err(CaptureError::Protocol(format!("no answer to {command} within {seconds} s")));
        };
        match answer.get_mut("return") {
            Some(value) => Ok(value.take()),
            None => Err(CaptureError::Refused {
                command: command.to_owned(),
                why: answer["error"]["desc"].as_str().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Runs a command of the human monitor, as processor `cpu` sees the machine; its text.
    ///
    /// # Errors
    /// As [`Session::execute`].
    pub fn monitor(&mut self, line: &str, cpu: Option<u32>) -> Result<String, CaptureError> {
        let mut arguments = json!({ "command-line": line });
        if let Some(cpu) = cpu {
            arguments["cpu-index"] = cpu.into();
        }
        let text = self.execute("human-monitor-command", Some(arguments))?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits for an event, for as long as one read does and never beyond `until`.
    ///
    /// # Errors
    /// When what comes is not JSON.
    pub fn hear(&mut self, until: Instant) -> Result<Heard, CaptureError> {
        Ok(match self.line(until)? {
            Line::Json(value) => value["event"].as_str().map_or(Heard::Nothing, |name| Heard::Event(name.to_owned())),
            Line::Nothing => Heard::Nothing,
            Line::Gone => Heard::Gone,
        })
    }

    /// The next line of the kind that is `wanted` in answer to `to`; none when the time is over.
    fn message(
        &mut self,
        to: &str,
        until: Instant,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, CaptureError> {
        loop {
            match self.line(until)? {
                Line::Json(value) if wanted(&value) => return Ok(Some(value)),
                Line::Gone => {
                    return Err(CaptureError::Protocol(format!("the connection was closed before the answer to {to}")));
                }
                Line::Json(_) | Line::Nothing if Instant::now() >= until => return Ok(None),
                Line::Json(_) | Line::Nothing => {}
            }
        }
    }

    fn line(&mut self, until: Instant) -> Result<Line, CaptureError> {
        let mut room = [0; 16 << 10];
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.pending) {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                let value = serde_json::from_slice(&line)
                    .map_err(|_| CaptureError::Protocol(format!("a line of {} bytes is not JSON", line.len())))?;
                return Ok(Line::Json(value));
            }
            if self.pending.len() > LONGEST {
                return Err(CaptureError::Protocol(format!("a line of more than {LONGEST} bytes")));
            }
            match self.input.read(&mut room) {
                Ok(0) => return Ok(Line::Gone),
                Ok(len) => {
                    self.pending.extend_from_slice(room.get(..len).unwrap_or_default());
                    if Instant::now() >= until && !self.pending.contains(&b'\n') {
                        return Ok(Line::Nothing);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(Line::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Line::Gone),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("version", &self.version).finish_non_exhaustive()
    }
}
