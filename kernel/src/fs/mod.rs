//! Files: names, inodes, open descriptions, mounts, and the file systems.
//!
//! *Inode* ([`inode`]): a file. *Dentry* ([`dentry`]): a name for one. *Path* ([`path`]): a dentry in a mount ([`mount`]), a place
//! a process can stand on. *File* ([`file`]): an open description, which descriptors ([`fdtable`]) stand for. [`walk`] turns
//! path names into places; [`open`] turns places into files, [`names`] makes and removes names. The file systems are [`tmpfs`]
//! (also the root, filled by [`initramfs`], and `/dev`, whose nodes lead to [`dev`]), [`procfs`] and [`sysfs`].

pub mod anon;
pub mod attr;
pub mod closing;
pub mod context;
pub mod dentry;
pub mod dev;
pub mod fdtable;
pub mod file;
pub mod filelock;
pub mod gate;
pub mod initramfs;
pub mod inode;
pub mod io;
mod limit;
pub mod mount;
pub mod names;
pub mod notice;
pub mod open;
pub mod path;
pub mod procfs;
pub mod seals;
pub mod sysfs;
pub mod tmpfs;
pub mod walk;

pub use context::FsContext;
pub use fdtable::FdTable;
pub use file::File;
pub use inode::{Inode, Mapping, PageUse};
pub use path::Path;

use crate::task::creds::{ALL_CAPS, cap};
use attr::WallNanos;
use kernel_logic::permission::Standing;

/// Who asks for something, as far as files care (credentials(7)).
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// File system user id.
    pub uid: u32,
    /// File system group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: &'a [u32],
    /// Effective capabilities.
    pub capabilities: u64,
}

impl Caller<'_> {
    /// The kernel itself.
    pub const KERNEL: Caller<'static> = Caller { uid: 0, gid: 0, groups: &[], capabilities: ALL_CAPS };

    /// How this caller stands to a file of `uid` and `gid`.
    pub fn standing(&self, uid: u32, gid: u32) -> Standing {
        Standing {
            owner: self.uid == uid,
            group: self.in_group(gid),
            overrides: self.has(cap::DAC_OVERRIDE),
            reads: self.has(cap::DAC_READ_SEARCH),
        }
    }

    /// Whether `gid` is among this caller's groups.
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// `mode` as a file it makes in the directory of `dir` may have it.
    pub fn mode_in(&self, dir: &attr::Attr, mode: u32) -> u32 {
        kernel_logic::permission::mode_in(dir.mode(), self.in_group(dir.gid()), self.has(cap::FSETID), mode)
    }

    /// Whether it holds a capability of [`cap`].
    pub const fn has(&self, capability: u32) -> bool {
        self.capabilities & (1 << capability) != 0
    }

    /// Whether this caller may do what owners may.
    pub fn owns(&self, uid: u32) -> bool {
        self.uid == uid || self.has(cap::FOWNER)
    }
}

/// Whether the running thread may override what owners and modes say.
pub fn current_is_privileged() -> bool {
    crate::task::try_current().is_none_or(|task| task.creds.with(|creds| creds.capable(cap::FSETID)))
}

/// The wall clock, for time stamps.
pub fn wall_now() -> WallNanos {
    crate::time::realtime() as WallNanos
}
