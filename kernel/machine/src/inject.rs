//! Injectable faults of this crate (`inject=` on the command line), with which the diagnostic tools are examined.
//!
//! Nothing here happens unless the kernel plants a [`Fault`] at boot, which it does only when its command line asks.
//! Each is a bug that kernels really had; each breaks the rule of the module it sits in, which is the point. Without
//! the feature `inject`, and in the safety profile `ludicrous`, nothing can be planted, and the checks are constants.

use core::sync::atomic::{AtomicU32, Ordering};

/// A bug of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// The tables above a leaf take over that its first leaf may not be executed.
    NoExecTables = 1 << 0,
    /// Other processors are not told to forget translations.
    NoShootdown = 1 << 1,
    /// The end of an address space keeps the references of its leaves.
    KeepReferences = 1 << 2,
    /// The end of an address space drops the reference of a cached page twice.
    DropTwice = 1 << 3,
    /// A run of pages is mapped without a reference to its frames.
    Uncounted = 1 << 4,
    /// The small leaves that take the place of a 2 MiB one share its one reference.
    SplitUncounted = 1 << 6,
    /// The small leaves that take the place of a 2 MiB one lose the bit that forbids execution.
    SplitExecutable = 1 << 7,
    /// Freed objects of the heap are overwritten: no bug, but what shows one.
    Poison = 1 << 5,
}

static PLANTED: AtomicU32 = AtomicU32::new(0);

/// Plant a fault, for good.
pub fn plant(fault: Fault) {
    PLANTED.fetch_or(fault as u32, Ordering::Relaxed);
}

/// Whether a fault is planted: one relaxed load.
#[inline(always)]
pub(crate) fn is(fault: Fault) -> bool {
    cfg!(all(feature = "inject", not(feature = "ludicrous"))) && PLANTED.load(Ordering::Relaxed) & fault as u32 != 0
}

/// What freed objects are overwritten with.
pub(crate) const POISON: u8 = 0xdf;

/// Load the word at `addr`, whatever it is: the mistake of code that trusts an address.
#[cfg(feature = "inject")]
#[inline(always)]
pub fn load(addr: u64) -> u64 {
    let value;
    // SAFETY: none, on purpose: this is the planted bug. A bad address faults in kernel mode, which ends in the crash
    // path; nothing is written.
    unsafe { core::arch::asm!("mov {}, [{}]", out(reg) value, in(reg) addr, options(nostack, readonly)) };
    value
}
