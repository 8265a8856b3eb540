//! Holds a dump as analyses need it, together with what borrows from it: its records by kind and its memory.

use kwab::memory::Ram;
use kwab::model::{Case, Depth, Dump, DumpFile};
use self_cell::self_cell;

/// What is derived from a loaded dump.
#[derive(Debug)]
pub(crate) struct View<'d> {
    /// Its records by kind.
    pub(crate) case: Case<'d>,
    /// Its physical memory.
    pub(crate) ram: Ram<'d>,
}

self_cell!(
    /// A loaded dump and its view.
    pub(crate) struct Loaded {
        owner: Dump,
        #[not_covariant]
        dependent: View,
    }

    impl {Debug}
);

impl Loaded {
    /// Loads the records that analyses look at.
    pub(crate) fn of(file: DumpFile) -> Self {
        Self::new(Dump::load(file, Depth::Rules), |dump| View { case: dump.case(), ram: Ram::of(dump) })
    }

    /// The loaded dump.
    pub(crate) fn dump(&self) -> &Dump {
        self.borrow_owner()
    }

    /// Calls `look` with the view.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&View<'_>) -> R) -> R {
        self.with_dependent(|_, view| look(view))
    }
}
