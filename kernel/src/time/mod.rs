//! Clocks: what time it is, by which reckoning.
//!
//! The monotonic clock is the machine's; the wall clock is that plus an offset which `clock_settime` moves. Processor-time
//! clocks belong to a process or a thread.

use core::sync::atomic::{AtomicU64, Ordering};

use linux_abi::Errno;
use machine::time::{Nanos, now};

use crate::sched::Sleep;
use crate::sync::wait::{WaitError, WaitQueue};
use crate::task::{Process, Task, current, tree};

pub mod itimer;
pub mod posix;
pub mod timer;
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

/// Sets the wall clock.
pub fn set_realtime(wall: Nanos) {
    let offset = wall.wrapping_sub(now());
    let moved = offset.wrapping_sub(WALL_OFFSET.swap(offset, Ordering::Relaxed)) as i64;
    vdso::update();
    WALL_MOVED.wake_all();
    for process in tree::all_processes() {
        process.timers.wall_moved(moved);
    }
    crate::ipc::timerfd::wall_moved(moved);
}

/// Woken when the wall clock is set: whoever sleeps until a moment of it must look again.
static WALL_MOVED: WaitQueue = WaitQueue::new();

/// Sleeps, interruptibly, until `clock` reads `until`, however the clock is moved meanwhile.
pub fn sleep_until(clock: Clock, until: Nanos) -> Result<(), Errno> {
    loop {
        if clock.read()? >= until {
            return Ok(());
        }
        let due = || clock.read().is_ok_and(|read| read >= until).then_some(());
        match WALL_MOVED.wait_until(Some(clock.to_monotonic(until)), Sleep::Interruptible, due) {
            Ok(()) | Err(WaitError::TimedOut) => {}
            Err(WaitError::Interrupted) => return Err(Errno::ERESTARTNOHAND),
        }
    }
}

/// A clock a call may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// `CLOCK_REALTIME` and its kin.
    Real,
    /// `CLOCK_MONOTONIC`, `_RAW`, `_COARSE`, `CLOCK_BOOTTIME`: nothing here stops or slews.
    Monotonic,
    /// Processor time of a process.
    Process(u32),
    /// Processor time of a thread.
    Thread(u32),
}

impl Clock {
    /// The clock a `clockid_t` means (clock_getres(2), clock_getcpuclockid(3)).
    pub fn from_id(id: i32) -> Result<Clock, Errno> {
        match id {
            0 | 5 | 8 | 11 => Ok(Clock::Real),
            1 | 4 | 6 | 7 | 9 => Ok(Clock::Monotonic),
            2 => Ok(Clock::Process(current().pid())),
            3 => Ok(Clock::Thread(current().tid())),
            _ if id < 0 => {
                let target = !(id >> 3) as u32;
                let thread = id & 4 != 0;
                if id & 3 == 3 {
                    return Err(Errno::EINVAL);
                }
                let me = current();
                match (thread, target) {
                    (false, 0) => Ok(Clock::Process(me.pid())),
                    (true, 0) => Ok(Clock::Thread(me.tid())),
                    (false, pid) => tree::process(pid).map(|_| Clock::Process(pid)).ok_or(Errno::EINVAL),
                    (true, tid) => tree::thread(tid).map(|_| Clock::Thread(tid)).ok_or(Errno::EINVAL),
                }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// What it reads now.
    pub fn read(self) -> Result<Nanos, Errno> {
        match self {
            Clock::Real => Ok(realtime()),
            Clock::Monotonic => Ok(now()),
            Clock::Process(pid) => tree::process(pid).map(|p| process_time(&p)).ok_or(Errno::EINVAL),
            Clock::Thread(tid) => tree::thread(tid).map(|t| t.sched.run_time()).ok_or(Errno::EINVAL),
        }
    }

    /// The monotonic moment at which this clock will read `value`, if it runs as it does now.
    pub fn to_monotonic(self, value: Nanos) -> Nanos {
        match self {
            Clock::Real => value.saturating_sub(wall_offset()),
            Clock::Monotonic => value,
            Clock::Process(_) | Clock::Thread(_) => {
                let read = self.read().unwrap_or(0);
                now().saturating_add(value.saturating_sub(read))
            }
        }
    }
}

/// Processor time of a process: its live threads and those that ended.
pub fn process_time(process: &Process) -> Nanos {
    let ended = {
        let usage = process.usage.lock();
        usage.user + usage.system
    };
    let live: u64 = process.threads.lock().iter().map(|thread| thread.sched.run_time()).sum();
    ended + live
}

/// A thread's processor time as user and system time; a kernel thread has no user time.
pub fn split_time(task: &Task) -> (Nanos, Nanos) {
    let (user, system) = task.sched.split_time();
    if task.kernel_thread { (0, user + system) } else { (user, system) }
}

/// A `struct timespec` as nanoseconds. `EINVAL` when negative or with too many nanoseconds; saturates after 584 years.
pub fn from_timespec([seconds, nanos]: [u64; 2]) -> Result<Nanos, Errno> {
    if seconds as i64 >= 0 && nanos < SECOND {
        Ok(seconds.saturating_mul(SECOND).saturating_add(nanos))
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
