//! Keeps the rows of a directory in an SQLite file: files and directories with their marks, dumps, and their groups.
//!
//! A rollback journal keeps the file valid at every moment, and readable in a directory that cannot be written. Each
//! batch of files is one transaction, so several writers take turns; [`Store::settle`] then counts the groups that
//! changed, and until it has the file says of itself that it is unfinished. An index is not trusted more than a dump:
//! its schema cannot run functions, and its strings pass the terminal's filter. A catalogue without an index is a store
//! in memory, so that every question is asked in one way.
//!
//! [`write`] puts and removes files, [`groups`] counts, [`read`] answers, [`gathered`] groups what a filter leaves,
//! [`builds`] says which build is the newest, [`history`] what came when, [`fates`] what may go, and [`export`] gives
//! all.

mod builds;
mod export;
mod fates;
mod gathered;
mod groups;
mod history;
mod read;
mod write;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use kwab::report::signature;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::scan::{Stamp, stamp_of};
use super::sidecar;
use crate::failure::shown;

pub(crate) use builds::{Build, Returned, Wanted};
pub(crate) use export::Sequence;
pub(crate) use fates::{Aged, Fate, Leaving, Total};
pub(crate) use gathered::{Gathered, Gathering};
pub(crate) use history::Course;
pub(crate) use read::{Groups, Streamed};

/// Marks the file as an index of kwab: `kwab` in ASCII.
const APPLICATION: i32 = 0x6b77_6162;

/// Version of the tables; an index of another one is made again.
const VERSION: i32 = 3;

/// How long a writer waits for others.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pages that SQLite may keep in memory, in KiB.
const CACHE: i32 = 64 << 10;

/// The same of a store that is written and read once.
const SPARE_CACHE: i32 = 16 << 10;

/// Paths have NUL for `/`, so that their order is that of a walk. `alone` is the group of a dump by itself, `bug` the
/// one that it is in beside the other dumps of its death, `weight` whether it counts as a death of its own there, and
/// `build` the build-id, else the commit, else the kernel. `tally` is what [`groups`] counts of each signature and
/// bug in each build, so that a question about a million dumps reads thousands of rows.
const TABLES: &str = "
CREATE TABLE state (settled INTEGER NOT NULL, files INTEGER NOT NULL);
CREATE TABLE folder (
    path BLOB NOT NULL UNIQUE, mark INTEGER NOT NULL, modified_ns INTEGER NOT NULL, changed_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL);
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL, inode INTEGER NOT NULL);
CREATE TABLE bug (
    id INTEGER PRIMARY KEY, rank INTEGER NOT NULL, key TEXT NOT NULL, stale INTEGER NOT NULL, deaths INTEGER NOT NULL,
    dumps INTEGER NOT NULL, unsound INTEGER NOT NULL, signatures TEXT NOT NULL, finding_file INTEGER,
    finding_position INTEGER, last_file INTEGER, last_position INTEGER, UNIQUE (rank, key));
CREATE TABLE dump (
    file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE, position INTEGER NOT NULL, number INTEGER,
    kind TEXT NOT NULL, victim TEXT NOT NULL, cause TEXT NOT NULL, place TEXT NOT NULL, signature TEXT NOT NULL,
    process TEXT NOT NULL, source TEXT NOT NULL, kernel TEXT NOT NULL, rule TEXT, class TEXT, claim TEXT, score REAL,
    proven INTEGER, function TEXT, about TEXT, wall_ns INTEGER, mono_ns INTEGER, boot INTEGER, pid INTEGER, cpu INTEGER,
    sound INTEGER NOT NULL, defects INTEGER NOT NULL, bytes INTEGER NOT NULL, build_id TEXT NOT NULL,
    commit_id TEXT NOT NULL, hypotheses TEXT NOT NULL, happened_ns INTEGER NOT NULL, build TEXT NOT NULL,
    undated INTEGER NOT NULL, alone INTEGER NOT NULL, bug INTEGER NOT NULL, weight INTEGER NOT NULL,
    PRIMARY KEY (file, position)) WITHOUT ROWID;
CREATE TABLE tally (
    build TEXT NOT NULL, signature TEXT NOT NULL, bug INTEGER NOT NULL, dumps INTEGER NOT NULL,
    first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, PRIMARY KEY (build, signature, bug)) WITHOUT ROWID;
