//! The sections of a dump in order of value, and the collector of each.
//!
//! The same parts tell of a dead kernel ([`super::panic`]), of a program that died of a signal ([`process`]) and of a
//! system that lives ([`live()`]). A part is collected into one section; it has a budget of time, takes locks only when
//! they are free, and reads memory only by probing. What it cannot get it leaves out, and the end of the dump says so.

use core::mem::offset_of;

use kwab_format::SectionKind;
use kwab_format::record::{CauseKind, Reason};
use machine::arch::{Control, Registers};
use machine::crash::{self, ControllerState, Stage};
use machine::describe::Entry;
use machine::time::Nanos;
use machine::trap::TrapCode;

use crate::log::Line;
use crate::options::level::{self, Level};
use crate::task::Thread;

use super::channel::Target;

mod boundary;
mod cached;
mod cause;
mod checks;
mod dump;
mod images;
mod live;
mod locks;
mod maps;
mod memory;
mod others;
mod pages;
mod process;
mod ram;
mod recorders;
mod report;
mod stacks;
mod system;
mod tasks;

pub use cause::brief;
pub use dump::{Dump, Stop, boot_id, new_dump_id, sabotage};
pub use live::live;
pub use process::{dump as dump_process, has_channel as dumps_processes};
pub use report::fatal_signal;

/// What died, as far as it is known before anything is looked at. Plain data: it outlives faults in the crash path.
#[derive(Clone, Copy)]
pub struct Death {
    /// Kind of death.
    pub kind: CauseKind,
    /// Why the dump is taken.
    pub reason: Reason,
    /// The panic message or a description of the fault.
    pub message: Line<512>,
    /// Source file of a panic.
    pub file: Line<128>,
    /// Line and column in it; 0 when there is none.
    pub line_column: (u32, u32),
    /// The registers at that moment.
    pub registers: Registers,
    /// The control registers.
    pub control: Control,
    /// Whether it was an exception, and which: apart, so that a reader of memory finds both.
    trapped: (bool, TrapCode),
    /// Number and `si_code` of a signal.
    pub signal: Option<(u8, i32)>,
    /// Whether the kernel itself was running.
    pub in_kernel: bool,
    /// The processor it happened on.
    cpu: u32,
    /// What this processor's interrupt controller held: a timer may expire while the dump is written.
    pub controller: Option<ControllerState>,
}

impl Death {
    /// Where it has what, in [`machine::describe`].
    pub const FIELDS: [Entry; 15] = [
        Entry::number("death.cpu", offset_of!(Self, cpu)),
        Entry::number("death.kind", offset_of!(Self, kind)),
        Entry::number("death.reason", offset_of!(Self, reason)),
        Entry::number("death.message", offset_of!(Self, message) + Line::<512>::LAYOUT.0),
        Entry::number("death.message_len", offset_of!(Self, message) + Line::<512>::LAYOUT.1),
        Entry::number("death.file", offset_of!(Self, file) + Line::<128>::LAYOUT.0),
        Entry::number("death.file_len", offset_of!(Self, file) + Line::<128>::LAYOUT.1),
        Entry::number("death.line", offset_of!(Self, line_column.0)),
        Entry::number("death.column", offset_of!(Self, line_column.1)),
        Entry::number("death.registers", offset_of!(Self, registers)),
        Entry::number("death.control", offset_of!(Self, control)),
        Entry::number("death.trapped", offset_of!(Self, trapped.0)),
        Entry::number("death.vector", offset_of!(Self, trapped.1.vector)),
        Entry::number("death.error", offset_of!(Self, trapped.1.error)),
        Entry::number("death.fault_addr", offset_of!(Self, trapped.1.addr)),
    ];

