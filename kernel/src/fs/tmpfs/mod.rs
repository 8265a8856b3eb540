//! The memory file system: the root, `/dev`, and what `mount -t tmpfs` gives.
//!
//! Names live in the directories themselves ([`node`]), bytes in frames that mappings share ([`data`]). A file of the
//! initramfs begins as a range of the archive: reads copy from there, and only a mapping or a write gives a page its
//! own frame.
//!
//! The tree holds itself together by two-way references (a directory its entries, an entry its parent), so the last
//! mount that goes takes it apart.

mod data;
mod dir;
mod node;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub use data::Archive;
use linux_abi::Errno;
pub use node::{Body, TmpNode};

use super::attr::{Attr, S_IFDIR};
use super::dentry::Dentry;
use super::inode::Inode;
use super::mount::{FileSystem, Statistics};
use crate::mm::frames;

/// Pages of all file systems together.
static PAGES: AtomicU64 = AtomicU64::new(0);

/// Pages that files have in memory, of all file systems together.
pub fn pages() -> u64 {
    PAGES.load(Relaxed)
}

/// Pages between two looks at the memory that is left.
const STRIDE: u64 = 16;

/// What the nodes of one file system share.
pub struct Pool {
    dev: u64,
    /// The most pages it may hold.
    most_pages: u64,
    used_pages: AtomicU64,
    /// Inodes, and further names of one: they take memory too.
    nodes: AtomicU64,
    /// The most of those it may hold.
    most_nodes: AtomicU64,
    /// Nothing may be made in it any more.
    fixed: AtomicBool,
    /// Its files have names: they outlive the programs that made them.
    named: AtomicBool,
}

impl Pool {
    /// Counts `pages` more; ENOSPC if that is too many.
    #[inline]
    pub fn charge(&self, pages: u64) -> Result<(), Errno> {
        // In one step: a charge that is taken back would make those of others fail meanwhile.
        let fits = |used: u64| used.checked_add(pages).filter(|sum| *sum <= self.most_pages);
        let used = self.used_pages.fetch_update(Relaxed, Relaxed, fits).map_err(|_| Errno::ENOSPC)?;
        // Asked for one page in many: what is kept for programs is more than that.
        if (used / STRIDE != (used + pages) / STRIDE || pages > STRIDE) && self.named.load(Relaxed) {
            frames::room_for_files().inspect_err(|_| {
                self.used_pages.fetch_sub(pages, Relaxed);
            })?;
        }
        PAGES.fetch_add(pages, Relaxed);
        Ok(())
    }

    /// Counts `pages` more that files have already, whatever the limit.
    pub fn charge_own(&self, pages: u64) {
        self.used_pages.fetch_add(pages, Relaxed);
        PAGES.fetch_add(pages, Relaxed);
    }

    /// Counts one more inode or name; ENOSPC when there are as many as there may be.
    fn take_node(&self) -> Result<(), Errno> {
        let most = self.most_nodes.load(Relaxed);
        let fits = |nodes: u64| (nodes < most).then_some(nodes + 1);
        self.nodes.fetch_update(Relaxed, Relaxed, fits).map(|_| ()).map_err(|_| Errno::ENOSPC)
    }

    /// Counts one inode or name less.
    fn give_node(&self) {
        self.nodes.fetch_sub(1, Relaxed);
    }

    /// Counts `pages` less.
    pub fn release(&self, pages: u64) {
        self.used_pages.fetch_sub(pages, Relaxed);
        PAGES.fetch_sub(pages, Relaxed);
    }
}

/// The pool of a file system, in which one inode is counted until this is dropped.
pub struct Share(Arc<Pool>);

impl Share {
    /// Counts one more inode. ENOSPC when there are as many as there may be.
    pub fn take(pool: &Arc<Pool>) -> Result<Self, Errno> {
        pool.take_node()?;
        Ok(Self(pool.clone()))
    }

    /// Counts one more inode, however many there are.
    pub fn own(pool: &Arc<Pool>) -> Self {
        pool.nodes.fetch_add(1, Relaxed);
        Self(pool.clone())
    }
}

impl Deref for Share {
    type Target = Arc<Pool>;

    fn deref(&self) -> &Arc<Pool> {
        &self.0
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.give_node();
    }
}

