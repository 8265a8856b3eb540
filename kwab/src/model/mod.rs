//! A dump as a program sees it: typed records, loaded as far as they are needed.
//!
//! [`mod@file`] knows where the sections are and which are sound. [`Dump`] holds the payloads that a [`Depth`] asks for
//! and iterates the records in them, which borrow from it; [`Case`] sorts them by kind for analyses; [`Death`] is what
//! the dump is about. [`json`] turns any record into JSON, [`fields`] gives its values by name, [`call`] writes system
//! calls as strace does, [`mod@line`] says any record in a line, and [`stream`] goes
//! through all records of a dump of any size. [`index`] orders millions of events in little memory, and [`payloads`]
//! reads them back one section at a time. [`emit`] writes dumps.
//!
//! ```
//! use kwab::format::record::{FlightKind, Task};
//! use kwab::model::{Depth, Dump, json};
//!
//! let dump = Dump::open("../testing/dumps/clean.kwab".as_ref(), Depth::All)?;
//! // All records of a type, in the order of the file; every field is an option.
//! let names: Vec<_> = dump.records::<Task<'_>>().filter_map(|task| task.comm).collect();
//! assert!(names.contains(&&b"exam"[..]));
//! // The same records sorted by kind, for analyses.
//! let case = dump.case();
//! let switches = case.flight.iter().filter(|event| event.kind == Some(FlightKind::CONTEXT_SWITCH));
//! assert!(switches.count() > 10);
//! // Any record by name, without knowing its type.
//! let found = dump.located_records().next().expect("a record");
//! assert!(!json::type_name(found.record.kind()).is_empty());
//! # Ok::<(), kwab::model::OpenError>(())
//! ```

pub mod bulk;
pub mod call;
pub mod case;
mod death;
mod dump;
pub mod emit;
mod extents;
pub mod fields;
pub mod file;
pub(crate) mod flight;
pub mod index;
pub mod json;
mod keep;
pub mod line;
pub mod log;
mod losses;
pub mod memory;
pub mod payloads;
mod record_ref;
mod section_info;
mod several;
pub mod stream;
pub(crate) mod structure;

pub(crate) use case::is_text;
pub use case::{Case, Lazy};
pub use death::{Death, is_of_library, program_name};
pub use dump::{Depth, Dump};
pub use extents::extents;
pub use file::{DumpFile, OpenError};
pub use keep::LoadedSection;
pub use losses::losses;
pub use record_ref::{Located, RecordRef};
pub use section_info::SectionInfo;
pub use several::DumpsOf;
