//! Seals of a file (fcntl(2), "File Sealing"): what is forbidden to it for good.
//!
//! [`Seals`] also counts the shared mappings that are or may become writable: they and `F_SEAL_WRITE` exclude each
//! other, and one exchange of that count decides which of the two came first.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

use linux_abi::Errno;
use linux_abi::flags::file;

/// No further seals.
pub const SEAL_SEAL: u32 = file::F_SEAL_SEAL as u32;
/// The file does not shrink.
pub const SEAL_SHRINK: u32 = file::F_SEAL_SHRINK as u32;
/// The file does not grow.
pub const SEAL_GROW: u32 = file::F_SEAL_GROW as u32;
/// Contents do not change.
pub const SEAL_WRITE: u32 = file::F_SEAL_WRITE as u32;
/// Contents do not change but through mappings that exist.
pub const SEAL_FUTURE_WRITE: u32 = file::F_SEAL_FUTURE_WRITE as u32;
const ALL: u32 = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW | SEAL_WRITE | SEAL_FUTURE_WRITE;
/// Count of writable mappings once there may be none.
const DENIED: i32 = -1;

/// The seals of one file.
#[derive(Debug)]
pub struct Seals {
    set: AtomicU32,
    mappings: AtomicI32,
}

impl Seals {
    /// Of a file that takes no seals.
    pub const fn closed() -> Self {
        Self { set: AtomicU32::new(SEAL_SEAL), mappings: AtomicI32::new(0) }
    }

    /// Lets a new file take seals (`MFD_ALLOW_SEALING`).
    pub fn open(&self) {
        self.set.store(0, SeqCst);
    }

    /// The seals there are.
    pub fn get(&self) -> u32 {
        self.set.load(SeqCst)
    }

    /// Adds seals; the caller keeps writers out meanwhile. EPERM if sealed against that, EINVAL for unknown ones, EBUSY
    /// for `F_SEAL_WRITE` while the file is mapped shared and writable.
    pub fn add(&self, more: u32) -> Result<(), Errno> {
        if more & !ALL != 0 {
            return Err(Errno::EINVAL);
        }
        let old = self.get();
        if old & SEAL_SEAL != 0 {
            return Err(Errno::EPERM);
        }
        if more & SEAL_WRITE != 0 && old & SEAL_WRITE == 0 {
            self.mappings.compare_exchange(0, DENIED, SeqCst, SeqCst).map_err(|_| Errno::EBUSY)?;
        }
        self.set.fetch_or(more, SeqCst);
        Ok(())
    }

    /// Counts a shared mapping that may be written: EPERM if the file is sealed against writing.
    pub fn begin_mapping(&self) -> Result<(), Errno> {
        if self.get() & (SEAL_WRITE | SEAL_FUTURE_WRITE) != 0 {
            return Err(Errno::EPERM);
        }
        let counted = self.mappings.fetch_update(SeqCst, SeqCst, |count| (count != DENIED).then_some(count + 1));
        counted.map(|_| ()).map_err(|_| Errno::EPERM)
    }

    /// A mapping that was counted is gone.
    pub fn end_mapping(&self) {
        self.mappings.fetch_sub(1, SeqCst);
    }
}
