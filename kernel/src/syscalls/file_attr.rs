//! Changing what files are: mode, owner, times (chmod(2), chown(2), utimensat(2)).

use linux_abi::Errno;
use linux_abi::flags::file::{AT_EMPTY_PATH, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW};
use linux_abi::numbers::{UTIME_NOW, UTIME_OMIT};
use linux_abi::syscalls::nr;

use super::lookup::{AT_FDCWD, PathName, Walker, only};
use super::{Call, Calls, SysResult};
use crate::fs::attr::{S_IFLNK, WallNanos};
use crate::fs::{Caller, Path, wall_now};
use crate::task::creds::cap;
use crate::user::read_words;
use kernel_logic::permission::{WRITE, without_set_id};

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::chmod, |call| chmod_at(call, AT_FDCWD, 0, 0)),
    (nr::fchmodat, |call| chmod_at(call, call.int(0), 1, 0)),
    (nr::fchmod, |call| {
        let file = call.open_file(0)?;
        let walker = Walker::of(call);
        chmod(&walker.caller(), &file.path, call.uint(1))
    }),
    (nr::chown, |call| chown_at(call, AT_FDCWD, 0, 0)),
    (nr::lchown, |call| chown_at(call, AT_FDCWD, 0, AT_SYMLINK_NOFOLLOW)),
    (nr::fchownat, |call| {
        call.flags(4, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
        chown_at(call, call.int(0), 1, call.arg(4))
    }),
    (nr::fchown, |call| {
        let file = call.open_file(0)?;
        let walker = Walker::of(call);
        chown(&walker.caller(), &file.path, call.uint(1), call.uint(2))
    }),
    (nr::utimensat, utimensat),
    (nr::utime, |call| {
        let times = call.pointer::<u64>(1);
        let times = if times.is_null() {
            Times::NOW
        } else {
            let [accessed, modified] = read_words::<2>(call.arg(1))?;
            Times { accessed: Stamp::Is(clamp(accessed, 0)), modified: Stamp::Is(clamp(modified, 0)) }
        };
        set_times_at(call, AT_FDCWD, call.arg(0), 0, times)
    }),
    (nr::utimes, |call| {
        let times = read_timevals(call.arg(1))?;
        set_times_at(call, AT_FDCWD, call.arg(0), 0, times)
    }),
    (nr::futimesat, |call| {
        let times = read_timevals(call.arg(2))?;
        if call.arg(1) == 0 {
            let file = call.file(0)?;
            let walker = Walker::of(call);
            return set_times(&walker.caller(), &file.path, times);
        }
        set_times_at(call, call.int(0), call.arg(1), 0, times)
    }),
];

fn chmod_at(call: &Call<'_>, dir: i32, path: usize, flags: u64) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    let location = walker.locate(call, dir, &name, flags)?;
    chmod(&walker.caller(), &location, call.uint(path + 1))
}

fn chmod(who: &Caller<'_>, location: &Path, mode: u32) -> SysResult {
    let attr = location.inode().attr();
    location.check_writable()?;
    if attr.kind() == S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    let _change = attr.begin_change();
    if !who.owns(attr.uid()) {
        return Err(Errno::EPERM);
    }
    // Set-group-ID may only be given by members of the group.
    let foreign = !who.has(cap::FSETID) && !who.in_group(attr.gid());
    attr.set_permissions(if foreign { mode & !0o2000 } else { mode });
    Ok(0)
}

fn chown_at(call: &Call<'_>, dir: i32, path: usize, flags: u64) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    let location = walker.locate(call, dir, &name, flags)?;
    chown(&walker.caller(), &location, call.uint(path + 1), call.uint(path + 2))
}

