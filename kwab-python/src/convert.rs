//! Makes Python values of JSON and of the fields of records.

use kwab::model::fields::RecordValue;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::errors::Error;

/// A report as the mapping that the command line prints as JSON.
pub(crate) fn report<'py>(py: Python<'py>, report: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(report).map_err(|error| Error::new_err(error.to_string()))?;
    json(py, &value)
}

/// A JSON value; numbers without a fraction become integers.
pub(crate) fn json<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => PyInt::new(py, value).into_any(),
            (None, Some(value)) => PyInt::new(py, value).into_any(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(values) => {
            let list = PyList::empty(py);
            values.iter().try_for_each(|value| list.append(json(py, value)?))?;
            list.into_any()
        }
        Value::Object(members) => object(py, members)?.into_any(),
    })
}

/// A JSON object as a dictionary.
pub(crate) fn object<'py>(py: Python<'py>, members: &Map<String, Value>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    members.iter().try_for_each(|(name, value)| dict.set_item(name, json(py, value)?))?;
    Ok(dict)
}

/// The value of a field: exact integers, text with replacement characters, bytes that are not text, lists of
/// dictionaries.
pub(crate) fn field<'py>(py: Python<'py>, value: &RecordValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        RecordValue::Unsigned(value) => PyInt::new(py, *value).into_any(),
        RecordValue::Signed(value) => PyInt::new(py, *value).into_any(),
        RecordValue::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        RecordValue::Name(name) => PyString::new(py, name).into_any(),
        RecordValue::Text(bytes) => PyString::new(py, &String::from_utf8_lossy(bytes)).into_any(),
        RecordValue::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        RecordValue::List(elements, left_out) => {
            let list = PyList::empty(py);
            for element in elements {
                list.append(fields(py, element)?)?;
            }
            if *left_out > 0 {
                let told = PyDict::new(py);
                told.set_item("elements_left_out", *left_out)?;
                list.append(told)?;
            }
            list.into_any()
        }
    })
}

/// Fields by name.
pub(crate) fn fields<'py>(py: Python<'py>, values: &[(&'static str, RecordValue<'_>)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    values.iter().try_for_each(|(name, value)| dict.set_item(*name, field(py, value)?))?;
    Ok(dict)
}
