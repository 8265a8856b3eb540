//! Turns failures into Python exceptions: those of kwab have a common base, those of the system are `OSError`.

use std::io;
use std::path::Path;

use kwab::import::ImportError;
use kwab::import::open::NotOpened;
use kwab::model::OpenError as WhyNotOpened;
use kwab::output::OutputError;
use pyo3::exceptions::{PyException, PyOSError};
use pyo3::prelude::*;

/// Numbers of Linux (errno(3)) by which Python chooses a subclass of `OSError`.
const ENOENT: i32 = 2;
const EEXIST: i32 = 17;
const EISDIR: i32 = 21;

pyo3::create_exception!(kwab, Error, PyException, "The base of all errors that kwab raises.");
pyo3::create_exception!(kwab, OpenError, Error, "The input is neither a dump nor a log that kwab can read.");
pyo3::create_exception!(kwab, DamagedError, Error, "A part of the dump that was asked for is damaged.");
pyo3::create_exception!(kwab, AddressSpaceError, Error, "The dump does not hold the address space.");
pyo3::create_exception!(kwab, ExpressionError, Error, "There is nothing of that name, shape or frame to show.");
pyo3::create_exception!(kwab, MissingMemoryError, Error, "Memory was not captured from `address` on.");

/// An error of the system about a path, as the subclass of `OSError` that its number asks for.
pub(crate) fn of_system(error: &io::Error, path: &Path) -> PyErr {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => {
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text, path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {text}", path.display())),
    }
}

/// Why an output was refused or not written.
pub(crate) fn of_output(error: &OutputError, path: &Path) -> PyErr {
    let number = match error {
        OutputError::Io(error) => return of_system(error, path),
        OutputError::Exists | OutputError::Dangling(_) => EEXIST,
        OutputError::Directory => EISDIR,
        OutputError::NoFolder(_) => ENOENT,
        _ => return PyOSError::new_err(format!("{}: {error}", path.display())),
    };
    of_system(&io::Error::from_raw_os_error(number), path)
}

/// Why an input was not opened; `name` is how the user named it.
pub(crate) fn of_opening(error: &NotOpened, name: &Path) -> PyErr {
    match error {
        NotOpened::Open(WhyNotOpened::Io(error)) => of_system(error, name),
        NotOpened::Import(ImportError::Read { error, .. }) => of_system(error, name),
        NotOpened::Import(ImportError::Write(error)) => of_system(error, &std::env::temp_dir()),
        error => OpenError::new_err(format!("{}: {error}", name.display())),
    }
}

/// Memory that is missing from an address on, behind bytes that are there.
pub(crate) fn missing(py: Python<'_>, address: u64, wanted: u64, found: &[u8]) -> PyErr {
    let text = format!("memory at {address:#x} was not captured ({} of {wanted} bytes are there)", found.len());
    let error = MissingMemoryError::new_err(text);
    let value = error.value(py);
    let told = value.setattr("address", address).and_then(|()| value.setattr("available", found));
    told.err().unwrap_or(error)
}