/// -1 leaves an id alone. Only root gives files away; an owner may choose among his groups.
fn chown(who: &Caller<'_>, location: &Path, uid: u32, gid: u32) -> SysResult {
    const SAME: u32 = u32::MAX;
    let attr = location.inode().attr();
    location.check_writable()?;
    let _change = attr.begin_change();
    let owner = who.uid == attr.uid();
    let may_uid = uid == SAME || who.has(cap::CHOWN) || (owner && uid == attr.uid());
    let may_gid = gid == SAME || who.has(cap::CHOWN) || (owner && (gid == attr.gid() || who.in_group(gid)));
    if !may_uid || !may_gid {
        return Err(Errno::EPERM);
    }
    let new_uid = if uid == SAME { attr.uid() } else { uid };
    let new_gid = if gid == SAME { attr.gid() } else { gid };
    // Of a group that is not the caller's, set-group-ID goes also where the group may not execute.
    let mode = match without_set_id(attr.mode()) {
        _ if attr.is_dir() => attr.mode(),
        mode if who.in_group(attr.gid()) || who.has(cap::FSETID) => mode,
        mode => mode & !0o2000,
    };
    // Even if the ids stay, which everyone may ask for: then it is a change of mode.
    if mode != attr.mode() {
        if !who.owns(attr.uid()) {
            return Err(Errno::EPERM);
        }
        attr.set_permissions(mode);
    }
    attr.set_owner(new_uid, new_gid);
    Ok(0)
}

/// What becomes of one time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stamp {
    Now,
    Same,
    Is(WallNanos),
}

#[derive(Clone, Copy)]
struct Times {
    accessed: Stamp,
    modified: Stamp,
}

impl Times {
    const NOW: Self = Self { accessed: Stamp::Now, modified: Stamp::Now };
}

/// Seconds and nanoseconds as one number, clamped to what it can say.
fn clamp(seconds: u64, nanos: u64) -> WallNanos {
    (seconds as i64).saturating_mul(1_000_000_000).saturating_add(nanos as i64)
}

fn read_timevals(addr: u64) -> Result<Times, Errno> {
    if addr == 0 {
        return Ok(Times::NOW);
    }
    let [accessed, accessed_micros, modified, modified_micros] = read_words::<4>(addr)?;
    if accessed_micros >= 1_000_000 || modified_micros >= 1_000_000 {
        return Err(Errno::EINVAL);
    }
    Ok(Times {
        accessed: Stamp::Is(clamp(accessed, accessed_micros * 1000)),
        modified: Stamp::Is(clamp(modified, modified_micros * 1000)),
    })
}

fn utimensat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    only(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    let stamp = |seconds, nanos| match nanos {
        UTIME_NOW => Ok(Stamp::Now),
        UTIME_OMIT => Ok(Stamp::Same),
        0..1_000_000_000 => Ok(Stamp::Is(clamp(seconds, nanos))),
        _ => Err(Errno::EINVAL),
    };
    let times = if call.arg(2) == 0 {
        Times::NOW
    } else {
        let words = read_words::<4>(call.arg(2))?;
        Times { accessed: stamp(words[0], words[1])?, modified: stamp(words[2], words[3])? }
    };
    if times.accessed == Stamp::Same && times.modified == Stamp::Same {
        return Ok(0);
    }
    if call.arg(1) == 0 && call.int(0) != AT_FDCWD {
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let file = call.open_file(0)?;
        let walker = Walker::of(call);
        return set_times(&walker.caller(), &file.path, times);
    }
    set_times_at(call, call.int(0), call.arg(1), flags, times)
}

fn set_times_at(call: &Call<'_>, dir: i32, path: u64, flags: u64, times: Times) -> SysResult {
    let mut name = PathName::empty();
    name.read(path)?;
    let walker = Walker::of(call);
    let location = walker.locate(call, dir, &name, flags & !AT_SYMLINK_FOLLOW)?;
    set_times(&walker.caller(), &location, times)
}

/// Setting the present time needs write permission; any other time, ownership.
fn set_times(who: &Caller<'_>, location: &Path, times: Times) -> SysResult {
    let attr = location.inode().attr();
    location.check_writable()?;
    let _change = attr.begin_change();
    let both_now = times.accessed == Stamp::Now && times.modified == Stamp::Now;
    if !who.owns(attr.uid()) {
        if !both_now {
            return Err(Errno::EPERM);
        }
        attr.check(who, WRITE)?;
    }
    let now = wall_now();
    let value = |stamp| match stamp {
        Stamp::Now => Some(now),
        Stamp::Same => None,
        Stamp::Is(time) => Some(time),
    };
    attr.set_times(value(times.accessed), value(times.modified));
    Ok(0)
}
