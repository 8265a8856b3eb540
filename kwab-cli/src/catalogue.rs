//! Catalogues of directories: what is listed of each dump, and an index that keeps it between runs.
//!
//! [`row`] reads a dump into a [`row::Row`], [`scan`] walks a directory, [`store`] keeps rows in SQLite, and [`open`]
//! gives the store that answers for a directory: its index where that is up to date, else a copy in memory in which
//! what differs was read again. Of many files only the directories are looked at; the answer then says so
//! ([`Opened::remark`]). [`retention`] decides what may go.

pub(crate) mod retention;
pub(crate) mod row;
pub(crate) mod scan;
mod sidecar;
pub(crate) mod store;

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kwab::units::count;
use schemars::JsonSchema;
use serde::Serialize;

use self::row::Row;
use self::scan::{Found, Home, Purpose, Stamp, UNSETTLED};
use self::store::{Store, StoreError, Wanted};
use crate::failure::shown;
use crate::fleet::Look;

/// The name of an index in the directory that it describes.
pub(crate) const INDEX: &str = ".kwab-index.db";

/// Rows of files that are written in one transaction, at most; what an interrupted run loses.
const BATCH: usize = 4096;
/// How long a transaction may take to fill.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// Files of an index up to which each is looked at, unless that is asked for.
const LOOKED_AT: usize = 10_000;

/// The version of [`Changes`]'s JSON form.
pub(crate) const SCHEMA: u32 = 1;

/// What a run of `kwab index` did, in files.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct Changes {
    /// Version of this form.
    pub schema: u32,
    /// The file that was written.
    pub index: String,
    /// Files that were read.
    pub read: usize,
    /// Files whose rows were up to date.
    pub kept: usize,
    /// Files of the index that have vanished.
    pub removed: usize,
}

/// The store that answers for a directory.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Its dumps; paths are below the directory.
    pub store: Store,
    /// What was not looked at, or differs from the index.
    pub remark: Option<String>,
    /// Whether dumps that are there may not be in the store.
    pub is_partial: bool,
}

/// The index of a directory: the file that was named, or the one inside.
pub(crate) fn index_of(folder: &Path, named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| folder.join(INDEX), Path::to_path_buf)
}

/// Brings an index up to date; other runs may do the same at the same time.
///
/// # Errors
/// When the index cannot be written, or is another program's file.
pub(crate) fn refresh(folder: &Path, index: &Path) -> Result<Changes, StoreError> {
    let mut store = Store::create(index)?;
    let found = scan::walk(folder, Home::of(index), Purpose::Keep);
    let differences = store.differences(&found.files)?;
    let mut changes = Changes { schema: SCHEMA, index: shown(index), kept: differences.kept, ..Changes::default() };
    changes.read = differences.changed.len();
    let mut filling = Filling::new(&mut store);
    for file in differences.changed.iter().filter_map(|at| found.files.get(*at)) {
        let mut file = file.clone();
        if !scan::settle(file.stamp) {
            file.stamp.changed_ns = UNSETTLED;
        }
        let rows = rows_of(folder, &file);
        filling.put(file, rows)?;
    }
    filling.end()?;
    // Another run may know a file that was written after this walk.
    let gone: Vec<Vec<u8>> = differences.gone.into_iter().filter(|name| !scan::exists(folder, name)).collect();
    changes.removed = gone.len();
    store.remove(&gone)?;
    store.settle(&found.folders)?;
    Ok(changes)
}

/// The store that answers for a directory. An index that is not `named` but found in the directory must be the user's
/// own or root's. Without `look` each file of a small directory is looked at.
///
/// # Errors
/// When an index is there and cannot be read: the dumps are to be read without it.
pub(crate) fn open(folder: &Path, named: Option<&Path>, look: Option<Look>) -> Result<Opened, StoreError> {
    let index = index_of(folder, named);
    let owner = std::fs::symlink_metadata(&index).map(|meta| meta.uid());
    let is_trusted = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
    if named.is_none() && !owner.is_ok_and(is_trusted) && index.exists() {
        return Err(StoreError::Untrusted(index));
    }
    let Some(store) = Store::open(&index)? else {
        return read_all(folder);
    };
    let files = store.files()?;
    let is_settled = store.is_settled()?;
    let look = look.unwrap_or(if files > LOOKED_AT { Look::Folders } else { Look::Files });
    if is_settled && look == Look::Folders {
        return by_folders(store, folder, &index, files);
    }
    let found = scan::walk(folder, Home::of(&index), Purpose::Compare);
    let differences = store.differences(&found.files)?;
    let stale = differences.changed.len() + differences.gone.len();
    if stale == 0 && is_settled {
        return Ok(Opened { store, remark: None, is_partial: false });
    }
    let mut copy = Store::in_memory(folder)?;
    let mut filling = Filling::new(&mut copy);
    filling.copy(&store, Path::new(""), |file| {
        let same = found.files.binary_search_by(|other| scan::order(&other.name, &file.name));
        same.is_ok_and(|at| found.files.get(at).is_some_and(|other| other.stamp == file.stamp))
    })?;
    for file in differences.changed.iter().filter_map(|at| found.files.get(*at)) {
        filling.put(file.clone(), rows_of(folder, file))?;
    }
    filling.end()?;
    copy.settle(&[])?;
    let remark = match stale {
        0 => format!("{}: the index is unfinished; kwab index completes it", shown(folder)),
        _ => format!("{}: {stale} files differ from the index; kwab index updates it", shown(folder)),
    };
    Ok(Opened { store: copy, remark: Some(remark), is_partial: false })
}

