//! Decides whether the files that SQLite reads beside an index may be there: it opens them without asking.
//!
//! A rollback journal beside an index is played into it. So it must be a file, for a FIFO would wait for a writer for
//! ever, and of the user or of root, for the index it changes is.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What SQLite puts behind the name of a database.
const ENDINGS: [&str; 3] = ["-journal", "-wal", "-shm"];

/// The first file beside `index` that SQLite must not read.
pub(crate) fn stranger(index: &Path) -> Option<PathBuf> {
    let beside = |ending: &str| {
        let mut name: OsString = index.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    ENDINGS.into_iter().map(beside).find(|path| std::fs::symlink_metadata(path).is_ok_and(|meta| !is_ours(&meta)))
}

fn is_ours(meta: &std::fs::Metadata) -> bool {
    meta.is_file() && [0, rustix::process::geteuid().as_raw()].contains(&meta.uid())
}
