//! Gives all dumps of a store in the order of an export, one at a time.

use std::path::Path;

use kwab::tables::CatalogueRow;
use rusqlite::params;

use super::read::{COLUMNS, read_row};
use super::{Store, StoreError};

/// The order of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// By the paths of the files.
    Path,
    /// Dumps of a signature one after the other.
    Signature,
    /// By when they happened.
    Time,
    /// Dumps of a build one after the other.
    Build,
}

impl Sequence {
    /// The query for the places of all dumps. Each is answered by an index, but signatures are sorted by SQLite.
    const fn places(self) -> &'static str {
        match self {
            Self::Path => {
                "SELECT dump.file, position FROM file CROSS JOIN dump ON dump.file = file.id ORDER BY path, position"
            }
            Self::Signature => "SELECT file, position FROM dump ORDER BY signature, file, position",
            Self::Time => "SELECT file, position FROM dump ORDER BY happened_ns, file, position",
            Self::Build => "SELECT file, position FROM dump ORDER BY build, signature, happened_ns, file, position",
        }
    }
}

impl Store {
    /// Calls `each` with every dump; paths begin with `folder`.
    pub(crate) fn exported<E>(
        &self,
        folder: &Path,
        sequence: Sequence,
        mut each: impl FnMut(CatalogueRow) -> Result<(), E>,
    ) -> Result<Result<(), E>, StoreError> {
        let one = format!(
            "SELECT {COLUMNS}, build, happened_ns, bug.key, weight FROM dump JOIN file ON file.id = dump.file
            JOIN bug ON bug.id = dump.bug WHERE dump.file = ?1 AND position = ?2"
        );
        self.ask(|at| {
            let (mut places, mut one) = (at.prepare(sequence.places())?, at.prepare(&one)?);
            let mut rows = places.query([])?;
            while let Some(place) = rows.next()? {
                let (file, position): (i64, i64) = (place.get(0)?, place.get(1)?);
                let row = one.query_row(params![file, position], |columns| {
                    let row = read_row(columns, folder)?;
                    Ok(CatalogueRow {
                        entry: row.entry,
                        hypotheses: row.hypotheses,
                        build_id: row.build_id,
                        commit: row.commit,
                        build: columns.get(29)?,
                        happened_ns: columns.get(30)?,
                        bug: columns.get(31)?,
                        counts: columns.get(32)?,
                    })
                })?;
                if let Err(error) = each(row) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })
    }
}
