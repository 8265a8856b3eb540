//! The class of an open dump: what it holds, its records, and what the analyses say of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kwab::analysis::forms::{AuditReport, TriageReport, VerifyReport};
use kwab::analysis::triage;
use kwab::analysis::verify::Backing;
use kwab::format;
use kwab::format::record::RecordKind;
use kwab::memory::Wanted;
use kwab::model::{Depth, Dump as Loading, DumpFile, json};
use kwab::output::Replace;
use kwab::report::address::search::{Pattern, search};
use kwab::report::address::translate::translate;
use kwab::report::address::whatis::Question;
use kwab::report::{catalogue, check, inspect};
use kwab::symbols::SourceLines;
use kwab::tables::{Walk, chosen};
use kwab::typed::{Expression, FrameChoice, Limits, Subject, print};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::convert;
use crate::errors::{self, DamagedError, Error, ExpressionError};
use crate::inner::Inner;
use crate::memory::{Memory, space};
use crate::records::Records;
use crate::source::Source;
use crate::stacks::{self, Backtrace};
use crate::symbols::{self, Given, Symbols};
use crate::table::Table;

/// A dump no longer than this is judged whole by an inspection; of a longer one, what it reads anyway.
const JUDGED_WHOLE: u64 = 8 << 20;

/// Something that is wrong with a dump.
#[pyclass(frozen, get_all, module = "kwab")]
#[derive(Debug, Clone)]
pub(crate) struct Defect {
    /// The kind of damage, in a word or two.
    kind: &'static str,
    /// Where the affected bytes begin.
    offset: u64,
    /// How many bytes it affects; 0 when bytes are missing rather than wrong.
    length: u64,
    /// The first section that is lost by it.
    first_section: Option<u32>,
    /// The last section that is lost by it.
    last_section: Option<u32>,
    /// The defect as a sentence.
    text: String,
}

#[pymethods]
impl Defect {
    fn __repr__(&self) -> String {
        format!("<kwab.Defect {:?}>", self.text)
    }
}

impl From<&format::Defect> for Defect {
    fn from(defect: &format::Defect) -> Self {
        Self {
            kind: defect.kind.name(),
            offset: defect.offset,
            length: defect.length,
            first_section: defect.sections.map(|sections| sections.0),
            last_section: defect.sections.map(|sections| sections.1),
            text: defect.to_string(),
        }
    }
}

/// A sound section of a dump.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Section {
    inner: Arc<Inner>,
    index: usize,
    /// Its number in the dump.
    #[pyo3(get)]
    number: u32,
    /// What it is about.
    #[pyo3(get)]
    kind: String,
    /// Where its header stands.
    #[pyo3(get)]
    offset: u64,
    /// Bytes of its payload.
    #[pyo3(get)]
    size: u32,
    /// How many records are in it.
    #[pyo3(get)]
    records: u32,
}

#[pymethods]
impl Section {
    /// The bytes of its records, checked and unpacked.
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let file = self.inner.file(py)?;
        let payload = py.detach(|| file.payload(self.index));
        Ok(PyBytes::new(py, &payload.map_err(|defect| DamagedError::new_err(defect.to_string()))?))
    }

    fn __repr__(&self) -> String {
        format!("<kwab.Section {} {}, {} records>", self.number, self.kind, self.records)
    }
}

/// An open dump.
#[pyclass(frozen, module = "kwab")]
#[derive(Debug)]
pub(crate) struct Dump {
    inner: Arc<Inner>,
}

impl Dump {
    pub(crate) fn new(source: Source) -> Self {
        Self { inner: Arc::new(Inner::new(source)) }
    }

    /// Opens the file, when it is not open yet.
    pub(crate) fn file(&self, py: Python<'_>) -> PyResult<Arc<DumpFile>> {
        self.inner.file(py)
    }
}

#[pymethods]
impl Dump {
    /// How the input was named.
    #[getter]
    fn name(&self) -> String {
        self.inner.name()
    }

    /// Which dump of its input it is, from 1.
    #[getter]
    fn number(&self) -> usize {
        self.inner.source().number
    }

    /// How many dumps the input holds.
    #[getter]
    fn dumps(&self) -> usize {
        self.inner.source().dumps
    }

