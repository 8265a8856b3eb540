//! Decides which dumps are wanted by time and build, and which build is newer than another.
//!
//! A build is as old as the first dump of it: dumps know when they happened, and no tool here knows the history of a
//! repository. A signature is new in a build if no dump of an older build has it.

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
    /// Crashes of that build, or of the newest one, whose signature no older build has.
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
    /// Only crashes with these signatures.
    signatures: Option<BTreeSet<String>>,
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
            && self.signatures.as_ref().is_none_or(|new| is_crash() && new.contains(&row.entry.signature))
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
            return Ok(Chosen { builds: Some(names(&builds)), signatures: None });
        }
        // Of several that are named so, the newest.
        let newest = builds.pop().ok_or(StoreError::NoBuilds)?;
        let older: Vec<&Build> = all.iter().filter(|build| build.first_ns < newest.first_ns).collect();
        let mut new = self.signatures(&newest.name)?;
        for build in older {
            for known in self.signatures(&build.name)? {
                new.remove(&known);
            }
        }
        Ok(Chosen { builds: Some(vec![newest.name.clone()]), signatures: Some(new) })
    }

    fn signatures(&self, build: &str) -> Result<BTreeSet<String>, StoreError> {
        self.ask(|at| {
            let mut query = at.prepare_cached("SELECT signature FROM tally WHERE build = ?1")?;
            query.query_map(params![build], |row| row.get(0))?.collect()
        })
    }
}

fn names(builds: &[&Build]) -> Vec<String> {
    builds.iter().map(|build| build.name.clone()).collect()
}
