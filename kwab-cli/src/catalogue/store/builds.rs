//! Decides which dumps are wanted by time and build, and which build is newer than another.
//!
//! A build is as old as the first dump of it: dumps know when they happened, and no tool here knows the history of a
//! repository. A crash is new in a build if no dump of an older build has its signature, or the bug that triage finds
//! in it: many bugs end in the same panic.

use std::collections::BTreeSet;

use rusqlite::params;

use super::{Store, StoreError};
use crate::catalogue::row::Row;

/// Which dumps are wanted of a store.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Those that happened from then on, nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Those of a build: the beginning of its build-id or commit, or the kernel's name and version.
    pub build: Option<String>,
    /// Crashes of that build, or of the newest one, whose signature or bug no older build has.
    pub is_new: bool,
}

impl Wanted {
    /// Whether all are.
    pub(crate) const fn is_all(&self) -> bool {
        self.since_ns.is_none() && self.build.is_none() && !self.is_new
    }
}

/// A build with dumps.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    /// What dumps of it have in common: the build-id, else the commit, else the kernel.
    pub name: String,
    /// Commit that the kernel's version names; empty when it names none.
    pub commit: String,
    /// The kernel's name and version.
    pub kernel: String,
    /// When its first dump happened, nanoseconds since 1970.
    pub first_ns: i64,
    /// When its last dump happened.
    pub last_ns: i64,
    /// How many dumps it has.
    pub dumps: u64,
}

/// What [`Wanted`] comes to in a store.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Only these builds.
    pub builds: Option<Vec<String>>,
    /// Only crashes that have one of these.
    new: Option<Symptoms>,
}

/// Signatures, and keys of the groups of bugs that triage found.
#[derive(Debug, Default)]
struct Symptoms {
    signatures: BTreeSet<String>,
    bugs: BTreeSet<String>,
}

impl Symptoms {
    fn without(&mut self, other: &Self) {
        self.signatures.retain(|signature| !other.signatures.contains(signature));
        self.bugs.retain(|bug| !other.bugs.contains(bug));
    }

    fn has(&self, row: &Row) -> bool {
        self.signatures.contains(&row.entry.signature) || (!self.bugs.is_empty() && self.bugs.contains(&row.group().1))
    }
}

impl Chosen {
    /// Whether a row is wanted.
    pub(super) fn is_wanted(&self, wanted: &Wanted, row: &Row) -> bool {
        wanted.since_ns.is_none_or(|since| row.when_ns() >= since) && self.has(row)
    }

    /// Whether a row is wanted, but for its time.
    pub(super) fn has(&self, row: &Row) -> bool {
        let is_crash = || {
            let is_none = matches!(row.entry.kind.as_str(), "recording" | "lost" | "unreadable");
            !is_none && !row.entry.is_quiet_live()
        };
        self.builds.as_ref().is_none_or(|builds| builds.iter().any(|build| build == row.build()))
            && self.new.as_ref().is_none_or(|new| is_crash() && new.has(row))
    }
}

impl Store {
    /// The builds that dumps name, the oldest first.
    pub(crate) fn builds(&self) -> Result<Vec<Build>, StoreError> {
        const ALL: &str = "SELECT build, min(first_ns), max(last_ns), sum(dumps) FROM tally WHERE build <> ''
            GROUP BY build ORDER BY 2, 1";
        const ONE: &str = "SELECT commit_id, kernel FROM dump WHERE build = ?1 LIMIT 1";
        self.ask(|at| {
            let (mut all, mut one) = (at.prepare(ALL)?, at.prepare(ONE)?);
            let builds = all.query_map([], |row| {
                let name: String = row.get(0)?;
                let (commit, kernel) = one.query_row([&name], |of| Ok((of.get(0)?, of.get(1)?)))?;
                let dumps = row.get::<_, i64>(3)?.cast_unsigned();
                Ok(Build { name, commit, kernel, first_ns: row.get(1)?, last_ns: row.get(2)?, dumps })
            })?;
            builds.collect()
        })
    }

    /// What is wanted, in terms of this store.
    pub(super) fn chosen(&self, wanted: &Wanted) -> Result<Chosen, StoreError> {
        if wanted.build.is_none() && !wanted.is_new {
            return Ok(Chosen::default());
        }
        let all = self.builds()?;
        let is_it = |build: &&Build| {
            wanted.build.as_ref().is_none_or(|text| {
                let begins = |name: &str| name.starts_with(text.as_str());
                begins(&build.name) || begins(&build.commit) || build.kernel == *text
            })
        };
        let mut builds: Vec<&Build> = all.iter().filter(is_it).collect();
        if let (true, Some(text)) = (builds.is_empty(), &wanted.build) {
            return Err(StoreError::NoBuild(text.clone()));
        }
        if !wanted.is_new {
            return Ok(Chosen { builds: Some(names(&builds)), new: None });
        }
        // Of several that are named so, the newest.
        let newest = builds.pop().ok_or(StoreError::NoBuilds)?;
        let older: Vec<&Build> = all.iter().filter(|build| build.first_ns < newest.first_ns).collect();
        let mut new = self.symptoms(&newest.name)?;
        for build in older {
            new.without(&self.symptoms(&build.name)?);
        }
        Ok(Chosen { builds: Some(vec![newest.name.clone()]), new: Some(new) })
    }

    fn symptoms(&self, build: &str) -> Result<Symptoms, StoreError> {
        // The key of a group without a bug is its signature.
        const ALL: &str = "SELECT tally.signature, bug.key FROM tally LEFT JOIN bug ON bug.id = tally.bug
            WHERE build = ?1";
        self.ask(|at| {
            let mut query = at.prepare_cached(ALL)?;
            let mut rows = query.query(params![build])?;
            let mut all = Symptoms::default();
            while let Some(row) = rows.next()? {
                all.signatures.insert(row.get(0)?);
                all.bugs.extend(row.get::<_, Option<String>>(1)?.filter(|key| !key.starts_with('~')));
            }
            Ok(all)
        })
    }
}

fn names(builds: &[&Build]) -> Vec<String> {
    builds.iter().map(|build| build.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{BTreeSet, Symptoms};
    use crate::catalogue::row::{Row, of_file};

    fn row(name: &str) -> Row {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testing/dumps").join(name);
        of_file(&path, false, 0).pop().unwrap()
    }

    fn of(row: &Row) -> Symptoms {
        let (signature, bug) = (row.entry.signature.clone(), row.group().1);
        Symptoms { signatures: BTreeSet::from([signature]), bugs: BTreeSet::from([bug]) }
    }

    #[test]
    fn another_bug_behind_a_panic_that_an_older_build_has_is_new() {
        let (older, newer) = (row("cache-freed.kwab"), row("fork-shares.kwab"));
        assert_eq!(older.entry.signature, newer.entry.signature);
        let mut new = of(&newer);
        new.without(&of(&older));
        assert!(new.signatures.is_empty() && new.has(&newer) && !new.has(&older));
        new.without(&of(&newer));
        assert!(!new.has(&newer));
    }
}
