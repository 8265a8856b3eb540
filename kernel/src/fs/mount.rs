//! Mounts: the table of file systems and their mount points.
//!
//! One tree for all processes. A [`Mount`] joins (a part of) a file system to a mount point in another mount. The walk
//! asks [`crossing`] only for dentries marked as mounted on, so the table's lock is off every ordinary path.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use linux_abi::Errno;
use linux_abi::flags::system;
use machine::sync::SpinLock;

use super::dentry::Dentry;

/// Mounted read-only (mount(2)).
pub const MS_RDONLY: u32 = system::MS_RDONLY as u32;
/// Set-user-ID bits are ignored.
pub const MS_NOSUID: u32 = system::MS_NOSUID as u32;
/// Device nodes cannot be opened.
pub const MS_NODEV: u32 = system::MS_NODEV as u32;
/// Programs cannot be executed.
pub const MS_NOEXEC: u32 = system::MS_NOEXEC as u32;
/// Access times are not kept.
pub const MS_NOATIME: u32 = system::MS_NOATIME as u32;
/// Access times are kept if they lag behind the modification.
pub const MS_RELATIME: u32 = system::MS_RELATIME as u32;
/// The flags of a mount that the kernel keeps.
pub const KEPT_FLAGS: u32 = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_RELATIME;

/// What statfs reports of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Magic number (`f_type`).
    pub magic: u64,
    /// Blocks of [`FileSystem::block`] bytes in all, and free.
    pub blocks: [u64; 2],
    /// Inodes in all, and free.
    pub files: [u64; 2],
}

/// A file system that can be mounted.
pub trait FileSystem: Send + Sync {
    /// Its type as `/proc/mounts` shows it.
    fn kind(&self) -> &'static str;
    /// Its device number (`st_dev`).
    fn dev(&self) -> u64;
    /// Its root directory.
    fn root(&self) -> Arc<Dentry>;
    /// Bytes of one of its blocks.
    fn block(&self) -> u64 {
        4096
    }
    /// Figures for statfs.
    fn statistics(&self) -> Statistics;
    /// Options beyond the flags, as `/proc/mounts` shows them (`,size=…`).
    fn options(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A resolved path: a dentry in a mount. What can be asked of it is in [`super::path`].
#[derive(Clone)]
pub struct Path {
    /// The mount it is reached through.
    pub mount: Arc<Mount>,
    /// The name in the mounted file system.
    pub dentry: Arc<Dentry>,
}

/// A file system, or a part of it, at a mount point.
pub struct Mount {
    /// Number in `/proc/self/mountinfo`.
    pub id: u64,
    /// What is mounted.
    pub fs: Arc<dyn FileSystem>,
    /// Its top: the file system's, or the bound directory.
    pub root: Arc<Dentry>,
    /// What was given as the device.
    pub source: Vec<u8>,
    flags: AtomicU32,
    /// Shared mounts of one group show each other's mounts; 0 is private.
    group: AtomicU64,
    at: SpinLock<Option<Path>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
static NEXT_GROUP: AtomicU64 = AtomicU64::new(1);
/// Every mount that is attached, in the order they were made.
static MOUNTS: SpinLock<Vec<Mounted>> = SpinLock::new(Vec::new());

/// A mount with the addresses of the mount and dentry it stands at (0 for the root), which is what a walk looks for.
struct Mounted {
    at: (usize, usize),
    mount: Arc<Mount>,
}

fn key(location: &Path) -> (usize, usize) {
    (Arc::as_ptr(&location.mount).addr(), Arc::as_ptr(&location.dentry).addr())
}

impl Drop for Mount {
    /// Drops the mounts below that only this one holds one after the other, however many are stacked.
    fn drop(&mut self) {
        let mut below = self.at.get_mut().take().map(|location| location.mount);
        while let Some(mut last) = below.and_then(Arc::into_inner) {
            below = last.at.get_mut().take().map(|location| location.mount);
        }
    }
}

impl Mount {
    /// A mount of `fs` that is not attached yet.
    pub fn new(fs: Arc<dyn FileSystem>, root: Arc<Dentry>, source: &[u8], flags: u32) -> Arc<Self> {
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Relaxed),
            fs,
            root,
            source: source.to_vec(),
            flags: AtomicU32::new(flags & KEPT_FLAGS),
            group: AtomicU64::new(0),
            at: SpinLock::new(None),
        })
    }

    /// The same part of the same file system once more, in the same group (bind).
    pub fn bind(&self, root: Arc<Dentry>) -> Arc<Self> {
        let copy = Self::new(self.fs.clone(), root, &self.source, self.flags());
        copy.group.store(self.group(), Relaxed);
        copy
    }

    /// The group it shares mounts with, 0 if none.
    pub fn group(&self) -> u64 {
        self.group.load(Relaxed)
    }

