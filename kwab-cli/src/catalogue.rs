//! Catalogues of directories: what is listed of each dump, and an index that keeps it between runs.
//!
//! [`row`] reads a dump into a [`row::Row`], [`scan`] walks a directory, [`store`] keeps rows in an SQLite file, and
//! [`read`] answers from the file where it is up to date and from the dumps where it is not. Rows are the same either
//! way: a file that differs from the index is read again.

pub(crate) mod row;
pub(crate) mod scan;
mod sidecar;
pub(crate) mod store;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use self::row::Row;
use self::scan::{Found, Stamp};
use self::store::{Store, StoreError};
use crate::failure::shown;

/// The name of an index in the directory that it describes.
pub(crate) const INDEX: &str = ".kwab-index.db";

/// Rows of files that are written in one transaction; what an interrupted run loses at most.
const BATCH: usize = 1000;

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

/// What a directory holds, and how it was learned.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The dumps, in the order of the walk.
    pub rows: Vec<Row>,
    /// Files that differ from the index; `None` when there is no index.
    pub stale: Option<usize>,
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
    let known = store.stamps()?;
    let found = scan::files(folder);
    let mut changes = Changes { schema: SCHEMA, index: shown(index), ..Changes::default() };
    let mut batch: Vec<(Found, Vec<Row>)> = Vec::new();
    for file in &found {
        if known.get(&file.name) == Some(&file.stamp) {
            changes.kept += 1;
            continue;
        }
        changes.read += 1;
        batch.push((file.clone(), rows_of(folder, file)));
        if batch.len() >= BATCH {
            store.put(&batch)?;
            batch.clear();
        }
    }
    store.put(&batch)?;
    let present: BTreeMap<&[u8], ()> = found.iter().map(|file| (file.name.as_slice(), ())).collect();
    let gone = known.into_keys().filter(|name| !present.contains_key(name.as_slice()));
    // Another run may know a file that was written after this walk.
    let gone: Vec<Vec<u8>> = gone.filter(|name| !scan::exists(folder, name)).collect();
    changes.removed = gone.len();
    store.remove(&gone)?;
    Ok(changes)
}

/// The rows of a directory: those of the index, and of the dumps that differ from it or of all when there is none. An
/// index that is not `named` but found in the directory must be the user's own or root's.
///
/// # Errors
/// When an index is there and cannot be read: the rows are to be read without it.
pub(crate) fn read(folder: &Path, named: Option<&Path>) -> Result<Listing, StoreError> {
    let index = index_of(folder, named);
    let owner = std::fs::symlink_metadata(&index).map(|meta| meta.uid());
    let is_trusted = |uid: u32| uid == 0 || uid == rustix::process::geteuid().as_raw();
    if named.is_none() && !owner.is_ok_and(is_trusted) && index.exists() {
        return Err(StoreError::Untrusted(index));
    }
    let Some(store) = Store::open(&index)? else {
        return Ok(read_all(folder));
    };
    let known: BTreeMap<Vec<u8>, Stamp> = store.stamps()?;
    let found = scan::files(folder);
    let mut kept = store.rows(folder)?;
    let mut rows = Vec::new();
    let mut stale = 0;
    for file in &found {
        if known.get(&file.name) == Some(&file.stamp) {
            rows.extend(kept.remove(&file.name).unwrap_or_default());
        } else {
            stale += 1;
            rows.extend(rows_of(folder, file));
        }
        kept.remove(&file.name);
    }
    stale += known.keys().filter(|name| found.binary_search_by(|file| file.order(name)).is_err()).count();
    Ok(Listing { rows, stale: Some(stale) })
}

/// The rows of all dumps of a directory, without an index.
pub(crate) fn read_all(folder: &Path) -> Listing {
    let rows = scan::files(folder).iter().flat_map(|file| rows_of(folder, file)).collect();
    Listing { rows, stale: None }
}

fn rows_of(folder: &Path, file: &Found) -> Vec<Row> {
    row::of_file(&file.path(folder), false, file.stamp.modified_ns)
}
