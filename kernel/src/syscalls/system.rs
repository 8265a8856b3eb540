//! Calls about the system as a whole: names, memory and load, the log, random bytes, power.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::syscalls::nr;
use machine::addr::UserAddr;
use machine::sync::SpinLock;

use super::{Call, Calls, SysResult};
use crate::debug;
use crate::debug::inject;
use crate::fs::dev::{fill_random, kmsg};
use crate::fs::file::outcome;
use crate::fs::io::Sink;
use crate::log;
use crate::mm::frames;
use crate::task::creds::cap;
use crate::task::tree;
use crate::time;
use crate::user;

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::uname, uname),
    (nr::sethostname, |call| set_name(call, HOST)),
    (nr::setdomainname, |call| set_name(call, DOMAIN)),
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

/// What `uname -r` shows: the interface this kernel follows, and whose it is.
pub const RELEASE: &str = "6.1.0-kwab";
/// What `uname -v` shows.
pub const VERSION: &str = "#1 SMP kwab";
/// Bytes of each of uname's six fields.
const FIELD: usize = 65;

/// Number of the field with the host name.
const HOST: usize = 1;
/// Number of the field with the domain name.
const DOMAIN: usize = 5;

/// The six fields of `uname` as a program gets them: names of at most 64 bytes, each with NULs behind it.
#[derive(Clone)]
struct Names([u8; 6 * FIELD]);

impl Names {
    fn at_boot() -> Self {
        let mut names = Self([0; 6 * FIELD]);
        for (field, text) in ["Linux", "(none)", RELEASE, VERSION, "x86_64", "(none)"].into_iter().enumerate() {
            names.field_mut(field)[..text.len()].copy_from_slice(text.as_bytes());
        }
        names
    }

    fn field_mut(&mut self, field: usize) -> &mut [u8] {
        &mut self.0[field * FIELD..(field + 1) * FIELD]
    }

    fn text(&self, field: usize) -> Vec<u8> {
        self.0[field * FIELD..(field + 1) * FIELD].iter().copied().take_while(|byte| *byte != 0).collect()
    }
}

/// The names as they are; a change makes new ones, so that a copy to a program needs no lock.
static NAMES: SpinLock<Option<Arc<Names>>> = SpinLock::new(None);

fn names() -> Arc<Names> {
    Arc::clone(NAMES.lock().get_or_insert_with(|| Arc::new(Names::at_boot())))
}

fn set(field: usize, name: &[u8]) -> Result<(), Errno> {
    if name.len() >= FIELD {
        return Err(Errno::EINVAL);
    }
    let mut names = NAMES.lock();
    let changed = Arc::make_mut(names.get_or_insert_with(|| Arc::new(Names::at_boot()))).field_mut(field);
    changed.fill(0);
    changed[..name.len()].copy_from_slice(name);
    Ok(())
}

/// The host name, for `/proc/sys/kernel/hostname`.
pub fn host_name() -> Vec<u8> {
    names().text(HOST)
}

/// The domain name, for `/proc/sys/kernel/domainname`.
pub fn domain_name() -> Vec<u8> {
    names().text(DOMAIN)
}

/// Sets the host name: EINVAL for more than 64 bytes.
pub fn set_host_name(name: &[u8]) -> Result<(), Errno> {
    set(HOST, name)
}

/// Sets the domain name: EINVAL for more than 64 bytes.
pub fn set_domain_name(name: &[u8]) -> Result<(), Errno> {
    set(DOMAIN, name)
}

fn uname(call: &mut Call<'_>) -> SysResult {
    user::write_bytes(call.arg(0), &names().0)?;
    Ok(0)
}

fn set_name(call: &Call<'_>, field: usize) -> SysResult {
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_ADMIN)) {
        return Err(Errno::EPERM);
    }
    let len = usize::try_from(call.arg(1)).ok().filter(|len| *len < FIELD).ok_or(Errno::EINVAL)?;
    let mut bytes = [0; FIELD];
    user::read_bytes(call.arg(0), &mut bytes[..len])?;
    inject::names_change(field == HOST);
    set(field, &bytes[..len])?;
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
    let (action, at, len) = (call.int(0), call.arg(1), call.arg(2) as u32 as usize);
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
    let (at, flags) = (call.arg(0), call.arg(2));
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

/// No level but 0 is given to anybody, as on a Linux that is locked down.
fn iopl(call: &mut Call<'_>) -> SysResult {
    match call.int(0) as u32 {
        0 => Ok(0),
        1..=3 => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

/// Ports are given to nobody; taking them away always succeeds.
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
    if call.arg(0) as u32 != MAGIC1 || !MAGIC2.contains(&(call.arg(1) as u32)) {
        return Err(Errno::EINVAL);
    }
    if matches!(call.arg(2) as u32, 0x4321_fedc | 0xcdef_0123 | 0x0123_4567) {
        debug::report();
    }
    match call.arg(2) as u32 {
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
