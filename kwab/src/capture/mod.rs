//! Takes a dump from a guest of any QEMU through its machine protocol (QMP).
//!
//! A kernel that dumps by itself knows more than anything outside can find out, so it is asked first, by a non-maskable
//! interrupt. One that does not act on it is paused, the registers of its processors and the memory around their stack
//! and instruction pointers are read through the monitor, which translates addresses by the guest's own page tables,
//! and the guest goes on. What is written then claims no death: the dump is of kind `live`, taken for a hang.
//!
//! [`qmp`] speaks the protocol, [`registers`] and [`words`] read the monitor's text.

mod dump;
pub mod qmp;
pub mod registers;
pub mod words;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

pub use dump::MemoryPiece;
use qmp::{Heard, Session};
use registers::Processor;

/// The version of [`CaptureReport`]'s JSON form.
pub const SCHEMA: u32 = 1;

/// What to do.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Ask the guest's kernel first.
    pub nmi: bool,
    /// How long it may take to act on that.
    pub wait: Duration,
}

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The socket of the monitor cannot be used.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side does not speak the protocol, or stopped.
    #[error("not QEMU's machine protocol: {0}")]
    Protocol(String),
    /// QEMU refuses a command.
    #[error("QEMU refuses {command}: {why}")]
    Refused {
        /// The command that QEMU refused.
        command: String,
        /// QEMU's reason in its own words.
        why: String,
    },
    /// The processors are of a kind whose registers are not known.
    #[error("no 64-bit x86 registers in what the monitor shows; only such guests can be captured")]
    Foreign,
}

/// The effect of the interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nmi {
    /// The kernel stopped, which it does after a dump of its own.
    Taken,
    /// Nothing happened within the time.
    Ignored,
    /// QEMU cannot send one to this machine.
    Refused,
    /// None was sent.
    NotSent,
}

/// What was captured.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CaptureReport {
    /// Version of this form.
    pub schema: u32,
    /// The guest's socket.
    pub target: String,
    /// The effect of the interrupt.
    pub nmi: Nmi,
    /// The file written; none when the guest dumps by itself.
    pub output: Option<String>,
    /// Processors whose registers were read.
    pub processors: usize,
    /// Bytes of memory that were read.
    pub bytes: u64,
    /// What could not be read.
    pub missing: Vec<String>,
}

/// A guest as read through the monitor.
#[derive(Debug)]
pub struct Snapshot {
    /// Version of QEMU, as its greeting says.
    pub qemu: String,
    /// The effect of the interrupt.
    pub nmi: Nmi,
    /// The virtual processors, in QEMU's order.
    pub processors: Vec<Processor>,
    /// Memory around their pointers.
    pub pieces: Vec<MemoryPiece>,
    /// What could not be read.
    pub missing: Vec<String>,
}

impl Snapshot {
    /// Writes it as a dump; `id` names dump and boot.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, id: u64, wall_ns: i64, out: &mut dyn Write) -> io::Result<()> {
        dump::write(self, id, wall_ns, out)
    }
}

/// Asks the guest for a dump, and reads it where it does not answer; `None` when it dumps by itself.
///
/// # Errors
/// [`CaptureError`]. The guest runs on in every case in which it ran before and did not stop by itself.
pub fn capture(session: &mut Session, options: Options) -> Result<Option<Snapshot>, CaptureError> {
    let before = processors(session)?;
    let mut nmi = Nmi::NotSent;
    if options.nmi {
        nmi = match ask(session, &before, options.wait) {
            Err(CaptureError::Refused { .. }) => Nmi::Refused,
            other => other?,
        };
        if nmi == Nmi::Taken {
            return Ok(None);
        }
    }
    let runs = session.execute("query-status", None)?["running"].as_bool().unwrap_or(false);
    if runs {
        session.execute("stop", None)?;
    }
    let snapshot = read(session, nmi);
    if runs {
        session.execute("cont", None)?;
    }
    snapshot.map(Some)
}

