//! The Python module `kwab._native`: dumps and logs as Python objects, their records as Arrow tables.
//!
//! Everything here translates: what is concluded is the library's, and a report is the same mapping that the command
//! line prints as JSON. Three rules hold everywhere:
//!
//! * Integers of 64 bits are exact, an absent field is `None`, and memory that was not captured is an exception.
//! * Objects do not change after they were made, so that threads share them; long work runs without the interpreter's
//!   lock.
//! * Damage is a value (`Dump.defects`, `Records.lost`), other failures are exceptions (`errors`).
//!
//! `source` opens inputs and opens them again, `view` holds the analysed dump with what borrows from it, `dump` is
//! the class that the others hang on; `records`, `table`, `memory`, `symbols` and `stacks` are one class each with its
//! parts, and `convert` makes Python values. The Python side (`python/kwab`) has the types and the documentation.

mod convert;
mod dump;
mod errors;
mod inner;
mod memory;
mod opening;
mod records;
mod source;
mod stacks;
mod symbols;
mod table;
mod view;

/// Kernel crash dumps and logs.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::dump::{Defect, Dump, Section};
    #[pymodule_export]
    use crate::errors::{AddressSpaceError, DamagedError, Error, ExpressionError, MissingMemoryError, OpenError};
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::opening::{import_log, open, open_all, record_types, set_memory_limit};
    #[pymodule_export]
    use crate::records::{Record, Records};
    #[pymodule_export]
    use crate::stacks::{Backtrace, Frame};
    #[pymodule_export]
    use crate::symbols::{Function, Location, Symbols};
    #[pymodule_export]
    use crate::table::Table;
}
