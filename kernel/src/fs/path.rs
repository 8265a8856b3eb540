//! Resolved paths: a dentry in a mount.

use alloc::sync::Arc;
use alloc::vec::Vec;

use linux_abi::Errno;

use super::inode::Inode;
pub use super::mount::Path;

impl Path {
    /// What is there.
    #[inline]
    pub fn inode(&self) -> &Arc<dyn Inode> {
        &self.dentry.inode
    }

    /// Whether both are the same dentry in the same mount.
    #[inline]
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.dentry, &other.dentry) && Arc::ptr_eq(&self.mount, &other.mount)
    }

    /// Whether this is the top of its mount.
    #[inline]
    pub fn is_mount_root(&self) -> bool {
        Arc::ptr_eq(&self.dentry, &self.mount.root)
    }

    /// EROFS on a read-only mount.
    pub fn check_writable(&self) -> Result<(), Errno> {
        if self.mount.is_read_only() { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// The absolute path as seen from `root`, written to the end of `buffer`; answers where it starts.
    /// A path outside `root` is named from the top of its own tree. ERANGE if the buffer is too small.
    pub fn write_name(&self, root: &Self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut end = buffer.len();
        let mut at = self.clone();
        loop {
            if at.same(root) {
                break;
            }
            if at.is_mount_root() {
                let Some(below) = at.mount.mounted_at() else { break };
                at = below;
                continue;
            }
            let (start, parent) = at.dentry.prepend(buffer, end);
            end = start.ok_or(Errno::ERANGE)?;
            let Some(parent) = parent else { break };
            at.dentry = parent;
        }
        if end == buffer.len() {
            end = end.checked_sub(1).ok_or(Errno::ERANGE)?;
            buffer[end] = b'/';
        }
        Ok(end)
    }

    /// The path as `/proc` shows it: with ` (deleted)` behind a name that is gone, without a leading slash for things
    /// that have no path (`pipe:[7]`).
    pub fn display(&self, root: &Self) -> Vec<u8> {
        if self.dentry.parent().is_none() && !self.is_mount_root() {
            let mut name = self.dentry.name().to_vec();
            if name.ends_with(b":") {
                name.extend_from_slice(alloc::format!("[{}]", self.inode().attr().ino).as_bytes());
            }
            return name;
        }
        let mut short = [0; SHORT];
        let mut name = match self.write_name(root, &mut short) {
            Ok(start) => short[start..].to_vec(),
            Err(_) => self.long_name(root),
        };
        if self.dentry.is_removed() {
            name.extend_from_slice(b" (deleted)");
        }
        name
    }

    /// Writes the path as the first process sees it to the end of `into`, without waiting for a lock or allocating:
    /// the part that could be had.
    pub fn try_name<'b>(&self, into: &'b mut [u8]) -> &'b [u8] {
        let mut end = into.len();
        self.try_prepend(into, &mut end, MOST_MOUNTS);
        into.get(end..).unwrap_or_default()
    }

    fn try_prepend(&self, into: &mut [u8], end: &mut usize, depth: u32) {
        if self.dentry.try_prepend(&self.mount.root, into, end) && depth > 0 {
            // Nothing is mounted at the top of all, and what was detached has only its own names.
            let _ = self.mount.try_at(|below| below.try_prepend(into, end, depth - 1));
        }
    }

    #[cold]
    fn long_name(&self, root: &Self) -> Vec<u8> {
        let mut buffer = alloc::vec![0; kernel_logic::path::PATH_MAX];
        match self.write_name(root, &mut buffer) {
            Ok(start) => buffer[start..].to_vec(),
            Err(_) => b"(too long)".to_vec(),
        }
    }
}

/// Mounts within mounts that a name is followed through on the crash path.
const MOST_MOUNTS: u32 = 8;
/// Most paths fit into this many bytes.
const SHORT: usize = 128;
