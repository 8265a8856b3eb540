//! Records as Python objects, decoded when a field is asked for, and the iterator that reads them section by section.

use std::sync::{Mutex, PoisonError};

use kwab::format::RawRecord;
use kwab::format::record::RecordKind;
use kwab::model::fields::{self, RecordValue};
use kwab::model::{RecordRef, json};
use kwab::tables::Walk;
use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert;

/// Names of an object that are not fields.
const OWN: &[&str] = &["at", "bytes_of", "keys", "to_dict", "to_json", "type", "wrong"];

/// One record of a dump.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Record {
    kind: RecordKind,
    body: Vec<u8>,
    at: RecordRef,
}

impl Record {
    fn raw(&self) -> RawRecord<'_> {
        RawRecord { kind: self.kind, body: &self.body }
    }

    /// That records of this type have such a field.
    fn has(&self, name: &str) -> Result<(), String> {
        let known = fields::schema_of(self.kind)
            .is_some_and(|schema| fields::columns(schema).any(|column| column.name == name));
        let type_name = json::type_name(self.kind);
        if known { Ok(()) } else { Err(format!("records of the type {type_name} have no field {name}")) }
    }

    /// The value of a field; `Ok(None)` when it is absent, `Err` when records of this type have no such field.
    fn field<'py>(&self, py: Python<'py>, name: &str) -> Result<PyResult<Bound<'py, PyAny>>, String> {
        self.has(name)?;
        let found = fields::fields(self.raw());
        let value = found.values.iter().find(|(field, _)| *field == name);
        Ok(value.map_or_else(|| Ok(py.None().into_bound(py)), |(_, value)| convert::field(py, value)))
    }
}

#[pymethods]
impl Record {
    /// The type, as `type` in the JSON of the record.
    #[getter(r#type)]
    fn type_name(&self) -> String {
        json::type_name(self.kind)
    }

    /// The position in the dump, as reports cite it: `tasks[3].0`.
    #[getter]
    fn at(&self) -> String {
        self.at.to_string()
    }

    /// What is wrong with the record, when it is written wrongly.
    #[getter]
    fn wrong(&self) -> Option<String> {
        fields::fields(self.raw()).wrong.map(|error| error.to_string())
    }

    /// The names of the fields that are present.
    fn keys(&self) -> Vec<&'static str> {
        fields::fields(self.raw()).values.into_iter().map(|(name, _)| name).collect()
    }

    /// The bytes of a field of text or bytes, as the source wrote them; `None` when it is absent or a number.
    fn bytes_of<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.has(name).map_err(PyKeyError::new_err)?;
        let found = fields::fields(self.raw());
        Ok(found.values.iter().find_map(|(field, value)| match value {
            RecordValue::Text(bytes) | RecordValue::Bytes(bytes) if *field == name => Some(PyBytes::new(py, bytes)),
            _ => None,
        }))
    }

    /// The type and the fields that are present.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("type", json::type_name(self.kind))?;
        dict.update(convert::fields(py, &fields::fields(self.raw()).values)?.as_mapping())?;
        Ok(dict)
    }

    /// The object that `kwab export --to jsonl` writes for the record.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::object(py, &json::object(self.raw()))
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, name).unwrap_or_else(|text| Err(PyAttributeError::new_err(text)))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, name).unwrap_or_else(|text| Err(PyKeyError::new_err(text)))
    }

    fn __dir__(&self) -> Vec<&'static str> {
        let columns = fields::schema_of(self.kind).into_iter().flat_map(fields::columns).map(|column| column.name);
        OWN.iter().copied().chain(columns).collect()
    }

    fn __repr__(&self) -> String {
        format!("<kwab.Record {} at {}>", json::type_name(self.kind), self.at)
    }
}

/// An iterator over records, which holds one section at a time.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Records {
    walk: Mutex<Walk>,
}

impl Records {
    pub(crate) fn new(walk: Walk) -> Self {
        Self { walk: Mutex::new(walk) }
    }
}

#[pymethods]
impl Records {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> Option<Record> {
        // A section may have to be read and unpacked.
        py.detach(|| {
            let mut walk = self.walk.lock().unwrap_or_else(PoisonError::into_inner);
            walk.next_with(|record, at| Record { kind: record.kind, body: record.body.to_vec(), at })
        })
    }

    /// What could not be read so far.
    #[getter]
    fn lost(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.walk.lock().unwrap_or_else(PoisonError::into_inner).lost().to_vec())
    }
}
