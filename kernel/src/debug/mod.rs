//! Watching the kernel: what is switched on, and the lines it writes.
//!
//! Categories are bits in one word; a site that is off costs one relaxed load. [`event`] writes the lines, [`crash`] the
//! report of a program that died, [`panic`] the kernel's own last words.

use core::sync::atomic::{AtomicU32, Ordering};

pub mod crash;
pub mod event;
pub mod panic;

/// Something that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Category {
    /// Entry and exit of every call.
    Syscall = 1,
    /// Signals as they are delivered.
    Signal = 2,
    /// Page faults and traps.
    Fault = 4,
    /// Fork, exec, exit.
    Process = 8,
    /// Panics and crash reports.
    Panic = 16,
}

/// Every category by the name `debug=` uses.
pub const CATEGORIES: &[(&str, Category)] = &[
    ("fault", Category::Fault),
    ("panic", Category::Panic),
    ("process", Category::Process),
    ("signal", Category::Signal),
    ("syscall", Category::Syscall),
];

static ON: AtomicU32 = AtomicU32::new(Category::Panic as u32);

/// Whether a category is on.
#[inline(always)]
pub fn is_on(category: Category) -> bool {
    ON.load(Ordering::Relaxed) & category as u32 != 0
}

/// Whether any of the categories a call's entry and exit care about is on.
#[inline(always)]
pub fn traces_calls() -> bool {
    is_on(Category::Syscall)
}

/// Switches categories by a comma list; `all` and `none` are understood. Unknown names are returned one by one.
pub fn select(list: &[u8], mut unknown: impl FnMut(&[u8])) {
    for name in list.split(|b| *b == b',').filter(|name| !name.is_empty()) {
        match name {
            b"all" => ON.store(CATEGORIES.iter().fold(0, |all, (_, c)| all | *c as u32), Ordering::Relaxed),
            b"none" => ON.store(0, Ordering::Relaxed),
            _ => match CATEGORIES.iter().find(|(known, _)| known.as_bytes() == name) {
                Some((_, category)) => {
                    ON.fetch_or(*category as u32, Ordering::Relaxed);
                }
                None => unknown(name),
            },
        }
    }
}
