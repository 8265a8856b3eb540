//! Counts the groups of a store: puts the log of a death to its dump, then sums up each group that changed.
//!
//! What is the same bug is the library's decision ([`arrange`]). A dump alone has a group that it was put with; only a
//! log and a dump of one death have to be looked at together, and those can be only what died in the same process on
//! the same processor. So [`arrange`] is asked once for each such death that both tell of, not for all dumps at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kwab::analysis::LIKELY;
use kwab::report::catalogue::arrange;
use rusqlite::{Transaction, params};

use super::read::{ORDERED, Place, one_dump, read_row, sorted};
use super::write::bug_of;
use super::{Store, StoreError};
use crate::catalogue::scan::{Found, Stamp};

/// A process that died, its id, the processor.
type Death = (String, Option<u32>, Option<u32>);

impl Store {
    /// Counts what has changed, and keeps the marks of the directories: from now on the store is finished.
    pub(crate) fn settle(&mut self, folders: &[Found]) -> Result<(), StoreError> {
        if self.is_settled()? && self.folders()?.iter().map(key).eq(by_path(folders).iter().map(|one| key(one))) {
            return Ok(());
        }
        self.within(|transaction| {
            pair_logs(transaction)?;
            count_groups(transaction)?;
            tally(transaction)?;
            transaction.execute("DELETE FROM folder", [])?;
            for Found { name, stamp } in folders {
                transaction.prepare_cached("INSERT INTO folder VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
                    sorted(name),
                    stamp.bytes.cast_signed(),
                    stamp.modified_ns,
                    stamp.changed_ns,
                    stamp.inode.cast_signed(),
                ])?;
            }
            transaction.execute("UPDATE state SET settled = 1, files = (SELECT count(*) FROM file)", []).map(drop)
        })
    }
}

/// Counts the dumps of each signature and bug in each build. A store without the index for it serves one list,
/// which does not ask.
fn tally(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    const IS_INDEXED: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'dump_build')";
    const COUNT: &str = "INSERT INTO tally SELECT build, signature, alone, count(*), min(happened_ns), max(happened_ns)
        FROM dump GROUP BY build, signature, alone";
    transaction.execute("DELETE FROM tally", [])?;
    if transaction.query_row(IS_INDEXED, [], |row| row.get::<_, bool>(0))? {
        transaction.execute(COUNT, [])?;
    }
    Ok(())
}

fn key(folder: &Found) -> (Vec<u8>, Stamp) {
    (folder.name.clone(), folder.stamp)
}

fn by_path(folders: &[Found]) -> Vec<&Found> {
    let mut sorted_ones: Vec<&Found> = folders.iter().collect();
    sorted_ones.sort_by_key(|folder| sorted(&folder.name));
    sorted_ones
}

/// Puts each log that tells of the death of a dump into the group of both.
fn pair_logs(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    const PAIRED: &str = "weight = 0 OR bug <> alone";
    let is_any = |sql: &str| transaction.query_row(sql, [], |row| row.get::<_, bool>(0));
    let logs = is_any("SELECT EXISTS (SELECT 1 FROM dump INDEXED BY dump_log WHERE source = 'log')")?;
    // A pair whose log is gone has left its dump in the group of both.
    if !logs && !is_any(&format!("SELECT EXISTS (SELECT 1 FROM dump WHERE {PAIRED})"))? {
        return Ok(());
    }
    let both = format!("SELECT bug FROM dump WHERE {PAIRED} UNION SELECT alone FROM dump WHERE {PAIRED}");
    transaction.execute(&format!("UPDATE bug SET stale = 1 WHERE id IN ({both})"), [])?;
    transaction.execute(&format!("UPDATE dump SET bug = alone, weight = 1 WHERE {PAIRED}"), [])?;
    for places in deaths_told_twice(transaction)?.into_values() {
        pair(transaction, &places)?;
    }
    transaction.execute(&format!("UPDATE bug SET stale = 1 WHERE id IN ({both})"), []).map(drop)
}

