//! Path arguments: reads a path from user memory once, and resolves it for the calling thread.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;

use kernel_logic::path::PATH_MAX;
use linux_abi::Errno;
use linux_abi::flags::file::{AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW};
pub use linux_abi::numbers::AT_FDCWD;
use machine::addr::UserAddr;

use super::Call;
use crate::fs::dentry::Moment;
use crate::fs::walk::{Last, Walk};
use crate::fs::{Caller, FsContext, Path};
use crate::task::Creds;
use crate::trace::ring;
use crate::user;

/// Bytes of a path that need no heap: nearly all do not.
const SHORT: usize = 64;

/// A path, copied from the program once.
pub struct PathName {
    short: [u8; SHORT],
    length: usize,
    long: Vec<u8>,
}

impl PathName {
    /// One to read into: moved once it holds a path, it would be copied at each step.
    #[inline]
    pub const fn empty() -> Self {
        Self { short: [0; SHORT], length: 0, long: Vec::new() }
    }

    /// Reads the string at `addr`, once: ENAMETOOLONG from `PATH_MAX` on.
    pub fn read(&mut self, addr: u64) -> Result<(), Errno> {
        match machine::user::read_str(UserAddr(addr), &mut self.short).map_err(|_| Errno::EFAULT)? {
            Some(length) => {
                self.length = length;
                ring::text(addr, &self.short, length);
                Ok(())
            }
            None => self.read_long(addr),
        }
    }

    #[cold]
    #[inline(never)]
    fn read_long(&mut self, addr: u64) -> Result<(), Errno> {
        self.long = user::read_string(addr, PATH_MAX, Errno::ENAMETOOLONG)?;
        ring::long_text(addr, &self.long);
        Ok(())
    }
}

impl Deref for PathName {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.length] } else { &self.long }
    }
}

/// Credentials and starting directories of a walk.
pub struct Walker {
    creds: Arc<Creds>,
    /// Root, working directory, umask.
    pub context: Arc<FsContext>,
    real: bool,
}

impl Walker {
    /// The calling thread.
    #[inline]
    pub fn of(call: &Call<'_>) -> Self {
        Self { creds: call.task.creds(), context: call.task.fs(), real: false }
    }

    /// The calling thread judged by its real ids (access(2)).
    pub fn real(call: &Call<'_>) -> Self {
        Self { real: true, ..Self::of(call) }
    }

    /// The ids and capabilities that permission checks use.
    #[inline]
    pub fn caller(&self) -> Caller<'_> {
        let creds = &*self.creds;
        let (uid, gid, capabilities) = if self.real {
            (creds.uid, creds.gid, if creds.uid == 0 { creds.permitted } else { 0 })
        } else {
            (creds.fsuid, creds.fsgid, creds.effective)
        };
        Caller { uid, gid, groups: &creds.groups, capabilities }
    }

    /// A walk of `path` from the descriptor `dir` (`AT_FDCWD`: the working directory).
    #[inline]
    pub fn walk(&self, call: &Call<'_>, dir: i32, path: &[u8]) -> Result<Walk<'_>, Errno> {
        let absolute = path.first() == Some(&b'/');
        let base = if dir == AT_FDCWD || absolute { None } else { Some(call.task.files().get(dir)?.path.clone()) };
        Ok(Walk { who: self.caller(), context: &self.context, base, restrict: 0, began: Moment::ANY })
    }

    /// The path that `dir`, `path` and `AT_*` flags name together (stat and its kin).
    pub fn locate(&self, call: &Call<'_>, dir: i32, path: &[u8], flags: u64) -> Result<Path, Errno> {
        if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
            return if dir == AT_FDCWD { Ok(self.context.cwd()) } else { Ok(call.task.files().get(dir)?.path.clone()) };
        }
        let last = if flags & AT_SYMLINK_NOFOLLOW != 0 { Last::Keep } else { Last::Follow };
        self.walk(call, dir, path)?.find(path, last)
    }
}

/// EINVAL for flags outside `known`.
pub fn only(flags: u64, known: u64) -> Result<(), Errno> {
    if flags & 0xffff_ffff & !known != 0 { Err(Errno::EINVAL) } else { Ok(()) }
}