    /// Makes it shared, in a group of its own unless it has one, or private.
    pub fn set_shared(&self, shared: bool) {
        if !shared {
            self.group.store(0, Relaxed);
        } else if self.group() == 0 {
            self.group.store(NEXT_GROUP.fetch_add(1, Relaxed), Relaxed);
        }
    }

    /// Its `MS_*` flags.
    pub fn flags(&self) -> u32 {
        self.flags.load(Relaxed)
    }

    /// Changes the flags (remount).
    pub fn set_flags(&self, flags: u32) {
        self.flags.store(flags & KEPT_FLAGS, Relaxed);
    }

    /// Whether nothing may be changed through it.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.flags() & MS_RDONLY != 0
    }

    /// Its mount point; `None` for the root and for what was detached.
    pub fn mounted_at(&self) -> Option<Path> {
        self.at.lock().clone()
    }

    /// Looks at its mount point without waiting; `None` also while that changes.
    pub fn try_at<R>(&self, look: impl FnOnce(&Path) -> R) -> Option<R> {
        self.at.try_lock().and_then(|at| at.as_ref().map(look))
    }

    /// The path of its root.
    pub fn top(self: &Arc<Self>) -> Path {
        Path { mount: self.clone(), dentry: self.root.clone() }
    }
}

/// Makes `mount` the root of everything.
pub fn set_root(mount: &Arc<Mount>) {
    MOUNTS.lock().push(Mounted { at: (0, 0), mount: mount.clone() });
}

/// Puts `mount` at `at`, and copies of it at the same dentry in every mount that shares with that one
/// (mount_namespaces(7), "Shared subtrees").
pub fn attach(mount: &Arc<Mount>, at: Path) {
    let sharing = peers(&at);
    if at.mount.group() != 0 {
        mount.set_shared(true);
    }
    mount_at(mount, at);
    for peer in sharing {
        mount_at(&mount.bind(mount.root.clone()), peer);
    }
}

fn mount_at(mount: &Arc<Mount>, at: Path) {
    at.dentry.set_mounted_on(true);
    let mounted = Mounted { at: key(&at), mount: mount.clone() };
    *mount.at.lock() = Some(at);
    MOUNTS.lock().push(mounted);
}

/// The same dentry as `at` in the other mounts of its group.
fn peers(at: &Path) -> Vec<Path> {
    let group = at.mount.group();
    if group == 0 {
        return Vec::new();
    }
    let sharing = all().into_iter().filter(|mount| mount.group() == group && !Arc::ptr_eq(mount, &at.mount));
    let inside = sharing.filter(|mount| at.dentry.is_within(&mount.root));
    inside.map(|mount| Path { mount, dentry: at.dentry.clone() }).collect()
}

/// What is mounted at `at`, the latest first.
#[inline]
pub fn crossing(at: &Path) -> Option<Arc<Mount>> {
    let wanted = key(at);
    let mounts = MOUNTS.lock();
    let found = mounts.iter().rev().find(|mounted| mounted.at == wanted);
    found.map(|mounted| mounted.mount.clone())
}

/// Every mount, oldest first.
pub fn all() -> Vec<Arc<Mount>> {
    MOUNTS.lock().iter().map(|mounted| mounted.mount.clone()).collect()
}

/// Takes the mount away whose top is `top`, and its copies in mounts that share with the one it stands in: EINVAL if it
/// is none, EBUSY if something is mounted in it or, unless `lazy`, it is in use.
pub fn detach(top: &Path, lazy: bool) -> Result<(), Errno> {
    let mount = &top.mount;
    if !top.is_mount_root() {
        return Err(Errno::EINVAL);
    }
    let location = mount.mounted_at().ok_or(Errno::EBUSY)?;
    if !lazy {
        let within =
            |other: &Arc<Mount>| other.mounted_at().is_some_and(|location| Arc::ptr_eq(&location.mount, mount));
        if all().iter().any(within) {
            return Err(Errno::EBUSY);
        }
        // The table and `top` hold one reference each; any other is an open file, a working directory or a mapping.
        if Arc::strong_count(mount) > 2 {
            return Err(Errno::EBUSY);
        }
    }
    let sharing = peers(&location);
    take_away(mount);
    for peer in sharing {
        if let Some(copy) = crossing(&peer).filter(|copy| copy.group() == mount.group() && mount.group() != 0) {
            take_away(&copy);
        }
    }
    Ok(())
}

/// Takes `mount` out of the table and off its mount point.
fn take_away(mount: &Arc<Mount>) {
    let gone: Vec<Mounted> = MOUNTS.lock().extract_if(.., |mounted| Arc::ptr_eq(&mounted.mount, mount)).collect();
    let location = mount.at.lock().take();
    let rest = all();
    if let Some(location) = location {
        let covered =
            |other: &Arc<Mount>| other.mounted_at().is_some_and(|at| Arc::ptr_eq(&at.dentry, &location.dentry));
        location.dentry.set_mounted_on(rest.iter().any(covered));
    }
    drop(gone);
}
