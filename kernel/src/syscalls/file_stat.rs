//! Calls that read attributes of files: the stat family, statx, statfs, access, readlink.

use linux_abi::Errno;
use linux_abi::flags::file::{
    AT_EACCESS, AT_EMPTY_PATH, AT_NO_AUTOMOUNT, AT_STATX_DONT_SYNC, AT_STATX_FORCE_SYNC, AT_SYMLINK_NOFOLLOW,
    STATX_BASIC_STATS, STATX_BTIME, STATX_MNT_ID,
};
use linux_abi::syscalls::nr;
use machine::addr::UserAddr;

use super::lookup::{AT_FDCWD, PathName, Walker, only};
use super::{Call, Calls, SysResult};
use crate::fs::Inode;
use crate::fs::Path;
use crate::fs::attr::{S_IFDIR, S_IFLNK, S_IFREG};
use crate::fs::dev;
use crate::fs::inode::LinkTarget;
use crate::fs::mount::{MS_NOEXEC, Mount};
use crate::fs::walk::Last;
use crate::user::{write_bytes, write_words};
use kernel_logic::permission::{EXECUTE, WRITE};
use kernel_logic::vma::PAGE;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::stat, |call| stat_at(call, AT_FDCWD, 0, 1, 0)),
    (nr::lstat, |call| stat_at(call, AT_FDCWD, 0, 1, AT_SYMLINK_NOFOLLOW)),
    (nr::fstat, fstat),
    (nr::newfstatat, newfstatat),
    (nr::statx, statx),
    (nr::statfs, |call| {
        let mut path = PathName::empty();
        path.read(call.arg(0))?;
        let location = Walker::of(call).locate(call, AT_FDCWD, &path, 0)?;
        write_statfs(call.arg(1), &location.mount)
    }),
    (nr::fstatfs, |call| {
        let file = call.file(0)?;
        write_statfs(call.arg(1), &file.path.mount)
    }),
    (nr::access, |call| access(call, AT_FDCWD, 0, call.arg(1), 0)),
    (nr::faccessat, |call| access(call, call.int(0), 1, call.arg(2), 0)),
    (nr::faccessat2, |call| {
        call.flags(3, AT_EACCESS | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)?;
        access(call, call.int(0), 1, call.arg(2), call.arg(3))
    }),
    (nr::readlink, |call| readlink(call, AT_FDCWD, 0)),
    (nr::readlinkat, |call| readlink(call, call.int(0), 1)),
];

#[inline]
fn stat_at(call: &Call<'_>, dir: i32, path: usize, buffer: usize, flags: u64) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let location = Walker::of(call).locate(call, dir, &name, flags)?;
    write_stat(call.arg(buffer), &**location.inode())
}

fn fstat(call: &mut Call<'_>) -> SysResult {
    let file = call.file(0)?;
    write_stat(call.arg(1), &**file.inode())
}

fn newfstatat(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(3);
    only(flags, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_STATX_FORCE_SYNC)?;
    stat_at(call, call.int(0), 1, 2, flags)
}

/// Stores `struct stat` (asm/stat.h).
#[inline]
fn write_stat(to: u64, inode: &dyn Inode) -> SysResult {
    let attr = inode.attr();
    let mut bytes = [0; 144];
    let mut put = |word: usize, value: u64| bytes[word * 8..word * 8 + 8].copy_from_slice(&value.to_ne_bytes());
    put(0, attr.dev);
    put(1, attr.ino);
    put(2, u64::from(attr.nlink()));
    put(3, u64::from(attr.mode()) | u64::from(attr.uid()) << 32);
    put(4, u64::from(attr.gid()));
    put(5, attr.rdev);
    put(6, inode.size());
    put(7, u64::from(attr.block_pages) * PAGE);
    put(8, inode.blocks());
    for (at, time) in attr.times().into_iter().enumerate() {
        let (seconds, nanos) = split(time);
        put(9 + at * 2, seconds as u64);
        put(10 + at * 2, nanos);
    }
    machine::user::write_bytes(UserAddr(to), &bytes).map_err(|_| Errno::EFAULT)?;
    Ok(0)
}

/// Seconds and nanoseconds of a time stamp, the latter never negative.
fn split(time: i64) -> (i64, u64) {
    // Dividing unsigned is cheaper, and nearly every time is past 1970.
    match u64::try_from(time) {
        Ok(time) => ((time / 1_000_000_000) as i64, time % 1_000_000_000),
        Err(_) => (time.div_euclid(1_000_000_000), time.rem_euclid(1_000_000_000) as u64),
    }
}

