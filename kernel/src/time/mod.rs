//! The wall clock, and the forms in which times are passed.
//!
//! The monotonic clock is the machine's; the wall clock is that plus an offset which `clock_settime` moves. Programs
//! read both through the [`vdso`]. Processor time is counted by the scheduler and summed up by the task layer.

use core::sync::atomic::{AtomicU64, Ordering};

use linux_abi::Errno;
use machine::time::{Nanos, now};

pub mod vdso;

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Ticks per second that times(2) and `/proc` count in.
pub const USER_HZ: u64 = 100;

/// Wall-clock time at monotonic 0.
static WALL_OFFSET: AtomicU64 = AtomicU64::new(0);

/// Sets the wall clock from the platform's.
pub fn start() {
    WALL_OFFSET.store(machine::time::wall_at_boot(), Ordering::Relaxed);
}

/// Nanoseconds since 1970.
pub fn realtime() -> Nanos {
    now().wrapping_add(WALL_OFFSET.load(Ordering::Relaxed))
}

/// Wall-clock time at monotonic 0, in nanoseconds since 1970 (`btime` in `/proc/stat`).
pub fn wall_offset() -> Nanos {
    WALL_OFFSET.load(Ordering::Relaxed)
}

/// Sets the wall clock; how many nanoseconds it went forward (negative: back).
pub fn set(wall: Nanos) -> i64 {
    let offset = wall.wrapping_sub(now());
    let moved = offset.wrapping_sub(WALL_OFFSET.swap(offset, Ordering::Relaxed)) as i64;
    vdso::update();
    moved
}

/// A `struct timespec` as nanoseconds. `EINVAL` when negative or with too many nanoseconds; saturates after 584 years.
pub fn from_timespec([seconds, nanos]: [u64; 2]) -> Result<Nanos, Errno> {
    if seconds as i64 >= 0 && nanos < SECOND {
        // As on Linux the farthest time is that of a signed number.
        Ok(seconds.saturating_mul(SECOND).saturating_add(nanos).min(i64::MAX as u64))
    } else {
        Err(Errno::EINVAL)
    }
}

/// Nanoseconds as a `struct timespec`.
pub fn to_timespec(nanos: Nanos) -> [u64; 2] {
    [nanos / SECOND, nanos % SECOND]
}

/// A `struct timeval` as nanoseconds.
pub fn from_timeval([seconds, micros]: [u64; 2]) -> Result<Nanos, Errno> {
    if micros >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    from_timespec([seconds, micros * 1000])
}

/// Nanoseconds as a `struct timeval`.
pub fn to_timeval(nanos: Nanos) -> [u64; 2] {
    [nanos / SECOND, nanos % SECOND / 1000]
}

/// Nanoseconds in [`USER_HZ`] ticks.
pub fn to_ticks(nanos: Nanos) -> u64 {
    nanos / (SECOND / USER_HZ)
}
