//! Walks a directory for dumps, and says by which marks a file is known to be unchanged.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What changes when a file does; two changes within one tick of the file system's clock may look like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Length in bytes.
    pub bytes: u64,
    /// Time of modification, nanoseconds since 1970.
    pub modified_ns: i64,
    /// Number of the inode.
    pub inode: u64,
}

/// A file that a walk has found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Its path below the directory, as the system has it.
    pub name: Vec<u8>,
    /// By which it is known to be unchanged.
    pub stamp: Stamp,
}

impl Found {
    /// The path of the file.
    pub(crate) fn path(&self, folder: &Path) -> PathBuf {
        folder.join(OsStr::from_bytes(&self.name))
    }

    /// How it stands to a name in the order of a walk.
    pub(crate) fn order(&self, name: &[u8]) -> Ordering {
        Path::new(OsStr::from_bytes(&self.name)).cmp(Path::new(OsStr::from_bytes(name)))
    }
}

/// The files below a directory whose names end in `.kwab`, in the order of their paths; links are not followed.
pub(crate) fn files(folder: &Path) -> Vec<Found> {
    let all = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().flatten();
    let dumps = all.filter(|found| {
        found.file_type().is_file() && found.path().extension().is_some_and(|end| end.as_bytes() == b"kwab")
    });
    dumps
        .filter_map(|found| {
            let name = found.path().strip_prefix(folder).ok()?.as_os_str().as_bytes().to_vec();
            let stamp = stamp_of(&found.metadata().ok()?);
            Some(Found { name, stamp })
        })
        .collect()
}

/// The marks of a file.
pub(crate) fn stamp_of(meta: &std::fs::Metadata) -> Stamp {
    let modified_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    Stamp { bytes: meta.len(), modified_ns, inode: meta.ino() }
}

/// Whether a name of the index is still a file.
pub(crate) fn exists(folder: &Path, name: &[u8]) -> bool {
    std::fs::symlink_metadata(folder.join(OsStr::from_bytes(name))).is_ok_and(|meta| meta.is_file())
}
