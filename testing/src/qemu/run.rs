//! Watches one captured run: hands out the serial console line by line and decides how the run ended.
//!
//! The guest says `KWAB-EXIT <status>` when it is done; a line that is a kernel's last word ends the run as a panic,
//! after the rest of the report had time to come; silence past a limit is a hang. Time in which the host gave the guest
//! no processor is not counted (`qemu::quiet`). In each case QEMU is killed by its process id: the host never waits for
//! a guest to switch itself off. With a plugin it is asked first, so that the plugin writes what it has.

use std::io::Read as _;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

use super::Machine;
use super::quiet::{Quiet, waited};

/// How long a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest duration of the whole run, host time.
    pub total: Duration,
    /// Without a byte on the console.
    pub silence: Duration,
}

impl Limits {
    /// The same limit for the whole run and for silence.
    pub fn seconds(seconds: u64) -> Self {
        Self { total: Duration::from_secs(seconds), silence: Duration::from_secs(seconds) }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The guest's init reported this status.
    Exited(i32),
    /// The kernel gave up; its words.
    Panicked(String),
    /// Nothing came for longer than the limit.
    Hung,
    /// The run took longer than the limit.
    TimedOut,
    /// QEMU ended without a word from the guest.
    Stopped(Option<i32>),
    /// The caller had seen enough.
    Enough,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Everything the console said.
    pub serial: Vec<u8>,
    /// From QEMU's start to its end.
    pub elapsed: Duration,
}

/// What a caller wants after a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Continue the run and report the next line.
    Go,
    /// The end of the run.
    Stop,
}

/// How long QEMU has to leave when it is asked to.
const LONGEST_EXIT: Duration = Duration::from_secs(5);

/// After a panic line the report goes on, an armoured dump may follow: it is over when nothing came for this long,
const LAST_WORDS: Duration = Duration::from_secs(2);

/// and it is cut off after this.
const LONGEST_REPORT: Duration = Duration::from_secs(120);

/// What a kernel prints when it gives up, ours and Linux.
const PANICS: &[&str] = &["Kernel panic - not syncing", "kernel panic:", "panicked at ", "KWAB-PANIC"];

/// The head of our kernel's report; behind it comes a dump, so that a run is not over.
const OUR_PANIC: &str = "[PANIC] CPU=";

/// Whether a kernel's last word stands in what its console said.
pub fn has_died(serial: &str) -> bool {
    serial.lines().any(|line| line.starts_with(OUR_PANIC) || PANICS.iter().any(|words| line.contains(words)))
}

/// What is done once when a guest has been silent, such as asking it for a dump.
pub struct OnSilence<'a> {
    /// After how long.
    pub after: Duration,
    /// What; the run goes on behind it.
    pub act: &'a mut dyn FnMut(),
}

/// Runs a machine with its console captured. `on_line` gets each line without its end.
pub fn run(machine: &Machine, limits: Limits, on_line: impl FnMut(&str) -> Next) -> Result<Outcome> {
    run_asking(machine, limits, None, on_line)
}

/// The same with something to do when the guest falls silent.
pub fn run_asking(
    machine: &Machine,
    limits: Limits,
    mut on_silence: Option<OnSilence<'_>>,
    mut on_line: impl FnMut(&str) -> Next,
) -> Result<Outcome> {
    let call = machine.call();
    let started = Instant::now();
    let mut child = call.spawn()?;
    let console = reader(&mut child)?;
    let mut watch = Watch::new(child.id());
    let ending = watch.until_end(&console, limits, &mut on_silence, &mut on_line);
    let ending = match ending {
        Some(ending) => {
            let has_plugin = machine.extra.iter().any(|word| word == "-plugin");
            end(&mut child, has_plugin).with_context(|| format!("cannot end `{call}`"))?;
            ending
        }
        None => {
            let status = child.wait().with_context(|| format!("cannot wait for `{call}`"))?;
            Ending::Stopped(status.code())
        }
    };
    Ok(Outcome { ending, serial: watch.serial, elapsed: started.elapsed() })
}

