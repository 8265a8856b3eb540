//! Calls about mounts: mount(2) and umount2(2) (all processes share one tree, and pivot_root(2) is ENOSYS).

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::system::{
    MNT_DETACH, MNT_EXPIRE, MNT_FORCE, MS_BIND, MS_MOVE, MS_PRIVATE, MS_REC, MS_REMOUNT, MS_SHARED, MS_SILENT,
    MS_SLAVE, MS_UNBINDABLE, UMOUNT_NOFOLLOW,
};
use linux_abi::syscalls::nr;

use super::lookup::{AT_FDCWD, PathName, Walker, only};
use super::{Call, Calls, SysResult};
use crate::fs::Path;
use crate::fs::mount::{self, FileSystem, KEPT_FLAGS, MS_RELATIME, Mount};
use crate::fs::tmpfs::{TmpFs, half_of_memory};
use crate::fs::walk::Last;
use crate::fs::{dev, sysfs};
use crate::procfs;
use crate::task::creds::cap;
use crate::tty::pty;
use crate::user::read_string;

/// The calls of this area.
pub const CALLS: Calls = &[(nr::mount, mount_call), (nr::umount2, umount)];

/// The first three are one: no mounts come from others. The last makes them spread.
const PROPAGATION: u64 = MS_UNBINDABLE | MS_PRIVATE | MS_SLAVE | MS_SHARED;

fn mount_call(call: &mut Call<'_>) -> SysResult {
    let flags = call.arg(3);
    let mut target = PathName::empty();
    target.read(call.arg(1))?;
    let walker = Walker::of(call);
    let at = walker.locate(call, AT_FDCWD, &target, 0)?;
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_ADMIN)) {
        return Err(Errno::EPERM);
    }
    let text = |addr| if addr == 0 { Ok(Vec::new()) } else { read_string(addr, 4096, Errno::EINVAL) };
    let source = text(call.arg(0))?;
    if flags & MS_REMOUNT != 0 {
        if !at.is_mount_root() {
            return Err(Errno::EINVAL);
        }
        at.mount.set_flags(kept(flags));
        return Ok(0);
    }
    if flags & MS_BIND != 0 || flags & (MS_MOVE | PROPAGATION) == MS_MOVE {
        // No name is not the current directory here.
        if source.is_empty() {
            return Err(Errno::EINVAL);
        }
    }
    if flags & MS_BIND != 0 {
        let from = walker.walk(call, AT_FDCWD, &source)?.find(&source, Last::Follow)?;
        if from.inode().attr().is_dir() != at.inode().attr().is_dir() {
            return Err(Errno::ENOTDIR);
        }
        mount::attach(&from.mount.bind(from.dentry.clone()), at);
        return Ok(0);
    }
    if flags & PROPAGATION != 0 {
        let kind = flags & !(MS_REC | MS_SILENT);
        if !at.is_mount_root() || kind & !PROPAGATION != 0 || !kind.is_power_of_two() {
            return Err(Errno::EINVAL);
        }
        at.mount.set_shared(flags & MS_SHARED != 0);
        return Ok(0);
    }
    if flags & MS_MOVE != 0 {
        let from = walker.walk(call, AT_FDCWD, &source)?.find(&source, Last::Follow)?;
        return move_mount(&from, at);
    }
    if call.arg(2) == 0 {
        return Err(Errno::EINVAL);
    }
    let kind = text(call.arg(2))?;
    let options = if call.arg(4) == 0 { Vec::new() } else { read_string(call.arg(4), 4096, Errno::EINVAL)? };
    let fs = make(&kind, &options)?;
    if !at.inode().attr().is_dir() {
        return Err(Errno::ENOTDIR);
    }
    let root = fs.root();
    mount::attach(&Mount::new(fs, root, &source, kept(flags)), at);
    Ok(0)
}

fn kept(flags: u64) -> u32 {
    flags as u32 & KEPT_FLAGS | MS_RELATIME
}

fn make(kind: &[u8], options: &[u8]) -> Result<Arc<dyn FileSystem>, Errno> {
    match kind {
        b"tmpfs" | b"ramfs" => new_tmpfs(options),
        b"devtmpfs" => devtmpfs(),
        b"devpts" => devpts(options),
        b"proc" => Ok(procfs::file_system()),
        b"sysfs" => Ok(sysfs::file_system()),
        _ => Err(Errno::ENODEV),
    }
}

