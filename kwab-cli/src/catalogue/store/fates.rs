//! What becomes of the files of a store when it is pruned, in temporary tables: a million of them cost no memory.
//!
//! [`retention`](crate::catalogue::retention) decides dump by dump. Of a file with several dumps the greatest [`Fate`]
//! counts. The files that go are a table of their own, with their marks and in their order, so that the index is free
//! for other programs while they are removed.

use rusqlite::{Connection, params};

use super::read::read_found;
use super::{SPARE_CACHE, Store, StoreError};
use crate::catalogue::scan::Found;

/// What becomes of a file; one without a fate goes, since its signatures have more than they keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// To go for its size only.
    Kept = 1,
    /// Never to go.
    Bound = 2,
}

/// A dump, as far as retention asks.
#[derive(Debug)]
pub(crate) struct Aged {
    /// Number of its file in the store.
    pub file: i64,
    /// Its signature, and the number of its bug in the store: bugs that look alike are told apart.
    pub symptom: (String, i64),
    /// Whether it is a dump at all.
    pub is_readable: bool,
}

/// A file that may go.
#[derive(Debug, Clone)]
pub(crate) struct Leaving {
    /// Its position among those that go, from 1.
    pub number: i64,
    /// Its path and its marks.
    pub file: Found,
    /// The signatures of its dumps.
    pub signatures: Vec<String>,
    /// When the last of its dumps happened, nanoseconds since 1970.
    pub happened_ns: i64,
}

/// Files, and their lengths together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Total {
    /// How many they are.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
}

/// Files that are read at a time.
const BATCH: usize = 1024;

impl Store {
    /// Gives every file its fate: `judge` is called with each dump, by signature and bug and oldest first, and at the
    /// end with `None`; what it says of a file holds if it is greater than what was said before.
    pub(crate) fn judge(
        &self,
        mut judge: impl FnMut(Option<&Aged>, &mut dyn FnMut(i64, Fate)),
    ) -> Result<Total, StoreError> {
        const ALL: &str = "SELECT dump.file, signature, kind, bug FROM dump JOIN file ON file.id = dump.file
            ORDER BY signature, bug, happened_ns, path, position";
        const RAISE: &str = "UPDATE temp.fate SET fate = ?2 WHERE file = ?1 AND fate < ?2";
        self.ask(|at| {
            // What is sorted and what is made lies in files without a name.
            at.pragma_update(None, "temp_store", "file")?;
            at.pragma_update(None, "cache_size", -SPARE_CACHE)?;
            at.execute_batch(
                "CREATE TEMP TABLE fate (file INTEGER PRIMARY KEY, happened_ns INTEGER NOT NULL, fate INTEGER NOT NULL);
                INSERT INTO temp.fate SELECT file, max(happened_ns), 0 FROM dump GROUP BY file;",
            )?;
            let mut raise = at.prepare(RAISE)?;
            let mut failed = Ok(());
            let mut set = |file: i64, fate: Fate| {
                if failed.is_ok() {
                    failed = raise.execute(params![file, fate as i64]).map(drop);
                }
            };
            let mut query = at.prepare(ALL)?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let is_readable = row.get_ref(2)?.as_str()? != "unreadable";
                let symptom = (row.get(1)?, row.get(3)?);
                judge(Some(&Aged { file: row.get(0)?, symptom, is_readable }), &mut set);
            }
            judge(None, &mut set);
            failed?;
            total(at, "SELECT count(*), total(bytes) FROM temp.fate JOIN file ON file.id = fate.file")
        })
    }

    /// Lets the surplus go, then the oldest of what is kept until the rest has at most so many bytes.
    pub(crate) fn let_go(&self, all: Total, most: Option<u64>) -> Result<(), StoreError> {
        const SURPLUS: &str =
            "SELECT count(*), total(bytes) FROM temp.fate JOIN file ON file.id = fate.file WHERE fate = 0";
        const KEPT: &str = "FROM temp.fate JOIN file ON file.id = fate.file WHERE fate = 1 ORDER BY happened_ns, path";
        self.ask(|at| {
            if let Some(most) = most {
                let mut staying = all.bytes.saturating_sub(total(at, SURPLUS)?.bytes);
                let mut query = at.prepare(&format!("SELECT bytes {KEPT}"))?;
                let mut rows = query.query([])?;
                let mut more = 0_i64;
                while staying > most
                    && let Some(row) = rows.next()?
                {
                    staying = staying.saturating_sub(row.get::<_, i64>(0)?.cast_unsigned());
                    more += 1;
                }
                drop(rows);
                let these = format!("SELECT file {KEPT} LIMIT ?1");
                at.execute(&format!("UPDATE temp.fate SET fate = 0 WHERE file IN ({these})"), [more])?;
            }
            at.execute_batch(
                "CREATE TEMP TABLE leaving AS SELECT path, bytes, modified_ns, changed_ns, inode, happened_ns,
                (SELECT group_concat(signature, ' ') FROM
                    (SELECT DISTINCT signature FROM dump WHERE dump.file = fate.file ORDER BY signature)) AS signatures
                FROM temp.fate JOIN file ON file.id = fate.file WHERE fate = 0 ORDER BY happened_ns, path;
                DROP TABLE temp.fate;",
            )
        })
    }

    /// What goes, in files and bytes.
    pub(crate) fn leaving_total(&self) -> Result<Total, StoreError> {
        self.ask(|at| total(at, "SELECT count(*), total(bytes) FROM temp.leaving"))
    }

    /// Some of the files that go, the oldest first, behind the one with a number; none when there are no more.
    pub(crate) fn leaving_after(&self, number: i64) -> Result<Vec<Leaving>, StoreError> {
        const SOME: &str = "SELECT path, bytes, modified_ns, changed_ns, inode, happened_ns, signatures, rowid
            FROM temp.leaving WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
        self.ask(|at| {
            let mut query = at.prepare_cached(SOME)?;
            let some = query.query_map(params![number, BATCH as i64], |row| {
                let signatures = row.get_ref(6)?.as_str()?.split(' ').map(str::to_string).collect();
                Ok(Leaving { number: row.get(7)?, file: read_found(row)?, signatures, happened_ns: row.get(5)? })
            })?;
            some.collect()
        })
    }

    /// Takes files from those that go.
    pub(crate) fn stay(&self, numbers: impl Iterator<Item = i64>) -> Result<(), StoreError> {
        self.ask(|at| {
            let mut query = at.prepare("DELETE FROM temp.leaving WHERE rowid = ?1")?;
            for number in numbers {
                query.execute([number])?;
            }
            Ok(())
        })
    }
}

fn total(at: &Connection, sql: &str) -> rusqlite::Result<Total> {
    at.query_row(sql, [], |row| {
        // Whole numbers as long as they are below 2^53, as the lengths of files are.
        Ok(Total { files: row.get::<_, i64>(0)?.cast_unsigned(), bytes: row.get::<_, f64>(1)? as u64 })
    })
}
