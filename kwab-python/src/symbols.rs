//! Names of addresses: the images that were found for a dump, and what they say about one address.

use std::path::PathBuf;
use std::sync::Arc;

use kwab::analysis::images::{self, Images};
use kwab::symbols::{Finder, IndexCache, Location as Found, Probe, SourceFrame, short};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors;
use crate::inner::Inner;

/// The images of a dump.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Symbols {
    pub(crate) images: Arc<Images>,
}

/// A function at an address, as the source has it.
#[pyclass(frozen, get_all, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// Demangled name of the function.
    name: Option<String>,
    /// Source file as the compiler recorded it.
    file: Option<String>,
    /// Line in the file, from 1.
    line: Option<u32>,
    /// Whether it is inlined into the next function.
    inlined: bool,
    /// Whether it is panic or library machinery.
    machinery: bool,
}

#[pymethods]
impl Function {
    fn __repr__(&self) -> String {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => format!(" at {file}:{line}"),
            (Some(file), None) => format!(" at {file}"),
            (None, _) => String::new(),
        };
        let inlined = if self.inlined { ", inlined" } else { "" };
        format!("<kwab.Function {:?}{}{inlined}>", self.name.as_deref().unwrap_or("?"), kwab::plain::line(&place))
    }
}

impl From<&SourceFrame> for Function {
    fn from(frame: &SourceFrame) -> Self {
        Self {
            name: frame.function.as_ref().map(ToString::to_string),
            file: frame.file.as_ref().map(ToString::to_string),
            line: frame.line,
            inlined: frame.inlined,
            machinery: frame.machinery,
        }
    }
}

/// What is known about an address.
#[pyclass(frozen, get_all, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The address that was asked about.
    address: u64,
    /// The name with its offset, as a debugger prints it.
    name: Option<String>,
    /// The entry of the symbol table that covers it.
    symbol: Option<String>,
    /// Bytes from the start of the symbol.
    offset: Option<u64>,
    /// Size of the symbol, bytes.
    size: Option<u64>,
    /// The functions at the address, innermost first; all but the last are inlined.
    functions: Vec<Function>,
}

#[pymethods]
impl Location {
    fn __repr__(&self) -> String {
        format!("<kwab.Location {:#x} {:?}>", self.address, self.name.as_deref().unwrap_or("?"))
    }
}

impl Location {
    fn of(address: u64, found: &Found) -> Self {
        let symbol = found.symbol.as_ref();
        Self {
            address,
            name: short(found),
            symbol: symbol.map(|symbol| symbol.name.to_string()),
            offset: symbol.map(|symbol| symbol.offset),
            size: symbol.map(|symbol| symbol.size),
            functions: found.frames.iter().map(Function::from).collect(),
        }
    }
}

/// What a caller gives for symbols.
#[derive(FromPyObject)]
pub(crate) enum Given {
    /// Images that were found before.
    Found(Symbols),
    /// Files, directories and archives to search.
    Paths(Vec<PathBuf>),
}

impl FromPyObject<'_, '_> for Symbols {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        Ok(object.cast::<Self>()?.get().clone())
    }
}

/// The images of a dump as far as they are found.
pub(crate) fn found(py: Python<'_>, inner: &Arc<Inner>, given: Option<Given>) -> PyResult<Symbols> {
    match given {
        Some(Given::Found(symbols)) => Ok(symbols),
        Some(Given::Paths(paths)) => load(py, inner, paths, false),
        None => load(py, inner, Vec::new(), false),
    }
}

/// Looks for the images of a dump; only those with the dump's build-id unless `force` says otherwise.
pub(crate) fn load(py: Python<'_>, inner: &Arc<Inner>, paths: Vec<PathBuf>, force: bool) -> PyResult<Symbols> {
    for path in &paths {
        std::fs::metadata(path).map_err(|error| errors::of_system(&error, path))?;
    }
    let view = inner.view(py)?;
    let images = py
        .detach(|| view.with(|view| images::load(&view.case, &mut Finder::new(paths, force), &IndexCache::of_user())));
    Ok(Symbols { images: Arc::new(images) })
}

#[pymethods]
impl Symbols {
    /// One sentence for each image that was not found or cannot be used.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.images.problems.clone()
    }

    /// The images: name, build-id, where each is loaded, and in which process.
    #[getter]
    fn images<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for loaded in self.images.symbols.loaded() {
            let image = PyDict::new(py);
            image.set_item("name", loaded.image.name())?;
            image.set_item("build_id", loaded.image.build_id().map(|id| id.to_string()))?;
            image.set_item("has_debug_info", loaded.image.has_debug_info())?;
            image.set_item("start", loaded.start)?;
            image.set_item("end", loaded.end)?;
            image.set_item("pid", loaded.pid)?;
            list.append(image)?;
        }
        Ok(list)
    }

    /// What is known about an address; as a return address it is that of the call before it.
    #[pyo3(signature = (address, *, pid = None, return_address = false))]
    fn resolve(&self, py: Python<'_>, address: u64, pid: Option<u32>, return_address: bool) -> Location {
        let probe = if return_address { Probe::Return } else { Probe::Exact };
        py.detach(|| Location::of(address, &self.images.symbols.resolve(address, pid, probe)))
    }

    /// The run-time address of a symbol: of the kernel, or of an image of a process.
    #[pyo3(signature = (name, *, pid = None))]
    fn address_of(&self, py: Python<'_>, name: &str, pid: Option<u32>) -> Option<u64> {
        py.detach(|| {
            let mut seen =
                self.images.symbols.loaded().iter().filter(|loaded| loaded.pid.is_none() || loaded.pid == pid);
            seen.find_map(|loaded| Some(loaded.image.find_symbol(name)?.0.wrapping_add(loaded.bias)))
        })
    }

    fn __repr__(&self) -> String {
        format!("<kwab.Symbols of {} images>", self.images.symbols.loaded().len())
    }
}
