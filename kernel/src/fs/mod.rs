//! Files: names, inodes, open descriptions, mounts, and the file systems.
//!
//! *Inode* ([`inode`]): a file. *Dentry* ([`dentry`]): a name for one. *Path* ([`path`]): a dentry in a mount ([`mount`]), a place
//! a process can stand on. *File* ([`file`]): an open description, which descriptors ([`fdtable`]) stand for. [`walk`] turns
//! path names into places; [`open`] turns places into files. The file systems are [`tmpfs`] (also the root, filled by
//! [`initramfs`]), [`devfs`], [`procfs`] and [`sysfs`].

pub mod attr;
pub mod context;
pub mod dentry;
pub mod fdtable;
pub mod file;
pub mod filelock;
pub mod inode;
pub mod io;
pub mod mount;
pub mod path;

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

/// The wall clock, for time stamps.
pub fn wall_now() -> WallNanos {
    crate::time::realtime() as WallNanos
}