/// The deaths that a log and a dump may both tell of, with all dumps that tell of each in the order of their paths.
fn deaths_told_twice(transaction: &Transaction<'_>) -> rusqlite::Result<BTreeMap<Death, Vec<Place>>> {
    const LOGS: &str = "SELECT DISTINCT process, pid, cpu FROM dump WHERE source = 'log' AND pid IS NOT NULL
        AND cpu IS NOT NULL AND mono_ns IS NOT NULL";
    const ALL: &str = "SELECT process, pid, cpu, dump.file, position, source = 'log' FROM dump
        JOIN file ON file.id = dump.file WHERE pid IS NOT NULL AND cpu IS NOT NULL AND mono_ns IS NOT NULL
        ORDER BY path, position";
    let mut query = transaction.prepare(LOGS)?;
    let told = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let told: BTreeSet<Death> = told.collect::<rusqlite::Result<_>>()?;
    let mut deaths: BTreeMap<Death, (Vec<Place>, bool)> = BTreeMap::new();
    if told.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut query = transaction.prepare(ALL)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let death: Death = (row.get(0)?, row.get(1)?, row.get(2)?);
        if told.contains(&death) {
            let (places, has_dump) = deaths.entry(death).or_default();
            places.push((row.get(3)?, row.get(4)?));
            *has_dump |= !row.get::<_, bool>(5)?;
        }
    }
    Ok(deaths.into_iter().filter(|(_, (_, has_dump))| *has_dump).map(|(death, (places, _))| (death, places)).collect())
}

/// Gives the dumps of a death the groups that they have beside each other.
fn pair(transaction: &Transaction<'_>, places: &[Place]) -> rusqlite::Result<()> {
    let mut query = transaction.prepare(&one_dump())?;
    let rows = places.iter().map(|(file, at)| query.query_row([file, at], |row| read_row(row, Path::new(""))));
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let entries: Vec<_> = rows.iter().map(|row| &row.entry).collect();
    for group in arrange(&entries) {
        let bug = bug_of(transaction, group.rank, &group.key)?;
        for (index, member) in group.members.iter().enumerate() {
            let Some((file, at)) = places.get(*member) else { continue };
            // A log and a dump of one death count once.
            transaction
                .prepare_cached("UPDATE dump SET bug = ?3, weight = ?4 WHERE file = ?1 AND position = ?2")?
                .execute(params![file, at, bug, index < group.count])?;
        }
    }
    Ok(())
}

/// What is summed up of a group.
#[derive(Debug, Default)]
struct Sums {
    deaths: i64,
    dumps: i64,
    unsound: i64,
    signatures: Vec<String>,
    seen: BTreeSet<String>,
    best: Option<(f64, Place)>,
    is_undated: bool,
    last: Option<Place>,
}

/// Sums up the groups that have changed, and drops those that are empty.
fn count_groups(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut query = transaction.prepare("SELECT id FROM bug WHERE stale")?;
    let stale = query.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    for bug in stale {
        let sums = sum_up(transaction, bug)?;
        let (finding_file, finding_position) = sums.best.map(|(_, place)| place).unzip();
        let (last_file, last_position) = sums.last.unzip();
        transaction
            .prepare_cached(
                "UPDATE bug SET stale = 0, deaths = ?2, dumps = ?3, unsound = ?4, signatures = ?5, finding_file = ?6,
                finding_position = ?7, last_file = ?8, last_position = ?9 WHERE id = ?1",
            )?
            .execute(params![
                bug,
                sums.deaths,
                sums.dumps,
                sums.unsound,
                sums.signatures.join(" "),
                finding_file,
                finding_position,
                last_file,
                last_position,
            ])?;
    }
    // The log of a pair leaves its own group empty, and comes back to it when the dump is gone.
    let left = "SELECT alone FROM dump WHERE weight = 0 OR bug <> alone";
    transaction.execute(&format!("DELETE FROM bug WHERE dumps = 0 AND id NOT IN ({left})"), []).map(drop)
}

fn sum_up(transaction: &Transaction<'_>, bug: i64) -> rusqlite::Result<Sums> {
    let mut sums = Sums::default();
    let sql = format!("SELECT dump.file, position, weight, sound, score, signature, undated {ORDERED}");
    let mut query = transaction.prepare_cached(&sql)?;
    let mut rows = query.query([bug])?;
    while let Some(row) = rows.next()? {
        let place = (row.get(0)?, row.get(1)?);
        sums.deaths += row.get::<_, i64>(2)?;
        sums.unsound += i64::from(!row.get::<_, bool>(3)?);
        let score = row.get::<_, Option<f64>>(4)?.filter(|score| *score >= LIKELY);
        if let Some(score) = score.filter(|score| sums.best.is_none_or(|(best, _)| *score > best)) {
            sums.best = Some((score, place));
        }
        let signature = row.get_ref(5)?.as_str()?;
        if !sums.seen.contains(signature) {
            sums.seen.insert(signature.to_string());
            sums.signatures.push(signature.to_string());
        }
        // The last one whose clock can be compared with the first one's.
        let is_undated = row.get(6)?;
        if sums.dumps == 0 {
            sums.is_undated = is_undated;
        }
        if sums.is_undated == is_undated {
            sums.last = Some(place);
        }
        sums.dumps += 1;
    }
    Ok(sums)
}
