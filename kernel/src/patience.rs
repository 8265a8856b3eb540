//! Limits of the watchdogs: set on the command line, changed through `/proc/sys/kernel`.
//!
//! | option | `/proc/sys/kernel` | default | what is waited for |
//! |---|---|---|---|
//! | `watchdog=S` | `watchdog_thresh` (half of it, as on Linux), `watchdog` | 20 s | a stuck processor or page fault |
//! | `hung_task=S` | `hung_task_timeout_secs` | 120 s | a thread that no signal can wake |
//! | `stall=S` | `stall_timeout_secs` | proof only | a system in which no program runs |
//! | `nmi_watchdog=0` | `nmi_watchdog` | on | processors that take no interrupt |
//!
//! 0 seconds switch a watchdog off. Without `stall=` a quiet system is a stall only where nothing can wake a thread,
//! and after `watchdog=`; with it, also where a timer or the console could.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use linux_abi::Errno;
use machine::time::Nanos;

use crate::options::{self, Stall};

/// A number of seconds.
pub struct Seconds(AtomicU64);

const NANOS: u64 = 1_000_000_000;
/// Most seconds that fit into nanoseconds with room for arithmetic.
const MOST: u64 = i64::MAX as u64 / NANOS;

impl Seconds {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// The number; 0 for never.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it: `EINVAL` above what the clock can count.
    pub fn set(&self, seconds: u64) -> Result<(), Errno> {
        if seconds > MOST {
            return Err(Errno::EINVAL);
        }
        self.0.store(seconds, Ordering::Relaxed);
        Ok(())
    }

    /// In nanoseconds, unless it is never.
    pub fn limit(&self) -> Option<Nanos> {
        Some(self.get()).filter(|seconds| *seconds > 0).map(|seconds| seconds.min(MOST) * NANOS)
    }
}

/// Of a processor in the kernel, and of a thread that repeats a page fault.
pub static PROCESSOR: Seconds = Seconds::new();
/// Of a thread that no signal can wake.
pub static TASK: Seconds = Seconds::new();
/// Of a system in which no program runs, whatever could wake one.
pub static QUIET: Seconds = Seconds::new();
/// Whether a system in which nothing can wake a program is a stall.
pub static PROVABLE: AtomicBool = AtomicBool::new(false);
/// Whether a timer watches for processors that take no interrupt.
pub static NMI: AtomicBool = AtomicBool::new(false);

/// Takes the command line's; nothing is watched before.
pub fn start() {
    let chosen = options::get();
    let (stall, provable) = match chosen.stall {
        Stall::Provable => (0, true),
        Stall::After(0) => (0, false),
        Stall::After(seconds) => (seconds, true),
    };
    for (knob, seconds) in [(&PROCESSOR, chosen.watchdog), (&TASK, chosen.hung_task), (&QUIET, stall)] {
        knob.0.store(seconds.min(MOST), Ordering::Relaxed);
    }
    PROVABLE.store(provable, Ordering::Relaxed);
    NMI.store(chosen.nmi_watchdog, Ordering::Relaxed);
}

/// Most of `watchdog_thresh` (Linux, "softlockup-watchdogs": 60 seconds).
const MOST_THRESHOLD: u64 = 60;

/// `watchdog_thresh`: a processor is stuck after twice as many seconds.
pub fn threshold() -> u64 {
    PROCESSOR.get().div_ceil(2)
}

/// Sets it: `EINVAL` above 60.
pub fn set_threshold(seconds: u64) -> Result<(), Errno> {
    if seconds > MOST_THRESHOLD {
        return Err(Errno::EINVAL);
    }
    PROCESSOR.set(2 * seconds)
}

/// `watchdog`: off sets no limit for a processor, on the default one if there is none.
pub fn watch_processors(on: bool) {
    let seconds = match (on, PROCESSOR.get()) {
        (false, _) => 0,
        (true, 0) => options::WATCHDOG,
        (true, seconds) => seconds,
    };
    PROCESSOR.0.store(seconds, Ordering::Relaxed);
}
