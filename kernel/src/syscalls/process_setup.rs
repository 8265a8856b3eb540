//! Calls that set a thread or process up: thread pointers and lists, prctl(2), personality(2), unshare(2).

use core::sync::atomic::Ordering;

use kernel_logic::signal::MAX_SIGNAL;
use linux_abi::Errno;
use linux_abi::flags::process as abi;
use linux_abi::syscalls::nr;
use machine::thread::running;

use super::{Call, Calls, SysResult};
use crate::task::access::{self, By};
use crate::task::creds::{cap, secure};
use crate::task::{Pid, tree};
use crate::tty;
use crate::user::{self, UserPtr};

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::set_tid_address, set_tid_address),
    (nr::set_robust_list, set_robust_list),
    (nr::get_robust_list, get_robust_list),
    (nr::rseq, rseq),
    (nr::prctl, prctl),
    (nr::arch_prctl, arch_prctl),
    (nr::personality, personality),
    (nr::unshare, unshare),
    (nr::vhangup, vhangup),
];

fn vhangup(call: &mut Call<'_>) -> SysResult {
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_TTY_CONFIG)) {
        return Err(Errno::EPERM);
    }
    tty::hang_up_own();
    Ok(0)
}

fn set_tid_address(call: &mut Call<'_>) -> SysResult {
    call.task.clear_child_tid.store(call.arg(0), Ordering::Relaxed);
    Ok(call.task.tid() as usize)
}

fn set_robust_list(call: &mut Call<'_>) -> SysResult {
    if call.arg(1) != ROBUST_HEAD_BYTES {
        return Err(Errno::EINVAL);
    }
    call.task.robust_list.store(call.arg(0), Ordering::Relaxed);
    Ok(0)
}

/// The only length accepted (`sizeof(struct robust_list_head)`).
const ROBUST_HEAD_BYTES: u64 = 24;

fn get_robust_list(call: &mut Call<'_>) -> SysResult {
    let head = match call.int(0) {
        0 => call.task.robust_list.load(Ordering::Relaxed),
        tid => {
            let thread = tree::thread(tid as Pid).ok_or(Errno::ESRCH)?;
            access::check(&call.task, &thread, By::RealIds)?;
            thread.robust_list.load(Ordering::Relaxed)
        }
    };
    call.pointer::<u64>(1).write(head)?;
    call.pointer::<u64>(2).write(ROBUST_HEAD_BYTES)?;
    Ok(0)
}

