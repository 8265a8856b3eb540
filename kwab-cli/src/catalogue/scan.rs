//! Walks a directory for dumps, and says by which marks a file or a directory is known to be unchanged.
//!
//! A clock of a file system ticks: two changes within one tick leave the same times. So what is kept in an index is
//! read only when a tick has passed since it changed ([`settle`]); a later change then has another time. The directory
//! in which the index lies changes with each write to it: its mark is made of the names and inodes in it.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What changes when a file does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Length in bytes; 0 for a directory.
    pub bytes: u64,
    /// Time of modification, nanoseconds since 1970.
    pub modified_ns: i64,
    /// Time of the last change of the inode, which no program sets; [`UNSETTLED`] when it says nothing.
    pub changed_ns: i64,
    /// Number of the inode.
    pub inode: u64,
}

/// The time of change of a file whose clock is ahead of this machine's: it is read again each time.
pub(crate) const UNSETTLED: i64 = -1;

/// A file or directory that a walk has found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Its path below the directory, as the system has it; that of the directory itself is empty.
    pub name: Vec<u8>,
    /// By which it is known to be unchanged.
    pub stamp: Stamp,
}

impl Found {
    /// The path of the file.
    pub(crate) fn path(&self, folder: &Path) -> PathBuf {
        path_of(folder, &self.name)
    }
}

/// What a walk has found.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The files whose names end in `.kwab`, in the order of their paths.
    pub files: Vec<Found>,
    /// The directories, the first one too. Each was looked at before it was read.
    pub folders: Vec<Found>,
}

/// Why a directory is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The marks are compared, and forgotten.
    Compare,
    /// The marks are kept, so that they must tell a later change.
    Keep,
}

/// Walks a directory; links are not followed, and what cannot be read is left out. `home` is the index's directory.
pub(crate) fn walk(folder: &Path, home: Home, purpose: Purpose) -> Walk {
    let mut walk = Walk::default();
    let mut open: Vec<std::vec::IntoIter<Entry>> = Vec::new();
    open.extend(enter(folder, folder, home, purpose, &mut walk));
    while let Some(entries) = open.last_mut() {
        let Some(Entry { path, is_folder, .. }) = entries.next() else {
            open.pop();
            continue;
        };
        if is_folder {
            open.extend(enter(folder, &path, home, purpose, &mut walk));
        } else if let Ok(meta) = std::fs::symlink_metadata(&path)
            && meta.is_file()
        {
            walk.files.push(Found { name: name_below(folder, &path), stamp: stamp_of(&meta) });
        }
    }
    walk
}

/// The directory in which an index lies: device and inode, when it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home(Option<(u64, u64)>);

impl Home {
    /// The directory of a file.
    pub(crate) fn of(index: &Path) -> Self {
        let folder = index.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self(std::fs::metadata(folder).ok().map(|meta| (meta.dev(), meta.ino())))
    }
}

/// A dump or a directory in a directory.
#[derive(Debug)]
struct Entry {
    path: PathBuf,
    is_folder: bool,
    inode: u64,
}

/// The dumps and directories in a directory by name, after its marks.
fn enter(root: &Path, path: &Path, home: Home, purpose: Purpose, walk: &mut Walk) -> Option<std::vec::IntoIter<Entry>> {
    let mut meta = look(root, path)?;
    let mut is_settled = true;
    if purpose == Purpose::Keep {
        is_settled = settle(stamp_of(&meta));
        meta = look(root, path)?;
    }
    let entries = entries(path)?;
    let mut stamp = folder_stamp(&meta, home, &entries);
    if !is_settled {
        stamp.changed_ns = UNSETTLED;
    }
    walk.folders.push(Found { name: name_below(root, path), stamp });
    Some(entries.into_iter())
}

/// What the system says of a directory; the first one may be named by a link.
fn look(root: &Path, path: &Path) -> Option<Metadata> {
    let meta = if path == root { std::fs::metadata(path) } else { std::fs::symlink_metadata(path) };
    meta.ok().filter(Metadata::is_dir)
}