/// A mounted tmpfs.
pub struct TmpFs {
    kind: &'static str,
    options: Vec<u8>,
    pool: Arc<Pool>,
    root: Arc<Dentry>,
}

/// `f_type` of statfs(2) (`TMPFS_MAGIC`).
const TMPFS: u64 = 0x0102_1994;

static NEXT_DEV: AtomicU64 = AtomicU64::new(2);

/// RAM in pages, told at boot.
static MEMORY_PAGES: AtomicU64 = AtomicU64::new(0);

/// Tells how much RAM there is, which bounds every tmpfs without a `size=` of its own.
pub fn set_memory(pages: u64) {
    MEMORY_PAGES.store(pages, Relaxed);
}

/// The default limit of a tmpfs: half of RAM, in pages.
pub fn half_of_memory() -> u64 {
    MEMORY_PAGES.load(Relaxed) / 2
}

/// Makes an archive's bytes the contents of an empty regular file.
pub fn set_archive(inode: &Arc<dyn Inode>, archive: Arc<dyn Archive>) {
    if let Some(Body::Regular(data)) = node::node_of(inode).map(|node| &node.body) {
        data.set_archive(archive);
    }
}

/// Device number of a file system without a device: major 0.
pub fn next_dev() -> u64 {
    NEXT_DEV.fetch_add(1, Relaxed)
}

impl TmpFs {
    /// An empty one of at most `most_pages` pages, whose top has the permission bits `mode`.
    pub fn new(kind: &'static str, most_pages: u64, mode: u32, options: &[u8]) -> Arc<Self> {
        let pool = Arc::new(Pool {
            dev: next_dev(),
            most_pages,
            used_pages: AtomicU64::new(0),
            nodes: AtomicU64::new(0),
            most_nodes: AtomicU64::new(half_of_memory()),
            fixed: AtomicBool::new(false),
            named: AtomicBool::new(true),
        });
        let attr = Attr::new(pool.dev, S_IFDIR | mode & 0o7777, 0, 0, 0);
        attr.set_nlink(2);
        let node = TmpNode::new(Share::own(&pool), attr, Body::directory());
        let root = Dentry::new(b"", None, node);
        Arc::new(Self { kind, options: options.to_vec(), pool, root })
    }
}

impl TmpFs {
    /// Bounds the number of its inodes (`nr_inodes=`); 0 lifts the bound.
    pub fn limit_nodes(&self, most: u64) {
        self.pool.most_nodes.store(if most == 0 { u64::MAX } else { most }, Relaxed);
    }

    /// Holds only files without a name, which go with the programs that use them: they may take what programs may, and
    /// there may be any number.
    pub fn hold_nameless(&self) {
        self.limit_nodes(0);
        self.pool.named.store(false, Relaxed);
    }

    /// Lets nothing be made in it from here on.
    pub fn fix(&self) {
        self.pool.fixed.store(true, Relaxed);
    }
}

impl FileSystem for TmpFs {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn dev(&self) -> u64 {
        self.pool.dev
    }

    fn root(&self) -> Arc<Dentry> {
        self.root.clone()
    }

    fn statistics(&self) -> Statistics {
        if self.pool.fixed.load(Relaxed) {
            // What holds no data (sysfs) has no size to speak of.
            return Statistics { magic: 0x6265_6572, ..Statistics::default() };
        }
        if !self.pool.named.load(Relaxed) {
            return Statistics { magic: TMPFS, ..Statistics::default() };
        }
        let used = self.pool.used_pages.load(Relaxed);
        let free = self.pool.most_pages.saturating_sub(used);
        let nodes = self.pool.nodes.load(Relaxed);
        let most_nodes = self.pool.most_nodes.load(Relaxed);
        Statistics {
            magic: TMPFS,
            blocks: [self.pool.most_pages, free],
            files: [most_nodes, most_nodes.saturating_sub(nodes)],
        }
    }

    fn options(&self) -> Vec<u8> {
        self.options.clone()
    }
}

impl Drop for TmpFs {
    fn drop(&mut self) {
        let mut doomed = alloc::vec![self.root.clone()];
        while let Some(dentry) = doomed.pop() {
            doomed.extend(node::take_entries(&dentry));
        }
    }
}
