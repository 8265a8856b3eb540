//! Keeps the rows of a directory in an SQLite file: one table of files with their marks, one of dumps.
//!
//! A rollback journal keeps the file valid at every moment, and readable in a directory that cannot be written. Each
//! batch of files is one transaction, so several writers take turns. An index is not trusted more than a dump: its
//! schema cannot run functions, its strings pass the terminal's filter, and no path of it is opened.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use kwab::report::catalogue::{CatalogueEntry, Finding};
use kwab::report::signature;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Row as Columns, Transaction, TransactionBehavior, params};

use super::row::Row;
use super::scan::{Found, Stamp, stamp_of};
use super::sidecar;
use crate::failure::shown;

/// Marks the file as an index of kwab: `kwab` in ASCII.
const APPLICATION: i32 = 0x6b77_6162;

/// Version of the tables; an index of another one is made again.
const VERSION: i32 = 1;

/// How long a writer waits for others.
const PATIENCE: Duration = Duration::from_secs(60);

const TABLES: &str = "
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL);
CREATE TABLE dump (
    file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE, position INTEGER NOT NULL, number INTEGER,
    kind TEXT NOT NULL, victim TEXT NOT NULL, cause TEXT NOT NULL, place TEXT NOT NULL, signature TEXT NOT NULL,
    process TEXT NOT NULL, source TEXT NOT NULL, kernel TEXT NOT NULL, rule TEXT, class TEXT, claim TEXT, score REAL,
    proven INTEGER, function TEXT, about TEXT, wall_ns INTEGER, mono_ns INTEGER, boot INTEGER, pid INTEGER, cpu INTEGER,
    sound INTEGER NOT NULL, defects INTEGER NOT NULL, bytes INTEGER NOT NULL, build_id TEXT NOT NULL,
    commit_id TEXT NOT NULL, group_key TEXT NOT NULL, hypotheses TEXT NOT NULL, happened_ns INTEGER NOT NULL,
    PRIMARY KEY (file, position)) WITHOUT ROWID;
CREATE INDEX dump_key ON dump (group_key);
CREATE INDEX dump_build ON dump (signature, build_id, commit_id);
CREATE INDEX dump_time ON dump (happened_ns);";

const INSERT: &str = "INSERT INTO dump VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
    ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)";

const SELECT: &str = "SELECT file.path, file.modified_ns, number, kind, victim, cause, place, signature, process,
    source, kernel, rule, class, claim, score, proven, function, about, wall_ns, mono_ns, boot, pid, cpu, sound,
    defects, dump.bytes, build_id, commit_id, hypotheses FROM dump JOIN file ON file.id = dump.file
    ORDER BY dump.file, position";

/// Why an index cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The file is of another program.
    #[error("{}: not an index of kwab; name another file with --index", shown(.0))]
    Foreign(PathBuf),
    /// An index that was found in a directory and belongs to another user, who may have written anything into it.
    #[error("{}: the index belongs to another user and is not read; --index names it", shown(.0))]
    Untrusted(PathBuf),
    /// A journal beside it, which SQLite would play into it, is not a file or belongs to another user.
    #[error("{}: no journal of this user's; remove it, or name another index with --index", shown(.0))]
    Sidecar(PathBuf),
    /// Made by another build of kwab, which may conclude otherwise.
    #[error("{}: made by another build of kwab and not used; kwab index makes it again", shown(.0))]
    OtherBuild(PathBuf),
    /// SQLite refuses it.
    #[error("{}: {}", shown(.0), reason(.1))]
    Sqlite(PathBuf, #[source] rusqlite::Error),
}

/// What SQLite says, and what can be done.
fn reason(error: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => "the index is damaged; remove it and index again".to_string(),
        Some(ErrorCode::NotADatabase) => "not an index of kwab; name another file with --index".to_string(),
        Some(ErrorCode::CannotOpen) => "cannot open the index: absent, a link or not permitted".to_string(),
        Some(ErrorCode::ReadOnly) => "the index cannot be written; name another file with --index".to_string(),
        Some(ErrorCode::DatabaseBusy) => "another kwab writes the index; try again later".to_string(),
        Some(ErrorCode::DiskFull) => "no space left on the device; the index is as it was".to_string(),
        _ => format!("the index cannot be read: {error}"),
    }
}

