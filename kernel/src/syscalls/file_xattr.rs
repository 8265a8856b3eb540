//! Extended attributes (xattr(7)): as on a tmpfs of Linux 6.1, `trusted.*` for root and `security.*`, nothing else.

use alloc::vec::Vec;

use linux_abi::Errno;
use linux_abi::flags::file::{AT_SYMLINK_NOFOLLOW, XATTR_CREATE, XATTR_REPLACE};
use linux_abi::syscalls::nr;

use super::lookup::{AT_FDCWD, PathName, Walker, only};
use super::{Call, Calls, SysResult};
use crate::fs::Path;
use crate::mm::frames::spare;
use crate::task::creds::cap;
use crate::user::{read_bytes, read_string, write_bytes};

/// Longest name (`XATTR_NAME_MAX`).
const LONGEST_NAME: usize = 255;
/// Largest value (`XATTR_SIZE_MAX`).
const LARGEST: usize = 65536;

/// The calls of this area.
pub const CALLS: Calls = &[
    (nr::getxattr, |call| find(call, 0).and_then(|location| get(call, &location))),
    (nr::lgetxattr, |call| find(call, AT_SYMLINK_NOFOLLOW).and_then(|location| get(call, &location))),
    (nr::fgetxattr, |call| open(call).and_then(|location| get(call, &location))),
    (nr::setxattr, |call| set(call, |call| find(call, 0))),
    (nr::lsetxattr, |call| set(call, |call| find(call, AT_SYMLINK_NOFOLLOW))),
    (nr::fsetxattr, |call| set(call, open)),
    (nr::listxattr, |call| find(call, 0).and_then(|location| list(call, &location))),
    (nr::llistxattr, |call| find(call, AT_SYMLINK_NOFOLLOW).and_then(|location| list(call, &location))),
    (nr::flistxattr, |call| open(call).and_then(|location| list(call, &location))),
    (nr::removexattr, |call| find(call, 0).and_then(|location| remove(call, &location))),
    (nr::lremovexattr, |call| find(call, AT_SYMLINK_NOFOLLOW).and_then(|location| remove(call, &location))),
    (nr::fremovexattr, |call| open(call).and_then(|location| remove(call, &location))),
];

fn find(call: &Call<'_>, flags: u64) -> Result<Path, Errno> {
    let mut name = PathName::empty();
    name.read(call.arg(0))?;
    Walker::of(call).locate(call, AT_FDCWD, &name, flags)
}

fn open(call: &Call<'_>) -> Result<Path, Errno> {
    call.open_file(0).map(|file| file.path.clone())
}

fn read_name(call: &Call<'_>) -> Result<Vec<u8>, Errno> {
    let name = read_string(call.arg(1), LONGEST_NAME + 1, Errno::ERANGE)?;
    if name.is_empty() || name.len() > LONGEST_NAME { Err(Errno::ERANGE) } else { Ok(name) }
}

fn is_root(call: &Call<'_>) -> bool {
    call.task.creds.with(|creds| creds.capable(cap::SYS_ADMIN))
}

/// Whether a name may be used: EOPNOTSUPP for other families; `trusted` is root's alone.
fn check_name(call: &Call<'_>, name: &[u8], writes: bool) -> Result<(), Errno> {
    let trusted = name.starts_with(b"trusted.");
    if !trusted && !name.starts_with(b"security.") {
        return Err(Errno::EOPNOTSUPP);
    }
    match (is_root(call), writes) {
        (true, _) => Ok(()),
        (false, true) => Err(Errno::EPERM),
        (false, false) if trusted => Err(Errno::ENODATA),
        (false, false) => Ok(()),
    }
}

fn get(call: &Call<'_>, location: &Path) -> SysResult {
    let name = read_name(call)?;
    check_name(call, &name, false)?;
    let attributes = location.inode().attributes().ok_or(Errno::EOPNOTSUPP)?;
    let value = attributes.lock().get(&name).cloned().ok_or(Errno::ENODATA)?;
    copy_out(&value, call.arg(2), call.arg(3))
}

/// A size of 0 asks for the length.
fn copy_out(bytes: &[u8], to: u64, size: u64) -> SysResult {
    if size == 0 {
        return Ok(bytes.len());
    }
    if (size as usize) < bytes.len() {
        return Err(Errno::ERANGE);
    }
    write_bytes(to, bytes).map(|()| bytes.len())
}

fn set(call: &Call<'_>, location: impl FnOnce(&Call<'_>) -> Result<Path, Errno>) -> SysResult {
    let flags = call.word(4);
    only(flags, XATTR_CREATE | XATTR_REPLACE)?;
    let location = location(call)?;
    let name = read_name(call)?;
    let size = usize::try_from(call.arg(3)).ok().filter(|&size| size <= LARGEST).ok_or(Errno::E2BIG)?;
    spare()?;
    let mut value = alloc::vec![0; size];
    read_bytes(call.arg(2), &mut value)?;
    check_name(call, &name, true)?;
    location.check_writable()?;
    let mut attributes = location.inode().attributes().ok_or(Errno::EOPNOTSUPP)?.lock();
    match attributes.contains_key(&name) {
        true if flags & XATTR_CREATE != 0 => return Err(Errno::EEXIST),
        false if flags & XATTR_REPLACE != 0 => return Err(Errno::ENODATA),
        _ => attributes.insert(name, value),
    };
    drop(attributes);
    location.inode().attr().touch_changed();
    Ok(0)
}

fn list(call: &Call<'_>, location: &Path) -> SysResult {
    let mut names = Vec::new();
    if let Some(attributes) = location.inode().attributes() {
        let root = is_root(call);
        for name in attributes.lock().keys().filter(|name| root || !name.starts_with(b"trusted.")) {
            names.extend_from_slice(name);
            names.push(0);
        }
    }
    copy_out(&names, call.arg(1), call.arg(2))
}

fn remove(call: &Call<'_>, location: &Path) -> SysResult {
    let name = read_name(call)?;
    check_name(call, &name, true)?;
    location.check_writable()?;
    let attributes = location.inode().attributes().ok_or(Errno::EOPNOTSUPP)?;
    let gone = attributes.lock().remove(&name);
    gone.ok_or(Errno::ENODATA)?;
    location.inode().attr().touch_changed();
    Ok(0)
}
