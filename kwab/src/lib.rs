//! The host library of kwab: serial logs become dumps, dumps become a model, the model becomes reports.
//!
//! ```text
//!  serial log ──▶ import ──▶ .kwab ──▶ model ──▶ report ──▶ kwab-cli, kwab-tui
//!                              ▲
//!  kernel ─────────────────────┘
//! ```
//!
//! * [`import`] reads logs of any mixture (events, console text, panics, armoured dumps) and cuts them into one dump per
//!   crash. What one crash is, is written in [`import::crash`]; how a log is cut, in [`import::segments`].
//! * [`model`] opens a dump ([`model::DumpFile`]: sections and defects), loads what is needed ([`model::Dump`]: typed records
//!   that borrow from it), and knows how to say a record as JSON, as a line, as an strace-like call.
//! * [`output`] writes files that are whole or absent, and refuses targets that must not be replaced.
//! * [`plain`] makes strings of strangers safe to print, for every front end.
//! * [`text`] reads JSON and console text; it knows no dump.
//! * [`report`] concludes: the inspection page, integrity, salvage, catalogue, the signature of a crash. Reports are values
//!   with a JSON schema; this crate prints nothing and never touches a terminal.
//!
//! A front end typically does `Dump::open(path, Depth::Digest)` and `report::inspect::inspect(&dump, …)`. An analysis asks
//! [`model::Dump::records`] for a record type, or goes through everything with [`model::stream::for_each`].
//!
//! Everything that reads input gives what is sound *and* what is not: no function panics on bytes, and none allocates by a
//! length that the input claims.

pub mod analysis;
pub mod bisect;
pub mod capture;
pub mod decode;
pub mod export;
pub mod import;
mod intervals;
mod magic;
pub mod model;
pub mod output;
pub mod plain;
pub mod report;
pub mod symbols;
pub mod text;
pub mod unwind;

/// The bytes of a dump, for front ends that show or copy sections as they are.
pub use kwab_format as format;
