//! Calls about directories: making, removing, renaming and listing entries, and the working directory.

use linux_abi::Errno;
use linux_abi::flags::file::{
    AT_EMPTY_PATH, AT_REMOVEDIR, AT_SYMLINK_FOLLOW, RENAME_EXCHANGE, RENAME_NOREPLACE, RENAME_WHITEOUT,
};
use linux_abi::syscalls::nr;

use super::lookup::{AT_FDCWD, PathName, Walker};
use super::{Call, Calls, SysResult};
use crate::fs::attr::S_IFDIR;
use crate::fs::file::File;
use crate::fs::inode::RenameMode;
use crate::fs::names;
use crate::fs::walk::Last;
use crate::task::creds::cap;
use crate::user::write_bytes;
use kernel_logic::dirent;
use kernel_logic::path::PATH_MAX;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::mkdir, |call| mkdir(call, AT_FDCWD, 0)),
    (nr::mkdirat, |call| mkdir(call, call.int(0), 1)),
    (nr::mknod, |call| mknod(call, AT_FDCWD, 0)),
    (nr::mknodat, |call| mknod(call, call.int(0), 1)),
    (nr::rmdir, |call| remove(call, AT_FDCWD, 0, true)),
    (nr::unlink, |call| remove(call, AT_FDCWD, 0, false)),
    (nr::unlinkat, |call| {
        call.flags(2, AT_REMOVEDIR)?;
        remove(call, call.int(0), 1, call.arg(2) & AT_REMOVEDIR != 0)
    }),
    (nr::rename, |call| rename(call, (AT_FDCWD, 0), (AT_FDCWD, 1), 0)),
    (nr::renameat, |call| rename(call, (call.int(0), 1), (call.int(2), 3), 0)),
    (nr::renameat2, |call| rename(call, (call.int(0), 1), (call.int(2), 3), call.arg(4))),
    (nr::link, |call| link(call, (AT_FDCWD, 0), (AT_FDCWD, 1), 0)),
    (nr::linkat, |call| {
        call.flags(4, AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)?;
        link(call, (call.int(0), 1), (call.int(2), 3), call.arg(4))
    }),
    (nr::symlink, |call| symlink(call, AT_FDCWD, 1)),
    (nr::symlinkat, |call| symlink(call, call.int(1), 2)),
    (nr::getdents64, getdents64),
    (nr::chdir, |call| {
        let mut path = PathName::empty();
        path.read(call.arg(0))?;
        let walker = Walker::of(call);
        let location = names::find_directory(&walker.walk(call, AT_FDCWD, &path)?, &path)?;
        walker.context.set_cwd(location);
        Ok(0)
    }),
    (nr::fchdir, |call| {
        let file = call.file(0)?;
        let walker = Walker::of(call);
        file.inode().attr().check_search(&walker.caller())?;
        walker.context.set_cwd(file.path.clone());
        Ok(0)
    }),
    (nr::chroot, |call| {
        let mut path = PathName::empty();
        path.read(call.arg(0))?;
        let walker = Walker::of(call);
        let location = names::find_directory(&walker.walk(call, AT_FDCWD, &path)?, &path)?;
        if !call.task.creds.with(|creds| creds.capable(cap::SYS_CHROOT)) {
            return Err(Errno::EPERM);
        }
        walker.context.set_root(location);
        Ok(0)
    }),
    (nr::getcwd, getcwd),
    (nr::umask, |call| Ok(call.task.fs().set_umask(call.uint(0)) as usize)),
];

fn mkdir(call: &Call<'_>, dir: i32, path: usize) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    names::make_directory(&walker.walk(call, dir, &name)?, &name, call.uint(path + 1)).map(|()| 0)
}

fn mknod(call: &Call<'_>, dir: i32, path: usize) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    let walk = walker.walk(call, dir, &name)?;
    names::make_node(&walk, &name, call.uint(path + 1), call.word(path + 2)).map(|_| 0)
}

fn remove(call: &Call<'_>, dir: i32, path: usize, directory: bool) -> SysResult {
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    let walk = walker.walk(call, dir, &name)?;
    if directory { names::remove_directory(&walk, &name) } else { names::unlink(&walk, &name) }.map(|()| 0)
}

fn rename(call: &Call<'_>, from: (i32, usize), to: (i32, usize), flags: u64) -> SysResult {
    let flags = flags & 0xffff_ffff;
    let whiteout = flags & RENAME_WHITEOUT != 0;
    let mode = match flags & !RENAME_WHITEOUT {
        0 => RenameMode::Replace,
        RENAME_NOREPLACE => RenameMode::KeepTarget,
        RENAME_EXCHANGE if !whiteout => RenameMode::Exchange,
        _ => return Err(Errno::EINVAL),
    };
    let (mut old, mut new) = (PathName::empty(), PathName::empty());
    old.read(call.arg(from.1))?;
    new.read(call.arg(to.1))?;
    let walker = Walker::of(call);
    let (old_walk, new_walk) = (walker.walk(call, from.0, &old)?, walker.walk(call, to.0, &new)?);
    names::rename((&old_walk, &old), (&new_walk, &new), mode, whiteout).map(|()| 0)
}