fn rseq(call: &mut Call<'_>) -> SysResult {
    let (addr, len, flags, signature) = (call.arg(0), call.uint(1), call.int(2), call.uint(3));
    let area = &call.task.rseq;
    let registered = area.addr.load(Ordering::Relaxed);
    let same = registered == addr && area.len.load(Ordering::Relaxed) == len;
    match flags {
        1 => {
            if registered == 0 || !same {
                return Err(Errno::EINVAL);
            }
            if area.signature.load(Ordering::Relaxed) != signature {
                return Err(Errno::EPERM);
            }
            area.addr.store(0, Ordering::Relaxed);
            Ok(0)
        }
        0 if registered != 0 => Err(if same { Errno::EBUSY } else { Errno::EINVAL }),
        0 => {
            if addr == 0 || !addr.is_multiple_of(32) || len < 32 {
                return Err(Errno::EINVAL);
            }
            area.len.store(len, Ordering::Relaxed);
            area.signature.store(signature, Ordering::Relaxed);
            area.addr.store(addr, Ordering::Relaxed);
            crate::task::rseq::update(&call.task)?;
            machine::cpu::request_work();
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

fn prctl(call: &mut Call<'_>) -> SysResult {
    let (option, value) = (call.int(0), call.arg(1));
    let me = &call.task;
    if zero_needed(option).iter().any(|&index| call.arg(index) != 0) {
        return Err(Errno::EINVAL);
    }
    match option {
        // PR_SET_PDEATHSIG, PR_GET_PDEATHSIG
        1 if value <= u64::from(MAX_SIGNAL) => me.parent_death_signal.store(value as u32, Ordering::Relaxed),
        2 => UserPtr::<u32>::new(value).write(me.parent_death_signal.load(Ordering::Relaxed))?,
        // PR_GET_DUMPABLE, PR_SET_DUMPABLE
        3 => return Ok(me.mm.with(|mm| mm.is_some_and(|mm| mm.dumpable.load(Ordering::Relaxed))).into()),
        4 if value <= 1 => me.mm.with(|mm| {
            if let Some(mm) = mm {
                mm.dumpable.store(value == 1, Ordering::Relaxed);
            }
        }),
        // PR_SET_NAME, PR_GET_NAME
        15 => {
            let mut name = [0; 15];
            let len = read_name(value, &mut name)?;
            me.set_comm(&name[..len]);
        }
        16 => {
            let name = *me.name.lock();
            user::write_bytes(value, &name)?;
        }
        // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
        29 => {
            let slack = if (value as i64) <= 0 { me.sched.default_slack } else { value };
            me.sched.slack.store(slack, Ordering::Relaxed);
        }
        30 => return Ok(me.sched.slack.load(Ordering::Relaxed) as usize),
        // PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER
        36 => me.process.family.set_subreaper(value != 0),
        37 => UserPtr::<u32>::new(value).write(u32::from(me.process.family.is_subreaper()))?,
        // PR_GET_TID_ADDRESS
        40 => UserPtr::<u64>::new(value).write(me.clear_child_tid.load(Ordering::Relaxed))?,
        // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
        41 => me.mm.with(|mm| {
            if let Some(mm) = mm {
                mm.no_huge.store(value != 0, Ordering::Relaxed);
            }
        }),
        42 => return Ok(me.mm.with(|mm| mm.is_some_and(|mm| mm.no_huge.load(Ordering::Relaxed))).into()),
        // PR_GET_TIMING, PR_SET_TIMING: PR_TIMING_STATISTICAL is the only one.
        13 => {}
        14 if value == 0 => {}
        // PR_GET_SECCOMP: no filters.
        21 => {}
        // PR_GET_TSC, PR_SET_TSC: PR_TSC_ENABLE.
        25 => UserPtr::<u32>::new(value).write(1)?,
        26 if value == 1 => {}
        // PR_MCE_KILL (PR_MCE_KILL_CLEAR), PR_MCE_KILL_GET: the policy is the default, 2.
        33 if value == 0 => {}
        34 => return Ok(2),
        _ => return identity_option(call, option, value),
    }
    Ok(0)
}

/// The options of prctl(2) about credentials.
fn identity_option(call: &Call<'_>, option: i32, value: u64) -> SysResult {
    let me = &call.task;
    match option {
        // PR_GET_KEEPCAPS, PR_SET_KEEPCAPS
        7 => return Ok(usize::from(me.creds.with(|creds| creds.has_secure(secure::KEEP_CAPS)))),
        8 if value <= 1 => {
            if me.creds.with(|creds| creds.has_secure(secure::KEEP_CAPS << 1)) {
                return Err(Errno::EPERM);
            }
            let (bit, keep) = (secure::KEEP_CAPS, value == 1);
            access::change_creds(me, |creds| {
                creds.securebits = if keep { creds.securebits | bit } else { creds.securebits & !bit }
            });
        }
        // PR_CAPBSET_READ, PR_CAPBSET_DROP
        23 if value <= 40 => return Ok(me.creds.with(|creds| creds.bounding >> value & 1) as usize),
        24 => {
            if !me.creds.with(|creds| creds.capable(cap::SETPCAP)) {
                return Err(Errno::EPERM);
            }
            if value > 40 {
                return Err(Errno::EINVAL);
            }
            access::change_creds(me, |creds| creds.bounding &= !(1 << value));
        }
        // PR_GET_SECUREBITS, PR_SET_SECUREBITS
        27 => return Ok(me.creds.with(|creds| creds.securebits) as usize),
        28 => {
            let mut changed = (*me.creds()).clone();
            changed.set_securebits(value)?;
            access::change_creds(me, |creds| creds.securebits = changed.securebits);
        }
        // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
        38 if value == 1 => access::change_creds(me, |creds| creds.no_new_privs = true),
        39 => return Ok(usize::from(me.creds.with(|creds| creds.no_new_privs))),
        // PR_CAP_AMBIENT: there is no inheritable capability that could be raised, so the set is empty.
        47 => return ambient(value, call.arg(2)),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// The arguments of an option that must be 0, by their index in the call (prctl(2)).
fn zero_needed(option: i32) -> &'static [usize] {
    match option {
        38 | 41 => &[2, 3, 4],
        39 | 42 | 34 => &[1, 2, 3, 4],
        33 => &[2, 3, 4],
        47 => &[3, 4],
        _ => &[],
    }
}

fn ambient(operation: u64, capability: u64) -> SysResult {
    match (operation, capability) {
        // PR_CAP_AMBIENT_CLEAR_ALL, PR_CAP_AMBIENT_IS_SET, PR_CAP_AMBIENT_LOWER, PR_CAP_AMBIENT_RAISE
        (4, 0) | (1 | 3, 0..=40) => Ok(0),
        (2, 0..=40) => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}

fn read_name(at: u64, name: &mut [u8; 15]) -> Result<usize, Errno> {
    for (index, byte) in name.iter_mut().enumerate() {
        *byte = UserPtr::<u8>::new(at).add(index).read()?;
        if *byte == 0 {
            return Ok(index);
        }
    }
    Ok(name.len())
}

fn arch_prctl(call: &mut Call<'_>) -> SysResult {
    const SET_GS: i32 = 0x1001;
    const SET_FS: i32 = 0x1002;
    const GET_FS: i32 = 0x1003;
    const GET_GS: i32 = 0x1004;
    let value = call.arg(1);
    match call.int(0) {
        SET_FS if value < kernel_logic::vma::USER_END => running::set_tls(value).map_err(|_| Errno::EPERM)?,
        SET_GS if value < kernel_logic::vma::USER_END => running::set_second_base(value).map_err(|_| Errno::EPERM)?,
        SET_FS | SET_GS => return Err(Errno::EPERM),
        GET_FS => UserPtr::<u64>::new(value).write(running::tls())?,
        GET_GS => UserPtr::<u64>::new(value).write(running::second_base())?,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

fn personality(call: &mut Call<'_>) -> SysResult {
    let process = &call.task.process;
    let old = process.personality();
    if call.uint(0) != u32::MAX {
        process.set_personality(call.uint(0));
    }
    Ok(old as usize)
}

fn unshare(call: &mut Call<'_>) -> SysResult {
    let flags = call.arg(0);
    // What threads of one process share cannot be unshared: these ask that there be only one.
    let alone = abi::CLONE_THREAD | abi::CLONE_SIGHAND | abi::CLONE_VM;
    let known = abi::CLONE_FS | abi::CLONE_FILES | abi::CLONE_SYSVSEM | alone;
    if flags & !known != 0 || (flags & alone != 0 && call.task.process.threads.count() > 1) {
        return Err(Errno::EINVAL);
    }
    if flags & abi::CLONE_FS != 0 {
        drop(call.task.fs.set(Some(call.task.fs().fork())));
    }
    if flags & abi::CLONE_FILES != 0 {
        // A table of its own keeps its record locks.
        drop(call.task.files.own()?);
    }
    Ok(0)
}
