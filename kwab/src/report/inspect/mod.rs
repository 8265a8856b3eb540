//! The page a tired kernel developer wants first, as values: what died, where, why, and how much of it can be trusted.
//!
//! [`inspect`] reads a [`Dump`] and gives a [`Report`]; the command line prints it, `--json` serialises it as it is.
//! The JSON form is a contract: its schema is checked in, and [`SCHEMA`] rises when it changes.
//!
//! [`inspect`] says what the records say. [`conclude`] adds what follows from them: hypotheses, walked stacks, and the
//! code around the fault, with names and source lines where images are at hand.

mod conclusions;
mod death;
mod events;
mod explain;
mod log;
mod machine;
mod pointed;
mod rest;

use schemars::JsonSchema;
use serde::Serialize;

pub use conclusions::{conclude, conclude_since};
pub use pointed::RecordedCall;

use crate::analysis::Since;
use crate::analysis::finding::Hypothesis;
use crate::model::{Death, Dump};

/// The version of [`Report`]'s JSON form.
pub const SCHEMA: u32 = 5;

/// How much to show.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Rows of each list that can be long.
    pub rows: usize,
    /// Mappings, those nearest to the fault.
    pub mappings: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { rows: 24, mappings: 24 }
    }
}

/// Everything that inspection says about one dump.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// The dump as the user named it.
    pub file: String,
    /// What died and of what, in one line.
    pub headline: String,
    /// Stable name of cause and location.
    pub signature: String,
    /// Kernel, boot and log.
    pub meta: Vec<Fact>,
    /// What may have happened, best supported first: the head of the triage.
    pub hypotheses: Vec<Hypothesis>,
    /// What was changed since a build that worked, when one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// What is known about the death.
    pub cause: Option<CauseReport>,
    /// Remarks: what else happened that a person should know.
    pub remarks: Vec<Remark>,
    /// What would name the frames of the death, when they have no names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nameless: Option<String>,
    /// Backtraces of the death: the walked one first when it says more than a printed one.
    pub backtraces: Vec<Backtrace>,
    /// Where all other processors and tasks stood, equal stacks together.
    pub stacks: Vec<StackReport>,
    /// The code around the fault.
    pub code: Option<CodeReport>,
    /// Register sets, in the order of the dump.
    pub registers: Vec<RegisterSet>,
    /// Captured bytes: stack, code.
    pub memory: Vec<MemoryExcerpt>,
    /// The memory map around the fault.
    pub vmas: Vec<VmaRow>,
    /// The last system calls, oldest first.
    pub syscalls: Vec<EventRow>,
    /// The last events before the death, oldest first, but for what `syscalls` shows.
    pub events: Vec<EventRow>,
    /// The flight recorder and function trace, oldest first.
    pub trace: Vec<EventRow>,
    /// Page checks that failed.
    pub page_checks: Vec<EventRow>,
    /// Profiles and counters.
    pub profiles: Vec<Profile>,
    /// The tasks that the dump lists.
    pub tasks: Vec<TaskRow>,
    /// The end of the console log before the death.
    pub log: Vec<LogRow>,
    /// What is missing or damaged, and what that weakens.
    pub completeness: Completeness,
}

/// A name and a value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Fact {
    /// What it is.
    pub name: String,
    /// The value in words.
    pub value: String,
}

/// A remark and its line in the log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Remark {
    /// `remark`, `inferred`, `missing`, `defect`.
    pub kind: String,
    /// The text of the remark.
    pub text: String,
    /// Line of the log it is about.
    pub line: Option<u64>,
}

/// What is known about the death.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct CauseReport {
    /// Kind of death.
    pub kind: String,
    /// Who died: `kernel`, or the program and its process.
    pub victim: String,
    /// The kernel's message.
    pub message: Option<String>,
    /// Where: source location or symbol.
    pub place: Option<String>,
    /// Processor that died or ran the dead program.
    pub cpu: Option<u32>,
    /// Process that died, or that ran when the kernel died.
    pub pid: Option<u32>,
    /// Name of the task.
    pub comm: Option<String>,
    /// Command line of the process.
    pub cmdline: Option<String>,
    /// Signal and what it means.
    pub signal: Option<String>,
    /// Exception and its error code, decoded.
    pub exception: Option<String>,
    /// Address whose access failed.
    pub fault_addr: Option<String>,
    /// Address of the instruction, 16 hexadecimal digits.
    pub ip: Option<String>,
    /// Stack pointer, 16 hexadecimal digits.
    pub sp: Option<String>,
    /// Seconds since boot.
    pub time: Option<String>,
    /// Line of the log where it was first seen.
    pub line: Option<u64>,
    /// What follows from these facts.
    pub reasons: Vec<String>,
}

/// A backtrace and its title.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Backtrace {
    /// Whose it is.
    pub title: String,
    /// Its frames, innermost first.
    pub frames: Vec<FrameRow>,
}