CREATE INDEX dump_bug ON dump (bug, undated, wall_ns, boot, mono_ns, weight, sound, score, signature);
CREATE INDEX dump_build ON dump (build, signature, happened_ns, alone);
CREATE INDEX dump_time ON dump (happened_ns);
CREATE INDEX dump_log ON dump (process, pid, cpu) WHERE source = 'log';
CREATE INDEX dump_pair ON dump (bug) WHERE weight = 0 OR bug <> alone;";

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
    /// A build was asked for that no dump names.
    #[error(
        "no dump of a build {0}: --build takes the beginning of a build-id or commit, or a kernel's name and version"
    )]
    NoBuild(String),
    /// Regressions were asked for where no dump names a build.
    #[error("no dump says which build it is of, so none is newer than another")]
    NoBuilds,
    /// SQLite refuses it.
    #[error("{}: {}", shown(.0), reason(.1))]
    Sqlite(PathBuf, #[source] rusqlite::Error),
}

impl StoreError {
    /// Whether the index could not be written for want of room, or for what else the disk refuses.
    pub(crate) fn is_of_disk(&self) -> bool {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        matches!(self, Self::Sqlite(_, error)
            if matches!(error.sqlite_error_code(), Some(DiskFull | SystemIoFailure)))
    }
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

    /// A catalogue in memory. Its errors are about `path`.
    pub(crate) fn in_memory(path: &Path) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Sqlite(path.to_path_buf(), error);
        let connection = Connection::open_in_memory().map_err(failed)?;
        connection
            .pragma_update(None, "temp_store", "memory")
            .and_then(|()| make_tables(&connection))
            .map_err(failed)?;
        Ok(Self { path: path.to_path_buf(), connection })
    }

    /// A catalogue in a file without a name, which vanishes with it; a part of it is in memory.
    pub(crate) fn temporary() -> Result<Self, StoreError> {
        let path = PathBuf::from("a temporary file");
        let made = Connection::open("").and_then(|connection| {
            connection.pragma_update(None, "cache_size", -SPARE_CACHE)?;
            // What is lost with the program needs no journal.
            connection.pragma_update(None, "journal_mode", "off")?;
            connection.pragma_update(None, "synchronous", "off")?;
            make(&connection, |statement| !statement.starts_with("CREATE INDEX"))?;
            connection.execute("INSERT INTO state VALUES (0, 0)", [])?;
            Ok(connection)
        });
        match made {
            Ok(connection) => Ok(Self { path, connection }),
            Err(error) => Err(StoreError::Sqlite(path, error)),
        }
    }

    /// Completes a temporary store. Its indexes are made at once, in order; those by build and time serve no list.
    pub(crate) fn complete(&mut self) -> Result<(), StoreError> {
        let is_wanted = |statement: &str| {
            let of_list = ["CREATE INDEX dump_bug ", "CREATE INDEX dump_log ", "CREATE INDEX dump_pair "];
            of_list.iter().any(|wanted| statement.starts_with(wanted))
        };
        self.ask(|at| make(at, is_wanted))?;
        self.settle(&[])
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
            connection.pragma_update(None, "cache_size", -CACHE)?;
            connection.pragma_update(None, "temp_store", "memory")?;
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

    /// Runs `act` in a transaction.
    fn within<R>(&mut self, act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        let path = self.path.clone();
        let transaction = self.begin()?;
        let done = act(&transaction).and_then(|done| transaction.commit().map(|()| done));
        done.map_err(|error| StoreError::Sqlite(path, error))
    }

    /// Asks with `ask`.
    fn ask<R>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        ask(&self.connection).map_err(|error| self.failed(error))
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
    transaction.execute_batch(
        "DROP TABLE IF EXISTS dump; DROP TABLE IF EXISTS file; DROP TABLE IF EXISTS bug;
        DROP TABLE IF EXISTS tally;
        DROP TABLE IF EXISTS folder; DROP TABLE IF EXISTS state;",
    )?;
    make_tables(transaction)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", expected())?;
    Ok(true)
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute("INSERT INTO state VALUES (0, 0)", []).map(drop)
}

/// Makes some of the tables and indexes.
fn make(connection: &Connection, is_wanted: impl Fn(&str) -> bool) -> rusqlite::Result<()> {
    let mut wanted = TABLES.split(';').map(str::trim).filter(|one| !one.is_empty() && is_wanted(one));
    wanted.try_for_each(|statement| connection.execute(statement, []).map(drop))
}

/// Whether the tables are those of [`TABLES`], to the letter, and nothing else is there.
fn has_our_tables(connection: &Connection) -> rusqlite::Result<bool> {
    let mut query = connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let found = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let ours = TABLES.split(';').map(str::trim).filter(|statement| !statement.is_empty());
    Ok(ours.eq(found.iter().map(String::as_str)))
}
