//! Clocks of the clock and timer calls, among them the processor time of processes and threads.

use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;
use machine::time::{Nanos, now};

use super::process::Usage;
use super::{Process, Task, current, tree};
use crate::sched::Sleep;
use crate::sync::WaitReason;
use crate::sync::wait::{WaitError, WaitQueue};
use crate::time::{self, realtime, wall_offset};

/// Sets the wall clock and everything of processes that waits for a moment of it; how many nanoseconds it went forward.
pub fn set_realtime(wall: Nanos) -> i64 {
    let moved = time::set(wall);
    WALL_MOVED.wake_all();
    for process in tree::all_processes() {
        process.timers.wall_moved(moved);
    }
    moved
}

/// Woken when the wall clock is set: threads that sleep until a time of it check again.
static WALL_MOVED: WaitQueue = WaitQueue::new(WaitReason::WallClock);

/// Sleeps, interruptibly, until `clock` reads `until`, however the clock is moved meanwhile.
pub fn sleep_until(clock: Clock, until: Nanos) -> Result<(), Errno> {
    loop {
        if clock.read()? >= until {
            return Ok(());
        }
        let due = || clock.read().is_ok_and(|read| read >= until).then_some(());
        match WALL_MOVED.wait_until(Some(clock.look_again(until)), Sleep::Interruptible, due) {
            Ok(()) | Err(WaitError::TimedOut) => {}
            Err(WaitError::Interrupted) => return Err(Errno::ERESTARTNOHAND),
        }
    }
}

/// How soon a sleep on processor time looks again at a clock that stands still, in nanoseconds.
const LOOK_AGAIN: Nanos = 4_000_000;

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

    /// When a sleep until `value` is worth another look. The processor time of a thread that sleeps stands still, so
    /// that the moment [`Self::to_monotonic`] names comes without it.
    fn look_again(self, value: Nanos) -> Nanos {
        let due = self.to_monotonic(value);
        match self {
            Clock::Real | Clock::Monotonic => due,
            Clock::Process(_) | Clock::Thread(_) => due.max(now().saturating_add(LOOK_AGAIN)),
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
    let ended = process.accounting.ended_threads();
    let live: u64 = process.threads.with(|threads| threads.iter().map(|thread| thread.sched.run_time()).sum());
    ended.user + ended.system + live
}

/// What a thread has used, besides memory.
pub fn thread_usage(task: &Task) -> Usage {
    let (user, system) = split_time(task);
    Usage {
        user,
        system,
        minor_faults: task.minor_faults.load(Relaxed),
        major_faults: task.major_faults.load(Relaxed),
        voluntary: task.sched.voluntary.load(Relaxed),
        involuntary: task.sched.involuntary.load(Relaxed),
        max_rss: 0,
    }
}

/// A thread's processor time as user and system time; a kernel thread has no user time.
pub fn split_time(task: &Task) -> (Nanos, Nanos) {
    let (user, system) = task.sched.split_time();
    if task.kernel_thread { (0, user + system) } else { (user, system) }
}
