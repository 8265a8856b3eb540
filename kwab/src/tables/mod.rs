//! Dumps and catalogues as tables: Arrow batches, which the Python package hands over as they are, and Parquet files of
//! them.
//!
//! [`Walk`] goes through the records of a dump. With the feature `arrow` there are `RecordBatches` (the records of
//! one type), `EventBatches` (all events of a dump in the same columns) and `catalogue_batch` (a row per dump);
//! `DumpTable` finds the first two by name. With the feature `parquet` a `CatalogueWriter` and a `TableWriter`
//! write them, a row group at a time. A column is described once: a record's by the format, the others by the tables of
//! `events` and `catalogue`. Names and types of columns are stable: `docs/parquet.md` lists them.

#[cfg(feature = "arrow")]
pub mod catalogue;
#[cfg(feature = "arrow")]
pub mod events;
#[cfg(feature = "arrow")]
mod records;
#[cfg(feature = "arrow")]
mod table;
mod walk;
#[cfg(feature = "parquet")]
mod writers;

#[cfg(feature = "arrow")]
pub use catalogue::{CatalogueRow, catalogue_batch, catalogue_columns};
#[cfg(feature = "arrow")]
pub use events::{EventBatches, event_columns};
#[cfg(feature = "arrow")]
pub use records::{RecordBatches, record_columns};
#[cfg(feature = "arrow")]
pub use table::{Batches, DumpTable, Origin};
pub use walk::{Walk, chosen};
#[cfg(feature = "parquet")]
pub use writers::{CatalogueWriter, ParquetError, TableWriter};

#[cfg(all(test, feature = "parquet"))]
mod tests;
