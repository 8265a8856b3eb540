//! Reads of a dump's memory: the bytes, or an exception that names the first address that was not captured.

use std::sync::Arc;

use kwab::memory::{Reader, Space, Wanted, spaces};
use kwab::model::Case;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::errors::{self, AddressSpaceError};
use crate::inner::Inner;

/// Bytes for which room is made at once: a size that is asked for is not believed before it is there.
const STEP: u64 = 1 << 20;

/// The memory of a dump.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Memory {
    inner: Arc<Inner>,
}

/// Finds the address space that a caller names.
pub(crate) fn space(case: &Case<'_>, wanted: Wanted) -> PyResult<Space> {
    wanted.find(case).map_err(|error| AddressSpaceError::new_err(error.to_string()))
}

/// Why a read ends early.
enum Short {
    /// There is no memory behind these bytes.
    Missing(Vec<u8>),
    /// This process has no room for more.
    NoRoom,
}

/// Reads `size` bytes by `read`, which fills a buffer from an address on and says how many bytes it knows.
fn read_all(address: u64, size: u64, mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Result<Vec<u8>, Short> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size {
        let done = bytes.len();
        let step = (size - done as u64).min(STEP) as usize;
        bytes.try_reserve(step).map_err(|_| Short::NoRoom)?;
        bytes.resize(done + step, 0);
        let known = read(address + done as u64, &mut bytes[done..]);
        if known < step {
            bytes.truncate(done + known);
            return Err(Short::Missing(bytes));
        }
    }
    Ok(bytes)
}

/// The bytes as Python has them, or the exception.
fn answer<'py>(
    py: Python<'py>,
    address: u64,
    size: u64,
    read: Result<Vec<u8>, Short>,
) -> PyResult<Bound<'py, PyBytes>> {
    match read {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes)),
        Err(Short::Missing(bytes)) => Err(errors::missing(py, address + bytes.len() as u64, size, &bytes)),
        Err(Short::NoRoom) => Err(PyMemoryError::new_err(format!("{size} bytes"))),
    }
}

/// Refuses a range that leaves the addresses of 64 bits.
fn check(address: u64, size: u64) -> PyResult<()> {
    match address.checked_add(size.saturating_sub(1)) {
        Some(_) => Ok(()),
        None => Err(PyValueError::new_err(format!("{size} bytes at {address:#x} go beyond the last address"))),
    }
}

impl Memory {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self { inner }
    }

    fn virtual_bytes(
        &self,
        py: Python<'_>,
        address: u64,
        size: u64,
        wanted: Wanted,
    ) -> PyResult<Result<Vec<u8>, Short>> {
        check(address, size)?;
        let view = self.inner.view(py)?;
        py.detach(|| {
            view.with(|view| {
                let space = space(&view.case, wanted)?;
                let reader = Reader::new(&view.case, &view.ram);
                Ok(read_all(address, size, |at, out| reader.read(&space, at, out)))
            })
        })
    }
}

#[pymethods]
impl Memory {
    /// The bytes at a virtual address.
    #[pyo3(signature = (address, size, *, pid = None, cpu = None, cr3 = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        size: u64,
        pid: Option<u32>,
        cpu: Option<u32>,
        cr3: Option<u64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let read = self.virtual_bytes(py, address, size, Wanted { pid, cpu, cr3 })?;
        answer(py, address, size, read)
    }

    /// The little-endian unsigned integer of `size` bytes at a virtual address.
    #[pyo3(signature = (address, size = 8, *, pid = None, cpu = None, cr3 = None))]
    fn read_int(
        &self,
        py: Python<'_>,
        address: u64,
        size: u64,
        pid: Option<u32>,
        cpu: Option<u32>,
        cr3: Option<u64>,
    ) -> PyResult<u64> {
        if !(1..=8).contains(&size) {
            return Err(PyValueError::new_err(format!("an integer has 1 to 8 bytes, not {size}")));
        }
        let read = self.virtual_bytes(py, address, size, Wanted { pid, cpu, cr3 })?;
        let bytes = answer(py, address, size, read)?;
        Ok(bytes.as_bytes().iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The bytes at a physical address.
    fn read_physical<'py>(&self, py: Python<'py>, address: u64, size: u64) -> PyResult<Bound<'py, PyBytes>> {
        check(address, size)?;
        let view = self.inner.view(py)?;
        let read = py.detach(|| view.with(|view| read_all(address, size, |at, out| view.ram.read(at, out))));
        answer(py, address, size, read)
    }

    /// Whether the dump holds physical memory, not only pieces that were captured by virtual address.
    #[getter]
    fn is_physical(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner.view(py)?.with(|view| !view.ram.is_empty()))
    }

    /// The pieces that were captured by virtual address: where each begins, its bytes, whose it is.
    fn pieces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        self.inner.view(py)?.with(|view| {
            for memory in &view.case.memory {
                let (Some(address), Some(bytes)) = (memory.vaddr, memory.bytes) else { continue };
                let piece = PyDict::new(py);
                piece.set_item("address", address)?;
                piece.set_item("size", bytes.len())?;
                piece.set_item("pid", memory.pid)?;
                piece.set_item("at", memory.at.to_string())?;
                list.append(piece)?;
            }
            Ok(list)
        })
    }

    /// The address spaces whose page tables the dump names, that of the death first.
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let found = self.inner.view(py)?.with(|view| spaces(&view.case));
        for space in found {
            let told = PyDict::new(py);
            told.set_item("name", space.name)?;
            told.set_item("pid", space.pid)?;
            told.set_item("cr3", space.tables.map(|tables| tables.root))?;
            told.set_item("levels", space.tables.map(|tables| tables.levels))?;
            list.append(told)?;
        }
        Ok(list)
    }
}
