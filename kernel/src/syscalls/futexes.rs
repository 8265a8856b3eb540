//! Answers `futex(2)`: which operation is asked for, with which bits and time limit.

use linux_abi::Errno;
use linux_abi::flags::process as abi;
use linux_abi::syscalls::nr;
use machine::addr::UserAddr;
use machine::time::now;

use super::{Call, Calls, SysResult};
use crate::futex::pi::{self, Patience};
use crate::futex::{self, ALL_BITS, Need, requeue_pi};
use crate::sched::{Sleep, breathe_or_stop};
use crate::task::Task;
use crate::task::clock::Clock;
use crate::task::signal::Restart;
use crate::time;
use crate::user::read_words;

/// This area's calls.
pub const CALLS: Calls = &[(nr::futex, sys_futex)];

fn sys_futex(call: &mut Call<'_>) -> SysResult {
    let (addr, operation, value) = (call.arg(0), call.word(1), call.uint(2));
    let private = operation & abi::FUTEX_PRIVATE_FLAG != 0;
    let command = operation & !(abi::FUTEX_PRIVATE_FLAG | abi::FUTEX_CLOCK_REALTIME);
    let deadline = deadline(call, command, operation)?;
    let limit = (deadline != u64::MAX).then_some(deadline);
    let by_clock = [abi::FUTEX_WAIT_BITSET, abi::FUTEX_WAIT_REQUEUE_PI, abi::FUTEX_LOCK_PI2];
    if operation & abi::FUTEX_CLOCK_REALTIME != 0 && !by_clock.contains(&command) {
        return Err(Errno::ENOSYS);
    }
    match command {
        abi::FUTEX_WAIT => wait_on(&call.task, addr, private, value, ALL_BITS, deadline),
        abi::FUTEX_WAIT_BITSET => wait_on(&call.task, addr, private, value, call.uint(5), deadline),
        abi::FUTEX_WAKE => futex::wake(&futex::key(addr, private, Need::Read)?, at_least_one(value), ALL_BITS),
        abi::FUTEX_WAKE_BITSET => {
            let bits = call.uint(5);
            if bits == 0 {
                return Err(Errno::EINVAL);
            }
            futex::wake(&futex::key(addr, private, Need::Read)?, at_least_one(value), bits)
        }
        abi::FUTEX_REQUEUE => requeue(call, private, None).map(|(woken, moved)| woken + moved),
        abi::FUTEX_CMP_REQUEUE => requeue(call, private, Some(call.uint(5))).map(|(woken, moved)| woken + moved),
        abi::FUTEX_WAKE_OP => wake_op(call, private),
        abi::FUTEX_LOCK_PI | abi::FUTEX_LOCK_PI2 => pi::lock(addr, private, Patience::Until(limit)).map(|()| 0),
        abi::FUTEX_TRYLOCK_PI => pi::lock(addr, private, Patience::None).map(|()| 0),
        abi::FUTEX_UNLOCK_PI => pi::unlock(addr, private).map(|()| 0),
        abi::FUTEX_WAIT_REQUEUE_PI => requeue_pi::wait(addr, call.arg(4), private, value, limit).map(|()| 0),
        abi::FUTEX_CMP_REQUEUE_PI => {
            let most = call.int(3);
            if most < 0 || value != 1 {
                return Err(Errno::EINVAL);
            }
            requeue_pi::requeue(addr, call.arg(4), private, most as usize, call.uint(5))
        }
        _ => Err(Errno::ENOSYS),
    }
}

/// How many waiters a wake-up is for: one if the number is not positive, as on Linux.
fn at_least_one(count: u32) -> usize {
    (count as i32).max(1) as usize
}