fn statx(call: &mut Call<'_>) -> SysResult {
    let (flags, mask) = (call.word(2), call.word(3));
    only(flags, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_STATX_FORCE_SYNC)?;
    if flags & (AT_STATX_DONT_SYNC | AT_STATX_FORCE_SYNC) == AT_STATX_DONT_SYNC | AT_STATX_FORCE_SYNC
        || mask & 1 << 31 != 0
    {
        return Err(Errno::EINVAL);
    }
    let mut name = PathName::empty();
    name.read(call.arg(1))?;
    let location = Walker::of(call).locate(call, call.int(0), &name, flags)?;
    write_words(call.arg(4), &statx_words(&location)).map(|()| 0)
}

/// `struct statx` (linux/stat.h).
fn statx_words(location: &Path) -> [u64; 32] {
    const MOUNT_ROOT: u64 = 0x2000;
    let inode = location.inode();
    let attr = inode.attr();
    let high = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let mut words = [0; 32];
    words[0] = (STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID) | (u64::from(attr.block_pages) * PAGE) << 32;
    words[1] = if location.is_mount_root() { MOUNT_ROOT } else { 0 };
    words[2] = high(attr.nlink(), attr.uid());
    words[3] = high(attr.gid(), attr.mode());
    words[4] = attr.ino;
    words[5] = inode.size();
    words[6] = inode.blocks();
    words[7] = MOUNT_ROOT;
    let [accessed, modified, changed] = attr.times();
    for (at, time) in [accessed, attr.born, changed, modified].into_iter().enumerate() {
        let (seconds, nanos) = split(time);
        words[8 + at * 2] = seconds as u64;
        words[9 + at * 2] = nanos;
    }
    let numbers = |(major, minor): (u64, u64)| major | minor << 32;
    words[16] = numbers(dev::split(attr.rdev));
    words[17] = numbers(dev::split(attr.dev));
    words[18] = location.mount.id;
    words
}

/// Stores `struct statfs` (asm-generic/statfs.h).
fn write_statfs(to: u64, mount: &Mount) -> SysResult {
    const VALID: u64 = 0x20;
    const NAME_MAX: u64 = 255;
    let statistics = mount.fs.statistics();
    let flags = u64::from(mount.flags() & 0xf | mount.flags() & 0x400 | (mount.flags() >> 21 & 1) << 12);
    let mut words = [0; 15];
    words[0] = statistics.magic;
    words[1] = mount.fs.block();
    words[2] = statistics.blocks[0];
    words[3] = statistics.blocks[1];
    words[4] = statistics.blocks[1];
    words[5] = statistics.files[0];
    words[6] = statistics.files[1];
    words[7] = mount.fs.dev();
    words[8] = NAME_MAX;
    words[9] = mount.fs.block();
    words[10] = VALID | flags;
    write_words(to, &words).map(|()| 0)
}

fn access(call: &Call<'_>, dir: i32, path: usize, wish: u64, flags: u64) -> SysResult {
    let wish = wish as u32;
    if wish & !7 != 0 {
        return Err(Errno::EINVAL);
    }
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = if flags & AT_EACCESS != 0 { Walker::of(call) } else { Walker::real(call) };
    let location = walker.locate(call, dir, &name, flags)?;
    let attr = location.inode().attr();
    if wish & EXECUTE != 0 && attr.kind() == S_IFREG && location.mount.flags() & MS_NOEXEC != 0 {
        return Err(Errno::EACCES);
    }
    if wish != 0 {
        attr.check(&walker.caller(), wish)?;
    }
    if wish & WRITE != 0 && matches!(attr.kind(), S_IFREG | S_IFDIR) {
        location.check_writable()?;
    }
    Ok(0)
}

fn readlink(call: &Call<'_>, dir: i32, path: usize) -> SysResult {
    let (buffer, size) = (call.arg(path + 1), call.int(path + 2));
    if size <= 0 {
        return Err(Errno::EINVAL);
    }
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    let location = if name.is_empty() && dir != AT_FDCWD {
        let location = call.task.files().get(dir)?.path.clone();
        if location.inode().attr().kind() != S_IFLNK {
            return Err(Errno::ENOENT);
        }
        location
    } else {
        walker.walk(call, dir, &name)?.find(&name, Last::Keep)?
    };
    let write = |target: &[u8]| {
        let count = target.len().min(size as usize);
        write_bytes(buffer, &target[..count]).map(|()| count)
    };
    match location.inode().link_target()? {
        LinkTarget::Text(target) => write(&target),
        LinkTarget::Jump(target) => write(&target.display(&walker.context.root())),
    }
}
