//! The functions of the module: opening inputs, the memory limit, the names of record types.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::format::record::{RecordKind, SCHEMA};
use kwab::import::ImportReport;
use kwab::import::open::NotOpened;
use kwab::model::{OpenError, json};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::dump::Dump;
use crate::source::{self, Input, Source};
use crate::{convert, errors};

/// How bytes are named when the caller does not name them.
const BYTES: &str = "bytes";

/// The input that a caller gives, and its name.
fn input(given: &Bound<'_, PyAny>, name: Option<PathBuf>) -> PyResult<(Input, PathBuf)> {
    let bytes = if let Ok(bytes) = given.cast::<PyBytes>() {
        Some(bytes.as_bytes().to_vec())
    } else {
        given.cast::<PyByteArray>().ok().map(PyByteArrayMethods::to_vec)
    };
    if let Some(bytes) = bytes {
        return Ok((Input::Bytes(Arc::new(bytes)), name.unwrap_or_else(|| BYTES.into())));
    }
    let path: PathBuf = given.extract()?;
    Ok((Input::Path(path.clone()), name.unwrap_or(path)))
}

/// Looks at an input without the interpreter's lock.
fn look(py: Python<'_>, input: &Input, name: &Path) -> PyResult<(Vec<Source>, Option<ImportReport>)> {
    py.detach(|| source::look(input, name)).map_err(|error| errors::of_opening(&error, name))
}

/// Opens dump `number` of a file of dumps, or crash `number` of a log.
#[pyfunction]
#[pyo3(signature = (source, number = 1, *, name = None))]
pub(crate) fn open(py: Python<'_>, source: &Bound<'_, PyAny>, number: usize, name: Option<PathBuf>) -> PyResult<Dump> {
    let (input, name) = input(source, name)?;
    let (sources, _) = look(py, &input, &name)?;
    let held = sources.len();
    let wanted = number.checked_sub(1).and_then(|index| sources.into_iter().nth(index));
    let missing = || NotOpened::Open(OpenError::NoSuchDump { held, wanted: number });
    let dump = Dump::new(wanted.ok_or_else(|| errors::of_opening(&missing(), &name))?);
    dump.file(py)?;
    Ok(dump)
}

/// Opens all dumps of a file, or all crashes of a log.
#[pyfunction]
#[pyo3(signature = (source, *, name = None))]
pub(crate) fn open_all(py: Python<'_>, source: &Bound<'_, PyAny>, name: Option<PathBuf>) -> PyResult<Vec<Dump>> {
    let (input, name) = input(source, name)?;
    Ok(look(py, &input, &name)?.0.into_iter().map(Dump::new).collect())
}

/// Imports a log; gives the report of the import and the dumps.
#[pyfunction]
#[pyo3(signature = (source, *, name = None))]
pub(crate) fn import_log<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    name: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Dump>)> {
    let (input, name) = input(source, name)?;
    let (sources, report) = look(py, &input, &name)?;
    let Some(report) = report else {
        return Err(errors::OpenError::new_err(format!(
            "{}: is a dump, not a log; kwab.open opens it",
            name.display()
        )));
    };
    Ok((convert::report(py, &report)?, sources.into_iter().map(Dump::new).collect()))
}

/// Limits the memory that reading one dump may take, for dumps that are opened from now on.
#[pyfunction]
#[pyo3(signature = (limit))]
pub(crate) fn set_memory_limit(limit: Option<u64>) {
    kwab::model::memory::set_limit(limit);
}

/// The names of all types of records, in the order of the format.
#[pyfunction]
pub(crate) fn record_types() -> Vec<String> {
    SCHEMA.iter().map(|schema| json::type_name(RecordKind(schema.kind))).collect()
}