/// Ends QEMU. One that is asked gets SIGTERM, at which it leaves by exit(3), and is killed when it is still there after
/// [`LONGEST_EXIT`].
fn end(child: &mut Child, is_asked: bool) -> std::io::Result<()> {
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw).filter(|_| is_asked) {
        // A process that is gone already is waited for below.
        let _ = kill_process(process, Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < LONGEST_EXIT {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    child.kill().and_then(|()| child.wait()).map(drop)
}

/// Runs a machine until its console shows `text`, wherever in a line; how long that took from QEMU's start. `None` when
/// it ended or the limit passed without.
pub fn time_to(machine: &Machine, text: &str, limits: Limits) -> Result<Option<Duration>> {
    let call = machine.call();
    let started = Instant::now();
    let mut child = call.spawn()?;
    let console = reader(&mut child)?;
    let mut serial = Vec::new();
    let found = loop {
        let left = limits.total.saturating_sub(started.elapsed());
        let Ok(chunk) = console.recv_timeout(left) else { break None };
        serial.extend_from_slice(&chunk);
        if serial.windows(text.len()).any(|bytes| bytes == text.as_bytes()) {
            break Some(started.elapsed());
        }
    };
    child.kill().and_then(|()| child.wait()).with_context(|| format!("cannot end `{call}`"))?;
    Ok(found)
}

/// The console's bytes in chunks; the channel closes when QEMU ends.
fn reader(child: &mut Child) -> Result<Receiver<Vec<u8>>> {
    let mut pipe = child.stdout.take().context("QEMU's output is not piped")?;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 16384];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            if send.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    Ok(receive)
}

struct Watch {
    process: u32,
    started: Instant,
    quiet: Quiet,
    serial: Vec<u8>,
    line_start: usize,
    panic: Option<(String, Instant)>,
}

impl Watch {
    fn new(process: u32) -> Self {
        let (started, quiet) = (Instant::now(), Quiet::of(process));
        Self { process, started, quiet, serial: Vec::new(), line_start: 0, panic: None }
    }

    /// Whether the guest has had its time; a host without time for it gets four times as much.
    fn is_late(&self, total: Duration) -> bool {
        let elapsed = self.started.elapsed();
        elapsed >= total && elapsed.saturating_sub(waited(self.process).min(total * 3)) >= total
    }

    /// Reads until something ends the run; `None` when the console was closed.
    fn until_end(
        &mut self,
        console: &Receiver<Vec<u8>>,
        limits: Limits,
        on_silence: &mut Option<OnSilence<'_>>,
        on_line: &mut impl FnMut(&str) -> Next,
    ) -> Option<Ending> {
        loop {
            match console.recv_timeout(Duration::from_millis(50)) {
                Ok(chunk) => {
                    self.quiet.broken();
                    self.serial.extend_from_slice(&chunk);
                    if let Some(ending) = self.lines(on_line) {
                        return Some(ending);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return self.panic.take().map(|(line, _)| Ending::Panicked(line));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let silent = self.quiet.lasted();
            let late = self.is_late(limits.total);
            if let Some((line, since)) = &self.panic
                && (silent >= LAST_WORDS || since.elapsed() >= LONGEST_REPORT || late)
            {
                return Some(Ending::Panicked(line.clone()));
            }
            if let Some(asked) = on_silence.take_if(|on_silence| silent >= on_silence.after) {
                (asked.act)();
            }
            if self.panic.is_none() && silent >= limits.silence {
                return Some(Ending::Hung);
            }
            if late {
                return Some(Ending::TimedOut);
            }
        }
    }

    fn lines(&mut self, on_line: &mut impl FnMut(&str) -> Next) -> Option<Ending> {
        while let Some(length) = self.serial[self.line_start..].iter().position(|byte| *byte == b'\n') {
            let bytes = &self.serial[self.line_start..self.line_start + length];
            let text = String::from_utf8_lossy(bytes);
            let line = text.trim_end_matches('\r').to_owned();
            self.line_start += length + 1;
            if let Some(status) = line.strip_prefix("KWAB-EXIT ").and_then(|status| status.trim().parse().ok()) {
                return Some(Ending::Exited(status));
            }
            if self.panic.is_none() && PANICS.iter().any(|words| line.contains(words)) {
                self.panic = Some((line.clone(), Instant::now()));
            }
            if on_line(&line) == Next::Stop {
                return Some(Ending::Enough);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(chunks: &[&str]) -> (Option<Ending>, Vec<String>) {
        let (send, receive) = mpsc::channel();
        chunks.iter().for_each(|chunk| send.send(chunk.as_bytes().to_vec()).unwrap());
        drop(send);
        let mut seen = Vec::new();
        let limits = Limits::seconds(5);
        let ending = Watch::new(std::process::id()).until_end(&receive, limits, &mut None, &mut |line| {
            seen.push(line.to_owned());
            Next::Go
        });
        (ending, seen)
    }

    #[test]
    fn an_exit_line_torn_over_two_reads_still_ends_the_run() {
        let (ending, seen) = watched(&["hello\r\nKWAB-", "EXIT 3\r\nnoise after\n"]);
        assert_eq!(ending, Some(Ending::Exited(3)));
        assert_eq!(seen, ["hello"]);
    }

    #[test]
    fn a_panic_keeps_its_first_line_and_the_report_behind_it() {
        let (ending, seen) = watched(&["[1] Kernel panic - not syncing: x\nCall Trace:\n f\n"]);
        assert_eq!(ending, Some(Ending::Panicked("[1] Kernel panic - not syncing: x".into())));
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn a_guest_that_stops_without_a_word_is_not_taken_for_a_success() {
        assert_eq!(watched(&["booting\n"]).0, None);
    }
}
