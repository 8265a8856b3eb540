//! The tables that a dump can be written as, by name.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use kwab_format::RecordSchema;
use kwab_format::record::{RecordKind, SCHEMA};

use super::events::{EventBatches, event_columns};
use super::records::{RecordBatches, record_columns};
use crate::model::{DumpFile, json};

/// Names that say more than the type of the record.
const NAMES: &[(&str, &str)] = &[("calls", "syscall_record"), ("mappings", "vma"), ("tasks", "task")];

/// A table of a dump.
#[derive(Debug, Clone, Copy)]
pub enum DumpTable {
    /// The events, of whatever type.
    Events,
    /// The records of one type.
    Records(&'static RecordSchema),
}

impl DumpTable {
    /// The table of a name: `events`, `calls`, `mappings`, `tasks`, or a type of records.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name == "events" {
            return Some(Self::Events);
        }
        let record = NAMES.iter().find(|(known, _)| *known == name).map_or(name, |(_, record)| record);
        json::schema_named(record).map(Self::Records)
    }

    /// The names that [`named`](Self::named) knows.
    pub fn names() -> impl Iterator<Item = String> {
        let own = ["events"].into_iter().chain(NAMES.iter().map(|(name, _)| *name)).map(str::to_string);
        own.chain(SCHEMA.iter().map(|schema| json::type_name(RecordKind(schema.kind))))
    }

    /// Its columns, behind those that say which dump a row is of.
    #[must_use]
    pub fn columns(self) -> SchemaRef {
        let own = match self {
            Self::Events => event_columns(),
            Self::Records(record) => record_columns(record),
        };
        let origin = [Field::new("_file", DataType::Utf8, false), Field::new("_dump", DataType::UInt32, true)];
        let all = origin.map(Arc::new).into_iter().chain(own.fields().iter().cloned());
        Arc::new(Schema::new(all.collect::<Vec<_>>()))
    }

    /// Its rows of a dump.
    #[must_use]
    pub fn batches(self, file: Arc<DumpFile>) -> Batches {
        match self {
            Self::Events => Batches::Events(EventBatches::new(file)),
            Self::Records(record) => Batches::Records(RecordBatches::new(file, record)),
        }
    }
}

/// Makes the batches of a table as they are asked for, without the columns of their origin.
#[derive(Debug)]
pub enum Batches {
    /// Those of [`DumpTable::Events`].
    Events(EventBatches),
    /// Those of [`DumpTable::Records`].
    Records(RecordBatches),
}

impl Batches {
    /// What could not be read so far.
    #[must_use]
    pub fn lost(&self) -> &[String] {
        match self {
            Self::Events(batches) => batches.lost(),
            Self::Records(batches) => batches.lost(),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Events(batches) => batches.next(),
            Self::Records(batches) => batches.next(),
        }
    }
}

/// The dump that rows are of, as the catalogue names it.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Path of the file.
    pub file: String,
    /// Which dump of the file it is, from 1, when the file holds several.
    pub dump: Option<u32>,
}

impl Origin {
    /// A batch of a table with [`DumpTable::columns`].
    ///
    /// # Errors
    /// When the batch is not of that table.
    pub fn put_before(&self, batch: &RecordBatch, columns: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let files: ArrayRef = Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&self.file, rows)));
        let dumps: ArrayRef = Arc::new(std::iter::repeat_n(self.dump, rows).collect::<UInt32Array>());
        let all = [files, dumps].into_iter().chain(batch.columns().iter().cloned());
        RecordBatch::try_new(Arc::clone(columns), all.collect())
    }
}
