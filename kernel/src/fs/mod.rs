//! Files: what a process has open and where it stands.

use alloc::sync::Arc;

/// A process's open files.
pub struct FdTable;

impl FdTable {
    /// A copy for a fork.
    pub fn fork(&self) -> Arc<FdTable> {
        Arc::new(FdTable)
    }
    /// Closes what `O_CLOEXEC` marks.
    pub fn close_on_exec(&self) {}
}

/// Root, working directory, umask.
pub struct FsContext;

impl FsContext {
    /// A copy for a fork.
    pub fn fork(&self) -> Arc<FsContext> {
        Arc::new(FsContext)
    }
}