/// The dumps and directories in a directory by name.
fn entries(path: &Path) -> Option<Vec<Entry>> {
    let found = std::fs::read_dir(path).ok()?.flatten().filter_map(|entry| {
        let kind = entry.file_type().ok()?;
        let path = entry.path();
        let is_dump = kind.is_file() && path.extension().is_some_and(|end| end.as_bytes() == b"kwab");
        (is_dump || kind.is_dir()).then(|| Entry { path, is_folder: kind.is_dir(), inode: entry.ino() })
    });
    let mut entries: Vec<Entry> = found.collect();
    entries.sort_unstable_by(|a, b| a.path.file_name().cmp(&b.path.file_name()));
    Some(entries)
}

/// The marks of a directory: its times, or what is in it where these change with the index.
fn folder_stamp(meta: &Metadata, home: Home, entries: &[Entry]) -> Stamp {
    if home != Home(Some((meta.dev(), meta.ino()))) {
        return Stamp { bytes: 0, ..stamp_of(meta) };
    }
    let mut hasher = DefaultHasher::new();
    for entry in entries {
        (entry.path.file_name(), entry.inode).hash(&mut hasher);
    }
    Stamp { bytes: hasher.finish(), inode: meta.ino(), ..Stamp::default() }
}

/// Whether a change from now on gives what has this mark another one; waits for a tick of its clock if need be.
pub(crate) fn settle(stamp: Stamp) -> bool {
    /// More than a tick of the kernel's clock, which is 10 ms at most.
    const TICK: i64 = 20_000_000;
    /// The same of file systems that keep seconds only.
    const COARSE: i64 = 2_000_000_000;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    let is_ahead = |ns: i64| ns.saturating_sub(now) > TICK;
    if is_ahead(stamp.changed_ns) {
        return false;
    }
    // Programs set the time of modification to anything.
    let modified = Some(stamp.modified_ns).filter(|ns| !is_ahead(*ns));
    let changed = modified.map_or(stamp.changed_ns, |ns| ns.max(stamp.changed_ns));
    let tick = if changed % 1_000_000_000 == 0 { COARSE } else { TICK };
    if let Some(left @ 1..) = tick.checked_sub(now.saturating_sub(changed)) {
        std::thread::sleep(Duration::from_nanos(left.unsigned_abs().min(2 * COARSE.unsigned_abs())));
    }
    true
}

/// The marks of a file.
pub(crate) fn stamp_of(meta: &Metadata) -> Stamp {
    let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        bytes: meta.len(),
        modified_ns: ns(meta.mtime(), meta.mtime_nsec()),
        changed_ns: ns(meta.ctime(), meta.ctime_nsec()),
        inode: meta.ino(),
    }
}

/// Whether a directory still has the marks that were kept.
pub(crate) fn is_same_folder(folder: &Path, home: Home, kept: &Found) -> bool {
    let path = kept.path(folder);
    let Some(meta) = look(folder, &path) else { return false };
    let is_home = home == Home(Some((meta.dev(), meta.ino())));
    let found = if is_home { entries(&path).unwrap_or_default() } else { Vec::new() };
    folder_stamp(&meta, home, &found) == kept.stamp
}

/// Whether a name of the index is still a file.
pub(crate) fn exists(folder: &Path, name: &[u8]) -> bool {
    std::fs::symlink_metadata(path_of(folder, name)).is_ok_and(|meta| meta.is_file())
}

/// How two names stand in the order of a walk.
pub(crate) fn order(a: &[u8], b: &[u8]) -> Ordering {
    Path::new(OsStr::from_bytes(a)).cmp(Path::new(OsStr::from_bytes(b)))
}

/// The path of a name below a directory.
pub(crate) fn path_of(folder: &Path, name: &[u8]) -> PathBuf {
    if name.is_empty() { folder.to_path_buf() } else { folder.join(OsStr::from_bytes(name)) }
}

fn name_below(folder: &Path, path: &Path) -> Vec<u8> {
    path.strip_prefix(folder).unwrap_or(path).as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_within_a_tick_is_waited_for_and_a_clock_that_is_ahead_tells_nothing() {
        let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64;
        let at = |changed_ns| Stamp { changed_ns, modified_ns: changed_ns, ..Stamp::default() };
        let changed = now() / 2 * 2 + 1;
        assert!(settle(at(changed)));
        assert!(now() >= changed + 20_000_000, "a tick has passed");
        assert!(!settle(at(now() + 60_000_000_001)));
        assert!(settle(at(1)) && settle(at(0)));
        let dated = Stamp { modified_ns: now() + 86_400_000_000_001, ..at(1) };
        assert!(settle(dated), "a time of modification in the future is one that was set");
    }
}
