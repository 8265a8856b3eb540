//! Clocks of the clock and timer calls, among them the processor time of processes and threads.

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering::Relaxed;

use linux_abi::Errno;
use machine::time::{Nanos, now};

use super::process::Usage;
use super::{Process, Task, Thread, current, tree};
use crate::sched::{Sleep, ThreadState};
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
pub fn sleep_until(clock: &Clock, until: Nanos) -> Result<(), Errno> {
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

/// A clock a call may name. One of processor time ends with its process or thread, whatever has the number next.
#[derive(Clone, Debug)]
pub enum Clock {
    /// `CLOCK_REALTIME` and its kin.
    Real,
    /// `CLOCK_MONOTONIC`, `_RAW`, `_COARSE`, `CLOCK_BOOTTIME`: nothing here stops or slews.
    Monotonic,
    /// Processor time of a process.
    Process(Weak<Process>),
    /// Processor time of a thread.
    Thread(Weak<Thread>),
}

/// What the clock of a number is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it: the number of the running thread names its process too.
    Read,
    /// To ask for its resolution, to sleep on it, or to time by it.
    Time,
}

impl Clock {
    /// The clock a `clockid_t` means (clock_getres(2), clock_getcpuclockid(3)): any process's, a thread's of the
    /// caller's process.
    pub fn from_id(id: i32, purpose: Purpose) -> Result<Clock, Errno> {
        match id {
            0 | 5 | 8 | 11 => Ok(Clock::Real),
            1 | 4 | 6 | 7 | 9 => Ok(Clock::Monotonic),
            2 => Ok(Clock::of_process(&current().process)),
            3 => Ok(Clock::Thread(Arc::downgrade(&current().to_arc()))),
            _ if id < 0 && id & 3 != 3 => Clock::of_number(!(id >> 3) as u32, id & 4 != 0, purpose),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The processor time of a process.
    pub fn of_process(process: &Arc<Process>) -> Clock {
        Clock::Process(Arc::downgrade(process))
    }

    fn of_number(number: u32, of_thread: bool, purpose: Purpose) -> Result<Clock, Errno> {
        let me = current();
        if of_thread {
            let thread = if number == 0 { Some(me.to_arc()) } else { tree::thread(number) };
            let own = thread.filter(|thread| thread.pid() == me.pid());
            return own.map(|thread| Clock::Thread(Arc::downgrade(&thread))).ok_or(Errno::EINVAL);
        }
        if number == 0 || number == me.tid() && purpose == Purpose::Read {
            return Ok(Clock::of_process(&me.process));
        }
        tree::process(number).map(|process| Clock::of_process(&process)).ok_or(Errno::EINVAL)
    }

    /// Whether setting the wall clock moves it.
    pub fn is_wall(&self) -> bool {
        matches!(self, Clock::Real)
    }

    /// The process whose processor time it is, or whose thread's, unless that is gone: it stands still while that one
    /// does not run.
    pub fn process(&self) -> Option<Arc<Process>> {
        match self {
            Clock::Real | Clock::Monotonic => None,
            Clock::Process(process) => process.upgrade().filter(is_entered),
            Clock::Thread(thread) => thread.upgrade().map(|thread| thread.process.clone()),
        }
    }

    /// What it reads now; ESRCH if its process was reaped, or its thread ended.
    pub fn read(&self) -> Result<Nanos, Errno> {
        match self {
            Clock::Real => Ok(realtime()),
            Clock::Monotonic => Ok(now()),
            Clock::Process(_) => self.process().map(|process| process_time(&process)).ok_or(Errno::ESRCH),
            Clock::Thread(thread) => {
                let thread = thread.upgrade().filter(|thread| thread.sched.state() != ThreadState::Dead);
                thread.map(|thread| thread.sched.run_time()).ok_or(Errno::ESRCH)
            }
        }
    }

    /// When a sleep until `value` is worth another look. The processor time of a thread that sleeps stands still, so
    /// that the moment [`Self::to_monotonic`] names comes without it.
    fn look_again(&self, value: Nanos) -> Nanos {
        let due = self.to_monotonic(value);
        match self {
            Clock::Real | Clock::Monotonic => due,
            Clock::Process(_) | Clock::Thread(_) => due.max(now().saturating_add(LOOK_AGAIN)),
        }
    }

    /// The monotonic moment at which this clock will read `value`, if it runs as it does now.
    pub fn to_monotonic(&self, value: Nanos) -> Nanos {
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

/// Whether a process was not reaped yet.
fn is_entered(process: &Arc<Process>) -> bool {
    Arc::ptr_eq(process, &current().process)
        || tree::process(process.pid).is_some_and(|entered| Arc::ptr_eq(process, &entered))
}

/// Processor time of a process: its live threads and those that ended.
pub fn process_time(process: &Process) -> Nanos {
    // Both in one step: a thread that ends goes from the one sum to the other.
    process.threads.with(|threads| {
        let ended = process.accounting.ended_threads();
        let live: u64 = threads.iter().map(|thread| thread.sched.run_time()).sum();
        ended.user + ended.system + live
    })
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
