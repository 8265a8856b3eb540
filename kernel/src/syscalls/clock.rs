//! Calls about time: clocks, sleeping, POSIX timers.

use linux_abi::Errno;
use linux_abi::flags::time::CLOCK_THREAD_CPUTIME_ID;
use linux_abi::syscalls::nr;
use machine::time::now;

use kernel_logic::signal::{MAX_SIGNAL, sig};

use super::{Call, Calls, SysResult};
use crate::ipc::timerfd;
use crate::sched::Sleep;
use crate::sync::wait::sleep_until;
use crate::task::account::Kind;
use crate::task::clock::{self, Clock, Purpose};
use crate::task::creds::cap;
use crate::task::limits::resource;
use crate::task::process::itimer::{IntervalTimer, Notify};
use crate::task::signal::Restart;
use crate::task::{Task, tree};
use crate::time;
use crate::user::{UserPtr, read_words, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::nanosleep, nanosleep),
    (nr::clock_nanosleep, clock_nanosleep),
    (nr::clock_gettime, clock_gettime),
    (nr::clock_settime, clock_settime),
    (nr::clock_getres, clock_getres),
    (nr::gettimeofday, gettimeofday),
    (nr::settimeofday, settimeofday),
    (nr::adjtimex, |call| adjust(call, call.arg(0))),
    (nr::clock_adjtime, |call| match call.int(0) {
        0 => adjust(call, call.arg(1)),
        _ => Err(Errno::EOPNOTSUPP),
    }),
    (nr::time, sys_time),
    (nr::timer_create, timer_create),
    (nr::timer_settime, timer_settime),
    (nr::timer_gettime, timer_gettime),
    (nr::timer_getoverrun, timer_getoverrun),
    (nr::timer_delete, timer_delete),
];

fn nanosleep(call: &mut Call<'_>) -> SysResult {
    let wanted = time::from_timespec(read_words(call.arg(0))?)?;
    sleep_on(&call.task, now().saturating_add(wanted), call.arg(1))
}

/// Sleeps until a moment of the monotonic clock. Interrupted, it stores what is left at `remaining` and goes on later.
pub(super) fn sleep_on(me: &Task, deadline: u64, remaining: u64) -> SysResult {
    if sleep_until(deadline, Sleep::Interruptible).is_ok() {
        return Ok(0);
    }
    if remaining != 0 {
        write_words(remaining, &time::to_timespec(deadline.saturating_sub(now())))?;
    }
    *me.signals.restart.lock() = Some(Restart::Sleep { deadline, remaining });
    Err(Errno::ERESTART_RESTARTBLOCK)
}

/// EOPNOTSUPP for clocks that are only read: CLOCK_MONOTONIC_RAW, the coarse ones, and those of descriptors.
fn timers_of(clock: i32) -> Result<(), Errno> {
    let of_descriptor = clock < 0 && clock & 7 == 3;
    if matches!(clock, 4..=6) || of_descriptor { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
}

fn clock_nanosleep(call: &mut Call<'_>) -> SysResult {
    const ABSOLUTE: u64 = 1;
    const OWN_THREAD: i32 = CLOCK_THREAD_CPUTIME_ID as i32;
    timers_of(call.int(0))?;
    let clock = Clock::from_id(call.int(0), Purpose::Time)?;
    // A thread never sees its own clock run while it sleeps.
    match (&clock, call.int(0)) {
        (_, OWN_THREAD) => return Err(Errno::EOPNOTSUPP),
        (Clock::Thread(thread), _) if core::ptr::eq(thread.as_ptr(), &raw const *call.task) => {
            return Err(Errno::EINVAL);
        }
        _ => {}
    }
    let wanted = time::from_timespec(read_words(call.arg(2))?)?;
    may_wake(&call.task, call.int(0))?;
    if call.word(1) & ABSOLUTE == 0 {
        if matches!(clock, Clock::Process(_) | Clock::Thread(_)) {
            clock::sleep_until(&clock, clock.read()?.saturating_add(wanted))?;
            return Ok(0);
        }
        return sleep_on(&call.task, now().saturating_add(wanted), call.arg(3));
    }
    clock::sleep_until(&clock, wanted)?;
    Ok(0)
}

fn clock_gettime(call: &mut Call<'_>) -> SysResult {
    let read = Clock::from_id(call.int(0), Purpose::Read)?.read().map_err(|_| Errno::EINVAL)?;
    write_words(call.arg(1), &time::to_timespec(read))?;
    Ok(0)
}

fn clock_settime(call: &mut Call<'_>) -> SysResult {
    let clock = Clock::from_id(call.int(0), Purpose::Time)?;
    let wanted = time::from_timespec(read_words(call.arg(1))?)?;
    if !matches!(clock, Clock::Real) || call.int(0) != 0 {
        return Err(Errno::EINVAL);
    }
    set_clock(call, wanted)
}

fn set_clock(call: &Call<'_>, wall: u64) -> SysResult {
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_TIME)) {
        return Err(Errno::EPERM);
    }
    timerfd::wall_moved(clock::set_realtime(wall));
    Ok(0)
}