/// An index as the answer, if the directories are as it knows them.
fn by_folders(store: Store, folder: &Path, index: &Path, files: usize) -> Result<Opened, StoreError> {
    let home = Home::of(index);
    let changed = store.folders()?.iter().filter(|kept| !scan::is_same_folder(folder, home, kept)).count();
    let (name, files) = (shown(folder), count(files as u64, "file", "files"));
    let remark = match changed {
        0 => format!("{name}: as indexed by its directories; its {files} were not looked at (--check files)"),
        _ => {
            let changed = count(changed as u64, "directory has", "directories have");
            format!(
                "{name}: {changed} changed since it was indexed, and what is new is not listed; kwab index reads it"
            )
        }
    };
    Ok(Opened { store, remark: Some(remark), is_partial: changed > 0 })
}

/// The dumps of a directory, without an index.
pub(crate) fn read_all(folder: &Path) -> Result<Opened, StoreError> {
    let mut store = Store::in_memory(folder)?;
    let mut filling = Filling::new(&mut store);
    for file in scan::walk(folder, Home::of(&folder.join(INDEX)), Purpose::Compare).files {
        let rows = rows_of(folder, &file);
        filling.put(file, rows)?;
    }
    filling.end()?;
    store.settle(&[])?;
    Ok(Opened { store, remark: None, is_partial: false })
}

/// Puts files into a store in batches.
pub(crate) struct Filling<'s> {
    store: &'s mut Store,
    batch: Vec<(Found, Vec<Row>)>,
    since: Instant,
}

impl<'s> Filling<'s> {
    /// Puts into this store.
    pub(crate) fn new(store: &'s mut Store) -> Self {
        Self { store, batch: Vec::new(), since: Instant::now() }
    }

    /// Puts a file with its dumps.
    pub(crate) fn put(&mut self, file: Found, rows: Vec<Row>) -> Result<(), StoreError> {
        self.batch.push((file, rows));
        if self.batch.len() >= BATCH || self.since.elapsed() >= BATCH_TIME {
            self.store.put(&self.batch)?;
            self.batch.clear();
            self.since = Instant::now();
        }
        Ok(())
    }

    /// Puts dumps of a file that was named.
    pub(crate) fn put_named(&mut self, path: &Path, rows: Vec<Row>) -> Result<(), StoreError> {
        self.put(Found { name: path.as_os_str().as_bytes().to_vec(), stamp: Stamp::default() }, rows)
    }

    /// Puts the files of another store for which `is_wanted` holds, below `folder`.
    pub(crate) fn copy(
        &mut self,
        from: &Store,
        folder: &Path,
        is_wanted: impl Fn(&Found) -> bool,
    ) -> Result<(), StoreError> {
        let mut waiting: Option<(Found, Vec<Row>)> = None;
        from.rows(folder, &Wanted::default(), |file, row| {
            if let Some((_, rows)) = waiting.as_mut().filter(|(last, _)| last.name == file.name) {
                rows.push(row);
                return Ok(());
            }
            let whole = waiting.replace((file, vec![row]));
            self.put_wanted(whole, folder, &is_wanted)
        })?;
        self.put_wanted(waiting, folder, &is_wanted)
    }

    fn put_wanted(
        &mut self,
        whole: Option<(Found, Vec<Row>)>,
        folder: &Path,
        is_wanted: &impl Fn(&Found) -> bool,
    ) -> Result<(), StoreError> {
        let Some((mut file, rows)) = whole.filter(|(file, _)| is_wanted(file)) else { return Ok(()) };
        file.name = scan::path_of(folder, &file.name).as_os_str().as_bytes().to_vec();
        self.put(file, rows)
    }

    /// Puts what is left.
    pub(crate) fn end(self) -> Result<(), StoreError> {
        self.store.put(&self.batch)
    }
}

fn rows_of(folder: &Path, file: &Found) -> Vec<Row> {
    row::of_file(&file.path(folder), false, file.stamp.modified_ns)
}
