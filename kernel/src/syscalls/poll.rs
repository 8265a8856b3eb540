//! Waiting for descriptors: poll, ppoll, select, pselect6, and the epoll calls.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::socket::{EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};
use linux_abi::syscalls::nr;
use machine::time::{Nanos, now};

use super::file_open::install;
use super::{Call, Calls, SysResult};
use crate::ipc::epoll::{self, Epoll, Event};
use crate::ipc::poll::{self, Wish};
use crate::task::limits::resource;
use crate::task::signal;
use crate::time;
use crate::user::{UserPtr, read_bytes, read_words, write_bytes, write_words};
use kernel_logic::readiness::{Interest, SELECT_EXCEPT, SELECT_IN, SELECT_OUT};
use kernel_logic::signal::SigSet;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::poll, |call| {
        let millis = call.int(2);
        let deadline = u64::try_from(millis).ok().map(|millis| after(millis * 1_000_000));
        poll_call(call, deadline).map_err(restarting)
    }),
    (nr::ppoll, |call| {
        let (timeout, began) = (call.arg(2), now());
        let deadline = read_timeout(timeout)?;
        with_mask(call, call.arg(3), call.arg(4))?;
        let result = poll_call(call, deadline);
        tell_rest(timeout, deadline, began);
        finish_mask(call, result)
    }),
    (nr::select, |call| {
        let (timeout, began) = (call.arg(4), now());
        let deadline = if timeout == 0 { None } else { Some(after(time::from_timeval(read_words(timeout)?)?)) };
        let result = select_call(call, deadline);
        if let (Some(deadline), true) = (deadline, timeout != 0) {
            let rest = deadline.saturating_sub(now().max(began));
            // The time left is a courtesy of Linux; a timeout in read-only memory does not get it.
            let _ = write_words(timeout, &time::to_timeval(rest));
        }
        result.map_err(restarting)
    }),
    (nr::pselect6, |call| {
        let (timeout, began) = (call.arg(4), now());
        let deadline = read_timeout(timeout)?;
        let [mask, size] = if call.arg(5) == 0 { [0, 0] } else { read_words::<2>(call.arg(5))? };
        with_mask(call, mask, size)?;
        let result = select_call(call, deadline);
        tell_rest(timeout, deadline, began);
        finish_mask(call, result)
    }),
    (
        nr::epoll_create,
        |call| {
            if call.int(0) <= 0 { Err(Errno::EINVAL) } else { install(call, epoll::create()?, false) }
        },
    ),
    (nr::epoll_create1, |call| {
        call.flags(0, EPOLL_CLOEXEC)?;
        install(call, epoll::create()?, call.arg(0) & EPOLL_CLOEXEC != 0)
    }),
    (nr::epoll_ctl, epoll_ctl),
    (nr::epoll_wait, |call| epoll_wait_millis(call)),
    (nr::epoll_pwait, epoll_pwait),
    (nr::epoll_pwait2, |call| {
        let deadline = read_timeout(call.arg(3))?;
        with_mask(call, call.arg(4), call.arg(5))?;
        let result = epoll_wait(call, || deadline);
        finish_mask(call, result)
    }),
];

/// A deadline `timeout` from now; 0 means at once and stays 0.
fn after(timeout: Nanos) -> Nanos {
    if timeout == 0 { 0 } else { now().saturating_add(timeout) }
}

fn read_timeout(addr: u64) -> Result<Option<Nanos>, Errno> {
    if addr == 0 { Ok(None) } else { Ok(Some(after(time::from_timespec(read_words(addr)?)?))) }
}

/// ppoll and pselect6 store the time left.
fn tell_rest(addr: u64, deadline: Option<Nanos>, began: Nanos) {
    if let (Some(deadline), true) = (deadline, addr != 0) {
        let rest = deadline.saturating_sub(now().max(began));
        // A courtesy: a timeout in read-only memory does not get it.
        let _ = write_words(addr, &time::to_timespec(rest));
    }
}

/// Puts the call's signal mask in place of the thread's, if it has one.
#[inline]
fn with_mask(call: &Call<'_>, mask: u64, size: u64) -> Result<(), Errno> {
    if mask == 0 {
        return Ok(());
    }
    if size != 8 {
        return Err(Errno::EINVAL);
    }
    signal::set_temporary_mask(&call.task, SigSet(UserPtr::<u64>::new(mask).read()?));
    Ok(())
}