/// The deadline of a waiting operation, `u64::MAX` for none; other operations have other things in the argument.
fn deadline(call: &Call<'_>, command: u64, operation: u64) -> Result<u64, Errno> {
    match command {
        abi::FUTEX_WAIT => match call.arg(3) {
            0 => Ok(u64::MAX),
            at => Ok(now().saturating_add(time::from_timespec(read_words(at)?)?)),
        },
        abi::FUTEX_LOCK_PI => absolute(call, abi::FUTEX_CLOCK_REALTIME),
        abi::FUTEX_WAIT_BITSET | abi::FUTEX_WAIT_REQUEUE_PI | abi::FUTEX_LOCK_PI2 => absolute(call, operation),
        _ => Ok(u64::MAX),
    }
}

/// The deadline of a call whose timeout is a moment of the monotonic or the wall clock.
fn absolute(call: &Call<'_>, operation: u64) -> Result<u64, Errno> {
    match call.arg(3) {
        0 => Ok(u64::MAX),
        at => {
            let moment = time::from_timespec(read_words(at)?)?;
            let wall = operation & abi::FUTEX_CLOCK_REALTIME != 0;
            Ok(if wall { Clock::Real.to_monotonic(moment) } else { moment })
        }
    }
}

/// Waits; interrupted, a wait without a timeout starts again and one with a timeout goes on.
pub(super) fn wait_on(me: &Task, addr: u64, private: bool, value: u32, bits: u32, deadline: u64) -> SysResult {
    let limit = (deadline != u64::MAX).then_some(deadline);
    match futex::wait(addr, private, value, bits, limit) {
        Ok(()) => Ok(0),
        Err(Errno::ERESTARTSYS) if limit.is_some() => {
            *me.signals.restart.lock() = Some(Restart::Futex { addr, value, bits, deadline, private });
            Err(Errno::ERESTART_RESTARTBLOCK)
        }
        Err(errno) => Err(errno),
    }
}

fn requeue(call: &Call<'_>, private: bool, expected: Option<u32>) -> Result<(usize, usize), Errno> {
    let (wake, moved) = (call.int(2), call.int(3));
    if wake < 0 || moved < 0 {
        return Err(Errno::EINVAL);
    }
    let from = futex::key(call.arg(0), private, Need::Read)?;
    let to = futex::key(call.arg(4), private, Need::Read)?;
    futex::requeue(call.arg(0), &from, &to, wake as usize, moved as usize, expected)
}

/// `FUTEX_WAKE_OP`: changes the second word, wakes at the first, and at the second if its old value compares.
fn wake_op(call: &Call<'_>, private: bool) -> SysResult {
    let first = futex::key(call.arg(0), private, Need::Read)?;
    let second = futex::key(call.arg(4), private, Need::Write)?;
    let encoded = call.uint(5);
    let signed12 = |bits: u32| ((bits << 20) as i32) >> 20;
    let (operation, comparison) = (encoded >> 28 & 7, encoded >> 24 & 15);
    let (mut operand, compared) = (signed12(encoded >> 12 & 0xfff), signed12(encoded & 0xfff));
    if encoded >> 31 != 0 {
        operand = 1i32.wrapping_shl(operand as u32);
    }
    let at = UserAddr(call.arg(4));
    let old = loop {
        let old = machine::user::load_u32(at).map_err(|_| Errno::EFAULT)?;
        let new = match operation {
            0 => operand as u32,
            1 => old.wrapping_add(operand as u32),
            2 => old | operand as u32,
            3 => old & !(operand as u32),
            4 => old ^ operand as u32,
            _ => return Err(Errno::ENOSYS),
        };
        if machine::user::compare_exchange_u32(at, old, new).map_err(|_| Errno::EFAULT)? == old {
            break old as i32;
        }
        breathe_or_stop(Sleep::Killable)?;
    };
    let holds = match comparison {
        0 => old == compared,
        1 => old != compared,
        2 => old < compared,
        3 => old <= compared,
        4 => old > compared,
        5 => old >= compared,
        _ => return Err(Errno::ENOSYS),
    };
    let mut woken = futex::wake(&first, at_least_one(call.uint(2)), ALL_BITS)?;
    if holds {
        woken += futex::wake(&second, at_least_one(call.uint(3)), ALL_BITS)?;
    }
    Ok(woken)
}
