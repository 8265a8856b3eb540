//! Inodes and dentries of what has no name: pipes, sockets, event counters, epolls.
//!
//! They are on mounts that stand nowhere. Event counters and epolls share one inode, as on Linux: nothing tells them
//! apart but the descriptor.

use alloc::sync::Arc;

use linux_abi::Errno;
use machine::sync::Once;

use crate::fs::attr::Attr;
use crate::fs::dentry::Dentry;
use crate::fs::file::{File, FileOps};
use crate::fs::inode::{Inode, OpenRequest};
use crate::fs::mount::{FileSystem, Mount, Statistics};
use crate::fs::{Actor as _, FileSlot, Path, tmpfs};
use crate::upper::try_current;

/// An inode that is only numbers.
pub struct AnonInode {
    attr: Attr,
}

impl AnonInode {
    /// Of type and permissions `mode`, owned by the running thread.
    pub fn new(mount: &Mount, mode: u32) -> Arc<Self> {
        Arc::new(Self { attr: attr(mount, mode) })
    }
}

impl Inode for AnonInode {
    fn attr(&self) -> &Attr {
        &self.attr
    }

    fn open(self: Arc<Self>, _request: &OpenRequest) -> Result<Arc<dyn FileOps>, Errno> {
        Err(Errno::ENXIO)
    }
}

/// Attributes of something without a name, owned by the running thread.
pub fn attr(mount: &Mount, mode: u32) -> Attr {
    let (uid, gid) = try_current().map_or((0, 0), |task| task.file_owner());
    Attr::new(mount.fs.dev(), mode, uid, gid, 0)
}

/// The mount they are on.
pub fn mount() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    nowhere(&MOUNT, "anon_inodefs", 0x0904_1934)
}

/// The mount that pipes are on.
pub fn pipes() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    nowhere(&MOUNT, "pipefs", 0x5049_5045)
}

/// The mount that sockets are on.
pub fn sockets() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    nowhere(&MOUNT, "sockfs", 0x534f_434b)
}

/// The mount that message queues are on.
pub fn queues() -> &'static Arc<Mount> {
    static MOUNT: Once<Arc<Mount>> = Once::new();
    nowhere(&MOUNT, "mqueue", 0x1980_0202)
}

fn nowhere(slot: &'static Once<Arc<Mount>>, kind: &'static str, magic: u64) -> &'static Arc<Mount> {
    loop {
        if let Some(mount) = slot.get() {
            return mount;
        }
        let dev = tmpfs::next_dev();
        let inode = Arc::new(AnonInode { attr: Attr::new(dev, crate::fs::attr::S_IFDIR | 0o500, 0, 0, 0) });
        let root = Dentry::detached("anon_inode:", inode);
        let fs = Arc::new(AnonFs { kind, magic, dev, root: root.clone() });
        // Of two that come here at once, one is used.
        let _ = slot.set(Mount::new(fs, root, b"none", 0));
    }
}

/// Opens `ops` on an inode of its own, on one of these mounts.
pub fn open(
    mount: &Arc<Mount>,
    kind: &'static str,
    inode: Arc<dyn Inode>,
    ops: Arc<dyn FileOps>,
    flags: u32,
    slot: FileSlot,
) -> Arc<File> {
    let path = Path { mount: mount.clone(), dentry: Dentry::detached(kind, inode) };
    File::new(path, ops, flags, slot)
}

/// Opens `ops` on the shared inode.
pub fn open_shared(kind: &'static str, ops: Arc<dyn FileOps>, flags: u32, slot: FileSlot) -> Arc<File> {
    static SHARED: Once<Arc<AnonInode>> = Once::new();
    let inode = loop {
        if let Some(inode) = SHARED.get() {
            break inode.clone();
        }
        // Of two that come here at once, one is used. It belongs to root: all processes share it.
        let _ = SHARED.set(Arc::new(AnonInode { attr: Attr::new(mount().fs.dev(), 0o600, 0, 0, 0) }));
    };
    open(mount(), kind, inode, ops, flags, slot)
}

struct AnonFs {
    kind: &'static str,
    magic: u64,
    dev: u64,
    root: Arc<Dentry>,
}

impl FileSystem for AnonFs {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn dev(&self) -> u64 {
        self.dev
    }

    fn root(&self) -> Arc<Dentry> {
        self.root.clone()
    }

    fn statistics(&self) -> Statistics {
        Statistics { magic: self.magic, ..Statistics::default() }
    }
}
