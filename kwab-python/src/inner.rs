//! What the objects of one dump share: its input, and what was opened of it so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kwab::import::open::NotOpened;
use kwab::model::DumpFile;
use kwab::report::command;
use pyo3::prelude::*;

use crate::errors;
use crate::source::Source;
use crate::view::Loaded;

/// What the objects of one dump share.
#[derive(Debug)]
pub(crate) struct Inner {
    source: Source,
    file: Mutex<Option<Arc<DumpFile>>>,
    view: Mutex<Option<Arc<Loaded>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// The input, before anything of it was read.
    pub(crate) fn new(source: Source) -> Self {
        Self { source, file: Mutex::default(), view: Mutex::default() }
    }

    /// The input with the dump.
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// The analysed dump, if an analysis has loaded it.
    pub(crate) fn loaded(&self) -> Option<Arc<Loaded>> {
        locked(&self.view).clone()
    }

    /// The dump with all its sections, opened at the first use.
    pub(crate) fn file(&self, py: Python<'_>) -> PyResult<Arc<DumpFile>> {
        // The lock is waited for without the interpreter's, which its holder may need.
        py.detach(|| kept(&self.file, || self.source.open())).map_err(|error| self.not_opened(&error))
    }

    /// The dump as analyses need it, loaded at the first use.
    pub(crate) fn view(&self, py: Python<'_>) -> PyResult<Arc<Loaded>> {
        py.detach(|| kept(&self.view, || Ok(Loaded::of(self.source.open()?)))).map_err(|error| self.not_opened(&error))
    }

    /// The dump opened again, for a reader that goes through its sections itself.
    pub(crate) fn fresh(&self, py: Python<'_>) -> PyResult<DumpFile> {
        py.detach(|| self.source.open()).map_err(|error| self.not_opened(&error))
    }

    fn not_opened(&self, error: &NotOpened) -> PyErr {
        errors::of_opening(error, &self.source.name)
    }

    /// The dump as reports name it.
    pub(crate) fn name(&self) -> String {
        self.source.name.display().to_string()
    }

    /// The dump as the argument of a command.
    pub(crate) fn named(&self) -> String {
        command::arguments(&self.source.name, self.source.number)
    }
}

/// What a lock holds, made when it is empty.
fn kept<T>(held: &Mutex<Option<Arc<T>>>, make: impl FnOnce() -> Result<T, NotOpened>) -> Result<Arc<T>, NotOpened> {
    let mut held = locked(held);
    if let Some(known) = &*held {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(make()?);
    *held = Some(Arc::clone(&made));
    Ok(made)
}
