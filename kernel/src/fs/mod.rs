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
pub mod open;
pub mod path;
pub mod procfs;
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

/// Makes the root from the initial ramdisk and answers what init starts with. Once, before the first process.
pub fn start(ramdisk: &'static [u8], memory_pages: u64) -> alloc::sync::Arc<FsContext> {
    tmpfs::set_memory(memory_pages);
    let fs = tmpfs::TmpFs::new("rootfs", tmpfs::half_of_memory(), 0o755, b"");
    let root = mount::FileSystem::root(&*fs);
    let mount = mount::Mount::new(fs, root.clone(), b"rootfs", 0);
    mount::set_root(&mount);
    if let Err(error) = initramfs::prepare(&root) {
        crate::log::error!("root: {error}");
    }
    if !ramdisk.is_empty() {
        let (unpacked, result) = initramfs::unpack(&root, ramdisk);
        crate::log::info!("initramfs: {} members, {} KiB", unpacked.members, unpacked.bytes >> 10);
        if let Err(error) = result {
            crate::log::error!("initramfs: {error:?}; what came before is there");
        }
    }
    alloc::sync::Arc::new(FsContext::new(mount.top()))
}

/// Opens the console for descriptors 0, 1 and 2 of init.
pub fn open_console(context: &FsContext) -> Result<alloc::sync::Arc<File>, linux_abi::Errno> {
    let walk = walk::Walk { who: Caller::KERNEL, context, base: None, restrict: 0 };
    open::open(&walk, b"/dev/console", open::How { flags: 2, mode: 0 })
}
