//! Decides which dumps of a directory may go, and removes them.
//!
//! The first and the last dump of each signature stay, and so does every file that is not a readable dump. What goes is
//! removed only as what was indexed: its directory is found below the one that was named without following a link, the
//! file has the marks of the index, and it is renamed before it is removed, so that a dump that another program puts in
//! its place meanwhile is put back.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, statat, unlinkat};

use super::scan::Found;
use super::store::{Aged, Store, StoreError};

/// What is to stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Dumps of a signature: the first, and the last ones.
    pub keep: Option<usize>,
    /// Bytes of all dumps together.
    pub max_bytes: Option<u64>,
}

/// A file that may go.
#[derive(Debug, Clone)]
pub(crate) struct Leaving {
    /// Its path and its marks.
    pub file: Found,
    /// The signatures of its dumps.
    pub signatures: Vec<String>,
    /// When the last of its dumps happened, nanoseconds since 1970.
    pub happened_ns: i64,
}

/// What goes and what stays.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The files that may go, oldest first.
    pub leaving: Vec<Leaving>,
    /// All files of the index.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// Bytes of what stays.
    pub staying: u64,
}

/// Chooses what may go: first what is more than a signature keeps, then the oldest until the rest is small enough.
///
/// # Errors
/// When the store cannot be read.
pub(crate) fn plan(store: &Store, rule: Rule) -> Result<Plan, StoreError> {
    let mut files: BTreeMap<i64, Leaving> = BTreeMap::new();
    let mut judged = Judged::default();
    let mut signature = String::new();
    let mut dumps = Vec::new();
    store.aged(|Aged { id, file, signature: of, happened_ns, is_readable }| {
        if of != signature {
            judged.judge(&mut dumps, rule.keep);
            signature.clone_from(&of);
        }
        if is_readable {
            dumps.push(id);
        } else {
            judged.bound.insert(id);
        }
        let known = files.entry(id).or_insert_with(|| Leaving { file, signatures: Vec::new(), happened_ns });
        known.happened_ns = known.happened_ns.max(happened_ns);
        known.signatures.push(of);
        known.signatures.dedup();
    })?;
    judged.judge(&mut dumps, rule.keep);
    let bytes: u64 = files.values().map(|one| one.file.stamp.bytes).sum();
    let mut plan = Plan { files: files.len() as u64, bytes, staying: bytes, leaving: Vec::new() };
    let mut free: Vec<(i64, Leaving)> = files.into_iter().filter(|(id, _)| !judged.bound.contains(id)).collect();
    free.sort_by(|(_, a), (_, b)| (a.happened_ns, &a.file.name).cmp(&(b.happened_ns, &b.file.name)));
    let (surplus, rest): (Vec<_>, Vec<_>) = free.into_iter().partition(|(id, _)| !judged.kept.contains(id));
    let too_many = |staying| rule.max_bytes.is_some_and(|most| staying > most);
    for (_, one) in surplus {
        plan.leave(one);
    }
    for (_, one) in rest {
        if too_many(plan.staying) {
            plan.leave(one);
        }
    }
    plan.leaving.sort_by(|a, b| (a.happened_ns, &a.file.name).cmp(&(b.happened_ns, &b.file.name)));
    Ok(plan)
}

impl Plan {
    fn leave(&mut self, one: Leaving) {
        self.staying = self.staying.saturating_sub(one.file.stamp.bytes);
        self.leaving.push(one);
    }
}

/// Files by what their dumps are; a file may be in both for several dumps.
#[derive(Debug, Default)]
struct Judged {
    /// Never to go.
    bound: BTreeSet<i64>,
    /// To go for their size only.
    kept: BTreeSet<i64>,
}

impl Judged {
    /// Judges the dumps of a signature, oldest first.
    fn judge(&mut self, dumps: &mut Vec<i64>, keep: Option<usize>) {
        self.bound.extend(dumps.first());
        self.bound.extend(dumps.last());
        // The first one, and the newest of the others.
        let newest = keep.map_or(usize::MAX, |keep| keep.saturating_sub(1));
        self.kept.extend(dumps.iter().rev().take(newest));
        dumps.clear();
    }
}

