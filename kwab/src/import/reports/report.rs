//! A crash report as plain data: everything that the console printed about one failure.
//!
//! Every text is bounded ([`LONGEST_TEXT`]) and every list too (constants below); what exceeds a bound is counted in
//! [`Report::left_out`]. Absent means "not printed" or "not readable", never zero.

use serde::Serialize;

pub use crate::import::lines::LogPosition;

use super::class::Class;

/// Bytes kept of any text of a report.
pub const LONGEST_TEXT: usize = 1024;
/// Stacks kept of one report.
pub const MOST_STACKS: usize = 64;
/// Frames kept of one report, over all its stacks.
pub const MOST_FRAMES: usize = 1024;
/// Registers kept of one set.
pub const MOST_REGISTERS: usize = 96;
/// Register sets kept of one report.
pub const MOST_SETS: usize = 16;
/// Further remarks kept of one report.
pub const MOST_NOTES: usize = 32;

/// One failure that a kernel reported.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Its number in the log, from 1, in the order of first lines.
    pub number: u32,
    /// Which kernel: `linux`, the name of a dialect row (`freebsd`, `zircon`, …), or `generic`.
    pub family: String,
    /// Whether a program printed it, and no kernel: the last words of a service look like those of a small kernel.
    #[serde(skip)]
    pub of_program: bool,
    /// What kind of failure.
    pub class: Class,
    /// One line in the form that developers search for: `KASAN: slab-use-after-free Read in foo`.
    pub headline: String,
    /// What the kernel itself said in the line that opens the report, without its prefix.
    pub message: String,
    /// The guilty function: the first of the crash stack that is not a reporter, allocator, lock or trap handler.
    pub function: Option<String>,
    /// `file:line` printed with the failure (`kernel BUG at`, `WARNING: … at`, `panicked at`).
    pub source: Option<(String, u32)>,
    /// Processor that printed the report.
    pub cpu: Option<u32>,
    /// Thread or process.
    pub pid: Option<u32>,
    /// Name of the task.
    pub comm: Option<String>,
    /// Instruction set, as far as registers and wording tell.
    pub arch: Option<Arch>,
    /// Kernel version, as printed with the task (`6.1.0-rc2 #1`).
    pub version: Option<String>,
    /// Taint, as printed (`G        W`), without the words around it.
    pub taint: Option<String>,
    /// Machine and firmware, as Linux's `Hardware name:` says.
    pub hardware: Option<String>,
    /// `Modules linked in:`, as printed.
    pub modules: Option<String>,
    /// Address whose access failed.
    pub fault_address: Option<u64>,
    /// Instruction pointer, when printed as a number.
    pub ip: Option<u64>,
    /// Instruction pointer, when printed as a symbol.
    pub location: Option<Frame>,
    /// Stack pointer at the failure.
    pub sp: Option<u64>,
    /// Error code, ESR, scause, trap number: the raw value.
    pub error_code: Option<u64>,
    /// The same in words: `data abort, level 1 translation fault, write`.
    pub error_text: Option<String>,
    /// The failed access.
    pub access: Option<Access>,
    /// Registers, in the order of the sets printed; the first kernel set is the one of the failure.
    pub registers: Vec<RegisterSet>,
    /// Stacks, in the order printed.
    pub stacks: Vec<Stack>,
    /// Bytes around the instruction.
    pub code: Option<Code>,
    /// Run-time minus link-time address of the kernel, from `Kernel Offset:`.
    pub kernel_offset: Option<u64>,
    /// Time of the first line in nanoseconds since boot, when the prefix has it.
    pub ns: Option<u64>,
    /// The panic that this failure led to (`Fatal exception`, `panic_on_warn set ...`).
    pub panic: Option<String>,
    /// Number of the report that this one follows from: not a failure of its own. The rule is in [`super::links`].
    pub follows: Option<u32>,
    /// Number of an earlier report of the same signature.
    pub same_as: Option<u32>,
    /// Remarks worth reading: lines of the report that fit no other field.
    pub notes: Vec<String>,
    /// First line of the report.
    pub first: LogPosition,
    /// Last line of the report.
    pub last: LogPosition,
    /// What a complete report of this class has and this one lacks; empty when it is complete.
    pub missing: Vec<&'static str>,
    /// How many frames, registers and remarks were printed beyond the bounds.
    pub left_out: u64,
    /// Text for grouping: class, function and the first guilty frames; free of numbers and addresses.
    pub signature: String,
}

