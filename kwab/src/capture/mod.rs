//! Takes a dump from a guest of any QEMU through its machine protocol (QMP) or through its stub for GDB.
//!
//! A kernel that dumps by itself knows more than anything outside can find out, so it is asked first, by a non-maskable
//! interrupt. One that does not act on it is paused, the registers of its processors and the memory around their stack
//! and instruction pointers are read through the monitor, which translates addresses by the guest's own page tables,
//! and the guest goes on. What is written then claims no death: the dump is of kind `live`, taken for a hang.
//! [`Level::All`] takes all memory as well: QEMU writes it as an ELF core into a file, which becomes part of the dump
//! once the guest runs again. Such a core from elsewhere is taken by [`of_core`].
//!
//! GDB's protocol has no interrupt to send and stops the machine at once ([`capture_gdb`]); it goes wherever a TCP
//! connection does. [`qmp`] and [`gdb`] speak the protocols, [`registers`] and [`words`] read the monitor's text,
//! [`vmcore`] reads cores (ELF, and kdump-compressed by `kdump`; both also flattened, `source`), [`image`] finds the
//! kernel in them.

pub(crate) mod core_file;
mod dump;
pub mod gdb;
pub mod image;
mod kdump;
pub mod linux;
pub mod ours;
pub mod qmp;
pub mod registers;
mod source;
mod space;
pub mod vmcore;
pub mod words;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;

use crate::memory::Tables;
use crate::model::emit::DumpWriter;
pub use dump::{MemoryPiece, Written};
use gdb::Remote;
use image::Kernel;
use linux::Linux;
use ours::Ours;
use qmp::{Heard, Session};
use registers::Processor;
use serde_json::json;
use vmcore::Vmcore;

/// The version of [`CaptureReport`]'s JSON form.
pub const SCHEMA: u32 = 2;

/// How much memory is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// What lies around the instruction and stack pointers of each processor.
    Stacks,
    /// All RAM of the machine; QEMU writes it into a file of this folder first.
    All(PathBuf),
}

/// What to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ask the guest's kernel first.
    pub nmi: bool,
    /// How long it may take to act on that.
    pub wait: Duration,
    /// How much memory is taken.
    pub level: Level,
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
    /// The other side is not a stub that serves a machine, or stopped.
    #[error("not a GDB stub of a machine: {0}")]
    Remote(String),
    /// The processors are of a kind whose registers are not known.
    #[error("no 64-bit x86 registers in what it shows; only such guests can be captured")]
    Foreign,
    /// The file is not the core of a machine.
    #[error("is not an ELF core of an x86-64 machine: {0}")]
    Core(String),
    /// The file begins as makedumpfile's formats do and cannot be read as one.
    #[error("is not a kdump-compressed or flattened dump of an x86-64 machine: {0}")]
    Kdump(String),
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
    /// Bytes of memory that were read by virtual address.
    pub bytes: u64,
    /// Bytes of physical memory, zeros included.
    pub ram_bytes: u64,
    /// Bytes of that in pages of zeros, which are told but not stored.
    pub ram_zeros: u64,
    /// What could not be read.
    pub missing: Vec<String>,
}

/// Where a guest was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The human monitor, through QEMU's machine protocol.
    Monitor,
    /// A stub for GDB.
    Gdb,
    /// A core of the machine.
    Core,
}

/// A guest as read from outside.
#[derive(Debug)]
pub struct Snapshot {
    /// Version of QEMU, as its greeting says.
    pub qemu: String,
    /// Where it was read.
    pub via: Via,
    /// The effect of the interrupt.
    pub nmi: Nmi,
    /// The virtual processors, in QEMU's order.
    pub processors: Vec<Processor>,
    /// Memory around their pointers.
    pub pieces: Vec<MemoryPiece>,
    /// What could not be read.
    pub missing: Vec<String>,
    /// All physical memory, when it was asked for.
    pub core: Option<Vmcore>,
    /// The kernel in it.
    pub kernel: Option<Kernel>,
    /// What that kernel says in its memory, when it is a Linux.
    pub linux: Option<Linux>,
    /// What it says, when it is ours.
    pub ours: Option<Ours>,
}

