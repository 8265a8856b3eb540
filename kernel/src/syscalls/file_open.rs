//! Opening and closing: open(2), openat2(2), creat(2), close(2), close_range(2), memfd_create(2).

use alloc::sync::Arc;

use linux_abi::Errno;
use linux_abi::flags::file::{
    CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE, MFD_ALLOW_SEALING, MFD_CLOEXEC, MFD_HUGETLB, O_CLOEXEC, O_CREAT, O_PATH,
    O_TMPFILE, O_TRUNC, O_WRONLY, RESOLVE_BENEATH, RESOLVE_CACHED, RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS,
    RESOLVE_NO_SYMLINKS, RESOLVE_NO_XDEV,
};
use linux_abi::numbers::{MAP_HUGE_MASK, MAP_HUGE_SHIFT};
use linux_abi::syscalls::nr;

use super::lookup::{AT_FDCWD, PathName, Walker, only};
use super::memory::HUGE_SIZE;
use super::{Call, Calls, SysResult};
use crate::fs::attr::S_IFREG;
use crate::fs::dentry::{Dentry, Moment};
use crate::fs::file::{File, Hold};
use crate::fs::hugetlb::{self, HugeFile};
use crate::fs::inode::{Inode, NewNode};
use crate::fs::mount::{FileSystem, Mount};
use crate::fs::open::{How, open};
use crate::fs::tmpfs::{TmpFs, half_of_memory};
use crate::fs::{FileSlot, Path};
use crate::task::limits::resource;
use crate::user::{read_bytes, read_string};
use machine::sync::Once;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::open, |call| open_at(call, AT_FDCWD, call.arg(0), How { flags: call.uint(1), mode: call.uint(2) }, 0)),
    (nr::openat, |call| open_at(call, call.int(0), call.arg(1), How { flags: call.uint(2), mode: call.uint(3) }, 0)),
    (nr::openat2, openat2),
    (nr::creat, |call| {
        let flags = (O_CREAT | O_WRONLY | O_TRUNC) as u32;
        open_at(call, AT_FDCWD, call.arg(0), How { flags, mode: call.uint(1) }, 0)
    }),
    (nr::close, close),
    (nr::close_range, close_range),
    (nr::memfd_create, memfd_create),
];

/// The enforced limit on descriptor numbers.
#[inline]
pub fn fd_limit(call: &Call<'_>) -> u32 {
    /// `/proc/sys/fs/nr_open`: no table grows beyond it, whatever the limit.
    const NR_OPEN: u64 = 1 << 18;
    call.task.process.limit(resource::NOFILE).min(NR_OPEN) as u32
}

/// Gives a file the lowest number.
#[inline]
pub fn install(call: &Call<'_>, file: Arc<File>, close_on_exec: bool) -> SysResult {
    call.task.files().install(file, 0, fd_limit(call), close_on_exec).map(|fd| fd as usize)
}

fn open_at(call: &Call<'_>, dir: i32, path: u64, how: How, restrict: u32) -> SysResult {
    let mut name = PathName::empty();
    name.read(path)?;
    let walker = Walker::of(call);
    let mut walk = walker.walk(call, dir, &name)?;
    if restrict != 0 && dir != AT_FDCWD {
        walk.base = Some(call.task.files().get(dir)?.path.clone());
    }
    walk.restrict = restrict;
    walk.began = Moment::now();
    let file = open(&walk, &name, how)?;
    install(call, file, how.flags & O_CLOEXEC as u32 != 0)
}

