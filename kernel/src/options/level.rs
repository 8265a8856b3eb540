//! Owns the level of dumps of the kernel: how much memory they hold.
//!
//! `dump=` on the command line sets it, `/proc/sys/kernel/dump_level` changes it. [`Level::Auto`] takes what the
//! channel bears; the serial console always gets [`Level::Brief`].

use core::sync::atomic::{AtomicU8, Ordering};

use linux_abi::Errno;

/// How much memory a dump of the kernel holds. Each level has what the ones before it have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// As much as the channel bears: `Standard` on a disk, else `Brief`.
    #[default]
    Auto,
    /// Stacks of what was running, and what registers point to.
    Brief,
    /// The kernel's data, page tables, and the stacks and mappings of all tasks.
    Standard,
    /// All memory that the kernel uses, and that of the program that was running.
    Full,
    /// All memory in use.
    All,
}

/// The levels with their names.
const NAMES: [(Level, &str); 5] = [
    (Level::Auto, "auto"),
    (Level::Brief, "brief"),
    (Level::Standard, "standard"),
    (Level::Full, "full"),
    (Level::All, "all"),
];

static CHOSEN: AtomicU8 = AtomicU8::new(Level::Auto as u8);

impl Level {
    /// The level of this name.
    pub fn named(name: &[u8]) -> Option<Self> {
        NAMES.iter().find(|(_, known)| known.as_bytes() == name).map(|(level, _)| *level)
    }

    /// The word for it on the command line and in `/proc`.
    pub fn name(self) -> &'static str {
        NAMES[self as usize].1
    }
}

/// The level that was chosen.
pub fn get() -> Level {
    let number = CHOSEN.load(Ordering::Relaxed);
    NAMES.get(usize::from(number)).map_or(Level::Auto, |(level, _)| *level)
}

/// Chooses a level for the dumps from now on.
pub fn set(level: Level) {
    CHOSEN.store(level as u8, Ordering::Relaxed);
}

/// Chooses a level by its name, line end permitted: `EINVAL` for any other word.
pub fn set_named(text: &[u8]) -> Result<(), Errno> {
    Level::named(text.trim_ascii()).map(set).ok_or(Errno::EINVAL)
}
