//! Calls about credentials (credentials(7), capabilities(7)).

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use linux_abi::Errno;
use linux_abi::syscalls::nr;

use super::{Call, Calls, SysResult};
use crate::task::access::change_creds;
use crate::task::account::{Account, Kind};
use crate::task::creds::{ALL_CAPS, Creds, cap};
use crate::task::limits::{INFINITY, resource};
use crate::task::tree;

/// This area's calls.
pub const CALLS: Calls = &[
    (nr::getuid, |call| Ok(call.task.creds.with(|creds| creds.uid) as usize)),
    (nr::geteuid, |call| Ok(call.task.creds.with(|creds| creds.euid) as usize)),
    (nr::getgid, |call| Ok(call.task.creds.with(|creds| creds.gid) as usize)),
    (nr::getegid, |call| Ok(call.task.creds.with(|creds| creds.egid) as usize)),
    (nr::setuid, setuid),
    (nr::setgid, setgid),
    (nr::setreuid, setreuid),
    (nr::setregid, setregid),
    (nr::setresuid, setresuid),
    (nr::setresgid, setresgid),
    (nr::getresuid, |call| get_three(call, |creds| [creds.uid, creds.euid, creds.suid])),
    (nr::getresgid, |call| get_three(call, |creds| [creds.gid, creds.egid, creds.sgid])),
    (nr::setfsuid, setfsuid),
    (nr::setfsgid, setfsgid),
    (nr::getgroups, getgroups),
    (nr::setgroups, setgroups),
    (nr::capget, capget),
    (nr::capset, capset),
];

/// "Leave as it is."
const SAME: u32 = u32::MAX;
/// Most supplementary groups (`NGROUPS_MAX`).
const MAX_GROUPS: usize = 65_536;

fn setuid(call: &mut Call<'_>) -> SysResult {
    let uid = call.uint(0);
    let old = call.task.creds();
    if uid == SAME {
        return Err(Errno::EINVAL);
    }
    if !old.capable(cap::SETUID) && uid != old.uid && uid != old.suid {
        return Err(Errno::EPERM);
    }
    note_processes(call, if old.capable(cap::SETUID) { uid } else { old.uid });
    change_creds(&call.task, |creds| {
        if old.capable(cap::SETUID) {
            creds.uid = uid;
            creds.suid = uid;
        }
        creds.euid = uid;
        creds.after_uid_change(&old);
    });
    Ok(0)
}

fn setgid(call: &mut Call<'_>) -> SysResult {
    let gid = call.uint(0);
    let old = call.task.creds();
    if gid == SAME {
        return Err(Errno::EINVAL);
    }
    if !old.capable(cap::SETGID) && gid != old.gid && gid != old.sgid {
        return Err(Errno::EPERM);
    }
    change_creds(&call.task, |creds| {
        if old.capable(cap::SETGID) {
            creds.gid = gid;
            creds.sgid = gid;
        }
        creds.egid = gid;
        creds.fsgid = gid;
    });
    Ok(0)
}

/// Notes whether the real user `uid`, which the caller becomes, has more threads than `RLIMIT_NPROC` permits
/// (execve(2), EAGAIN).
fn note_processes(call: &Call<'_>, uid: u32) {
    let limit = call.task.process.limit(resource::NPROC);
    let exceeds = uid != 0 && limit != INFINITY && Account::of(uid).sum(Kind::Threads) > limit;
    call.task.exceeds_processes.store(exceeds, Ordering::Relaxed);
}

/// Whether each wanted id is "same" or among those held.
fn allowed(wanted: &[u32], held: &[u32], privileged: bool) -> Result<(), Errno> {
    let fine = privileged || wanted.iter().all(|id| *id == SAME || held.contains(id));
    if fine { Ok(()) } else { Err(Errno::EPERM) }
}

fn pick(wanted: u32, held: u32) -> u32 {
    if wanted == SAME { held } else { wanted }
}

