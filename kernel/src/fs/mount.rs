//! Mounts: which file system stands where.
//!
//! One tree for all processes. A [`Mount`] joins (a part of) a file system to a place in another mount. The walk asks
//! [`crossing`] only for dentries marked as mounted on, so the table's lock is off every ordinary path.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use linux_abi::Errno;
use machine::sync::SpinLock;

use super::dentry::Dentry;
use super::path::Path;

/// Mounted read-only.
pub const MS_RDONLY: u32 = 1;
/// Set-user-ID bits are ignored.
pub const MS_NOSUID: u32 = 2;
/// Device nodes cannot be opened.
pub const MS_NODEV: u32 = 4;
/// Programs cannot be executed.
pub const MS_NOEXEC: u32 = 8;
/// Access times are not kept.
pub const MS_NOATIME: u32 = 1024;
/// Access times are kept if they lag behind the modification.
pub const MS_RELATIME: u32 = 1 << 21;
/// The flags of a mount that the kernel keeps.
pub const KEPT_FLAGS: u32 = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_RELATIME;

/// What statfs reports of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Magic number (`f_type`).
    pub magic: u64,
    /// Blocks of 4096 bytes in all, and free.
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
    /// Its top.
    fn root(&self) -> Arc<Dentry>;
    /// Figures for statfs.
    fn statistics(&self) -> Statistics;
    /// Options beyond the flags, as `/proc/mounts` shows them (`,size=…`).
    fn options(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// A file system, or a part of it, at a place.
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
    at: SpinLock<Option<Path>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);
/// Every mount that has a place, in the order they were made.
static MOUNTS: SpinLock<Vec<Arc<Mount>>> = SpinLock::new(Vec::new());

impl Mount {
    /// A mount of `fs` that has no place yet.
    pub fn new(fs: Arc<dyn FileSystem>, root: Arc<Dentry>, source: &[u8], flags: u32) -> Arc<Self> {
        Arc::new(Self {
            id: NEXT_ID.fetch_add(1, Relaxed),
            fs,
            root,
            source: source.to_vec(),
            flags: AtomicU32::new(flags & KEPT_FLAGS),
            at: SpinLock::new(None),
        })
    }

    /// `MS_*` flags.
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

    /// The place it is mounted at; `None` for the root and for what was detached.
    pub fn mounted_at(&self) -> Option<Path> {
        self.at.lock().clone()
    }

    /// The top of it as a place.
    pub fn top(self: &Arc<Self>) -> Path {
        Path { mount: self.clone(), dentry: self.root.clone() }
    }
}

/// Makes `mount` the root of everything.
pub fn set_root(mount: &Arc<Mount>) {
    MOUNTS.lock().push(mount.clone());
}

/// Puts `mount` at `at`.
pub fn attach(mount: &Arc<Mount>, at: Path) {
    at.dentry.set_mounted_on(true);
    *mount.at.lock() = Some(at);
    MOUNTS.lock().push(mount.clone());
}

/// What is mounted at `at`, the latest first.
pub fn crossing(at: &Path) -> Option<Arc<Mount>> {
    let mounts = MOUNTS.lock();
    let found = mounts.iter().rev().find(|mount| mount.at.lock().as_ref().is_some_and(|place| place.same(at)));
    found.cloned()
}

/// Every mount, oldest first.
pub fn all() -> Vec<Arc<Mount>> {
    MOUNTS.lock().clone()
}

/// Takes the mount away whose top is `top`: EINVAL if it is none, EBUSY if something is mounted in it or, unless `lazy`,
/// somebody uses it.
pub fn detach(top: &Path, lazy: bool) -> Result<(), Errno> {
    let mount = &top.mount;
    if !top.is_mount_root() {
        return Err(Errno::EINVAL);
    }
    let mut mounts = MOUNTS.lock();
    let Some(place) = mount.at.lock().clone() else { return Err(Errno::EBUSY) };
    let inside = |other: &&Arc<Mount>| other.at.lock().as_ref().is_some_and(|place| Arc::ptr_eq(&place.mount, mount));
    if mounts.iter().any(|other| inside(&other)) && !lazy {
        return Err(Errno::EBUSY);
    }
    // The table and `top` hold one reference each; any other is an open file, a working directory or a mapping.
    if Arc::strong_count(mount) > 2 && !lazy {
        return Err(Errno::EBUSY);
    }
    let gone: Vec<Arc<Mount>> = mounts.extract_if(.., |other| Arc::ptr_eq(other, mount)).collect();
    mount.at.lock().take();
    let still_used =
        mounts.iter().any(|other| other.at.lock().as_ref().is_some_and(|at| Arc::ptr_eq(&at.dentry, &place.dentry)));
    place.dentry.set_mounted_on(still_used);
    drop(mounts);
    drop(gone);
    Ok(())
}
