//! Attributes of an inode: identity, type, mode, owner, link count and times, readable without a lock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use linux_abi::Errno;
use linux_abi::flags::file;
pub use linux_abi::numbers::S_IFMT;
use machine::sync::{SpinGuard, SpinLock};

use super::Caller;
use crate::trace::Traced as _;
use crate::upper::current;

/// File type: socket.
pub const S_IFSOCK: u32 = file::S_IFSOCK as u32;
/// File type: symbolic link.
pub const S_IFLNK: u32 = file::S_IFLNK as u32;
/// File type: regular file.
pub const S_IFREG: u32 = file::S_IFREG as u32;
/// File type: block device.
pub const S_IFBLK: u32 = file::S_IFBLK as u32;
/// File type: directory.
pub const S_IFDIR: u32 = file::S_IFDIR as u32;
/// File type: character device.
pub const S_IFCHR: u32 = file::S_IFCHR as u32;
/// File type: FIFO.
pub const S_IFIFO: u32 = file::S_IFIFO as u32;

/// Nanoseconds since 1970; years 1677 to 2262, other times are clamped as Linux clamps to what a file system can store.
pub type WallNanos = i64;

/// Extended attributes of an inode, by name.
pub type Attributes = SpinLock<BTreeMap<Vec<u8>, Vec<u8>>>;

/// Attributes of an inode.
pub struct Attr {
    /// Inode number (`st_ino`).
    pub ino: u64,
    /// Number of the device the file system is (`st_dev`).
    pub dev: u64,
    /// Device number of a device node (`st_rdev`).
    pub rdev: u64,
    mode: AtomicU32,
    uid: AtomicU32,
    gid: AtomicU32,
    nlink: AtomicU32,
    accessed: AtomicI64,
    modified: AtomicI64,
    changed: AtomicI64,
    /// When it was made (`stx_btime`).
    pub born: WallNanos,
    /// Writers if positive, executions that forbid writing if negative.
    writers: AtomicI32,
    /// Has no name and may still be given one (O_TMPFILE without O_EXCL).
    linkable: AtomicBool,
    /// Pages of 4 KiB in what is written best at once (`st_blksize`).
    pub block_pages: u16,
    /// A process that may do everything, 0 for none.
    open_to: u32,
    changing: SpinLock<()>,
}

/// Next inode number of file systems that count.
static NEXT_INO: AtomicU64 = AtomicU64::new(2);

/// A fresh inode number.
pub fn next_ino() -> u64 {
    NEXT_INO.fetch_add(1, Relaxed)
}

impl Attr {
    /// Attributes of a new inode with one name.
    pub fn new(dev: u64, mode: u32, uid: u32, gid: u32, rdev: u64) -> Self {
        Self::with_ino(next_ino(), dev, mode, uid, gid, rdev)
    }

    /// The same with a chosen inode number.
    pub fn with_ino(ino: u64, dev: u64, mode: u32, uid: u32, gid: u32, rdev: u64) -> Self {
        let now = super::wall_now();
        Self {
            ino,
            dev,
            rdev,
            mode: AtomicU32::new(mode),
            uid: AtomicU32::new(uid),
            gid: AtomicU32::new(gid),
            nlink: AtomicU32::new(1),
            accessed: AtomicI64::new(now),
            modified: AtomicI64::new(now),
            changed: AtomicI64::new(now),
            born: now,
            writers: AtomicI32::new(0),
            linkable: AtomicBool::new(false),
            block_pages: 1,
            open_to: 0,
            changing: SpinLock::new(()),
        }
    }

    /// The same, with every right for the process with this id, whatever its owner and mode.
    #[must_use]
    pub fn open_to(self, pid: u32) -> Self {
        Self { open_to: pid, ..self }
    }

