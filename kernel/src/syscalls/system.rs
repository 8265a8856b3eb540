//! Calls about the system as a whole: names, memory and load, the log, random bytes, power.

use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::addr::UserAddr;

use super::{Call, Calls, SysResult};
use crate::fs::dev::{fill_random, kmsg};
use crate::fs::file::outcome;
use crate::fs::io::Sink;
use crate::fs::tmpfs;
use crate::inject;
use crate::log;
use crate::mm::{SharedMemory, frames};
use crate::task::creds::cap;
use crate::task::tree;
use crate::time;
use crate::trace;
use crate::user;
use crate::uts;

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::uname, uname),
    (nr::sethostname, |call| set_name(call, uts::HOST)),
    (nr::setdomainname, |call| set_name(call, uts::DOMAIN)),
    (nr::sysinfo, sysinfo),
    (nr::syslog, syslog),
    (nr::getrandom, getrandom),
    (nr::reboot, reboot),
    (nr::iopl, iopl),
    (nr::ioperm, ioperm),
    (nr::acct, acct),
];

/// Process accounting is off: it can be switched off, and not on.
fn acct(call: &mut Call<'_>) -> SysResult {
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_PACCT)) {
        return Err(Errno::EPERM);
    }
    if call.arg(0) == 0 { Ok(0) } else { Err(Errno::ENOSYS) }
}

fn uname(call: &mut Call<'_>) -> SysResult {
    user::write_bytes(call.arg(0), uts::names().bytes())?;
    Ok(0)
}

fn set_name(call: &Call<'_>, field: usize) -> SysResult {
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_ADMIN)) {
        return Err(Errno::EPERM);
    }
    let len = usize::try_from(call.arg(1)).ok().filter(|len| *len < uts::FIELD).ok_or(Errno::EINVAL)?;
    let mut bytes = [0; uts::FIELD];
    user::read_bytes(call.arg(0), &mut bytes[..len])?;
    inject::names_change(field == uts::HOST);
    uts::set(field, &bytes[..len])?;
    Ok(0)
}

fn sysinfo(call: &mut Call<'_>) -> SysResult {
    inject::statistics_asked(call.arg(0));
    let page = kernel_logic::vma::PAGE;
    let mut out = [0u8; 112];
    let mut put = |at: usize, value: u64| out[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, machine::time::now() / time::SECOND);
    for (at, load) in crate::sched::load::averages().into_iter().enumerate() {
        // Loads are fixed-point with 16 bits of fraction.
        put(8 + 8 * at, load << 5);
    }
    put(32, frames::total() as u64 * page);
    put(40, frames::free() as u64 * page);
    put(48, (tmpfs::pages() + SharedMemory::pages() as u64) * page);
    put(80, tree::thread_count() as u64);
    // The number of processes is a short; the word's other bytes are padding.
    out[82..88].fill(0);
    out[104..108].copy_from_slice(&1u32.to_le_bytes());
    user::write_bytes(call.arg(0), &out)?;
    Ok(0)
}

fn syslog(call: &mut Call<'_>) -> SysResult {
    const READ_ALL: i32 = 3;
    const READ_CLEAR: i32 = 4;
    let (action, at, len) = (call.int(0), call.arg(1), call.uint(2) as usize);
    kmsg::check_reader()?;
    match action {
        0 | 1 => Ok(0),
        2 | READ_ALL | READ_CLEAR if at == 0 || call.int(2) < 0 => Err(Errno::EINVAL),
        2 | READ_ALL | READ_CLEAR => {
            let from = log::cleared().max(log::written().saturating_sub(len as u64));
            let mut buffer = alloc::vec![0; len.min(log::RING_BYTES)];
            let (_, got) = log::read(from, &mut buffer);
            user::write_bytes(at, &buffer[..got])?;
            if action == READ_CLEAR {
                log::clear();
            }
            Ok(got)
        }
        5 => {
            log::clear();
            Ok(0)
        }
        6 => {
            log::set_console_level(1);
            Ok(0)
        }
        7 => {
            log::set_console_level(7);
            Ok(0)
        }
        8 if (1..=8).contains(&len) => {
            log::set_console_level(len as u8);
            Ok(0)
        }
        9 => Ok((log::written() - log::cleared()).min(log::RING_BYTES as u64) as usize),
        10 => Ok(log::RING_BYTES),
        _ => Err(Errno::EINVAL),
    }
}

fn getrandom(call: &mut Call<'_>) -> SysResult {
    let (at, flags) = (call.arg(0), call.word(2));
    if flags & !7 != 0 || flags & 6 == 6 {
        return Err(Errno::EINVAL);
    }
    let len = usize::try_from(call.arg(1)).unwrap_or(usize::MAX).min(MAX_RANDOM);
    let mut sink = Sink::user(UserAddr(at), len);
    let filled = fill_random(&mut sink);
    outcome(sink.done(), filled)
}

/// Most bytes of one getrandom.
const MAX_RANDOM: usize = i32::MAX as usize;

/// Only level 0 is granted, as on a Linux that is locked down.
fn iopl(call: &mut Call<'_>) -> SysResult {
    match call.int(0) as u32 {
        0 => Ok(0),
        1..=3 => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

/// Access to ports is never granted; taking it away always succeeds.
fn ioperm(call: &mut Call<'_>) -> SysResult {
    const PORTS: u64 = 65536;
    let [from, count] = [call.arg(0), call.arg(1)];
    if from.checked_add(count).is_none_or(|end| end <= from || end > PORTS) {
        return Err(Errno::EINVAL);
    }
    if call.int(2) != 0 { Err(Errno::EPERM) } else { Ok(0) }
}

fn reboot(call: &mut Call<'_>) -> SysResult {
    const MAGIC1: u32 = 0xfee1_dead;
    const MAGIC2: [u32; 4] = [0x2812_1969, 0x0512_1996, 0x1604_1998, 0x2011_2000];
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_BOOT)) {
        return Err(Errno::EPERM);
    }
    if call.uint(0) != MAGIC1 || !MAGIC2.contains(&(call.uint(1))) {
        return Err(Errno::EINVAL);
    }
    if matches!(call.uint(2), 0x4321_fedc | 0xcdef_0123 | 0x0123_4567) {
        trace::report();
    }
    match call.uint(2) {
        // CAD_OFF, CAD_ON: there is no keyboard whose Ctrl-Alt-Del could matter.
        0 | 0x89ab_cdef => Ok(0),
        0x4321_fedc => {
            log::info!("reboot: Power down");
            machine::power::debug_exit(0);
            machine::power::off()
        }
        0xcdef_0123 => {
            log::info!("reboot: System halted");
            machine::power::debug_exit(0);
            machine::power::off()
        }
        0x0123_4567 => {
            log::info!("reboot: Restarting system");
            machine::power::reboot()
        }
        _ => Err(Errno::EINVAL),
    }
}
