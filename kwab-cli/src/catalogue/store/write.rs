//! Puts the rows of files into a store, and removes files that have vanished.

use rusqlite::{Transaction, params};

use super::{Store, StoreError, read::sorted};
use crate::catalogue::row::Row;
use crate::catalogue::scan::{Found, Stamp};
use kwab::report::catalogue::Rank;

const INSERT: &str = "INSERT INTO dump VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
    ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?33, 1)";

impl Store {
    /// Writes the rows of files in one transaction, in the place of what the store had of them.
    pub(crate) fn put(&mut self, files: &[(Found, Vec<Row>)]) -> Result<(), StoreError> {
        if files.is_empty() {
            return Ok(());
        }
        self.within(|transaction| {
            transaction.execute("UPDATE state SET settled = 0", [])?;
            files.iter().try_for_each(|(file, rows)| put_file(transaction, file, rows))
        })
    }

    /// Removes files that have vanished.
    pub(crate) fn remove(&mut self, names: &[Vec<u8>]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        self.within(|transaction| {
            transaction.execute("UPDATE state SET settled = 0", [])?;
            names.iter().try_for_each(|name| remove_file(transaction, name))
        })
    }
}

fn remove_file(transaction: &Transaction<'_>, name: &[u8]) -> rusqlite::Result<()> {
    const MARK: &str = "UPDATE bug SET stale = 1 WHERE id IN (SELECT bug FROM dump JOIN file ON file.id = dump.file
        WHERE path = ?1)";
    let name = sorted(name);
    transaction.prepare_cached(MARK)?.execute([&name])?;
    transaction.prepare_cached("DELETE FROM file WHERE path = ?1")?.execute([&name]).map(drop)
}

fn put_file(transaction: &Transaction<'_>, file: &Found, rows: &[Row]) -> rusqlite::Result<()> {
    let Stamp { bytes, modified_ns, changed_ns, inode } = file.stamp;
    remove_file(transaction, &file.name)?;
    transaction
        .prepare_cached("INSERT INTO file (path, bytes, modified_ns, changed_ns, inode) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![sorted(&file.name), bytes.cast_signed(), modified_ns, changed_ns, inode.cast_signed()])?;
    let id = transaction.last_insert_rowid();
    rows.iter().enumerate().try_for_each(|(position, row)| put_dump(transaction, id, position, row))
}

fn put_dump(transaction: &Transaction<'_>, file: i64, position: usize, row: &Row) -> rusqlite::Result<()> {
    let (rank, key) = row.group();
    let bug = bug_of(transaction, rank, &key)?;
    let (entry, found) = (&row.entry, row.entry.finding.as_ref());
    transaction.prepare_cached(INSERT)?.execute(params![
        file,
        position as i64,
        entry.dump.map(|number| number as i64),
        entry.kind,
        entry.victim,
        entry.cause,
        entry.place,
        entry.signature,
        entry.process,
        entry.source,
        entry.kernel,
        found.map(|found| &found.rule),
        found.map(|found| &found.class),
        found.map(|found| &found.claim),
        found.map(|found| found.score),
        found.map(|found| found.proven),
        found.and_then(|found| found.function.as_ref()),
        found.and_then(|found| found.about.as_ref()),
        entry.wall_ns,
        entry.mono_ns.map(u64::cast_signed),
        entry.boot,
        entry.pid,
        entry.cpu,
        entry.sound,
        entry.defects as i64,
        entry.bytes.cast_signed(),
        row.build_id,
        row.commit,
        hypotheses_text(&row.hypotheses),
        row.when_ns(),
        row.build(),
        entry.wall_ns.is_none(),
        bug,
    ])?;
    Ok(())
}

/// The group of a name, whose numbers have to be counted again.
pub(super) fn bug_of(transaction: &Transaction<'_>, rank: Rank, key: &str) -> rusqlite::Result<i64> {
    const MAKE: &str = "INSERT INTO bug (rank, key, stale, deaths, dumps, unsound, signatures)
        VALUES (?1, ?2, 1, 0, 0, 0, '') ON CONFLICT (rank, key) DO UPDATE SET stale = 1 RETURNING id";
    transaction.prepare_cached(MAKE)?.query_row(params![rank_number(rank), key], |row| row.get(0))
}

/// Ranks in the order of lists.
const fn rank_number(rank: Rank) -> i64 {
    match rank {
        Rank::Crash => 0,
        Rank::Recording => 1,
        Rank::Unreadable => 2,
    }
}

/// `RULE SCORE`, separated by commas: readable in SQL, exact to the last bit.
fn hypotheses_text(all: &[(String, f64)]) -> String {
    all.iter().map(|(rule, score)| format!("{rule} {score}")).collect::<Vec<_>>().join(",")
}