/// Sends the interrupt and waits for what it does.
fn ask(session: &mut Session, before: &[Processor], wait: Duration) -> Result<Nmi, CaptureError> {
    /// Events of a guest that has stopped or told of its death.
    const ENDS: [&str; 4] = ["SHUTDOWN", "RESET", "GUEST_PANICKED", "GUEST_CRASHLOADED"];
    session.execute("inject-nmi", None)?;
    let until = Instant::now() + wait;
    loop {
        match session.hear()? {
            Heard::Event(name) if ENDS.contains(&name.as_str()) => return Ok(Nmi::Taken),
            Heard::Gone => return Ok(Nmi::Taken),
            _ if Instant::now() >= until => break,
            _ => {}
        }
    }
    // A kernel without a way to leave halts for good when it has dumped.
    let halted = |all: &[Processor]| all.iter().all(|one| one.halted && !one.interrupts_on());
    let after = match processors(session) {
        Err(CaptureError::Io(_) | CaptureError::Protocol(_)) => return Ok(Nmi::Taken),
        after => after?,
    };
    Ok(if halted(&after) && !halted(before) { Nmi::Taken } else { Nmi::Ignored })
}

fn processors(session: &mut Session) -> Result<Vec<Processor>, CaptureError> {
    let text = session.monitor("info registers -a", None)?;
    let found = registers::parse(&text);
    if found.is_empty() { Err(CaptureError::Foreign) } else { Ok(found) }
}

/// Bytes below a stack pointer that may still be in use (System V ABI, "red zone").
const RED_ZONE: u64 = 128;
/// Most bytes of a stack.
const STACK: u64 = 16 << 10;
/// Bytes of code before and from the instruction on.
const CODE: (u64, u64) = (64, 128);

fn read(session: &mut Session, nmi: Nmi) -> Result<Snapshot, CaptureError> {
    let processors = processors(session)?;
    let (mut pieces, mut missing) = (Vec::new(), Vec::new());
    for processor in &processors {
        let (sp, ip) = (processor.sp() & !7, processor.ip());
        let stack = sp.saturating_sub(RED_ZONE)..sp.saturating_add(STACK);
        let code = (ip.saturating_sub(CODE.0) & !7)..ip.saturating_add(CODE.1);
        for (is_code, range, least) in [(true, code, ip), (false, stack, sp)] {
            let bytes = memory(session, processor.number, range.start, range.end)?;
            let covered = range.start.saturating_add(bytes.len() as u64);
            if covered <= least {
                let what = if is_code { "code" } else { "stack" };
                missing.push(format!("CPU {}: the {what} at {least:#x} cannot be read", processor.number));
            }
            if !bytes.is_empty() {
                pieces.push(MemoryPiece {
                    cpu: processor.number,
                    is_code,
                    start: range.start,
                    wanted: range.end,
                    bytes,
                });
            }
        }
    }
    Ok(Snapshot { qemu: session.version().to_owned(), nmi, processors, pieces, missing })
}

/// Memory at virtual addresses as a processor sees them, page by page as far as it is mapped.
fn memory(session: &mut Session, cpu: u32, start: u64, end: u64) -> Result<Vec<u8>, CaptureError> {
    const PAGE: u64 = 4096;
    let mut bytes = Vec::new();
    let mut at = start;
    while at < end {
        let stop = end.min((at / PAGE + 1).saturating_mul(PAGE));
        let count = (stop - at).div_ceil(8);
        let text = session.monitor(&format!("x /{count}xg {at:#x}"), Some(cpu))?;
        let read = words::parse(&text, count as usize);
        let whole = read.len() as u64 == count;
        bytes.extend(read.into_iter().flat_map(u64::to_le_bytes));
        if !whole {
            break;
        }
        at += count * 8;
    }
    bytes.truncate((end - start) as usize);
    Ok(bytes)
}

#[cfg(test)]
mod tests;