/// There is one devpts. Of its options (mount(8)) `ptmxmode` is heeded; the others are accepted: a terminal belongs to
/// the user who opened the master.
fn devpts(options: &[u8]) -> Result<Arc<dyn FileSystem>, Errno> {
    let fs = pty::file_system()?;
    for option in options.split(|&byte| byte == b',') {
        if let Some(mode) = option.strip_prefix(b"ptmxmode=") {
            let mode = core::str::from_utf8(mode).ok().and_then(|mode| u32::from_str_radix(mode, 8).ok());
            let root = fs.root();
            let ptmx = root.inode.lookup(&root, b"ptmx")?;
            ptmx.inode.attr().set_permissions(mode.ok_or(Errno::EINVAL)?);
        }
    }
    Ok(fs)
}

/// There is one devtmpfs; mounting it again shows the same.
fn devtmpfs() -> Result<Arc<dyn FileSystem>, Errno> {
    static DEV: machine::sync::Once<Arc<TmpFs>> = machine::sync::Once::new();
    if let Some(fs) = DEV.get() {
        return Ok(fs.clone());
    }
    let fs = dev::new_devtmpfs()?;
    // Of two that come here at once, one is kept for later mounts.
    let _ = DEV.set(fs.clone());
    Ok(fs)
}

/// Options of tmpfs(5): `size` and `nr_blocks` bound it, `mode`, `uid` and `gid` describe its top; `nr_inodes` the
/// number of files.
fn new_tmpfs(options: &[u8]) -> Result<Arc<dyn FileSystem>, Errno> {
    let mut pages = half_of_memory();
    let (mut mode, mut uid, mut gid) = (0o1777, 0, 0);
    let mut most_nodes = None;
    let mut shown = Vec::new();
    for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
        let mut parts = option.splitn(2, |&byte| byte == b'=');
        let (name, value) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
        let value = core::str::from_utf8(value).map_err(|_| Errno::EINVAL)?;
        match name {
            b"size" => pages = size(value)?.div_ceil(4096),
            b"nr_blocks" => pages = size(value)?,
            b"mode" => mode = u32::from_str_radix(value, 8).map_err(|_| Errno::EINVAL)?,
            b"uid" => uid = value.parse().map_err(|_| Errno::EINVAL)?,
            b"gid" => gid = value.parse().map_err(|_| Errno::EINVAL)?,
            b"nr_inodes" => most_nodes = Some(size(value)?),
            b"huge" | b"mpol" | b"inode64" | b"inode32" => {}
            _ => return Err(Errno::EINVAL),
        }
        if matches!(name, b"size" | b"nr_inodes" | b"mode" | b"uid" | b"gid") {
            shown.push(b',');
            shown.extend_from_slice(option);
        }
    }
    let fs = TmpFs::new("tmpfs", pages, mode, &shown);
    if let Some(most) = most_nodes {
        fs.limit_nodes(most);
    }
    fs.root().inode.attr().set_owner(uid, gid);
    Ok(fs)
}

/// A number with `k`, `m`, `g` or `%` (of RAM) behind it.
fn size(text: &str) -> Result<u64, Errno> {
    let (digits, scale) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        Some(b'%') => (&text[..text.len() - 1], half_of_memory() * 2 * 4096 / 100),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale)).ok_or(Errno::EINVAL)
}

fn move_mount(from: &Path, at: Path) -> SysResult {
    if !from.is_mount_root() {
        return Err(Errno::EINVAL);
    }
    let mut above = Some(at.clone());
    while let Some(location) = above {
        if Arc::ptr_eq(&location.mount, &from.mount) {
            return Err(Errno::ELOOP);
        }
        above = location.mount.mounted_at();
    }
    mount::detach(from, true)?;
    mount::attach(&from.mount, at);
    Ok(0)
}

fn umount(call: &mut Call<'_>) -> SysResult {
    let flags = call.word(1);
    only(flags, MNT_FORCE | MNT_DETACH | MNT_EXPIRE | UMOUNT_NOFOLLOW)?;
    let mut path = PathName::empty();
    path.read(call.arg(0))?;
    let walker = Walker::of(call);
    let last = if flags & UMOUNT_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
    let top = walker.walk(call, AT_FDCWD, &path)?.find(&path, last)?;
    if !call.task.creds.with(|creds| creds.capable(cap::SYS_ADMIN)) {
        return Err(Errno::EPERM);
    }
    mount::detach(&top, flags & MNT_DETACH != 0).map(|()| 0)
}
