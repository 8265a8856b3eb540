//! Writes catalogues and records of dumps as Parquet files, a row group at a time.
//!
//! A row group has at most [`ROWS`] rows and about [`BYTES`] bytes, so that a file of any length takes the same memory.
//! Pages are compressed with Snappy, which every reader knows. The types are Parquet's own: no Arrow schema is stored
//! beside them.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::catalogue::{CatalogueRow, catalogue_batch, catalogue_columns};
use super::table::{DumpTable, Origin};
use crate::model::DumpFile;

/// The most rows of a row group.
const ROWS: usize = 1 << 17;
/// Bytes of a row group behind which the next one begins.
const BYTES: usize = 8 << 20;
/// Bytes of the distinct values of a column that are kept; what has more is written value by value.
const DICTIONARY: usize = 256 << 10;
/// Bytes of a page of a column before it is compressed.
const PAGE: usize = 256 << 10;

/// Why a table cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// The rows do not fit the columns.
    #[error("a batch: {0}")]
    Batch(#[from] ArrowError),
    /// The writer or its output failed.
    #[error("{0}")]
    Write(#[from] parquet::errors::ParquetError),
}

/// The catalogue of a directory on its way into a file.
#[derive(Debug)]
pub struct CatalogueWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    columns: SchemaRef,
    waiting: Vec<CatalogueRow>,
}

impl<W: Write + Send> CatalogueWriter<W> {
    /// Rows that are made into columns at once.
    const BATCH: usize = 1 << 12;

    /// A file of rows; `without` is a column that is in the name of its folder.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, without: Option<&str>) -> Result<Self, ParquetError> {
        let columns = catalogue_columns(without);
        Ok(Self { writer: writer(out, &columns)?, columns, waiting: Vec::new() })
    }

    /// Puts a row.
    ///
    /// # Errors
    /// Those of the output.
    pub fn put(&mut self, row: CatalogueRow) -> Result<(), ParquetError> {
        self.waiting.push(row);
        if self.waiting.len() >= Self::BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        self.writer.write(&catalogue_batch(&self.waiting, &self.columns)?)?;
        self.waiting.clear();
        Ok(())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        self.flush()?;
        Ok(self.writer.into_inner()?)
    }
}

/// A table of dumps on its way into a file.
#[derive(Debug)]
pub struct TableWriter<W: Write + Send> {
    writer: ArrowWriter<W>,
    table: DumpTable,
    columns: SchemaRef,
}

impl<W: Write + Send> TableWriter<W> {
    /// A file of a table.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, table: DumpTable) -> Result<Self, ParquetError> {
        let columns = table.columns();
        Ok(Self { writer: writer(out, &columns)?, table, columns })
    }

    /// Puts the rows of a dump; says what could not be read.
    ///
    /// # Errors
    /// Those of the output.
    pub fn put(&mut self, file: Arc<DumpFile>, origin: &Origin) -> Result<Vec<String>, ParquetError> {
        let mut batches = self.table.batches(file);
        while let Some(batch) = batches.next().transpose()? {
            let batch: RecordBatch = origin.put_before(&batch, &self.columns)?;
            self.writer.write(&batch)?;
        }
        Ok(batches.lost().to_vec())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> Result<W, ParquetError> {
        Ok(self.writer.into_inner()?)
    }
}

fn writer<W: Write + Send>(out: W, columns: &SchemaRef) -> Result<ArrowWriter<W>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("kwab ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROWS))
        .set_max_row_group_bytes(Some(BYTES))
        .set_dictionary_page_size_limit(DICTIONARY)
        .set_data_page_size_limit(PAGE)
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    Ok(ArrowWriter::try_new_with_options(out, Arc::clone(columns), options)?)
}
