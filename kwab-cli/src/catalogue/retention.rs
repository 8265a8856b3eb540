//! Decides which dumps of a directory may go, and removes them.
//!
//! The first and the last dump of each bug of a signature stay, and so does every file that is not a readable dump: of
//! seven bugs that all end in the same panic, each keeps its dumps. What goes is removed only as what was indexed: its
//! directory is found below the one that was named without following a link, the file has the marks of the index, and
//! it is renamed before it is removed, so that a dump that another program puts in its place meanwhile is put back.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, statat, unlinkat};

use super::scan::Found;
use super::store::{Aged, Fate, Leaving, Store, StoreError, Total};

/// What is to stay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    /// Dumps of each bug of a signature: the first, and the last ones.
    pub keep: Option<usize>,
    /// Bytes of all dumps together.
    pub max_bytes: Option<u64>,
}

/// What goes and what stays; the files that go are in temporary tables of the store.
#[derive(Debug)]
pub(crate) struct Plan {
    store: Store,
    /// All files with dumps.
    pub all: Total,
}

/// Chooses what may go: first what is more than a signature keeps, then the oldest until the rest is small enough.
///
/// # Errors
/// When the store cannot be read, or there is no room for temporary files.
pub(crate) fn plan(store: Store, rule: Rule) -> Result<Plan, StoreError> {
    let mut course = Course { keep: rule.keep, ..Course::default() };
    let all = store.judge(|dump, set| course.judge(dump, set))?;
    store.let_go(all, rule.max_bytes)?;
    Ok(Plan { store, all })
}

impl Plan {
    /// What goes, in files and bytes.
    pub(crate) fn total(&self) -> Result<Total, StoreError> {
        self.store.leaving_total()
    }