fn clock_getres(call: &mut Call<'_>) -> SysResult {
    const REALTIME_COARSE: i32 = 5;
    const MONOTONIC_COARSE: i32 = 6;
    let clock = Clock::from_id(call.int(0), Purpose::Time);
    clock?;
    // What Linux with 250 ticks per second reports for the coarse ones.
    let resolution = if matches!(call.int(0), REALTIME_COARSE | MONOTONIC_COARSE) { 4_000_000 } else { 1 };
    if call.arg(1) != 0 {
        write_words(call.arg(1), &[0, resolution])?;
    }
    Ok(0)
}

fn gettimeofday(call: &mut Call<'_>) -> SysResult {
    if call.arg(0) != 0 {
        write_words(call.arg(0), &time::to_timeval(time::realtime()))?;
    }
    call.pointer::<u64>(1).write_if_wanted(0)?;
    Ok(0)
}

fn settimeofday(call: &mut Call<'_>) -> SysResult {
    if call.arg(0) == 0 {
        // Time zones alone are nothing here, and need the same privilege.
        let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_TIME));
        return if privileged { Ok(0) } else { Err(Errno::EPERM) };
    }
    let wall = time::from_timeval(read_words(call.arg(0))?)?;
    set_clock(call, wall)
}

/// adjtimex(2): the clock is never disciplined here, so it reports an unsynchronised clock and adjusts nothing.
fn adjust(call: &Call<'_>, at: u64) -> SysResult {
    const STA_UNSYNC: u32 = 0x40;
    const TIME_ERROR: usize = 5;
    /// Microseconds of error after which a clock counts as unsynchronised.
    const MAX_ERROR: u64 = 16_000_000;
    const TICK: u64 = 10_000;
    let modes = UserPtr::<u32>::new(at).read()?;
    if modes != 0 {
        let privileged = call.task.creds.with(|creds| creds.capable(cap::SYS_TIME));
        return Err(if privileged { Errno::EINVAL } else { Errno::EPERM });
    }
    let [seconds, micros] = time::to_timeval(time::realtime());
    write_words(at + 8, &[0, 0, MAX_ERROR, MAX_ERROR])?;
    UserPtr::<u32>::new(at + 40).write(STA_UNSYNC)?;
    write_words(at + 48, &[2, 1, 32_768_000, seconds, micros, TICK])?;
    Ok(TIME_ERROR)
}

fn sys_time(call: &mut Call<'_>) -> SysResult {
    let seconds = time::realtime() / time::SECOND;
    call.pointer::<u64>(0).write_if_wanted(seconds)?;
    Ok(seconds as usize)
}

/// EPERM for `CLOCK_REALTIME_ALARM` and `CLOCK_BOOTTIME_ALARM`, whose timers wake the machine, without CAP_WAKE_ALARM.
pub(super) fn may_wake(me: &Task, clock: i32) -> Result<(), Errno> {
    const ALARMS: [i32; 2] = [8, 9];
    let may = !ALARMS.contains(&clock) || me.creds.with(|creds| creds.capable(cap::WAKE_ALARM));
    if may { Ok(()) } else { Err(Errno::EPERM) }
}