    /// Its length in bytes.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.file(py)?.len)
    }

    /// Whether an end section closes it: otherwise it was cut.
    #[getter]
    fn ended(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.file(py)?.ended)
    }

    /// What is wrong with it, as far as it was read.
    #[getter]
    fn defects(&self, py: Python<'_>) -> PyResult<Vec<Defect>> {
        let file = self.file(py)?;
        // A view is locked for as long as it is made, by a thread that may need the interpreter.
        Ok(py.detach(|| {
            let mut all: Vec<format::Defect> = file.defects.clone();
            if let Some(view) = self.inner.loaded() {
                all.extend(view.dump().defects().iter().filter(|defect| !file.defects.contains(defect)));
            }
            all.iter().map(Defect::from).collect()
        }))
    }

    /// Its sound sections.
    #[getter]
    fn sections(&self, py: Python<'_>) -> PyResult<Vec<Section>> {
        let file = self.file(py)?;
        let all = file.sections.iter().enumerate().map(|(index, section)| Section {
            inner: Arc::clone(&self.inner),
            index,
            number: section.header.seq,
            kind: section.header.kind.to_string(),
            offset: section.offset,
            size: section.header.payload_len,
            records: section.header.records,
        });
        Ok(all.collect())
    }

    /// The memory that was captured.
    #[getter]
    fn memory(&self) -> Memory {
        Memory::new(Arc::clone(&self.inner))
    }

    /// Its records in the order of the dump: all, or those of a type, of a kind of section, of one section.
    #[pyo3(signature = (r#type = None, *, section = None, number = None))]
    fn records(
        &self,
        py: Python<'_>,
        r#type: Option<&str>,
        section: Option<&str>,
        number: Option<u32>,
    ) -> PyResult<Records> {
        if let Some(kind) = section.filter(|kind| !format::SectionKind::NAMES.iter().any(|(_, name)| name == kind)) {
            return Err(PyValueError::new_err(format!("there is no kind of section called {kind}")));
        }
        let kind = r#type.map(kind_of).transpose()?;
        let file = self.file(py)?;
        let sections = chosen(&file, section, number);
        Ok(Records::new(Walk::new(file, sections, kind)))
    }

    /// The records of a type as an Arrow table.
    fn table(&self, py: Python<'_>, r#type: &str) -> PyResult<Table> {
        let schema = json::schema_named(r#type).ok_or_else(|| unknown_type(r#type))?;
        Ok(Table::new(self.file(py)?, schema))
    }

    /// How many records of each type there are.
    fn record_counts(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        let file = self.file(py)?;
        Ok(py.detach(|| {
            let mut counts: BTreeMap<u8, u64> = BTreeMap::new();
            let mut walk = Walk::new(Arc::clone(&file), chosen(&file, None, None), None);
            while let Some(kind) = walk.next_with(|record, _| record.kind.0) {
                *counts.entry(kind).or_default() += 1;
            }
            counts.into_iter().map(|(kind, count)| (json::type_name(RecordKind(kind)), count)).collect()
        }))
    }

    /// Finds images that name its addresses, by build-id.
    #[pyo3(signature = (paths = None, *, force = false))]
    fn symbols(&self, py: Python<'_>, paths: Option<Vec<PathBuf>>, force: bool) -> PyResult<Symbols> {
        symbols::load(py, &self.inner, paths.unwrap_or_default(), force)
    }

    /// The stacks: that of the death first, then those of all other processors and tasks.
    #[pyo3(signature = (symbols = None))]
    fn backtraces(&self, py: Python<'_>, symbols: Option<Given>) -> PyResult<Vec<Backtrace>> {
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let view = self.inner.view(py)?;
        Ok(py.detach(|| view.with(|view| stacks::all(&view.case, &images.symbols))))
    }

    /// What `kwab list` says of it: its cause, its place, its signature, its first hypothesis.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (file, name) = (self.inner.fresh(py)?, self.inner.name());
        let entry = py.detach(|| catalogue::entry(&Loading::load(file, Depth::Rules), &name));
        convert::report(py, &entry)
    }

    /// What `kwab triage --json` prints: hypotheses of the cause, best supported first, with their evidence.
    #[pyo3(signature = (symbols = None, *, backing = None))]
    fn triage<'py>(
        &self,
        py: Python<'py>,
        symbols: Option<Given>,
        backing: Option<PathBuf>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let (view, files) = (self.inner.view(py)?, files(py, backing)?);
        let (name, named) = (self.inner.name(), self.inner.named());
        let judge = || view.with(|view| TriageReport::of(triage(&view.case, &images.symbols, &files, &named), &name));
        convert::report(py, &py.detach(judge))
    }

    /// What `kwab inspect --json` prints: the whole page about the death.
    #[pyo3(signature = (symbols = None, *, rows = 24, source = None))]
    fn inspect<'py>(
        &self,
        py: Python<'py>,
        symbols: Option<Given>,
        rows: usize,
        source: Option<Vec<PathBuf>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let (file, name, named) = (self.inner.fresh(py)?, self.inner.name(), self.inner.named());
        let report = py.detach(|| {
            let dump = Loading::load(file, Depth::Digest);
            let options = inspect::Options { rows: rows.max(1), ..inspect::Options::default() };
            let mut report = inspect::inspect(&dump, &name, options);
            let whole = dump.file.len <= JUDGED_WHOLE && dump.left_out > 0;
            let mut dump = if whole { dump.with_the_rest() } else { dump };
            dump.file.release();
            report.completeness.leave_out(dump.defects());
            let mut lines = SourceLines::new(source.unwrap_or_default());
            inspect::conclude(&mut report, &dump.case(), &images.symbols, &mut lines, &named);
            report
        });
        convert::report(py, &report)
    }

    /// What `kwab audit-vm --json` prints: mappings, page tables and frames compared by named rules.
    #[pyo3(signature = (rules = None))]
    fn audit_vm<'py>(&self, py: Python<'py>, rules: Option<Vec<String>>) -> PyResult<Bound<'py, PyAny>> {
        let rules = rules.unwrap_or_default();
        if let Some(wrong) = rules.iter().find(|id| !kwab::analysis::audit::RULES.iter().any(|rule| rule.id == **id)) {
            return Err(PyValueError::new_err(format!("there is no audit rule called {wrong}")));
        }
        let (view, name) = (self.inner.view(py)?, self.inner.name());
        convert::report(py, &py.detach(|| view.with(|view| AuditReport::of(&view.case, &rules, &name))))
    }

    /// What `kwab verify-pages --json` prints: pages compared with the files behind them.
    #[pyo3(signature = (*, backing = None))]
    fn verify_pages<'py>(&self, py: Python<'py>, backing: Option<PathBuf>) -> PyResult<Bound<'py, PyAny>> {
        let (view, files, name) = (self.inner.view(py)?, files(py, backing)?, self.inner.name());
        convert::report(py, &py.detach(|| view.with(|view| VerifyReport::of(&view.case, &files, &name))))
    }

    /// What `kwab check --json` prints of it: every checksum and every record checked.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (mut file, name) = (self.inner.fresh(py)?, self.inner.name());
        convert::report(py, &py.detach(|| check::check(&mut file, &name)))
    }

    /// The way from a virtual to a physical address, level by level.
    #[pyo3(signature = (address, *, pid = None, cpu = None, cr3 = None))]
    fn translate<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        pid: Option<u32>,
        cpu: Option<u32>,
        cr3: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (view, name) = (self.inner.view(py)?, self.inner.name());
        let answer = py.detach(|| {
            view.with(|view| {
                let space = space(&view.case, Wanted { pid, cpu, cr3 })?;
                Ok::<_, PyErr>(translate(&view.case, &view.ram, &space, address, &name))
            })
        })?;
        let value = serde_json::to_value(&answer).map_err(|error| Error::new_err(error.to_string()))?;
        convert::json(py, &numbers(value))
    }

    /// What `kwab whatis --json` prints: everything known about an address.
    #[pyo3(signature = (address, symbols = None, *, physical = false, pid = None, cpu = None, cr3 = None))]
    #[expect(clippy::too_many_arguments, reason = "all but the address are keywords in Python")]
    fn whatis<'py>(
        &self,
        py: Python<'py>,
        address: u64,
        symbols: Option<Given>,
        physical: bool,
        pid: Option<u32>,
        cpu: Option<u32>,
        cr3: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let (view, name) = (self.inner.view(py)?, self.inner.name());
        let answer = py.detach(|| {
            view.with(|view| {
                let space = space(&view.case, Wanted { pid, cpu, cr3 })?;
                let question = Question {
                    case: &view.case,
                    ram: &view.ram,
                    symbols: &images.symbols,
                    space: &space,
                    addr: address,
                };
                Ok::<_, PyErr>(question.answer(physical, &name))
            })
        })?;
        convert::report(py, &answer)
    }

    /// What `kwab search --json` prints: where bytes are in captured memory.
    #[pyo3(signature = (pattern, symbols = None, *, align = 1, rows = 32))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        pattern: Vec<u8>,
        symbols: Option<Given>,
        align: u64,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let pattern = Pattern::new(pattern, align).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let (view, name) = (self.inner.view(py)?, self.inner.name());
        let find = || view.with(|view| search(&view.case, &view.ram, &images.symbols, &pattern, rows, &name));
        convert::report(py, &py.detach(find))
    }

    /// What `kwab print --json` prints: variables of a frame or a static, by their types.
    #[pyo3(signature = (
        expression = None, symbols = None, *, frame = 0, task = None, pid = None, depth = 3, rows = 16
    ))]
    #[expect(clippy::too_many_arguments, reason = "all but the expression are keywords in Python")]
    fn print<'py>(
        &self,
        py: Python<'py>,
        expression: Option<&str>,
        symbols: Option<Given>,
        frame: usize,
        task: Option<u32>,
        pid: Option<u32>,
        depth: usize,
        rows: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let wrong = |error: String| ExpressionError::new_err(error);
        let parsed = expression.map(Expression::parse).transpose().map_err(|error| wrong(error.to_string()))?;
        let images = symbols::found(py, &self.inner, symbols)?.images;
        let (view, name) = (self.inner.view(py)?, self.inner.name());
        let limits = Limits { depth: depth.clamp(1, 16), elements: rows.clamp(1, 1024) };
        let report = py.detach(|| {
            view.with(|view| {
                let space = space(&view.case, Wanted { pid, ..Wanted::default() })?;
                let reader = kwab::memory::Reader::new(&view.case, &view.ram);
                let subject = Subject { case: &view.case, symbols: &images.symbols, reader, space: &space };
                let asked = expression.zip(parsed.as_ref());
                print(subject, asked, FrameChoice { number: frame, task, cpu: None }, limits, &name)
                    .map_err(|error| wrong(error.to_string()))
            })
        })?;
        convert::report(py, &report)
    }

    /// Writes the dump to a file, which is whole or absent; a log's crash becomes a dump that way. With `overwrite` a
    /// regular file is replaced, but not the one that the dump was opened from; a device, a FIFO or a socket never is.
    #[pyo3(signature = (path, *, overwrite = false))]
    fn save(&self, py: Python<'_>, path: PathBuf, overwrite: bool) -> PyResult<()> {
        let replace = if overwrite { Replace::Force } else { Replace::Never };
        py.detach(|| self.inner.source().save(&path, replace)).map_err(|error| errors::of_output(&error, &path))
    }

    fn __repr__(&self) -> String {
        let number =
            if self.dumps() > 1 { format!(", dump {} of {}", self.number(), self.dumps()) } else { String::new() };
        format!("<kwab.Dump {:?}{number}>", self.name())
    }
}

