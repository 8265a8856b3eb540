//! Root, working directory and umask of a process, shared by tasks with `CLONE_FS`.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use machine::sync::SpinLock;

use super::path::Path;

/// Root, working directory and umask.
pub struct FsContext {
    directories: SpinLock<Directories>,
    umask: AtomicU32,
}

struct Directories {
    root: Path,
    cwd: Path,
}

impl FsContext {
    /// At `root`, with the usual umask.
    pub fn new(root: Path) -> Self {
        let cwd = root.clone();
        Self { directories: SpinLock::new(Directories { root, cwd }), umask: AtomicU32::new(0o022) }
    }

    /// A copy for a task that does not share it.
    #[must_use]
    pub fn fork(&self) -> Arc<Self> {
        let directories = self.directories.lock();
        let copy = Directories { root: directories.root.clone(), cwd: directories.cwd.clone() };
        Arc::new(Self { directories: SpinLock::new(copy), umask: AtomicU32::new(self.umask()) })
    }

    /// Root directory of the process.
    pub fn root(&self) -> Path {
        self.directories.lock().root.clone()
    }

    /// The working directory.
    pub fn cwd(&self) -> Path {
        self.directories.lock().cwd.clone()
    }

    /// Changes the root (chroot).
    pub fn set_root(&self, path: Path) {
        let old = core::mem::replace(&mut self.directories.lock().root, path);
        drop(old);
    }

    /// Changes the working directory.
    pub fn set_cwd(&self, path: Path) {
        let old = core::mem::replace(&mut self.directories.lock().cwd, path);
        drop(old);
    }

    /// The file mode creation mask.
    pub fn umask(&self) -> u32 {
        self.umask.load(Relaxed)
    }

    /// Sets the mask and answers the old one.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.umask.swap(mask & 0o777, Relaxed)
    }
}