impl Report {
    /// Whether a kernel says that a program failed: what a program's own runtime printed has no kernel's name.
    pub fn is_fault_of_program(&self) -> bool {
        self.of_program && !matches!(self.family.as_str(), "generic" | "go" | "linux")
    }
}

/// Instruction set architectures that print registers of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Arch {
    X86_64,
    I386,
    Arm64,
    Arm,
    Riscv64,
    Riscv32,
    Powerpc,
    S390x,
    Mips,
    Loongarch,
    Sparc,
}

/// A failed access.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Access {
    /// Read, write or execute.
    pub kind: Option<AccessKind>,
    /// Bytes that the access touched.
    pub size: Option<u64>,
    /// Address of the access.
    pub address: Option<u64>,
    /// What stood there (`located 0 bytes inside of 192-byte region …`), as printed.
    pub object: Option<String>,
    /// The cache that the object belongs to.
    pub cache: Option<String>,
}

/// How memory was accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    /// The access was a load.
    Read,
    /// The access was a store.
    Write,
    /// An instruction fetch.
    Execute,
    /// A release of memory (double free, invalid free).
    Free,
}

/// A printed set of registers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RegisterSet {
    /// Whether they are those of user code.
    pub user: bool,
    /// Processor, when several print theirs.
    pub cpu: Option<u32>,
    /// Names as printed (upper case on x86), values.
    pub registers: Vec<(String, u64)>,
}

/// What a stack tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// Of the failure itself.
    #[default]
    Crash,
    /// Where the object was allocated.
    Allocated,
    /// Where the object was freed.
    Freed,
    /// Where an uninitialised value was created or stored, or work was queued.
    Origin,
    /// Of another processor.
    OtherCpu,
    /// Of another task (hung task lists, holders of locks).
    OtherTask,
    /// Where a lock of a chain was taken.
    Lock,
    /// The other side of a data race.
    OtherAccess,
    /// Printed again by a later stage of the same failure.
    Repeated,
}

/// A printed backtrace and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stack {
    /// What it tells.
    pub kind: StackKind,
    /// The line above it, as printed (`Freed by task 12:`), when there is one.
    pub title: Option<String>,
    /// Processor whose stack it is.
    pub cpu: Option<u32>,
    /// Thread whose stack it is.
    pub pid: Option<u32>,
    /// Name of its task.
    pub comm: Option<String>,
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
}

/// A frame of a backtrace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Frame {
    /// Return address, or the instruction of the first frame.
    pub address: Option<u64>,
    /// Name of the function.
    pub symbol: Option<String>,
    /// Offset into it.
    pub offset: Option<u64>,
    /// Size of the function in bytes.
    pub size: Option<u64>,
    /// Module that holds the function; `None` for the kernel itself.
    pub module: Option<String>,
    /// Source, when the log was symbolised or the kernel prints it.
    pub source: Option<(String, u32)>,
    /// Whether it is an inlined call.
    pub inline: bool,
    /// Whether the kernel guessed it (`?`).
    pub guess: bool,
    /// Its line of the log.
    pub line: u64,
}

/// Bytes around the instruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Code {
    /// The bytes, words of fixed-size instruction sets in memory order (little-endian).
    pub bytes: Vec<u8>,
    /// Index of the first byte of the instruction.
    pub marked: Option<u64>,
}