/// The kind of records with a type name.
fn kind_of(name: &str) -> PyResult<RecordKind> {
    json::schema_named(name).map(|schema| RecordKind(schema.kind)).ok_or_else(|| unknown_type(name))
}

fn unknown_type(name: &str) -> PyErr {
    PyValueError::new_err(format!("there is no type of records called {name}; kwab.record_types() lists them"))
}

/// The files behind the pages of a dump.
fn files(py: Python<'_>, path: Option<PathBuf>) -> PyResult<Backing> {
    let Some(path) = path else { return Ok(Backing::none()) };
    readable(&path)?;
    py.detach(|| Backing::open(&path)).map_err(|error| Error::new_err(error.to_string()))
}

fn readable(path: &Path) -> PyResult<()> {
    let meta = std::fs::metadata(path).map_err(|error| errors::of_system(&error, path))?;
    if meta.is_file() || meta.is_dir() {
        return Ok(());
    }
    Err(Error::new_err(format!("{}: is neither a file nor a directory", path.display())))
}

/// The members of a translation that are words of 64 bits, as numbers.
fn numbers(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let number = |name: &str, text: &str| {
                let word = matches!(name, "address" | "physical" | "at" | "entry");
                u64::from_str_radix(text.strip_prefix("0x").filter(|_| word)?, 16).ok()
            };
            let told = members.into_iter().map(|(name, value)| match value {
                Value::String(text) => match number(&name, &text) {
                    Some(word) => (name, word.into()),
                    None => (name, text.into()),
                },
                value => (name, numbers(value)),
            });
            Value::Object(told.collect())
        }
        Value::Array(values) => values.into_iter().map(numbers).collect(),
        value => value,
    }
}
