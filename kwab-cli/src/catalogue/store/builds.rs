//! Decides which dumps are wanted by time and build, and which build is newer than another.
//!
//! A build is as old as the first dump of it: dumps know when they happened, and no tool here knows the history of a
//! repository. A crash is a regression of a build if no dump of the build before has its signature, or the bug that
//! triage finds in it: many bugs end in the same panic. It is new, or back if a still older build has it.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Crashes of that build, or of the newest one, whose signature or bug the build before does not have.
    pub is_new: bool,
}

impl Wanted {
    /// Whether all are.
    pub(crate) const fn is_all(&self) -> bool {
        self.since_ns.is_none() && self.build.is_none() && !self.is_new
    }

    /// The builds that are named so, by their positions: the last is the newest.
    fn named(&self, all: &[Build]) -> Result<Vec<usize>, StoreError> {
        let Some(text) = &self.build else { return Ok((0..all.len()).collect()) };
        let begins = |name: &str| name.starts_with(text.as_str());
        let is_it = |build: &Build| begins(&build.name) || begins(&build.commit) || build.kernel == *text;
        let named: Vec<usize> = (0..all.len()).filter(|at| is_it(&all[*at])).collect();
        if named.is_empty() { Err(StoreError::NoBuild(text.clone())) } else { Ok(named) }
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

impl Build {
    /// Its commit, else its name.
    pub(crate) const fn shown(&self) -> &String {
        if self.commit.is_empty() { &self.name } else { &self.commit }
    }
}

/// A crash that came again after a build without it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// The key of the bug that triage finds, else the signature.
    pub what: String,
    /// The last build before that had it: its commit, else its name.
    pub last: String,
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

    /// What a crash must have one of, if that is asked: signatures and keys of bugs, as lists of JSON.
    pub(super) fn lists(&self) -> Option<(String, String)> {
        let list = |of: &BTreeSet<String>| serde_json::json!(of).to_string();
        self.new.as_ref().map(|new| (list(&new.signatures), list(&new.bugs)))
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
        let named = wanted.named(&all)?;
        if !wanted.is_new {
            return Ok(Chosen { builds: Some(named.iter().map(|at| all[*at].name.clone()).collect()), new: None });
        }
        let newest = *named.last().ok_or(StoreError::NoBuilds)?;
        let mut new = self.symptoms(&all[newest].name)?;
        if let Some(before) = all[..newest].last() {
            new.without(&self.symptoms(&before.name)?);
        }
        Ok(Chosen { builds: Some(vec![all[newest].name.clone()]), new: Some(new) })
    }

    /// The build that is asked for regressions when none is before it: all its crashes are.
    pub(crate) fn oldest(&self, wanted: &Wanted) -> Result<Option<Build>, StoreError> {
        let mut all = self.builds()?;
        let is_oldest = wanted.is_new && wanted.named(&all)?.last() == Some(&0);
        Ok(is_oldest.then(|| all.swap_remove(0)))
    }

    /// Of the regressions that are wanted those that are not new, by their names.
    pub(crate) fn returned(&self, wanted: &Wanted) -> Result<Vec<Returned>, StoreError> {
        let all = self.builds()?;
        let (Some(newest), Some(new)) = (wanted.named(&all)?.pop(), self.chosen(wanted)?.new) else {
            return Ok(Vec::new());
        };
        let (mut left, mut found) = (new, BTreeMap::new());
        let pairs = self.pairs(&all[newest].name)?;
        for build in all[..newest].iter().rev().skip(1) {
            let older = self.symptoms(&build.name)?;
            let last = build.shown();
            for (signature, bug) in &pairs {
                let is_back = (left.signatures.contains(signature) && older.signatures.contains(signature))
                    || bug.as_ref().is_some_and(|bug| left.bugs.contains(bug) && older.bugs.contains(bug));
                if is_back {
                    found.entry(bug.as_ref().unwrap_or(signature).clone()).or_insert_with(|| last.clone());
                }
            }
            left.without(&older);
        }
        Ok(found.into_iter().map(|(what, last)| Returned { what, last }).collect())
    }

    /// What the dumps of a build are of: each signature with each bug behind it.
    fn pairs(&self, build: &str) -> Result<Vec<(String, Option<String>)>, StoreError> {
        // The key of a group without a bug is its signature.
        const ALL: &str = "SELECT tally.signature, bug.key FROM tally LEFT JOIN bug ON bug.id = tally.bug
            WHERE build = ?1";
        self.ask(|at| {
            let mut query = at.prepare_cached(ALL)?;
            let pairs = query.query_map(params![build], |row| {
                let bug: Option<String> = row.get(1)?;
                Ok((row.get(0)?, bug.filter(|key| !key.starts_with('~'))))
            })?;
            pairs.collect()
        })
    }

    fn symptoms(&self, build: &str) -> Result<Symptoms, StoreError> {
        let (signatures, bugs): (BTreeSet<String>, Vec<Option<String>>) = self.pairs(build)?.into_iter().unzip();
        Ok(Symptoms { signatures, bugs: bugs.into_iter().flatten().collect() })
    }
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