/// Puts the thread's mask back unless a handler must run under the call's.
fn finish_mask(call: &Call<'_>, result: SysResult) -> SysResult {
    if result != Err(Errno::EINTR) {
        signal::restore_mask(&call.task);
    }
    result.map_err(restarting)
}

/// An interrupted wait goes on if no handler ran: a stopped and continued program does not notice.
fn restarting(error: Errno) -> Errno {
    if error == Errno::EINTR { Errno::ERESTARTNOHAND } else { error }
}

/// Descriptors of one poll that memory is found for.
const MOST_WISHES: usize = 1 << 16;
/// Bytes of a `struct pollfd`.
const POLLFD_BYTES: usize = 8;

fn poll_call(call: &Call<'_>, deadline: Option<Nanos>) -> SysResult {
    let (array, count) = (call.arg(0), call.uint(1) as usize);
    if count as u64 > call.task.process.limit(resource::NOFILE) {
        return Err(Errno::EINVAL);
    }
    if count > MOST_WISHES {
        return Err(Errno::ENOMEM);
    }
    let mut wishes = Vec::new();
    wishes.try_reserve_exact(count).map_err(|_| Errno::ENOMEM)?;
    for at in 0..count {
        let word = UserPtr::<u64>::new(array).add(at).read()?;
        let fd = word as i32;
        let file = if fd < 0 { None } else { call.task.files().get(fd).ok() };
        let invalid = fd >= 0 && file.is_none();
        wishes.push(Wish { file, invalid, events: (word >> 32) as u32 & 0xffff, ready: 0 });
    }
    let found = poll::wait(&mut wishes, deadline)?;
    for (at, wish) in wishes.iter().enumerate() {
        UserPtr::<u16>::new(array + (at * POLLFD_BYTES + 6) as u64).write(wish.ready as u16)?;
    }
    Ok(found)
}

/// The three sets of select, in the order of its arguments, with the events each stands for.
const SETS: [u32; 3] = [SELECT_IN, SELECT_OUT, SELECT_EXCEPT];

fn select_call(call: &Call<'_>, deadline: Option<Nanos>) -> SysResult {
    let count = usize::try_from(call.int(0)).map_err(|_| Errno::EINVAL)?;
    // Numbers beyond the table cannot be open: the sets are not read there.
    let count = count.min(call.task.files().capacity());
    let bytes = count.div_ceil(64) * 8;
    let mut sets: [Vec<u8>; 3] = Default::default();
    for (at, set) in sets.iter_mut().enumerate() {
        set.resize(bytes, 0);
        if call.arg(at + 1) != 0 {
            read_bytes(call.arg(at + 1), set)?;
        }
    }
    let mut wishes: Vec<Wish> = Vec::new();
    let mut numbers = Vec::new();
    for fd in 0..count {
        let wished = |set: &Vec<u8>| set[fd / 8] >> (fd % 8) & 1 != 0;
        let events = sets.iter().zip(SETS).filter(|(set, _)| wished(set)).fold(0, |events, (_, bits)| events | bits);
        if events != 0 {
            let file = call.task.files().get(fd as i32)?;
            wishes.push(Wish { file: Some(file), invalid: false, events, ready: 0 });
            numbers.push(fd);
        }
    }
    poll::wait(&mut wishes, deadline)?;
    let mut found = 0;
    for (at, (set, bits)) in sets.iter_mut().zip(SETS).enumerate() {
        let wished = set.clone();
        set.fill(0);
        for (wish, &fd) in wishes.iter().zip(&numbers) {
            if wished[fd / 8] >> (fd % 8) & 1 != 0 && wish.ready & bits != 0 {
                set[fd / 8] |= 1 << (fd % 8);
                found += 1;
            }
        }
        if call.arg(at + 1) != 0 {
            write_bytes(call.arg(at + 1), set)?;
        }
    }
    Ok(found)
}

/// Bytes of a `struct epoll_event`, which is packed on x86-64.
const EVENT_BYTES: usize = 12;