/// Removes files below a directory, each only if it is what was indexed; gives why those that stay do.
///
/// # Errors
/// When the directory cannot be opened.
pub(crate) fn remove(folder: &Path, leaving: &[Leaving]) -> io::Result<Vec<(usize, String)>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(folder, flags, Mode::empty())?;
    let removed = leaving.iter().enumerate().map(|(index, one)| (index, remove_one(&root, &one.file)));
    Ok(removed.filter_map(|(index, done)| done.err().map(|why| (index, why))).collect())
}

fn remove_one(root: &OwnedFd, file: &Found) -> Result<(), String> {
    let told = |error: rustix::io::Errno| crate::failure::system(&error.into());
    let path = Path::new(OsStr::from_bytes(&file.name));
    let name = path.file_name().ok_or("has no name")?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat2(root, parent, flags, Mode::empty(), resolve).map_err(told)?;
    let marks = |name: &OsStr| statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(told);
    let (wanted, found) = (file.stamp, marks(name)?);
    let is_it = |found: &rustix::fs::Stat| {
        let modified = found.st_mtime.saturating_mul(1_000_000_000).saturating_add(found.st_mtime_nsec as i64);
        let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode).is_file();
        is_file && (found.st_ino, found.st_size as u64, modified) == (wanted.inode, wanted.bytes, wanted.modified_ns)
    };
    if !is_it(&found) {
        return Err("has changed since it was indexed".to_string());
    }
    // A name that ends as a dump's does: a run that is killed here loses nothing.
    let hidden = format!(".kwab-pruning-{}.kwab", std::process::id());
    let hidden = OsStr::new(&hidden);
    renameat_with(&parent, name, &parent, hidden, RenameFlags::NOREPLACE).map_err(told)?;
    if !marks(hidden).is_ok_and(|found| is_it(&found)) {
        let back = renameat_with(&parent, hidden, &parent, name, RenameFlags::NOREPLACE);
        return Err(match back {
            Ok(()) => "was replaced meanwhile".to_string(),
            Err(_) => format!("was replaced meanwhile, twice; one of the others is {}", hidden.display()),
        });
    }
    unlinkat(&parent, hidden, AtFlags::empty()).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::scan::stamp_of;

    fn found(folder: &Path, name: &str) -> Found {
        let stamp = stamp_of(&std::fs::symlink_metadata(folder.join(name)).expect("there"));
        Found { name: name.as_bytes().to_vec(), stamp }
    }

    #[test]
    fn only_what_was_indexed_is_removed_and_never_through_a_link() {
        let folder = tempfile::tempdir().expect("made");
        let at = folder.path();
        std::fs::create_dir_all(at.join("deep")).expect("made");
        std::fs::create_dir_all(at.join("elsewhere")).expect("made");
        for name in ["deep/a.kwab", "deep/b.kwab", "deep/c.kwab", "elsewhere/a.kwab"] {
            std::fs::write(at.join(name), name).expect("written");
        }
        let root: OwnedFd = std::fs::File::open(at).expect("opened").into();
        let [a, b, c] = ["deep/a.kwab", "deep/b.kwab", "deep/c.kwab"].map(|name| found(at, name));
        // Written again: another inode or time, and another length.
        std::fs::write(at.join("deep/b.kwab"), "another dump").expect("written");
        assert_eq!(remove_one(&root, &b), Err("has changed since it was indexed".to_string()));
        assert!(at.join("deep/b.kwab").exists());
        assert_eq!(remove_one(&root, &a), Ok(()));
        assert!(!at.join("deep/a.kwab").exists() && std::fs::read_dir(at.join("deep")).unwrap().count() == 2);
        // The directory becomes a link to one that has the very file.
        let moved = at.join("moved");
        std::fs::rename(at.join("deep"), &moved).expect("renamed");
        std::os::unix::fs::symlink(&moved, at.join("deep")).expect("linked");
        assert!(remove_one(&root, &c).is_err());
        assert!(moved.join("c.kwab").exists());
        // A link in the place of the file.
        std::os::unix::fs::symlink(at.join("elsewhere/a.kwab"), at.join("l.kwab")).expect("linked");
        assert!(remove_one(&root, &Found { name: b"l.kwab".to_vec(), ..found(at, "elsewhere/a.kwab") }).is_err());
        let outside = Found { name: b"../x.kwab".to_vec(), stamp: c.stamp };
        assert!(remove_one(&root, &outside).is_err());
        assert!(at.join("elsewhere/a.kwab").exists() && at.join("l.kwab").exists());
    }
}