impl Snapshot {
    /// Writes it as a dump; `id` names dump and boot. Gives the physical memory that was written, and what of it turned
    /// out to be damaged.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn write(&self, id: u64, wall_ns: i64, out: &mut dyn Write) -> io::Result<Written> {
        dump::write(self, id, wall_ns, out)
    }

    /// Puts its records into a dump that has begun.
    ///
    /// # Errors
    /// When its output fails.
    pub(crate) fn put<W: Write>(&self, wall_ns: Option<i64>, out: &mut DumpWriter<W>) -> io::Result<Written> {
        dump::put(self, wall_ns, out)
    }
}

/// Asks the guest for a dump, and reads it where it does not answer; `None` when it dumps by itself.
///
/// # Errors
/// [`CaptureError`]. The guest runs on in every case in which it ran before and did not stop by itself.
pub fn capture(session: &mut Session, options: &Options) -> Result<Option<Snapshot>, CaptureError> {
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
    let snapshot = read(session, nmi, &options.level);
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
        match session.hear(until)? {
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

fn read(session: &mut Session, nmi: Nmi, level: &Level) -> Result<Snapshot, CaptureError> {
    let processors = processors(session)?;
    let (pieces, missing) = around(&processors, |cpu, start, end| memory(session, cpu, start, end))?;
    let core = match level {
        Level::Stacks => None,
        Level::All(folder) => Some(all_memory(session, folder)?),
    };
    let from = (session.version().to_owned(), Via::Monitor, nmi);
    Ok(put_together(from, processors, pieces, missing, core))
}

/// Reads a machine through a stub for GDB, which has stopped it, and lets it run again if that is asked for.
///
/// # Errors
/// [`CaptureError`]. The machine is let go then too, as far as the stub still answers.
pub fn capture_gdb(remote: &mut Remote, level: &Level, resume: bool) -> Result<Snapshot, CaptureError> {
    let snapshot = read_gdb(remote, level);
    if resume {
        let gone = remote.detach();
        return snapshot.and_then(|snapshot| gone.map(|()| snapshot));
    }
    snapshot
}

fn read_gdb(remote: &mut Remote, level: &Level) -> Result<Snapshot, CaptureError> {
    let processors = remote.processors()?;
    let (pieces, missing) = around(&processors, |cpu, start, end| remote.memory(cpu, start, end))?;
    let core = match level {
        Level::Stacks => None,
        Level::All(folder) => Some(remote.all_memory(folder)?),
    };
    let version = remote.monitor("info version")?;
    let version = version.split_whitespace().next().filter(|word| word.len() < 32).unwrap_or("(its stub for GDB)");
    Ok(put_together((format!("QEMU {version}"), Via::Gdb, Nmi::NotSent), processors, pieces, missing, core))
}

/// Memory around the pointers of each processor, and what of it cannot be read.
fn around(
    processors: &[Processor],
    mut memory: impl FnMut(u32, u64, u64) -> Result<Vec<u8>, CaptureError>,
) -> Result<(Vec<MemoryPiece>, Vec<String>), CaptureError> {
    let (mut pieces, mut missing) = (Vec::new(), Vec::new());
    for processor in processors {
        for (is_code, range, least) in wanted(processor) {
            let bytes = memory(processor.number, range.start, range.end)?;
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
    Ok((pieces, missing))
}

/// What was read, with what a core of all memory says of the kernel in it.
fn put_together(
    (qemu, via, nmi): (String, Via, Nmi),
    processors: Vec<Processor>,
    pieces: Vec<MemoryPiece>,
    mut missing: Vec<String>,
    core: Option<Vmcore>,
) -> Snapshot {
    missing.extend(core.iter().flat_map(|core| core.missing.clone()));
    let tables = processors.iter().find_map(image::tables);
    let kernel = core.as_ref().zip(tables).and_then(|(core, tables)| image::find(core, tables));
    let (core, linux) = core.map_or((None, None), |mut core| {
        let linux = told(&mut core, &processors);
        (Some(core), linux)
    });
    let ours = described(core.as_ref(), tables, kernel.as_ref(), &processors).filter(|_| linux.is_none());
    Snapshot { qemu, via, nmi, processors, pieces, missing, core, kernel, linux, ours }
}

/// Reads what our kernel says in the memory of a core.
fn described(
    core: Option<&Vmcore>,
    tables: Option<Tables>,
    kernel: Option<&Kernel>,
    processors: &[Processor],
) -> Option<Ours> {
    ours::read(core?, tables?, kernel?, processors)
}

/// Reads what a Linux says in the memory of a core; a core without its words about itself gets them.
fn told(core: &mut Vmcore, processors: &[Processor]) -> Option<Linux> {
    if core.info.is_none() {
        let tables: Vec<Tables> = processors.iter().filter_map(image::tables).collect();
        core.info = image::described(core, &tables);
    }
    linux::read(core, processors)
}

/// Lets QEMU write all memory into a file of `folder`, which has no name any more when this returns.
fn all_memory(session: &mut Session, folder: &Path) -> Result<Vmcore, CaptureError> {
    /// How long QEMU may make no progress, and how often it is asked.
    const STALLED: Duration = Duration::from_secs(60);
    const ASKED: Duration = Duration::from_millis(50);
    let folder = tempfile::Builder::new().prefix(".kwab-capture-").tempdir_in(folder.canonicalize()?)?;
    let path = folder.path().join("memory");
    let protocol = format!("file:{}", path.display());
    session.execute("dump-guest-memory", Some(json!({ "paging": false, "protocol": protocol, "detach": true })))?;
    let (mut done, mut heard) = (0, Instant::now());
    loop {
        let state = session.execute("query-dump", None)?;
        match state["status"].as_str() {
            Some("completed") => break,
            Some("active") => {}
            other => {
                let why = format!("the dump of its memory ended as {}", other.unwrap_or("unknown"));
                return Err(CaptureError::Refused { command: "dump-guest-memory".to_owned(), why });
            }
        }
        let now = state["completed"].as_u64().unwrap_or(0);
        if now > done {
            (done, heard) = (now, Instant::now());
        } else if heard.elapsed() > STALLED {
            return Err(CaptureError::Protocol(format!("the dump of its memory stands still at {done} bytes")));
        }
        std::thread::sleep(ASKED);
    }
    Vmcore::open(File::open(&path)?)
}

/// Takes the core of a machine, in ELF or kdump-compressed, as what was captured.
///
/// # Errors
/// [`CaptureError`] when it is not such a core.
pub fn of_core(file: File) -> Result<Snapshot, CaptureError> {
    let mut core = Vmcore::open(file)?;
    let (processors, mut missing) = (core.processors.clone(), core.missing.clone());
    let tables = processors.iter().find_map(image::tables).or_else(|| image::told_tables(&core));
    if processors.is_empty() {
        missing.push("the registers of all processors: the file has no notes with them".to_owned());
    }
    let mut pieces = Vec::new();
    for processor in &processors {
        let Some(tables) = image::tables(processor).or(tables) else { continue };
        for (is_code, range, _) in wanted(processor) {
            let bytes = image::read(&core, tables, range.start, range.end);
            if !bytes.is_empty() {
                let (cpu, start, wanted) = (processor.number, range.start, range.end);
                pieces.push(MemoryPiece { cpu, is_code, start, wanted, bytes });
            }
        }
    }
    let kernel = tables.and_then(|tables| image::find(&core, tables));
    let (qemu, via, nmi) = (String::new(), Via::Core, Nmi::NotSent);
    let linux = told(&mut core, &processors);
    let ours = described(Some(&core), tables, kernel.as_ref(), &processors).filter(|_| linux.is_none());
    Ok(Snapshot { qemu, via, nmi, processors, pieces, missing, core: Some(core), kernel, linux, ours })
}

/// What is read around the pointers of a processor: whether it is code, the range, and the byte that matters most.
fn wanted(processor: &Processor) -> [(bool, std::ops::Range<u64>, u64); 2] {
    let (sp, ip) = (processor.sp() & !7, processor.ip());
    let stack = sp.saturating_sub(RED_ZONE)..sp.saturating_add(STACK);
    let code = (ip.saturating_sub(CODE.0) & !7)..ip.saturating_add(CODE.1);
    [(true, code, ip), (false, stack, sp)]
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