fn epoll_ctl(call: &mut Call<'_>) -> SysResult {
    let operation = call.word(1);
    let mut event = [0; EVENT_BYTES];
    if operation != EPOLL_CTL_DEL {
        read_bytes(call.arg(3), &mut event)?;
    }
    let own = call.open_file(0)?;
    let (fd, target) = (call.int(2), call.open_file(2)?);
    if matches!(target.inode().attr().kind(), crate::fs::attr::S_IFREG | crate::fs::attr::S_IFDIR) {
        return Err(Errno::EPERM);
    }
    let epoll = epoll::of(&own).ok_or(Errno::EINVAL)?;
    if Arc::ptr_eq(&own, &target) {
        return Err(Errno::EINVAL);
    }
    let events = u32::from_ne_bytes([event[0], event[1], event[2], event[3]]);
    let data = event[4..].iter().rev().fold(0, |data, &byte| data << 8 | u64::from(byte));
    match operation {
        EPOLL_CTL_ADD => epoll.add(fd, &target, Interest::new(events, data)),
        EPOLL_CTL_MOD => epoll.modify(fd, &target, Interest::new(events, data)),
        EPOLL_CTL_DEL => epoll.remove(fd, &target),
        _ => Err(Errno::EINVAL),
    }
    .map(|()| 0)
}

/// Room for this many events is made without asking how many there can be.
const FEW: usize = 64;
/// Most events of one call (`EP_MAX_EVENTS`).
const MOST_EVENTS: usize = i32::MAX as usize / EVENT_BYTES;

fn epoll_pwait(call: &mut Call<'_>) -> SysResult {
    if call.arg(4) == 0 { epoll_wait_millis(call).map_err(restarting) } else { epoll_wait_masked(call) }
}

/// Under the signal mask of argument 4.
#[inline(never)]
fn epoll_wait_masked(call: &Call<'_>) -> SysResult {
    with_mask(call, call.arg(4), call.arg(5))?;
    let result = epoll_wait_millis(call);
    finish_mask(call, result)
}

/// With the timeout of argument 3 in milliseconds, negative for none.
#[inline(always)]
fn epoll_wait_millis(call: &Call<'_>) -> SysResult {
    epoll_wait(call, || u64::try_from(call.int(3)).ok().map(|millis| after(millis * 1_000_000)))
}

/// The quick answer, none is ready and none is waited for, is in line in the calls.
#[inline(always)]
fn epoll_wait(call: &Call<'_>, deadline: impl FnOnce() -> Option<Nanos>) -> SysResult {
    let asked = usize::try_from(call.int(2)).ok().filter(|most| (1..=MOST_EVENTS).contains(most));
    let most = asked.ok_or(Errno::EINVAL)?;
    // The description keeps its epoll: it needs no count of its own.
    let file = call.file(0)?;
    let epoll = epoll::of(&file).ok_or(Errno::EINVAL)?;
    let deadline = deadline();
    if deadline == Some(0) && !epoll.may_have_ready() {
        return Ok(0);
    }
    report_events(call, epoll, most, deadline)
}

#[inline(never)]
fn report_events(call: &Call<'_>, epoll: &Epoll, most: usize, deadline: Option<Nanos>) -> SysResult {
    // No watched description is reported twice.
    let room = if most <= FEW { most } else { most.min(epoll.watched().max(FEW)) };
    let mut events = Vec::new();
    events.try_reserve_exact(room).map_err(|_| Errno::ENOMEM)?;
    events.resize_with(room, Event::default);
    let found = if deadline == Some(0) { epoll.collect(&mut events) } else { epoll.wait(&mut events, deadline)? };
    for (at, event) in events[..found].iter().enumerate() {
        let mut bytes = [0; EVENT_BYTES];
        bytes[..4].copy_from_slice(&event.events.to_ne_bytes());
        bytes[4..].copy_from_slice(&event.data.to_ne_bytes());
        let written = write_bytes(call.arg(1).wrapping_add((at * EVENT_BYTES) as u64), &bytes);
        if let Err(error) = written {
            // What could not be told is still to be told.
            epoll.take_back(&events[at..found]);
            return if at == 0 { Err(error) } else { Ok(at) };
        }
    }
    Ok(found)
}
