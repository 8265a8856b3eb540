//! The dumps of a store by signature and build: how often each signature came in which build.

use std::collections::BTreeMap;

use super::read::{one_dump, read_row};
use super::{Store, StoreError};
use crate::catalogue::row::Row;

/// How often a signature came.
#[derive(Debug)]
pub(crate) struct Course {
    /// The newest dump that has it.
    pub newest: Row,
    /// When the first dump of it happened.
    pub first_ns: i64,
    /// When the last one did.
    pub last_ns: i64,
    /// Dumps by build, as its position in the list of builds.
    pub builds: BTreeMap<usize, u64>,
}

impl Store {
    /// How often each signature came in which of these builds, since a time; the most frequent first.
    pub(crate) fn courses(
        &self,
        folder: &std::path::Path,
        builds: &[String],
        since_ns: Option<i64>,
    ) -> Result<Vec<Course>, StoreError> {
        const ALL: &str = "SELECT signature, sum(dumps), min(first_ns), max(last_ns) FROM tally
            WHERE build = ?1 AND ?2 IS NULL GROUP BY signature";
        const SINCE: &str = "SELECT signature, count(*), min(happened_ns), max(happened_ns) FROM dump
            WHERE build = ?1 AND happened_ns >= ?2 GROUP BY signature";
        const NEWEST: &str = "SELECT file, position FROM dump WHERE build = ?1 AND signature = ?2
            ORDER BY happened_ns DESC LIMIT 1";
        self.ask(|at| {
            /// First and last time, and dumps by build.
            type Sums = (i64, i64, BTreeMap<usize, u64>);
            let mut sums: BTreeMap<String, Sums> = BTreeMap::new();
            let mut counts = at.prepare(if since_ns.is_some() { SINCE } else { ALL })?;
            for (index, build) in builds.iter().enumerate() {
                let mut rows = counts.query((build, since_ns))?;
                while let Some(row) = rows.next()? {
                    let (first, last) = (row.get(2)?, row.get(3)?);
                    let of = sums.entry(row.get(0)?).or_insert((first, last, BTreeMap::new()));
                    (of.0, of.1) = (of.0.min(first), of.1.max(last));
                    of.2.insert(index, row.get::<_, i64>(1)?.cast_unsigned());
                }
            }
            let (mut newest, mut one) = (at.prepare(NEWEST)?, at.prepare(&one_dump())?);
            let mut courses = Vec::with_capacity(sums.len());
            for (signature, (first_ns, last_ns, counts)) in sums {
                let last = counts.keys().next_back().and_then(|index| builds.get(*index));
                let place: (i64, i64) = newest.query_row((last, &signature), |row| Ok((row.get(0)?, row.get(1)?)))?;
                let newest = one.query_row(place, |row| read_row(row, folder))?;
                courses.push(Course { newest, first_ns, last_ns, builds: counts });
            }
            courses.sort_by_key(|course| std::cmp::Reverse(course.builds.values().sum::<u64>()));
            Ok(courses)
        })
    }
}