    /// The files that go, the oldest first.
    pub(crate) fn leaving(&self) -> impl Iterator<Item = Result<Leaving, StoreError>> {
        let mut last = Some(0);
        let batches = std::iter::from_fn(move || {
            let batch = self.store.leaving_after(last?);
            last = batch.as_ref().ok().and_then(|batch| batch.last()).map(|one| one.number);
            match batch {
                Ok(batch) if batch.is_empty() => None,
                batch => Some(batch),
            }
        });
        batches.flat_map(|batch| match batch {
            Ok(batch) => batch.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    }

    /// Removes the files below a directory, each only if it is what was indexed; gives those that stay, and why.
    ///
    /// # Errors
    /// When the temporary tables cannot be read.
    pub(crate) fn remove(&self, folder: &Folder) -> Result<Vec<(Leaving, String)>, StoreError> {
        let mut stayed = Vec::new();
        for one in self.leaving() {
            let one = one?;
            if let Err(why) = remove_one(&folder.0, &one.file) {
                stayed.push((one, why));
            }
        }
        self.store.stay(stayed.iter().map(|(one, _)| one.number))?;
        Ok(stayed)
    }
}

/// The dumps of a bug with one signature, oldest first, as far as they are judged.
#[derive(Debug, Default)]
struct Course {
    keep: Option<usize>,
    symptom: Option<(String, i64)>,
    /// Files of the newest dumps so far, as many as are kept beside the first; at least the last.
    newest: VecDeque<i64>,
}

impl Course {
    /// Judges a dump, or the end of all.
    fn judge(&mut self, dump: Option<&Aged>, set: &mut dyn FnMut(i64, Fate)) {
        let symptom = dump.map(|dump| &dump.symptom);
        if symptom != self.symptom.as_ref() {
            self.end(set);
            self.symptom = symptom.cloned();
        }
        let Some(dump) = dump else { return };
        if !dump.is_readable {
            return set(dump.file, Fate::Bound);
        }
        if self.newest.is_empty() {
            set(dump.file, Fate::Bound);
        }
        let Some(keep) = self.keep else {
            set(dump.file, Fate::Kept);
            self.newest.clear();
            return self.newest.push_back(dump.file);
        };
        if self.newest.len() >= keep.saturating_sub(1).max(1) {
            self.newest.pop_front();
        }
        self.newest.push_back(dump.file);
    }

    /// Judges the newest ones of a bug.
    fn end(&mut self, set: &mut dyn FnMut(i64, Fate)) {
        if let Some(last) = self.newest.pop_back() {
            set(last, Fate::Bound);
        }
        self.newest.drain(..).for_each(|file| set(file, Fate::Kept));
    }
}

/// A directory from which files are removed.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

impl Folder {
    /// Opens it.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }
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
    let hidden = hide(&parent, name).map_err(told)?;
    let hidden = hidden.as_os_str();
    if !marks(hidden).is_ok_and(|found| is_it(&found)) {
        let back = renameat_with(&parent, hidden, &parent, name, RenameFlags::NOREPLACE);
        return Err(match back {
            Ok(()) => "was replaced meanwhile".to_string(),
            Err(_) => format!("was replaced meanwhile, twice; one of the others is {}", hidden.display()),
        });
    }
    unlinkat(&parent, hidden, AtFlags::empty()).map_err(told)
}

/// Gives a file a name that no other has, and says which. It ends as a dump's does: a run that is killed then loses
/// nothing. What such a run left may have the number of this process, which is 1 in every container.
fn hide(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<OsString> {
    const TRIES: u32 = 1000;
    for number in 0..TRIES {
        let hidden = OsString::from(format!(".kwab-pruning-{}-{number}.kwab", std::process::id()));
        match renameat_with(parent, name, parent, &hidden, RenameFlags::NOREPLACE) {
            Err(rustix::io::Errno::EXIST) => {}
            done => return done.map(|()| hidden),
        }
    }
    Err(rustix::io::Errno::EXIST)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::catalogue::row::Row;
    use crate::catalogue::scan::{Stamp, stamp_of};

    fn found(folder: &Path, name: &str) -> Found {
        let stamp = stamp_of(&std::fs::symlink_metadata(folder.join(name)).expect("there"));
        Found { name: name.as_bytes().to_vec(), stamp }
    }

    /// A finding of one of two rules, or none.
    fn bug(number: u64) -> Option<kwab::report::catalogue::Finding> {
        let rule = ["LEAK", "TLB"].get(usize::try_from(number).ok()?.checked_sub(1)?)?.to_string();
        let (class, claim) = ("bug".to_string(), "it is one".to_string());
        let (function, about) = (None, None);
        Some(kwab::report::catalogue::Finding { rule, class, claim, score: 0.9, proven: true, function, about })
    }

    /// A store of files with up to three dumps each, of few signatures, bugs and times.
    fn fleet(seed: u64) -> (Store, Vec<(String, u64, Vec<Row>)>) {
        let mut state = seed;
        let mut below = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        let mut files = Vec::new();
        for number in 0..40 {
            let row = |below: &mut dyn FnMut(u64) -> u64| {
                let mut entry = kwab::report::catalogue::unreadable("x", "no dump");
                if below(12) > 0 {
                    (entry.kind, entry.signature) = ("panic".to_string(), format!("{:08x}", below(5)));
                    entry.wall_ns = Some(below(60) as i64);
                    entry.finding = bug(below(3));
                }
                let (build_id, commit) = (String::new(), String::new());
                Row { entry, hypotheses: Vec::new(), build_id, commit, modified_ns: below(60) as i64 }
            };
            let rows: Vec<Row> = (0..=below(3)).map(|_| row(&mut below)).collect();
            files.push((format!("d{number:02}.kwab"), 1 + below(9), rows));
        }
        let mut store = Store::in_memory(Path::new("x")).expect("made");
        for (name, bytes, rows) in &files {
            let stamp = Stamp { bytes: *bytes, ..Stamp::default() };
            store.put(&[(Found { name: name.as_bytes().to_vec(), stamp }, rows.clone())]).expect("put");
        }
        (store, files)
    }

    /// What may go by the words of the manual, with everything in memory.
    fn expected(files: &[(String, u64, Vec<Row>)], rule: Rule) -> BTreeSet<String> {
        let mut by_bug: BTreeMap<_, Vec<(i64, &String)>> = BTreeMap::new();
        let (mut bound, mut kept) = (BTreeSet::new(), BTreeSet::new());
        for (name, row) in files.iter().flat_map(|(name, _, rows)| rows.iter().map(move |row| (name, row))) {
            match row.entry.kind.as_str() {
                "unreadable" => drop(bound.insert(name)),
                _ => {
                    let rule = row.entry.finding.as_ref().map(|found| &*found.rule);
                    by_bug.entry((&row.entry.signature, rule)).or_default().push((row.when_ns(), name));
                }
            }
        }
        for dumps in by_bug.values_mut() {
            dumps.sort();
            bound.extend(dumps.first().map(|(_, name)| *name));
            bound.extend(dumps.last().map(|(_, name)| *name));
            let newest = rule.keep.map_or(usize::MAX, |keep| keep - 1);
            kept.extend(dumps.iter().rev().take(newest).map(|(_, name)| *name));
        }
        let mut free: Vec<_> = files.iter().filter(|(name, ..)| !bound.contains(name)).collect();
        free.sort_by_key(|(name, _, rows)| (rows.iter().map(Row::when_ns).max(), name));
        let mut staying: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        let mut leaving = BTreeSet::new();
        for is_kept in [false, true] {
            for (name, bytes, _) in free.iter().filter(|(name, ..)| kept.contains(name) == is_kept) {
                if !is_kept || rule.max_bytes.is_some_and(|most| staying > most) {
                    staying -= bytes;
                    leaving.insert(name.clone());
                }
            }
        }
        leaving
    }

    #[test]
    fn what_goes_is_what_the_rules_say_in_a_hundred_fleets() {
        let mut gone = 0;
        for seed in 0..100 {
            for (keep, max_bytes) in [(Some(2), None), (Some(4), Some(60)), (None, Some(90)), (Some(1 << 32), Some(1))]
            {
                let rule = Rule { keep, max_bytes };
                let (store, files) = fleet(seed);
                let expected = expected(&files, rule);
                let plan = plan(store, rule).expect("planned");
                let leaving: Vec<Leaving> = plan.leaving().collect::<Result<_, _>>().expect("read");
                let names = leaving.iter().map(|one| String::from_utf8_lossy(&one.file.name).into_owned());
                assert_eq!(names.collect::<BTreeSet<_>>(), expected, "seed {seed}, {rule:?}");
                assert!(leaving.is_sorted_by_key(|one| one.happened_ns), "seed {seed}, {rule:?}");
                let bytes = leaving.iter().map(|one| one.file.stamp.bytes).sum();
                assert_eq!(plan.total().expect("read"), Total { files: leaving.len() as u64, bytes });
                gone += leaving.len();
            }
        }
        assert!(gone > 1000, "{gone}");
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
        // What a run of the same process number left when it was killed is in nothing's way, and stays.
        let left = at.join(format!("deep/.kwab-pruning-{}-0.kwab", std::process::id()));
        std::fs::write(&left, "a dump").expect("written");
        std::fs::write(at.join("deep/d.kwab"), "another").expect("written");
        assert_eq!(remove_one(&root, &found(at, "deep/d.kwab")), Ok(()));
        assert_eq!(remove_one(&root, &found(at, left.strip_prefix(at).unwrap().to_str().unwrap())), Ok(()));
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