/// `struct open_how`: flags, mode, resolve.
fn openat2(call: &mut Call<'_>) -> SysResult {
    const SIZE: usize = 24;
    let known = RESOLVE_BENEATH
        | RESOLVE_CACHED
        | RESOLVE_IN_ROOT
        | RESOLVE_NO_MAGICLINKS
        | RESOLVE_NO_SYMLINKS
        | RESOLVE_NO_XDEV;
    let size = call.size(3);
    if size < SIZE {
        return Err(Errno::EINVAL);
    }
    if size > 4096 {
        return Err(Errno::E2BIG);
    }
    let mut bytes = alloc::vec![0; size];
    read_bytes(call.arg(2), &mut bytes)?;
    if bytes[SIZE..].iter().any(|&byte| byte != 0) {
        return Err(Errno::E2BIG);
    }
    let mut words =
        bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)));
    let (flags, mode, resolve) = (words.next().unwrap_or(0), words.next().unwrap_or(0), words.next().unwrap_or(0));
    let creates = flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE;
    if flags & !0x7f_ffff != 0 || resolve & !known != 0 || mode & !0o7777 != 0 || (mode != 0 && !creates) {
        return Err(Errno::EINVAL);
    }
    if resolve & RESOLVE_BENEATH != 0 && resolve & RESOLVE_IN_ROOT != 0 {
        return Err(Errno::EINVAL);
    }
    let path_only = O_PATH | 0x23_0000 | O_CLOEXEC;
    if flags & O_PATH != 0 && flags & !path_only != 0 {
        return Err(Errno::EINVAL);
    }
    if resolve & RESOLVE_CACHED != 0 && flags & (O_CREAT | O_TRUNC) != 0 {
        return Err(Errno::EAGAIN);
    }
    open_at(call, call.int(0), call.arg(1), How { flags: flags as u32, mode: mode as u32 }, resolve as u32)
}

fn close(call: &mut Call<'_>) -> SysResult {
    let file = call.task.files().close(call.int(0))?;
    drop(file);
    Ok(0)
}

fn close_range(call: &mut Call<'_>) -> SysResult {
    let (first, last, flags) = (call.uint(0), call.uint(1), call.word(2));
    only(flags, CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)?;
    if first > last {
        return Err(Errno::EINVAL);
    }
    let own = if flags & CLOSE_RANGE_UNSHARE != 0 { call.task.files.own()? } else { None };
    let files = own.unwrap_or_else(|| call.task.files());
    if flags & CLOSE_RANGE_CLOEXEC != 0 {
        files.mark_range(first, last);
    } else {
        files.close_range(first, last);
    }
    Ok(0)
}

/// The file system that files without a name are on.
fn nameless() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    loop {
        if let Some(mount) = MOUNT.get() {
            return mount;
        }
        let fs = TmpFs::new("tmpfs", 2 * half_of_memory(), 0o1777, b"");
        fs.hold_nameless();
        let root = fs.root();
        // Of two that come here at once, one is used.
        let _ = MOUNT.set(Mount::new(fs, root, b"tmpfs", 0));
    }
}

fn memfd_create(call: &mut Call<'_>) -> SysResult {
    const LONGEST: usize = 249;
    let huge = call.arg(1) & MFD_HUGETLB != 0;
    let sizes = if huge { MAP_HUGE_MASK << MAP_HUGE_SHIFT } else { 0 };
    call.flags(1, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | sizes)?;
    let name = read_string(call.arg(0), LONGEST + 1, Errno::EINVAL)?;
    let walker = Walker::of(call);
    let who = walker.caller();
    let slot = FileSlot::take()?;
    if huge && !matches!(call.arg(1) >> MAP_HUGE_SHIFT & MAP_HUGE_MASK, 0 | HUGE_SIZE) {
        return Err(Errno::ENODEV);
    }
    let root = if huge { hugetlb::mount().top() } else { nameless().top() };
    let new = NewNode { mode: S_IFREG | 0o777, uid: who.uid, gid: who.gid, rdev: 0 };
    let inode: Arc<dyn Inode> =
        if huge { HugeFile::unnamed(new) } else { root.inode().create_unnamed(&root.dentry, new)?.inode.clone() };
    let mut shown = b"memfd:".to_vec();
    shown.extend_from_slice(&name);
    let dentry = Dentry::new(&shown, Some(root.dentry.clone()), inode);
    dentry.set_removed();
    let path = Path { mount: root.mount, dentry };
    if call.arg(1) & MFD_ALLOW_SEALING != 0
        && let Some(seals) = path.inode().seals()
    {
        seals.open();
    }
    let request = crate::fs::inode::OpenRequest { flags: 2 };
    let ops = path.inode().clone().open(&request)?;
    let flags = 2 | linux_abi::flags::file::O_LARGEFILE as u32;
    // It may be executed while it is open: it has no counted writer.
    install(call, File::holding(path, ops, flags, Hold::None, slot), call.arg(1) & MFD_CLOEXEC != 0)
}