    /// A death of this kind, with nothing known of it.
    pub fn new(kind: CauseKind, reason: Reason, registers: Registers, control: Control) -> Self {
        let in_kernel = registers.cs & 3 == 0;
        Self {
            kind,
            reason,
            message: Line::new(),
            file: Line::new(),
            line_column: (0, 0),
            registers,
            control,
            trapped: (false, TrapCode::default()),
            signal: None,
            in_kernel,
            cpu: machine::cpu::id().0,
            controller: crash::controller(machine::cpu::id()),
        }
    }

    /// The exception, if it was one.
    pub fn trap(&self) -> Option<TrapCode> {
        self.trapped.0.then_some(self.trapped.1)
    }

    /// The same death by an exception.
    pub fn set_trap(&mut self, code: TrapCode) {
        self.trapped = (true, code);
    }

    /// The address whose access failed.
    pub fn fault_addr(&self) -> Option<u64> {
        // A page fault has one, be it 0; a double fault only when a page fault came before it.
        self.trap().filter(|trap| trap.vector == 14 || (trap.vector == 8 && trap.addr != 0)).map(|trap| trap.addr)
    }
}

/// What a dump is about.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// What is known of the death.
    pub death: &'a Death,
    /// The thread that was running.
    pub thread: Option<&'a Thread>,
    /// Which dump it is.
    pub scope: Scope,
    /// How much of everything.
    pub amount: &'static Amount,
    /// The proof that it is written on the crash path, if it is.
    pub stage: Option<Stage>,
}

impl Subject<'_> {
    /// The process the thread belongs to, if it runs programs.
    pub fn pid(&self) -> Option<u32> {
        self.thread.filter(|thread| !thread.kernel_thread).map(|thread| thread.pid())
    }
}

/// Which dump a part belongs into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Scope {
    /// The kernel died; the other processors are stopped.
    Kernel = 1,
    /// A program died; everything else goes on.
    Process = 2,
    /// No death: a live system is dumped.
    Live = 4,
}

const KERNEL: u8 = Scope::Kernel as u8;
const PROCESS: u8 = Scope::Process as u8;
const LIVE: u8 = Scope::Live as u8;
const ALL: u8 = KERNEL | PROCESS | LIVE;

/// How much is captured: a slow channel gets less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Bytes of each kernel stack.
    pub kernel_stack: usize,
    /// Threads that are switched out whose registers and stack bytes are captured, and bytes of each such stack.
    pub parked: (usize, usize),
    /// Bytes of the user stack.
    pub user_stack: usize,
    /// Bytes of the log.
    pub log: usize,
    /// Page-table entries, and records of other long lists.
    pub entries: usize,
    /// Entries of each recorder.
    pub events: usize,
    /// Bytes at each address that a register holds.
    pub pointed: usize,
    /// What the budgets are multiplied by.
    pub patience: u64,
    /// How much physical memory; never [`Level::Auto`].
    pub level: Level,
}

/// For channels that take a hundred megabytes a second.
pub const FULL: Amount = Amount {
    kernel_stack: 32 << 10,
    parked: (256, 1 << 10),
    user_stack: 16 << 10,
    log: 32 << 10,
    entries: 4096,
    events: usize::MAX,
    pointed: 256,
    patience: 1,
    level: Level::Brief,
};

/// For a serial line.
pub const BRIEF: Amount = Amount {
    kernel_stack: 4 << 10,
    parked: (16, 0),
    user_stack: 1 << 10,
    log: 2 << 10,
    entries: 128,
    events: 64,
    pointed: 0,
    patience: 20,
    level: Level::Brief,
};

/// Of a fast channel, by level.
const fn at(level: Level) -> Amount {
    Amount { parked: (4096, 32 << 10), level, ..FULL }
}

static STANDARD: Amount = at(Level::Standard);
static KERNEL_MEMORY: Amount = at(Level::Full);
static ALL_MEMORY: Amount = at(Level::All);