fn timer_create(call: &mut Call<'_>) -> SysResult {
    const SIGEV_SIGNAL: i32 = 0;
    const SIGEV_NONE: i32 = 1;
    const SIGEV_THREAD: i32 = 2;
    const SIGEV_THREAD_ID: i32 = 4;
    timers_of(call.int(0))?;
    let clock = Clock::from_id(call.int(0), Purpose::Time)?;
    // A timer keeps an entry for its signal, which counts like a queued one.
    let limit = call.task.process.limit(resource::SIGPENDING);
    let entry = call.task.creds.with(|creds| creds.account.charge(Kind::Signals, 1, limit)).ok_or(Errno::EAGAIN)?;
    may_wake(&call.task, call.int(0))?;
    let (event, id_at) = (call.arg(1), call.pointer::<u32>(2));
    let process = &call.task.process;
    let (value, signal, how, tid) = match event {
        0 => (None, i32::from(sig::ALRM), SIGEV_SIGNAL, 0),
        at => {
            let words = UserPtr::<i32>::new(at);
            let value = UserPtr::<u64>::new(at).read()?;
            (Some(value), words.add(2).read()?, words.add(3).read()?, words.add(4).read()?)
        }
    };
    if how != SIGEV_NONE && !(1..=i32::from(MAX_SIGNAL)).contains(&signal) {
        return Err(Errno::EINVAL);
    }
    if how == SIGEV_THREAD_ID && tree::thread(tid as u32).is_none_or(|thread| thread.pid() != process.pid) {
        return Err(Errno::EINVAL);
    }
    let signal = signal as u8;
    let id = match how {
        SIGEV_NONE => process.timers.add(entry, |_| IntervalTimer::new(process, clock, Notify::Nothing)),
        SIGEV_SIGNAL | SIGEV_THREAD => process.timers.add(entry, |id| {
            let value = value.unwrap_or(u64::from(id));
            IntervalTimer::new(process, clock, Notify::Process { id, signal, value })
        }),
        SIGEV_THREAD_ID => process.timers.add(entry, |id| {
            let value = value.unwrap_or(u64::from(id));
            IntervalTimer::new(process, clock, Notify::Thread { id, signal, value, tid: tid as u32 })
        }),
        _ => return Err(Errno::EINVAL),
    }?;
    if let Err(errno) = id_at.write(id) {
        process.timers.remove(id)?;
        return Err(errno);
    }
    Ok(0)
}

fn timer_settime(call: &mut Call<'_>) -> SysResult {
    const ABSOLUTE: u64 = 1;
    if call.arg(2) == 0 {
        return Err(Errno::EINVAL);
    }
    let timer = call.task.process.timers.get(call.uint(0))?;
    let [is, ins, vs, vns] = read_words(call.arg(2))?;
    let (interval, value) = (time::from_timespec([is, ins])?, time::from_timespec([vs, vns])?);
    let absolute = call.word(1) & ABSOLUTE != 0;
    // ESRCH for the clock of a process that is gone.
    let read = timer.clock().read()?;
    let next = match (value, absolute) {
        (0, _) => 0,
        (at, true) => at,
        (after, false) => read.saturating_add(after),
    };
    let old = timer.set_to(next, interval, absolute);
    if call.arg(3) != 0 {
        write_timer(call.arg(3), old)?;
    }
    Ok(0)
}

fn write_timer(at: u64, (left, interval): (u64, u64)) -> Result<(), Errno> {
    let ([is, ins], [vs, vns]) = (time::to_timespec(interval), time::to_timespec(left));
    write_words(at, &[is, ins, vs, vns])
}

fn timer_gettime(call: &mut Call<'_>) -> SysResult {
    let timer = call.task.process.timers.get(call.uint(0))?;
    write_timer(call.arg(1), timer.get())?;
    Ok(0)
}

fn timer_getoverrun(call: &mut Call<'_>) -> SysResult {
    Ok(call.task.process.timers.get(call.uint(0))?.overrun() as usize)
}

fn timer_delete(call: &mut Call<'_>) -> SysResult {
    call.task.process.timers.remove(call.uint(0))?;
    Ok(0)
}
