//! Trace points: enabled categories, recorders, and event lines.
//!
//! Always on: what each processor ([`flight`]) and each thread ([`ring`]) did last. On request, by category: event
//! lines ([`event`]), profiles and spans. Categories are bits in one word, set by `debug=` and through
//! `/proc/sys/kernel/debug`; a site that is off costs one relaxed load. Every layer may have trace points, so this one
//! knows no other: what it records of a thread is in [`Traced`], and [`die`] reaches the crash path through [`Fatal`].

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use kwab_format::record::{CauseKind, Reason};
use linux_abi::Errno;
use machine::addr::UserAddr;
use machine::user::Fault;

use crate::log;
use crate::upper::Kwab;

mod buffers;
pub mod calls;
mod canary;
pub mod event;
pub mod flight;
mod htrace;
pub mod limit;
pub mod profile;
pub mod ring;
pub mod span;
mod spans;

/// What the recorders need of a thread.
pub trait Traced {
    /// Process id in the upper half, thread id in the lower: both in one load.
    fn ids(&self) -> u64;
    /// How many spans it is inside of, while the hierarchical tracer is on.
    fn span_depth(&self) -> &AtomicU32;
    /// Its last system calls.
    fn calls(&self) -> &ring::Calls;
}

/// The crash path, as the layers below it may call it.
pub trait Fatal {
    /// Ends the kernel with this cause.
    fn die(kind: CauseKind, reason: Reason, message: fmt::Arguments<'_>) -> !;
}

/// Ends the kernel with a cause that is neither a panic nor an exception.
pub fn die(kind: CauseKind, reason: Reason, message: fmt::Arguments<'_>) -> ! {
    <Kwab as Fatal>::die(kind, reason, message)
}

/// Something that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Category {
    /// Entry and exit of every call.
    Syscall = 1 << 8,
    /// Signals as they are delivered, and what is written for them on stacks.
    Signal = 1 << 9,
    /// Page faults and traps.
    Fault = 1 << 10,
    /// Fork, exec, exit.
    Process = 1 << 11,
    /// Panics and crash reports.
    Panic = 1 << 12,
    /// The program's stack canary around every call.
    Canary = 1 << 13,
    /// What exec maps at once.
    Memory = 1 << 14,
    /// Copies from and to programs.
    Usercopy = 1 << 15,
    /// Time per kind of call, and in page faults.
    Profile = 1 << 16,
    /// Time per phase: exec, fork, page fault, path walk, exit, wait.
    Trace = 1 << 17,
    /// Every call, page fault and interrupt with its nesting.
    Htrace = 1 << 18,
    /// Each page of a fresh program against its file.
    Verify = 1 << 19,
    /// The mappings of a fresh program against its page table.
    Audit = 1 << 20,
    /// Calls that are not implemented, by name; some per second.
    Unimplemented = 1 << 21,
    /// What calls read from programs and write to them, beside their arguments in the rings.
    Buffers = 1 << 22,
}

/// Every category by the name `debug=` uses, in alphabetical order.
pub const CATEGORIES: &[(&str, Category)] = &[
    ("audit", Category::Audit),
    ("buffers", Category::Buffers),
    ("canary", Category::Canary),
    ("fault", Category::Fault),
    ("htrace", Category::Htrace),
    ("memory", Category::Memory),
    ("panic", Category::Panic),
    ("process", Category::Process),
    ("profile", Category::Profile),
    ("signal", Category::Signal),
    ("syscall", Category::Syscall),
    ("trace", Category::Trace),
    ("unimplemented", Category::Unimplemented),
    ("usercopy", Category::Usercopy),
    ("verify", Category::Verify),
];

/// The categories that watch every call.
const CALLS: u32 = Category::Syscall as u32
    | Category::Canary as u32
    | Category::Profile as u32
    | Category::Htrace as u32
    | Category::Buffers as u32;

static ON: AtomicU32 = AtomicU32::new(Category::Panic as u32);
/// [`ON`] as far as it is in [`CALLS`]: dispatch looks at nothing else.
static CALLS_ON: AtomicU32 = AtomicU32::new(0);

/// Whether a category is on.
#[inline(always)]
pub fn is_on(category: Category) -> bool {
    ON.load(Ordering::Relaxed) & category as u32 != 0
}

/// Not 0 if every call is traced. The lowest eight bits are 0.
#[inline(always)]
pub fn watches_calls() -> u32 {
    if cfg!(feature = "ludicrous") { 0 } else { CALLS_ON.load(Ordering::Relaxed) }
}

/// The categories that watch spans.
const SPANS: u32 = Category::Profile as u32 | Category::Trace as u32 | Category::Htrace as u32;

/// Whether spans are traced.
#[inline(always)]
pub fn watches_spans() -> bool {
    ON.load(Ordering::Relaxed) & SPANS != 0
}

/// A copy from or to a program was made, or stopped short.
#[inline(always)]
pub fn usercopy(way: event::Copy, addr: UserAddr, len: usize, fault: Option<&Fault>) {
    if is_on(Category::Usercopy) {
        event::usercopy(way, addr.0, len, fault.map(|fault| addr.0.wrapping_add(fault.done as u64)));
    }
}

/// Writes what was collected and not written yet: before the machine goes off.
pub fn report() {
    calls::report(ON.load(Ordering::Relaxed));
    limit::report();
}

/// Switches categories on by a comma list; `all` and `none` are understood, from left to right. Unknown names are
/// returned one by one and change nothing.
pub fn select(list: &[u8], unknown: impl FnMut(&[u8])) {
    set(ON.load(Ordering::Relaxed) | Category::Panic as u32, list, unknown);
}

/// Makes exactly the categories of a comma list those that are on, if all names are known.
pub fn replace(list: &[u8]) -> Result<(), Errno> {
    if let Some(name) = names(list).find(|name| find(name).is_none()) {
        refuse(name);
        return Err(Errno::EINVAL);
    }
    set(0, list, |_| ());
    Ok(())
}

/// Says in the log that a name is not known, and which are.
pub fn refuse(name: &[u8]) {
    log::warn!("debug={}: unknown tracer; known are all, none{}", log::Escaped(name), Names);
}

/// The names of all categories, each after a comma.
struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        CATEGORIES.iter().try_for_each(|(name, _)| write!(f, ", {name}"))
    }
}

/// The names of the categories that are on, `none` without any.
pub fn selected() -> impl Iterator<Item = &'static str> {
    let on = ON.load(Ordering::Relaxed);
    let none = (on == 0).then_some("none");
    CATEGORIES.iter().filter(move |(_, category)| on & *category as u32 != 0).map(|(name, _)| *name).chain(none)
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',' || byte.is_ascii_whitespace()).filter(|name| !name.is_empty())
}

/// What a name stands for: the bits to keep and those to add.
fn find(name: &[u8]) -> Option<(u32, u32)> {
    match name {
        b"all" => Some((0, CATEGORIES.iter().fold(0, |all, (_, category)| all | *category as u32))),
        b"none" => Some((0, 0)),
        _ => CATEGORIES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, c)| (u32::MAX, *c as u32)),
    }
}

fn set(mut on: u32, list: &[u8], mut unknown: impl FnMut(&[u8])) {
    for name in names(list) {
        match find(name) {
            Some((keep, add)) => on = on & keep | add,
            None => unknown(name),
        }
    }
    let before = ON.swap(on, Ordering::Relaxed);
    CALLS_ON.store(on & CALLS, Ordering::Relaxed);
    calls::switched(before, on);
    limit::report();
}