fn setreuid(call: &mut Call<'_>) -> SysResult {
    let (uid, euid) = (call.uint(0), call.uint(1));
    let old = call.task.creds();
    let privileged = old.capable(cap::SETUID);
    allowed(&[uid], &[old.uid, old.euid], privileged)?;
    allowed(&[euid], &[old.uid, old.euid, old.suid], privileged)?;
    note_processes(call, pick(uid, old.uid));
    change_creds(&call.task, |creds| {
        creds.uid = pick(uid, old.uid);
        creds.euid = pick(euid, old.euid);
        if uid != SAME || (euid != SAME && euid != old.uid) {
            creds.suid = creds.euid;
        }
        creds.after_uid_change(&old);
    });
    Ok(0)
}

fn setregid(call: &mut Call<'_>) -> SysResult {
    let (gid, egid) = (call.uint(0), call.uint(1));
    let old = call.task.creds();
    let privileged = old.capable(cap::SETGID);
    allowed(&[gid], &[old.gid, old.egid], privileged)?;
    allowed(&[egid], &[old.gid, old.egid, old.sgid], privileged)?;
    change_creds(&call.task, |creds| {
        creds.gid = pick(gid, old.gid);
        creds.egid = pick(egid, old.egid);
        if gid != SAME || (egid != SAME && egid != old.gid) {
            creds.sgid = creds.egid;
        }
        creds.fsgid = creds.egid;
    });
    Ok(0)
}

/// Whether the three ids wanted are those held, with a file system id that follows the effective one only if that was
/// named.
fn changes_nothing(wanted: [u32; 3], held: [u32; 3], file_system: u32) -> bool {
    let same = wanted.iter().zip(held).all(|(wanted, held)| *wanted == SAME || *wanted == held);
    same && (wanted[1] == SAME || wanted[1] == file_system)
}

fn setresuid(call: &mut Call<'_>) -> SysResult {
    let wanted = [0, 1, 2].map(|at| call.uint(at));
    let old = call.task.creds();
    allowed(&wanted, &[old.uid, old.euid, old.suid], old.capable(cap::SETUID))?;
    if changes_nothing(wanted, [old.uid, old.euid, old.suid], old.fsuid) {
        return Ok(0);
    }
    note_processes(call, pick(wanted[0], old.uid));
    change_creds(&call.task, |creds| {
        creds.uid = pick(wanted[0], old.uid);
        creds.euid = pick(wanted[1], old.euid);
        creds.suid = pick(wanted[2], old.suid);
        creds.after_uid_change(&old);
    });
    Ok(0)
}

fn setresgid(call: &mut Call<'_>) -> SysResult {
    let wanted = [0, 1, 2].map(|at| call.uint(at));
    let old = call.task.creds();
    allowed(&wanted, &[old.gid, old.egid, old.sgid], old.capable(cap::SETGID))?;
    if changes_nothing(wanted, [old.gid, old.egid, old.sgid], old.fsgid) {
        return Ok(0);
    }
    change_creds(&call.task, |creds| {
        creds.gid = pick(wanted[0], old.gid);
        creds.egid = pick(wanted[1], old.egid);
        creds.sgid = pick(wanted[2], old.sgid);
        creds.fsgid = creds.egid;
    });
    Ok(0)
}

fn get_three(call: &Call<'_>, of: fn(&Creds) -> [u32; 3]) -> SysResult {
    for (at, id) in call.task.creds.with(of).into_iter().enumerate() {
        call.pointer::<u32>(at).write(id)?;
    }
    Ok(0)
}

fn setfsuid(call: &mut Call<'_>) -> SysResult {
    let uid = call.uint(0);
    let old = call.task.creds();
    if allowed(&[uid], &[old.uid, old.euid, old.suid, old.fsuid], old.capable(cap::SETUID)).is_ok() && uid != SAME {
        change_creds(&call.task, |creds| {
            creds.fsuid = uid;
            creds.after_fsuid_change(old.fsuid);
        });
    }
    Ok(old.fsuid as usize)
}

