//! Timers and signals as descriptors: timerfd_create(2) and its kin, signalfd(2).

use alloc::sync::Arc;

use kernel_logic::signal::SigSet;
use linux_abi::Errno;
use linux_abi::flags::file::{O_CLOEXEC, O_NONBLOCK};
use linux_abi::flags::time as abi;
use linux_abi::syscalls::nr;

use super::clock::may_wake;
use super::file_open::install;
use super::lookup::only;
use super::{Call, Calls, SysResult};
use crate::ipc::signalfd::{self, SignalFd};
use crate::ipc::timerfd::{self, Plan, TimerFd};
use crate::task::clock::Clock;
use crate::time;
use crate::user::{read_words, write_words};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::timerfd_create, timerfd_create),
    (nr::timerfd_settime, timerfd_settime),
    (nr::timerfd_gettime, timerfd_gettime),
    (nr::signalfd, |call| make_signalfd(call, 0)),
    (nr::signalfd4, |call| {
        let flags = call.word(3);
        make_signalfd(call, flags)
    }),
];

fn timerfd_create(call: &mut Call<'_>) -> SysResult {
    const REALTIME: i32 = abi::CLOCK_REALTIME as i32;
    const MONOTONIC: i32 = abi::CLOCK_MONOTONIC as i32;
    const BOOTTIME: i32 = abi::CLOCK_BOOTTIME as i32;
    const REALTIME_ALARM: i32 = abi::CLOCK_REALTIME_ALARM as i32;
    const BOOTTIME_ALARM: i32 = abi::CLOCK_BOOTTIME_ALARM as i32;
    let flags = call.word(1);
    only(flags, O_NONBLOCK | O_CLOEXEC)?;
    let clock = match call.int(0) {
        REALTIME | REALTIME_ALARM => Clock::Real,
        MONOTONIC | BOOTTIME | BOOTTIME_ALARM => Clock::Monotonic,
        _ => return Err(Errno::EINVAL),
    };
    may_wake(&call.task, call.int(0))?;
    let wakes = matches!(call.int(0), REALTIME_ALARM | BOOTTIME_ALARM);
    install(call, timerfd::create(clock, wakes, (flags & O_NONBLOCK) as u32)?, flags & O_CLOEXEC != 0)
}

fn timer(call: &Call<'_>) -> Result<Arc<TimerFd>, Errno> {
    let file = call.file(0)?;
    timerfd::of(&file).cloned().ok_or(Errno::EINVAL)
}

fn timerfd_settime(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(1);
    let [is, ins, vs, vns] = read_words(call.arg(2))?;
    only(flags, abi::TFD_TIMER_ABSTIME | abi::TFD_TIMER_CANCEL_ON_SET)?;
    let (interval, value) = (time::from_timespec([is, ins])?, time::from_timespec([vs, vns])?);
    let timer = timer(call)?;
    if timer.wakes() {
        may_wake(&call.task, 8)?;
    }
    let absolute = flags & abi::TFD_TIMER_ABSTIME != 0;
    let next = match (value, absolute) {
        (0, _) => 0,
        (at, true) => at,
        (after, false) => timer.clock().read()?.saturating_add(after),
    };
    let cancel_on_set = absolute && flags & abi::TFD_TIMER_CANCEL_ON_SET != 0 && timer.clock().is_wall();
    let old = timer.set(Plan { next, interval, absolute, cancel_on_set })?;
    if call.arg(3) != 0 {
        write_left(call.arg(3), old)?;
    }
    Ok(0)
}

fn timerfd_gettime(call: &mut Call<'_>) -> SysResult {
    write_left(call.arg(1), timer(call)?.get())?;
    Ok(0)
}

fn write_left(at: u64, (left, interval): (u64, u64)) -> Result<(), Errno> {
    let ([is, ins], [vs, vns]) = (time::to_timespec(interval), time::to_timespec(left));
    write_words(at, &[is, ins, vs, vns])
}

fn make_signalfd(call: &Call<'_>, flags: u64) -> SysResult {
    if call.arg(2) != 8 {
        return Err(Errno::EINVAL);
    }
    let set = SigSet(call.pointer::<u64>(1).read()?);
    only(flags, O_NONBLOCK | O_CLOEXEC)?;
    if call.int(0) == -1 {
        return install(call, signalfd::create(set, (flags & O_NONBLOCK) as u32)?, flags & O_CLOEXEC != 0);
    }
    call.file(0)?.ops.downcast::<SignalFd>().ok_or(Errno::EINVAL)?.replace(set);
    Ok(call.int(0) as usize)
}
