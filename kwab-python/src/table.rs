//! The records of one type as an Arrow table, which pyarrow, polars, pandas and DuckDB read without a copy.
//!
//! The columns and the batches are the library's ([`kwab::tables`]); the table hands them over as a stream.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use kwab::format::RecordSchema;
use kwab::format::record::RecordKind;
use kwab::model::{DumpFile, json};
use kwab::tables::{RecordBatches, record_columns};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::Error;

/// The records of one type.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Table {
    file: Arc<DumpFile>,
    record: &'static RecordSchema,
    schema: SchemaRef,
    lost: Arc<Mutex<Vec<String>>>,
}

impl Table {
    pub(crate) fn new(file: Arc<DumpFile>, record: &'static RecordSchema) -> Self {
        let schema = record_columns(record);
        Self { file, record, schema, lost: Arc::default() }
    }

    fn reader(&self) -> Reader {
        Reader { batches: RecordBatches::new(Arc::clone(&self.file), self.record), lost: Arc::clone(&self.lost) }
    }
}

#[pymethods]
impl Table {
    /// The type of the records.
    #[getter]
    fn name(&self) -> String {
        json::type_name(RecordKind(self.record.kind))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What could not be read when the table was read last.
    #[getter]
    fn lost(&self) -> Vec<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The table as a stream of the Arrow C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the schema that is asked for; the reader converts then.
        drop(requested_schema);
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let stream = FFI_ArrowArrayStream::new(Box::new(self.reader()));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The schema of the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| Error::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    fn __repr__(&self) -> String {
        format!("<kwab.Table {}, {} columns>", self.name(), self.schema.fields().len())
    }
}

/// Makes batches as they are asked for, and tells the table what they lack.
#[derive(Debug)]
struct Reader {
    batches: RecordBatches,
    lost: Arc<Mutex<Vec<String>>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next();
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = self.batches.lost().to_vec();
        batch
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.batches.schema()
    }
}
