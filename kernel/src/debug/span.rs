//! Spans: stretches of kernel code with a name, timed (`debug=trace`) and told one by one with their nesting
//! (`debug=htrace`).
//!
//! `let _span = span(Id::ExecParse);` is all a site needs: the stretch ends where the value is dropped. With both categories
//! off that costs one relaxed load and one comparison.

use kernel_logic::meter::Meter;
use machine::time::cycles;

use super::{Category, htrace, is_on, profile};

/// Declares the spans: identifier and name, numbered from 0.
macro_rules! spans {
    ($($(#[$doc:meta])* $id:ident = $name:literal,)*) => {
        /// A stretch of code that is told apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Id { $($(#[$doc])* $id,)* }

        /// Names by number.
        pub const NAMES: &[&str] = &[$($name,)*];
        const IDS: &[Id] = &[$(Id::$id,)*];
    };
}

spans! {
    /// A system call; its number.
    Syscall = "syscall",
    /// A page fault; its address.
    PageFault = "page_fault",
    /// The timer's interrupt.
    TimerInterrupt = "timer_irq",
    /// A path is walked.
    PathWalk = "path_walk",
    /// A program is executed, up to where it would begin.
    Exec = "exec",
    /// Its file is found and opened, `#!` followed.
    ExecOpen = "exec.open",
    /// ELF headers are read and parsed.
    ExecParse = "exec.elf_parse",
    /// The new address space.
    ExecSpace = "exec.vm_new",
    /// Its segments are mapped.
    ExecSegments = "exec.load_segments",
    /// Arguments, environment and auxiliary vector.
    ExecStack = "exec.stack",
    /// Other threads end.
    ExecAlone = "exec.de_thread",
    /// The old memory goes, the new one comes.
    ExecSwitch = "exec.switch_vm",
    /// Descriptors marked close-on-exec are closed.
    ExecClose = "exec.close_cloexec",
    /// Handlers are reset.
    ExecSignals = "exec.signal_reset",
    /// A fork, vfork or clone, without the time a vfork parent waits.
    Fork = "fork",
    /// The child's memory.
    ForkMemory = "fork.vm",
    /// Its process and thread.
    ForkTask = "fork.task",
    /// Its kernel stack and registers.
    ForkThread = "fork.thread",
    /// A thread ends.
    Exit = "exit",
    /// It lets go of its memory.
    ExitMemory = "exit.vm",
    /// Its files are closed.
    ExitFiles = "exit.files",
    /// Its family learns of it.
    ExitFamily = "exit.family",
    /// A parent waits for children.
    Wait = "wait",
}

static METERS: [Meter; NAMES.len()] = [const { Meter::new() }; NAMES.len()];

/// A stretch of code under way.
#[must_use = "the span ends where this is dropped"]
pub struct Span {
    id: Id,
    /// Cycle count at its beginning; 0 when nobody watches.
    start: u64,
    data: u64,
}

/// A span begins.
#[inline(always)]
pub fn span(id: Id) -> Span {
    span_with(id, 0)
}

/// A span begins that has something to say.
#[inline(always)]
pub fn span_with(id: Id, data: u64) -> Span {
    let start = if super::watches_spans() { begin(id, data) } else { 0 };
    Span { id, start, data }
}

#[cold]
#[inline(never)]
fn begin(id: Id, data: u64) -> u64 {
    if is_on(Category::Htrace) {
        htrace::enter(id, data);
    }
    cycles().max(1)
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if self.start != 0 {
            end(self);
        }
    }
}

#[cold]
#[inline(never)]
fn end(span: &Span) {
    let took = cycles().saturating_sub(span.start);
    if is_on(Category::Trace) {
        METERS[span.id as usize].add(took);
    }
    if is_on(Category::Profile) && span.id == Id::PageFault {
        profile::page_fault(took);
    }
    if is_on(Category::Htrace) {
        htrace::exit(span.id, span.data);
    }
}

/// Writes `span_profile`.
pub fn report() {
    let entries = IDS.iter().filter_map(|id| Some((*id, profile::take(&METERS[*id as usize])?)));
    profile::list("span_profile", entries, |event, id, reading| {
        event.number("id", id as u64).string("name", NAMES[id as usize].as_bytes());
        profile::put(event, reading);
    });
}
