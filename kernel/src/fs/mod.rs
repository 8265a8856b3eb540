//! Files: names, inodes, open descriptions, mounts, and the file systems.
//!
//! *Inode* ([`inode`]): a file. *Dentry* ([`dentry`]): a name for one. *Path* ([`path`]): a dentry in a mount ([`mount`]), a place
//! a process can stand on. *File* ([`file`]): an open description, which descriptors ([`fdtable`]) stand for. [`walk`] turns
//! path names into places; [`open`] turns places into files, [`names`] makes and removes names. The file systems are [`tmpfs`]
//! (also the root, filled by [`initramfs`], and `/dev`, whose nodes lead to [`dev`]), [`procfs`] and [`sysfs`].

pub mod attr;
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
    /// CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_CHOWN and CAP_FSETID: root, in a system without file capabilities.
    pub privileged: bool,
}

impl Caller<'_> {
    /// The kernel itself.
    pub const KERNEL: Caller<'static> = Caller { uid: 0, gid: 0, groups: &[], privileged: true };

    /// How this caller stands to a file of `uid` and `gid`.
    pub fn standing(&self, uid: u32, gid: u32) -> Standing {
        Standing { owner: self.uid == uid, group: self.in_group(gid), overrides: self.privileged }
    }

    /// Whether `gid` is among this caller's groups.
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Whether this caller may do what owners may.
    pub fn owns(&self, uid: u32) -> bool {
        self.uid == uid || self.privileged
    }
}

/// Whether the running thread may override what owners and modes say.
pub fn current_is_privileged() -> bool {
    crate::task::try_current()
        .is_none_or(|task| task.creds.with(|creds| creds.capable(crate::task::creds::cap::FSETID)))
}

/// The wall clock, for time stamps.
pub fn wall_now() -> WallNanos {
    crate::time::realtime() as WallNanos
}