fn setfsgid(call: &mut Call<'_>) -> SysResult {
    let gid = call.uint(0);
    let old = call.task.creds();
    if allowed(&[gid], &[old.gid, old.egid, old.sgid, old.fsgid], old.capable(cap::SETGID)).is_ok() && gid != SAME {
        change_creds(&call.task, |creds| creds.fsgid = gid);
    }
    Ok(old.fsgid as usize)
}

fn getgroups(call: &mut Call<'_>) -> SysResult {
    let (size, list) = (call.int(0), call.pointer::<u32>(1));
    let creds = call.task.creds();
    let count = creds.groups.len();
    if size < 0 || (size != 0 && (size as usize) < count) {
        return Err(Errno::EINVAL);
    }
    if size != 0 {
        for (at, group) in creds.groups.iter().enumerate() {
            list.add(at).write(*group)?;
        }
    }
    Ok(count)
}

fn setgroups(call: &mut Call<'_>) -> SysResult {
    let (size, list) = (call.uint(0) as usize, call.pointer::<u32>(1));
    if !call.task.creds.with(|creds| creds.capable(cap::SETGID)) {
        return Err(Errno::EPERM);
    }
    if size > MAX_GROUPS {
        return Err(Errno::EINVAL);
    }
    let mut groups = Vec::with_capacity(size);
    for at in 0..size {
        groups.push(list.add(at).read()?);
    }
    groups.sort_unstable();
    change_creds(&call.task, |creds| creds.groups = groups);
    Ok(0)
}

/// Header versions of capget(2) and how many 32-bit words per set each has.
fn cap_words(call: &Call<'_>) -> Result<(u32, usize), Errno> {
    const V1: u32 = 0x1998_0330;
    const V2: u32 = 0x2007_1026;
    const V3: u32 = 0x2008_0522;
    let header = call.pointer::<u32>(0);
    let words = match header.read()? {
        V1 => 1,
        V2 | V3 => 2,
        _ => {
            header.write(V3)?;
            return Err(Errno::EINVAL);
        }
    };
    Ok((header.add(1).read()?, words))
}

fn capget(call: &mut Call<'_>) -> SysResult {
    let (pid, words) = match cap_words(call) {
        Err(Errno::EINVAL) if call.arg(1) == 0 => return Ok(0),
        other => other?,
    };
    let creds = match pid {
        0 => call.task.creds(),
        pid if (pid as i32) < 0 => return Err(Errno::EINVAL),
        pid => tree::thread(pid).ok_or(Errno::ESRCH)?.creds(),
    };
    let data = call.pointer::<u32>(1);
    if data.is_null() {
        return Ok(0);
    }
    for word in 0..words {
        for (at, set) in [creds.effective, creds.permitted, creds.inheritable].into_iter().enumerate() {
            data.add(word * 3 + at).write((set >> (32 * word)) as u32)?;
        }
    }
    Ok(0)
}

fn capset(call: &mut Call<'_>) -> SysResult {
    let (pid, words) = cap_words(call)?;
    if pid != 0 && pid != call.task.tid() {
        return Err(Errno::EPERM);
    }
    let data = call.pointer::<u32>(1);
    let mut sets = [0u64; 3];
    for word in 0..words {
        for (at, set) in sets.iter_mut().enumerate() {
            *set |= u64::from(data.add(word * 3 + at).read()?) << (32 * word);
        }
    }
    let [effective, permitted, inheritable] = sets.map(|set| set & ALL_CAPS);
    let old = call.task.creds();
    let raises = permitted & !old.permitted != 0 || effective & !permitted != 0;
    let inherits_more = inheritable & !(old.inheritable | old.permitted) != 0 && !old.capable(cap::SETPCAP);
    let beyond_bounds = inheritable & !(old.inheritable | old.bounding) != 0;
    if raises || inherits_more || beyond_bounds {
        return Err(Errno::EPERM);
    }
    change_creds(&call.task, |creds| {
        creds.effective = effective;
        creds.permitted = permitted;
        creds.inheritable = inheritable;
    });
    Ok(0)
}