/// How much of everything a dump of the kernel has on a channel.
pub fn amount_on(target: Target) -> &'static Amount {
    match (target, level::get()) {
        (Target::Serial(_), _) => &BRIEF,
        (Target::Disk { .. }, Level::Auto) | (_, Level::Standard) => &STANDARD,
        (_, Level::Auto | Level::Brief) => &FULL,
        (_, Level::Full) => &KERNEL_MEMORY,
        (_, Level::All) => &ALL_MEMORY,
    }
}

/// Collects one section of a dump.
pub struct Collector {
    /// The section it fills.
    pub kind: SectionKind,
    /// Which dumps have it.
    scopes: u8,
    /// From which level on a dump has it.
    level: Level,
    /// How long it may take on a fast channel.
    budget: Nanos,
    /// Writes the section; ends early with [`Stop`].
    collect: fn(&mut Dump<'_>, &Subject<'_>) -> Result<(), Stop>,
}

impl Collector {
    /// Whether a dump of this scope and amount has it.
    pub fn is_in(&self, scope: Scope, amount: &Amount) -> bool {
        self.scopes & scope as u8 != 0 && amount.level >= self.level
    }

    /// The same in dumps of this level and above alone.
    const fn from(mut self, level: Level) -> Self {
        self.level = level;
        self
    }
}

const MS: Nanos = 1_000_000;

const fn part(
    kind: SectionKind,
    scopes: u8,
    millis: u64,
    collect: fn(&mut Dump<'_>, &Subject<'_>) -> Result<(), Stop>,
) -> Collector {
    Collector { kind, scopes, level: Level::Brief, budget: millis * MS, collect }
}

/// Every part, in order of value. The budgets bound what a part that goes astray costs; each takes a few milliseconds,
/// also where a busy host emulates the processor and takes it away for longer than that.
pub const COLLECTORS: &[Collector] = &[
    part(SectionKind::IDENTITY, ALL, 50, cause::identity),
    part(SectionKind::CAUSE, ALL, 50, cause::cause),
    part(SectionKind::REGISTERS, ALL, 50, cause::registers),
    part(SectionKind::STACKS, ALL, 100, stacks::stacks),
    part(SectionKind::SYSCALLS, ALL, 100, recorders::calls),
    part(SectionKind::FLIGHT, ALL, 200, recorders::flight),
    part(SectionKind::MEMORY_MAP, ALL, 100, memory::map),
    part(SectionKind::PAGE_TABLE, ALL, 200, pages::entries),
    part(SectionKind::PAGE_CHECKS, ALL, 500, checks::checks),
    part(SectionKind::TASKS, ALL, 200, tasks::tasks),
    part(SectionKind::SYSCALLS, KERNEL | LIVE, 100, recorders::calls_of_others),
    part(SectionKind::TASKS, KERNEL, 100, others::user_code),
    part(SectionKind::LOCKS, KERNEL | LIVE, 50, locks::locks),
    part(SectionKind::IMAGES, ALL, 100, images::images),
    part(SectionKind::IMAGES, KERNEL, 100, others::images),
    part(SectionKind::LOG, ALL, 100, system::log),
    part(SectionKind::COUNTERS, ALL, 100, system::counters),
    part(SectionKind::MEMORY, KERNEL | PROCESS, 100, memory::pointed),
    part(SectionKind::MEMORY_MAP, KERNEL, 500, maps::maps_of_others).from(Level::Standard),
    part(SectionKind::MEMORY, KERNEL, 2_000, ram::standard).from(Level::Standard),
    part(SectionKind::MEMORY, KERNEL, 10_000, ram::kernel).from(Level::Full),
    part(SectionKind::MEMORY, KERNEL, 10_000, ram::program).from(Level::Full),
    part(SectionKind::MEMORY, KERNEL, 60_000, ram::rest).from(Level::All),
    part(SectionKind::PAGE_TABLE, KERNEL, 500, ram::free).from(Level::All),
    part(SectionKind::NOTES, KERNEL | LIVE, 100, system::cost),
];