    /// File type and permission bits.
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.load(Relaxed)
    }

    /// The file type bits.
    #[inline]
    pub fn kind(&self) -> u32 {
        self.mode() & S_IFMT
    }

    /// Whether it is a directory.
    #[inline]
    pub fn is_dir(&self) -> bool {
        self.kind() == S_IFDIR
    }

    /// Held over the check of a change of mode, owner or times and over the change itself, so that a check made against
    /// the old owner cannot change what the new one has set.
    pub fn begin_change(&self) -> SpinGuard<'_, ()> {
        self.changing.lock()
    }

    /// Sets the permission bits; the type stays.
    pub fn set_permissions(&self, bits: u32) {
        self.mode.store(self.kind() | bits & 0o7777, Relaxed);
        self.touch_changed();
    }

    /// Owner's user id.
    #[inline]
    pub fn uid(&self) -> u32 {
        self.uid.load(Relaxed)
    }

    /// Owner's group id.
    #[inline]
    pub fn gid(&self) -> u32 {
        self.gid.load(Relaxed)
    }

    /// Mode, owner and group that held together: what a set-id bit gives must be the owner's who had it.
    pub fn mode_and_owner(&self) -> (u32, u32, u32) {
        loop {
            let ids = (self.uid.load(SeqCst), self.gid.load(SeqCst));
            let mode = self.mode.load(SeqCst);
            if ids == (self.uid.load(SeqCst), self.gid.load(SeqCst)) {
                return (mode, ids.0, ids.1);
            }
        }
    }

    /// Sets owner and group.
    pub fn set_owner(&self, uid: u32, gid: u32) {
        self.uid.store(uid, Relaxed);
        self.gid.store(gid, Relaxed);
        self.touch_changed();
    }

    /// Number of names.
    pub fn nlink(&self) -> u32 {
        self.nlink.load(Relaxed)
    }

    /// Sets the number of names.
    pub fn set_nlink(&self, count: u32) {
        self.nlink.store(count, Relaxed);
        self.touch_changed();
    }

    /// Allows a file without a name to be given one.
    pub fn set_linkable(&self) {
        self.linkable.store(true, Relaxed);
    }

    /// Counts a name before it is made; how many there were. In one step with the check that it may have one more, so
    /// that none is made for a file whose last name another thread takes away: ENOENT without a name, unless it was
    /// made so to be given one, EMLINK with `most`.
    pub fn claim_name(&self, most: u32) -> Result<u32, Errno> {
        let linkable = self.linkable.load(Relaxed);
        let one_more = |count: u32| (count < most && (count > 0 || linkable)).then(|| count + 1);
        let claimed = self.nlink.fetch_update(Relaxed, Relaxed, one_more);
        claimed.map_err(|count| if count == 0 { Errno::ENOENT } else { Errno::EMLINK })
    }

    /// A claimed name is there: from here on the file ends with its last one.
    pub fn name_made(&self) {
        self.linkable.store(false, Relaxed);
        self.touch_changed();
    }

    /// Changes the number of names; how many there were.
    pub fn add_links(&self, by: i32) -> u32 {
        let before = self.nlink.fetch_update(Relaxed, Relaxed, |count| Some(count.saturating_add_signed(by)));
        self.touch_changed();
        // The closure never declines.
        before.unwrap_or_else(|count| count)
    }

    /// Access, modification and change time.
    pub fn times(&self) -> [WallNanos; 3] {
        [self.accessed.load(Relaxed), self.modified.load(Relaxed), self.changed.load(Relaxed)]
    }

    /// Sets access and modification time where given (utimensat).
    pub fn set_times(&self, accessed: Option<WallNanos>, modified: Option<WallNanos>) {
        if let Some(time) = accessed {
            self.accessed.store(time, Relaxed);
        }
        if let Some(time) = modified {
            self.modified.store(time, Relaxed);
        }
        self.touch_changed();
    }

    /// Notes a read, as the `relatime` mount option does: only if the last one is older than the last write, or a day.
    pub fn touch_accessed(&self) {
        const DAY: i64 = 86_400_000_000_000;
        let [accessed, modified, changed] = self.times();
        let recent = accessed > modified && accessed > changed;
        let now = super::wall_now();
        if !recent || now - accessed >= DAY {
            self.accessed.store(now, Relaxed);
        }
    }

    /// Notes a write.
    pub fn touch_modified(&self) {
        let now = super::wall_now();
        self.modified.store(now, Relaxed);
        self.changed.store(now, Relaxed);
    }

    /// Notes a change of attributes.
    pub fn touch_changed(&self) {
        self.changed.store(super::wall_now(), Relaxed);
    }

    /// Whether `who` may do all of `wish` (`kernel_logic::permission` bits): EACCES if not.
    #[inline]
    pub fn check(&self, who: &Caller<'_>, wish: u32) -> Result<(), Errno> {
        let mode = self.mode();
        // All may: the ids need no look.
        if wish & !(mode & (mode >> 3) & (mode >> 6)) & 7 == 0 {
            return Ok(());
        }
        let allowed = kernel_logic::permission::allowed(mode, who.standing(self.uid(), self.gid()), wish);
        if allowed || self.open_to != 0 && (current().ids() >> 32) as u32 == self.open_to {
            Ok(())
        } else {
            Err(Errno::EACCES)
        }
    }

    /// Takes the set-user-ID and set-group-ID bits away after a write without privilege.
    #[inline]
    pub fn drop_set_id(&self) {
        if self.mode() & 0o6000 != 0 && !super::current_is_privileged() {
            let without = |mode| Some(kernel_logic::permission::without_set_id(mode));
            // The closure never declines.
            let _ = self.mode.fetch_update(Relaxed, Relaxed, without);
        }
    }

    /// Counts a writer; ETXTBSY while the file is being executed.
    pub fn begin_write(&self) -> Result<(), Errno> {
        let count = self.writers.fetch_update(Relaxed, Relaxed, |count| (count >= 0).then_some(count + 1));
        count.map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }

    /// A writer is done.
    pub fn end_write(&self) {
        self.writers.fetch_sub(1, Relaxed);
    }

    /// Forbids writing while the file is executed; ETXTBSY while it is open for writing.
    pub fn begin_exec(&self) -> Result<(), Errno> {
        let count = self.writers.fetch_update(Relaxed, Relaxed, |count| (count <= 0).then_some(count - 1));
        count.map(|_| ()).map_err(|_| Errno::ETXTBSY)
    }

    /// An execution is over.
    pub fn end_exec(&self) {
        self.writers.fetch_add(1, Relaxed);
    }
}
