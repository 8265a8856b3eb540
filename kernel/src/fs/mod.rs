//! Files: names, inodes, open descriptions, mounts, and the file systems.
//!
//! *Inode* ([`inode`]): a file. *Dentry* ([`dentry`]): a name for one. *Path* ([`path`]): a dentry in a mount
//! ([`mount`]), a node a process can stand on. *File* ([`mod@file`]): an open description, which descriptors
//! ([`fdtable`]) stand for. [`walk`] turns path names into paths; [`open`] turns paths into files, [`names`] makes and
//! removes names. The file systems are [`tmpfs`] (also the root, filled by [`initramfs`], and `/dev`, whose nodes lead
//! to [`dev`]) and [`sysfs`], and [`hugetlb`] for files of huge pages; the layers above build `/proc` and `/dev/pts`.
//!
//! What the file layer needs of the running thread is in [`Actor`], what it needs of the layers above in [`Above`].

pub mod anon;
pub mod attr;
pub mod closing;
pub mod context;
pub mod dev;
pub mod fdtable;
pub mod filelock;
pub mod headers;
pub mod hugetlb;
pub mod initramfs;
pub mod inode;
pub mod io;
mod limit;
pub mod mapped;
pub mod mount;
pub mod names;
pub mod open;
pub mod path;
pub mod seals;
pub mod slots;
pub mod sysfs;
pub mod tmpfs;
pub mod walk;

pub use context::FsContext;
pub use fdtable::{FdTable, TableSlot};
pub use file::{FasyncHook, File, Observers, Watcher};
pub use headers::Headers;
pub use inode::{Inode, Mapping, PageUse, dentry, file, watchers::Watchers};
pub use mapped::MappedFile;
pub use path::Path;
pub use slots::FileSlot;

use alloc::sync::Arc;

use kernel_logic::permission::Standing;
use linux_abi::Errno;
use linux_abi::capabilities::{self as cap, ALL as ALL_CAPS};

use attr::WallNanos;
use file::FileOps;

use crate::upper::try_current;

/// What the file layer needs of a thread.
pub trait Actor {
    /// Whether it holds this capability.
    fn capable(&self, capability: u32) -> bool;
    /// The user and group that own what it makes.
    fn file_owner(&self) -> (u32, u32);
    /// The largest file it may write, in bytes (`RLIMIT_FSIZE`).
    fn file_size_limit(&self) -> u64;
    /// The files it is closing.
    fn closing(&self) -> &closing::Closing;
}

/// What the file layer needs of the layers above.
pub trait Above {
    /// What opening a FIFO's name leads to.
    type Fifo: Fifo;
    /// Opens a terminal's device node: ENXIO if the number is none of a terminal.
    fn open_terminal(node: &inode::DeviceNode<'_>, flags: u32) -> Result<Arc<dyn FileOps>, Errno>;
    /// The running thread tried to write past [`Actor::file_size_limit`]: SIGXFSZ.
    fn file_too_large();
}

/// The inside of a FIFO.
pub trait Fifo: Default + Send + Sync + 'static {
    /// Opens an end as `O_*` flags say: waits for the other one unless told not to (fifo(7)).
    fn open(&self, flags: u32) -> Result<Arc<dyn FileOps>, Errno>;
}

/// The credentials that file permissions depend on (credentials(7)).
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// File system user id.
    pub uid: u32,
    /// File system group id.
    pub gid: u32,
    /// Supplementary group ids.
    pub groups: &'a [u32],
    /// Effective capability set.
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
    try_current().is_none_or(|task| task.capable(cap::FSETID))
}

/// The wall clock, for time stamps.
pub fn wall_now() -> WallNanos {
    crate::time::realtime() as WallNanos
}
