//! Records as Python objects, decoded when a field is asked for, and the iterator that reads them section by section.

use std::sync::{Arc, Mutex, PoisonError};

use kwab::format::record::RecordKind;
use kwab::format::{RawRecord, Records as RawRecords, SectionKind};
use kwab::model::fields::{self, RecordValue};
use kwab::model::memory::Payload;
use kwab::model::{DumpFile, RecordRef, json};
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

    /// The value of a field; `Ok(None)` when it is absent, `Err` when records of this type have no such field.
    fn field<'py>(&self, py: Python<'py>, name: &str) -> Result<PyResult<Bound<'py, PyAny>>, String> {
        let type_name = json::type_name(self.kind);
        let known = fields::schema_of(self.kind)
            .is_some_and(|schema| fields::columns(schema).any(|column| column.name == name));
        if !known {
            return Err(format!("records of the type {type_name} have no field {name}"));
        }
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

    /// The bytes of a field of text or bytes, as the source wrote them.
    fn bytes_of<'py>(&self, py: Python<'py>, name: &str) -> Option<Bound<'py, PyBytes>> {
        let found = fields::fields(self.raw());
        found.values.iter().find_map(|(field, value)| match value {
            RecordValue::Text(bytes) | RecordValue::Bytes(bytes) if *field == name => Some(PyBytes::new(py, bytes)),
            _ => None,
        })
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

/// What of the dump is walked.
#[derive(Debug)]
pub(crate) struct Walk {
    file: Arc<DumpFile>,
    sections: std::vec::IntoIter<usize>,
    kind: Option<RecordKind>,
    payload: Option<(Payload, RecordRef)>,
    at: usize,
    lost: Vec<String>,
}

/// Texts about what could not be read that are kept.
const MOST_LOST: usize = 4096;

impl Walk {
    /// All records of these sections, or those of one kind.
    pub(crate) fn new(file: Arc<DumpFile>, sections: Vec<usize>, kind: Option<RecordKind>) -> Self {
        Self { file, sections: sections.into_iter(), kind, payload: None, at: 0, lost: Vec::new() }
    }

    /// Calls `look` with the next record and its position; `None` at the end.
    pub(crate) fn next_with<R>(&mut self, mut look: impl FnMut(RawRecord<'_>, RecordRef) -> R) -> Option<R> {
        loop {
            if let Some((payload, place)) = &mut self.payload {
                let mut records = RawRecords::new(payload.get(self.at..).unwrap_or_default());
                while let Some(record) = records.next() {
                    self.at = payload.len() - records.rest().len();
                    let at = *place;
                    place.record = place.record.saturating_add(1);
                    if self.kind.is_none_or(|kind| kind == record.kind) {
                        return Some(look(record, at));
                    }
                }
                // Its room is needed for the next one.
                self.payload = None;
            }
            let index = self.sections.next()?;
            let header = self.file.sections.get(index)?.header;
            match self.file.payload(index) {
                Ok(payload) => {
                    self.payload = Some((payload, RecordRef { section: header.seq, kind: header.kind, record: 0 }));
                    self.at = 0;
                }
                Err(defect) => self.lose(defect.to_string()),
            }
        }
    }

    /// Notes what could not be read.
    pub(crate) fn lose(&mut self, text: String) {
        if self.lost.len() < MOST_LOST {
            self.lost.push(text);
        }
    }

    /// What could not be read so far.
    pub(crate) fn lost(&self) -> &[String] {
        &self.lost
    }
}

/// The sections of a dump that are of a kind, by its name, or have a number; all without either.
pub(crate) fn chosen(file: &DumpFile, kind: Option<&str>, number: Option<u32>) -> Vec<usize> {
    let named = |found: SectionKind| kind.is_none_or(|wanted| found.to_string() == wanted);
    let sections = file.sections.iter().enumerate();
    let fit = sections
        .filter(|(_, section)| named(section.header.kind) && number.is_none_or(|wanted| wanted == section.header.seq));
    fit.map(|(index, _)| index).collect()
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