/// A stack, and who stood there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StackReport {
    /// Whose it is: processors, tasks, user code of processes.
    pub owners: Vec<String>,
    /// Whether it is user code.
    pub user: bool,
    /// Its frames, innermost first.
    pub frames: Vec<FrameRow>,
    /// Why there are no more, when that is not the outermost frame.
    pub ends: Option<String>,
}

/// Instructions around the fault.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CodeReport {
    /// Whether the processor was at the marked instruction, or behind the call that it is.
    pub is_fault: bool,
    /// What the marked instruction is: `fault`, `stopped here`, `the call that led to it`.
    pub mark: String,
    /// The function from whose start the addresses count, of a log that prints no address; empty when unknown.
    pub within: Option<String>,
    /// The instructions, in the order of their addresses.
    pub lines: Vec<CodeRow>,
}

impl CodeReport {
    /// Where an instruction is: its address, or `function+0x12`.
    #[must_use]
    pub fn label(&self, row: &CodeRow) -> String {
        let digits = row.addr.trim_start_matches('0');
        let offset = if digits.is_empty() { "0" } else { digits };
        self.within.as_ref().map_or_else(|| row.addr.clone(), |function| format!("{function}+0x{offset}"))
    }
}

/// An instruction of the code around the fault.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CodeRow {
    /// Address of the instruction, 16 hexadecimal digits.
    pub addr: String,
    /// Its bytes in hexadecimal.
    pub bytes: String,
    /// Its text: Intel syntax of x86, that of GNU objdump of arm64 and riscv.
    pub text: String,
    /// What its operands were worth; only known for the marked one.
    pub values: Option<String>,
    /// Whether it is the one that matters.
    pub marked: bool,
}

/// A function that was inlined into a frame.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InlinedRow {
    /// Demangled name of the inlined function.
    pub function: String,
    /// Source file and line of the call, when known.
    pub place: Option<String>,
    /// The text of that line, when the source is there.
    pub source: Option<String>,
    /// Whether it is panic or library machinery.
    pub machinery: bool,
}

/// A frame of a backtrace.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct FrameRow {
    /// Position in the backtrace, 0 innermost.
    pub index: u32,
    /// How far to trust it: `exact`, `frame pointer`, `unwind table`, `top of stack`, `scan`, `printed`.
    pub trust: String,
    /// Address, when known.
    pub addr: Option<String>,
    /// Symbol and offset.
    pub symbol: String,
    /// Source location or module.
    pub place: Option<String>,
    /// The text of that line, when the source is there.
    pub source: Option<String>,
    /// Functions inlined here, outermost first.
    pub inlined: Vec<InlinedRow>,
    /// Whether it is panic or library machinery.
    pub machinery: bool,
}

/// A set of registers.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RegisterSet {
    /// Whose registers they are: role, process and error code.
    pub title: String,
    /// The registers in the order of the architecture.
    pub registers: Vec<RegisterRow>,
}

/// A register and what its value means.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RegisterRow {
    /// Name of the register, lower case.
    pub name: String,
    /// Value, sixteen digits.
    pub value: String,
    /// What the value is, when something is known about it.
    pub note: Option<String>,
}

/// An excerpt of captured memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MemoryExcerpt {
    /// What they are.
    pub label: String,
    /// Address of the first.
    pub addr: Option<String>,
    /// The bytes in hexadecimal, at most 256 of them.
    pub bytes: String,
    /// Index of the byte at the instruction pointer.
    pub marked: Option<u64>,
    /// How many were captured.
    pub length: u64,
}

/// A mapping of the memory map.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct VmaRow {
    /// First address of the mapping, 16 hexadecimal digits.
    pub start: String,
    /// Address behind the last.
    pub end: String,
    /// `rwx` with dashes; `???` when the log does not say.
    pub prot: String,
    /// File or kind.
    pub name: String,
    /// Whether the fault lies in it.
    pub fault: bool,
    /// Whether the instruction lies in it.
    pub ip: bool,
}

/// A row of a timeline.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EventRow {
    /// Line of the log.
    pub line: Option<u64>,
    /// Nanoseconds since boot, or since the first row when the clock only ticks.
    pub ns: Option<u64>,
    /// Processor on which it happened.
    pub cpu: Option<u32>,
    /// Process in which it happened.
    pub pid: Option<u32>,
    /// The event in words.
    pub text: String,
    /// Its record: index of the loaded section, and where it begins in the payload.
    #[serde(skip)]
    pub at: Option<(u32, u32)>,
    /// How long it took, in nanoseconds, when its record or that of its end says so.
    #[serde(skip)]
    pub took_ns: Option<u64>,
    /// The call of the row, when its arguments are the recorder's.
    #[serde(skip)]
    pub call: Option<Box<RecordedCall>>,
}