fn link(call: &Call<'_>, from: (i32, usize), to: (i32, usize), flags: u64) -> SysResult {
    let (mut old, mut new) = (PathName::empty(), PathName::empty());
    old.read(call.arg(from.1))?;
    new.read(call.arg(to.1))?;
    let walker = Walker::of(call);
    // A descriptor may have come from where its receiver cannot go.
    if flags & AT_EMPTY_PATH != 0 && !walker.caller().has(cap::DAC_READ_SEARCH) {
        return Err(Errno::ENOENT);
    }
    let source = if old.is_empty() && flags & AT_EMPTY_PATH != 0 {
        walker.locate(call, from.0, &old, AT_EMPTY_PATH)?
    } else {
        let last = if flags & AT_SYMLINK_FOLLOW != 0 { Last::Follow } else { Last::Keep };
        walker.walk(call, from.0, &old)?.find(&old, last)?
    };
    names::make_link(&walker.walk(call, to.0, &new)?, &source, &new).map(|()| 0)
}

fn symlink(call: &Call<'_>, dir: i32, path: usize) -> SysResult {
    let mut target = PathName::empty();
    target.read(call.arg(0))?;
    let mut name = PathName::empty();
    name.read(call.arg(path))?;
    let walker = Walker::of(call);
    names::make_symlink(&walker.walk(call, dir, &name)?, &name, &target).map(|()| 0)
}

/// Bytes of entries packed at a time; larger buffers of the program are filled by several rounds of it.
const PACKED: usize = 4096;

/// Entries 0 and 1 are `.` and `..`; the file system's cookies follow, shifted by 2.
fn getdents64(call: &mut Call<'_>) -> SysResult {
    let file = call.open_file(0)?;
    if !file.inode().attr().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    if file.path.dentry.is_removed() {
        return Err(Errno::ENOENT);
    }
    let (buffer, size) = (call.arg(1), call.uint(2) as usize);
    let mut packed = alloc::vec![0; size.min(PACKED)];
    let mut done = 0;
    loop {
        let room = packed.len().min(size - done);
        let round = list(&file, &mut packed[..room])?;
        if round.used > 0 {
            write_bytes(buffer + done as u64, &packed[..round.used])?;
            file.set_position(round.next);
            done += round.used;
        }
        match round.end {
            End::Listed => break,
            End::Full if round.used == 0 && done == 0 => return Err(Errno::EINVAL),
            End::Full if round.used == 0 => break,
            End::Full => {}
        }
    }
    file.inode().attr().touch_accessed();
    Ok(done)
}

#[derive(PartialEq, Eq)]
enum End {
    /// Nothing more to list.
    Listed,
    /// The next entry did not fit.
    Full,
}

struct Round {
    used: usize,
    next: u64,
    end: End,
}

fn list(file: &File, into: &mut [u8]) -> Result<Round, Errno> {
    let mut round = Round { used: 0, next: file.position(), end: End::Listed };
    let own = file.inode().attr().ino;
    let parent = file.path.dentry.parent().map_or(own, |parent| parent.inode.attr().ino);
    let mut put = |next: u64, ino: u64, mode: u32, name: &[u8]| {
        let size = dirent::pack(&mut into[round.used..], ino, next, dirent::kind_of_mode(mode), name);
        match size {
            Some(size) => {
                round.used += size;
                round.next = next;
                true
            }
            None => {
                round.end = End::Full;
                false
            }
        }
    };
    let start = file.position();
    let dots = (start > 0 || put(1, own, S_IFDIR, b".")) && (start > 1 || put(2, parent, S_IFDIR, b".."));
    if dots {
        let from = start.saturating_sub(2);
        file.ops.readdir(file, from, &mut |next, ino, mode, name| put(next + 2, ino, mode, name))?;
    }
    Ok(round)
}

fn getcwd(call: &mut Call<'_>) -> SysResult {
    const SHORT: usize = 256;
    let context = call.task.fs();
    let (root, cwd) = (context.root(), context.cwd());
    if cwd.dentry.is_removed() {
        return Err(Errno::ENOENT);
    }
    // One byte is kept for the terminating zero.
    let mut short = [0; SHORT];
    let mut long = alloc::vec::Vec::new();
    let name = match cwd.write_name(&root, &mut short[..SHORT - 1]) {
        Ok(start) => &short[start..],
        Err(_) => {
            long.resize(PATH_MAX, 0);
            let start = cwd.write_name(&root, &mut long[..PATH_MAX - 1])?;
            &long[start..]
        }
    };
    if name.len() > call.size(1) {
        return Err(Errno::ERANGE);
    }
    write_bytes(call.arg(0), name)?;
    Ok(name.len())
}
