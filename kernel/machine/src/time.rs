//! Time: a monotonic clock every processor agrees on, the wall clock at boot, one timer per processor.

/// Nanoseconds since boot.
pub type Nanos = u64;

/// How a cycle count becomes nanoseconds: `((cycles - base) * mult) >> shift`, in 128 bits. The vDSO uses the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockParams {
    /// Cycle count at time 0.
    pub base: u64,
    /// Multiplier.
    pub mult: u32,
    /// Shift.
    pub shift: u32,
    /// Cycles per second.
    pub hz: u64,
}

/// Now.
#[inline]
pub fn now() -> Nanos {
    todo!()
}

/// The cycle counter, for profiles.
#[inline]
pub fn cycles() -> u64 {
    todo!()
}

/// The conversion.
pub fn params() -> ClockParams {
    todo!()
}

/// Wall-clock nanoseconds since 1970 at [`now`] == 0, from the platform's clock (whole seconds).
pub fn wall_at_boot() -> u64 {
    todo!()
}

/// Let this processor's timer expire at `deadline` (at once if past), replacing any earlier setting. Calls
/// [`crate::Kernel::timer`] once.
pub fn arm(deadline: Nanos) {
    let _ = deadline;
    todo!()
}

/// No timer.
pub fn disarm() {
    todo!()
}