/// A profile as a table.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Profile {
    /// What was measured.
    pub title: String,
    /// Its rows, the most expensive first.
    pub rows: Vec<ProfileRow>,
}

/// A row of a profile; times in nanoseconds.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProfileRow {
    /// What was measured: a call, a span, a counter.
    pub name: String,
    /// How many times it was called.
    pub calls: u64,
    /// Time spent in all calls, nanoseconds.
    pub total_ns: u64,
    /// Mean time of a call, nanoseconds.
    pub avg_ns: u64,
    /// Shortest, when measured.
    pub min_ns: Option<u64>,
    /// Longest, when measured.
    pub max_ns: Option<u64>,
}

/// A task of the dump's task list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskRow {
    /// Process id of the task.
    pub pid: Option<u32>,
    /// Process id of its parent.
    pub ppid: Option<u32>,
    /// Name of the task.
    pub comm: String,
    /// State of the task in words.
    pub state: String,
    /// Where it waits: its call, what it waits for, and its innermost frames.
    pub place: String,
}

/// A line of the console.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LogRow {
    /// Line of the log.
    pub line: Option<u64>,
    /// Level of the kernel's message, 0 emergency to 7 debug, when the dump says (syslog(2)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// The line without control characters and without its level.
    pub text: String,
}

/// What is missing or damaged.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Completeness {
    /// Nothing is damaged and nothing that such a dump has is missing.
    pub complete: bool,
    /// Number of sound sections.
    pub sections: usize,
    /// Sections whose checksum was checked for this report.
    pub verified: usize,
    /// Damage, in words.
    pub defects: Vec<String>,
    /// What is not in the dump, and what that weakens.
    pub missing: Vec<Gap>,
    /// Pieces of the log that were not understood and are kept.
    pub kept: usize,
}

impl Completeness {
    /// Adds what the analyses left out, which is not among the defects of the file.
    pub fn leave_out(&mut self, defects: &[kwab_format::Defect]) {
        for text in defects.iter().map(ToString::to_string) {
            if !self.defects.contains(&text) {
                self.defects.push(text);
            }
        }
        self.judge();
    }

    /// Takes a gap back that an analysis has filled.
    pub fn filled(&mut self, what: &str) {
        self.missing.retain(|gap| gap.what != what);
        self.judge();
    }

    /// Decides whether the dump is complete by what is known to be missing and damaged.
    pub(super) fn judge(&mut self) {
        self.complete = self.defects.is_empty() && self.missing.is_empty() && self.kept == 0;
    }
}

/// Something that is not there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Gap {
    /// What is missing: `registers`, `stack beyond 512 bytes`.
    pub what: String,
    /// What that weakens.
    pub weakens: String,
}

/// Reads a dump.
pub fn inspect(dump: &Dump, file: &str, options: Options) -> Report {
    let death = Death::of(dump);
    let vmas = machine::vmas(dump, &death, options.mappings);
    let mut report = Report {
        schema: SCHEMA,
        file: file.to_string(),
        headline: death::headline(dump, death.as_ref()),
        signature: death::signature(dump, &death),
        meta: rest::meta(dump),
        hypotheses: Vec::new(),
        since: None,
        remarks: rest::remarks(dump),
        nameless: None,
        backtraces: death::backtraces(dump),
        stacks: Vec::new(),
        code: None,
        registers: machine::registers(dump, &death, &vmas),
        memory: machine::memory(dump),
        vmas,
        syscalls: events::syscalls(dump, options.rows),
        events: events::timeline(dump, options.rows),
        trace: events::trace(dump, options.rows),
        page_checks: events::page_checks(dump),
        profiles: rest::profiles(dump),
        tasks: rest::tasks(dump),
        log: log::log(dump, options.rows),
        completeness: Completeness::default(),
        cause: None,
    };
    report.cause = death.map(|death| death::report(dump, &death, &report.vmas));
    report.completeness = rest::completeness(dump, &report);
    report
}

/// The signature of a dump, for catalogues.
pub fn signature_of(dump: &Dump) -> String {
    death::signature(dump, &Death::of(dump))
}

/// The headline of a dump, for catalogues.
pub fn headline_of(dump: &Dump) -> String {
    death::headline(dump, Death::of(dump).as_ref())
}

/// Whether a dump tells of no death, but may have before it was damaged.
pub fn is_cause_lost(dump: &Dump) -> bool {
    Death::of(dump).is_none() && death::lost_cause(dump).is_some()
}

/// The cause of a dump with its words, for catalogues.
pub fn cause_of(dump: &Dump) -> Option<CauseReport> {
    Death::of(dump).map(|death| death::report(dump, &death, &[]))
}

pub(crate) use crate::text::address;

/// Text of a record.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.split(|byte| *byte == b'\n').map(crate::model::line::printable).collect::<Vec<_>>().join("\n")
}