/// An open index.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens an index for reading; `None` when there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, StoreError> {
        match std::fs::symlink_metadata(path) {
            Err(_) => return Ok(None),
            // A FIFO would wait for a writer.
            Ok(meta) if !meta.is_file() && !meta.is_symlink() => return Err(StoreError::Foreign(path.to_path_buf())),
            Ok(_) => {}
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if store.version()? != expected() {
            return Err(StoreError::OtherBuild(path.to_path_buf()));
        }
        // A table of other columns may compute anything when it is read.
        match has_our_tables(&store.connection) {
            Ok(true) => Ok(Some(store)),
            Ok(false) => Err(StoreError::Foreign(path.to_path_buf())),
            Err(error) => Err(store.failed(error)),
        }
    }

    /// Opens an index for writing, and makes it when there is none or one of another version.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_symlink()) {
            return Err(StoreError::Foreign(path.to_path_buf()));
        }
        let mut store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let transaction = store.begin()?;
        let result = prepare(&transaction).and_then(|is_ours| {
            transaction.commit()?;
            Ok(is_ours)
        });
        match result {
            Ok(true) => Ok(store),
            Ok(false) => Err(StoreError::Foreign(path.to_path_buf())),
            Err(error) => Err(store.failed(error)),
        }
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Sqlite(path.to_path_buf(), error);
        // SQLite refuses a link anywhere in the path; those to the directory are the user's.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let real = match (folder.canonicalize(), path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path.to_path_buf(),
        };
        if let Some(stranger) = sidecar::stranger(&real) {
            return Err(StoreError::Sidecar(stranger));
        }
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(real, flags).map_err(failed)?;
        let settle = || {
            connection.busy_timeout(PATIENCE)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            // The first read: a file that is not a database is refused here.
            connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0))
        };
        settle().map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), connection })
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Sqlite(self.path.clone(), error)
    }

    /// The version of the tables.
    fn version(&self) -> Result<i32, StoreError> {
        let pragma = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let application = pragma("application_id").map_err(|error| self.failed(error))?;
        if application != APPLICATION {
            return Err(StoreError::Foreign(self.path.clone()));
        }
        pragma("user_version").map_err(|error| self.failed(error))
    }

    fn begin(&mut self) -> Result<Transaction<'_>, StoreError> {
        let path = self.path.clone();
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        begun.map_err(|error| StoreError::Sqlite(path, error))
    }

    /// The files of the index with their marks.
    pub(crate) fn stamps(&self) -> Result<BTreeMap<Vec<u8>, Stamp>, StoreError> {
        let read = || {
            let mut query = self.connection.prepare("SELECT path, bytes, modified_ns, inode FROM file")?;
            let rows = query.query_map([], |row| {
                let stamp = Stamp { bytes: whole(row, 1)?, modified_ns: row.get(2)?, inode: whole(row, 3)? };
                Ok((row.get(0)?, stamp))
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|error| self.failed(error))
    }

    /// The rows of each file, in the order of the file.
    pub(crate) fn rows(&self, folder: &Path) -> Result<BTreeMap<Vec<u8>, Vec<Row>>, StoreError> {
        let read = || {
            let mut all: BTreeMap<Vec<u8>, Vec<Row>> = BTreeMap::new();
            let mut query = self.connection.prepare(SELECT)?;
            let mut rows = query.query([])?;
            while let Some(columns) = rows.next()? {
                let path: Vec<u8> = columns.get(0)?;
                let row = read_row(columns, folder, &path)?;
                all.entry(path).or_default().push(row);
            }
            Ok(all)
        };
        read().map_err(|error| self.failed(error))
    }

    /// Writes the rows of files in one transaction, in the place of what the index had of them.
    pub(crate) fn put(&mut self, files: &[(Found, Vec<Row>)]) -> Result<(), StoreError> {
        if files.is_empty() {
            return Ok(());
        }
        let path = self.path.clone();
        let transaction = self.begin()?;
        let written = files.iter().try_for_each(|(file, rows)| put_file(&transaction, file, rows));
        written.and_then(|()| transaction.commit()).map_err(|error| StoreError::Sqlite(path, error))
    }

    /// Removes files that have vanished.
    pub(crate) fn remove(&mut self, names: &[Vec<u8>]) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let path = self.path.clone();
        let transaction = self.begin()?;
        let removed = names.iter().try_for_each(|name| {
            transaction.prepare_cached("DELETE FROM file WHERE path = ?1")?.execute([name]).map(drop)
        });
        removed.and_then(|()| transaction.commit()).map_err(|error| StoreError::Sqlite(path, error))
    }
}

