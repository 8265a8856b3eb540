//! A file as a mapping holds it: open, and counted while the mapping may write to it.

use alloc::sync::Arc;
use core::ops::Deref;

use linux_abi::Errno;

use crate::fs::File;

/// The file behind a range. Pieces of one mapping share its count, which ends with the last of them.
#[derive(Clone)]
pub struct MappedFile {
    file: Arc<File>,
    _writer: Option<Arc<Writer>>,
}

impl MappedFile {
    /// For a mapping whose stores do not reach the file.
    pub fn read_only(file: Arc<File>) -> Self {
        Self { file, _writer: None }
    }

    /// Whether both hold one description.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }

    /// For a shared mapping that is or may become writable: EPERM if the file is sealed against that (fcntl(2), `F_SEAL_WRITE`).
    pub fn writable(file: Arc<File>) -> Result<Self, Errno> {
        let writer = match file.inode().seals() {
            None => None,
            Some(seals) => {
                seals.begin_mapping()?;
                Some(Arc::new(Writer(file.clone())))
            }
        };
        Ok(Self { file, _writer: writer })
    }
}

impl Deref for MappedFile {
    type Target = Arc<File>;

    fn deref(&self) -> &Arc<File> {
        &self.file
    }
}

struct Writer(Arc<File>);

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(seals) = self.0.inode().seals() {
            seals.end_mapping();
        }
    }
}
