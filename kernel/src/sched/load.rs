//! The load average: how many threads ran or waited to, smoothed over 1, 5 and 15 minutes.
//!
//! Nothing ticks, so the average is brought up to date at every read: the present number of runnable threads
//! stands for the time since the last look.

use machine::sync::SpinLock;
use machine::time::now;

use super::runnable;

/// One, with [`SHIFT`] bits of fraction.
pub const ONE: u64 = 1 << SHIFT;
/// Bits of fraction of a load.
pub const SHIFT: u32 = 11;
/// Time between two steps of the average, in nanoseconds.
const STEP: u64 = 5_000_000_000;
/// `e^(-5 s / 1, 5, 15 min)` with [`SHIFT`] bits of fraction.
const DECAY: [u64; 3] = [1884, 2014, 2037];
/// Steps after which the past no longer shows.
const MAX_STEPS: u64 = 2000;

struct Load {
    averages: [u64; 3],
    at: u64,
}

static LOAD: SpinLock<Load> = SpinLock::new(Load { averages: [0; 3], at: 0 });

/// The three averages, with [`SHIFT`] bits of fraction.
pub fn averages() -> [u64; 3] {
    let running = u64::from(runnable()) << SHIFT;
    let mut load = LOAD.lock();
    let steps = (now().saturating_sub(load.at)) / STEP;
    load.at += steps * STEP;
    for _ in 0..steps.min(MAX_STEPS) {
        for (average, decay) in load.averages.iter_mut().zip(DECAY) {
            *average = (*average * decay + running * (ONE - decay)) >> SHIFT;
        }
    }
    load.averages
}