/// The version that an index must have: of the tables, of signatures, and of the program, since another build may
/// conclude otherwise from the same dump.
fn expected() -> i32 {
    static EXPECTED: OnceLock<i32> = OnceLock::new();
    *EXPECTED.get_or_init(|| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&VERSION.to_le_bytes());
        hasher.update(&signature::VERSION.to_le_bytes());
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        let program = std::env::current_exe().and_then(std::fs::metadata);
        if let Ok(Stamp { bytes, modified_ns, .. }) = program.map(|meta| stamp_of(&meta)) {
            hasher.update(&bytes.to_le_bytes());
            hasher.update(&modified_ns.to_le_bytes());
        }
        hasher.finalize().cast_signed()
    })
}

/// Makes the tables when they are absent or of another version; `false` when the file is another program's.
fn prepare(transaction: &Transaction<'_>) -> rusqlite::Result<bool> {
    let pragma = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_ours = pragma("application_id")? == APPLICATION;
    if !is_ours && tables > 0 {
        return Ok(false);
    }
    if is_ours && pragma("user_version")? == expected() {
        return has_our_tables(transaction);
    }
    transaction.execute_batch("DROP TABLE IF EXISTS dump; DROP TABLE IF EXISTS file;")?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", expected())?;
    Ok(true)
}

/// Whether the tables are those of [`TABLES`], to the letter, and nothing else is there.
fn has_our_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let mut query = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let found = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let ours = TABLES.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    Ok(ours.eq(found.iter().map(String::as_str)))
}

fn put_file(transaction: &Transaction<'_>, file: &Found, rows: &[Row]) -> rusqlite::Result<()> {
    let Stamp { bytes, modified_ns, inode } = file.stamp;
    transaction.prepare_cached("DELETE FROM file WHERE path = ?1")?.execute([&file.name])?;
    transaction
        .prepare_cached("INSERT INTO file (path, bytes, modified_ns, inode) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![file.name, bytes.cast_signed(), modified_ns, inode.cast_signed()])?;
    let id = transaction.last_insert_rowid();
    let mut insert = transaction.prepare_cached(INSERT)?;
    for (position, row) in rows.iter().enumerate() {
        let (entry, found) = (&row.entry, row.entry.finding.as_ref());
        insert.execute(params![
            id,
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
            row.key(),
            hypotheses_text(&row.hypotheses),
            row.when_ns(),
        ])?;
    }
    Ok(())
}

/// `RULE SCORE`, separated by commas: readable in SQL, exact to the last bit.
fn hypotheses_text(all: &[(String, f64)]) -> String {
    all.iter().map(|(rule, score)| format!("{rule} {score}")).collect::<Vec<_>>().join(",")
}

/// A number that SQLite keeps as a signed one.
fn whole(row: &Columns<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn read_row(columns: &Columns<'_>, folder: &Path, path: &[u8]) -> rusqlite::Result<Row> {
    use std::os::unix::ffi::OsStrExt as _;
    let optional = |column| columns.get::<_, Option<i64>>(column).map(|number| number.map(i64::cast_unsigned));
    let finding = match columns.get::<_, Option<String>>(11)? {
        Some(rule) => Some(Finding {
            rule,
            class: columns.get(12)?,
            claim: columns.get(13)?,
            score: columns.get(14)?,
            proven: columns.get(15)?,
            function: columns.get(16)?,
            about: columns.get(17)?,
        }),
        None => None,
    };
    let entry = CatalogueEntry {
        file: shown(&folder.join(std::ffi::OsStr::from_bytes(path))),
        dump: optional(2)?.and_then(|number| usize::try_from(number).ok()),
        kind: columns.get(3)?,
        victim: columns.get(4)?,
        cause: columns.get(5)?,
        place: columns.get(6)?,
        signature: columns.get(7)?,
        process: columns.get(8)?,
        source: columns.get(9)?,
        kernel: columns.get(10)?,
        finding,
        wall_ns: columns.get(18)?,
        mono_ns: optional(19)?,
        boot: columns.get(20)?,
        pid: columns.get(21)?,
        cpu: columns.get(22)?,
        sound: columns.get(23)?,
        defects: usize::try_from(whole(columns, 24)?).unwrap_or(usize::MAX),
        bytes: whole(columns, 25)?,
    };
    let text: String = columns.get(28)?;
    let pairs = text.split(',').filter_map(|pair| pair.rsplit_once(' '));
    let hypotheses = pairs.filter_map(|(rule, score)| Some((rule.to_string(), score.parse().ok()?))).collect();
    Ok(Row { entry, hypotheses, build_id: columns.get(26)?, commit: columns.get(27)?, modified_ns: columns.get(1)? })
}
