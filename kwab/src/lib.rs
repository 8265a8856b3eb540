//! The host library of kwab: serial logs become dumps, dumps become a model, the model becomes reports.
//!
//! ```text
//!  serial log ──▶ import ──▶ .kwab ──▶ model ──▶ analysis ──▶ report, export ──▶ kwab-cli, kwab-tui
//!                              ▲
//!  kernel, QEMU (capture) ─────┘
//! ```
//!
//! * [`import`] reads logs of any mixture (events, console text, panics, armoured dumps) and cuts them into one
//!   dump per crash. What one crash is, is written in [`import::crash`]; how a log is cut, in
//!   [`import::segments`].
//! * [`capture`] makes a dump of a running QEMU guest through its monitor.
//! * [`exchange`] makes dumps of what other tools have recorded: core files, traces.
//! * [`model`] opens a dump ([`model::DumpFile`]: sections and defects), loads what is needed ([`model::Dump`]:
//!   typed records that borrow from it), sorts records by kind ([`model::Case`]), and shows a record as JSON,
//!   as a line, as an strace-like call.
//! * [`symbols`] names addresses by ELF and DWARF, finds the image of a build-id.
//! * [`causes`] pairs the events of all processors: what woke, interrupted, signalled or made what.
//! * [`memory`] reads physical memory and follows page tables.
//! * [`unwind`] walks stacks, and says of each frame how far to trust it.
//! * [`decode`] decodes instructions, error codes, flags and pointers.
//! * [`analysis`] concludes: triage, audit of page tables, verification of pages.
//! * [`report`] makes pages: inspection, integrity, salvage, catalogue, comparison, the signature of a crash.
//!   Reports are values with a JSON schema.
//! * [`pack`] writes and restores one archive with a dump and what it needs.
//! * [`redact`] makes a dump that may be shared: an allow-list says what stays.
//! * [`export`] writes other formats: ELF core, Chrome trace, folded stacks.
//! * [`bisect`] searches for the first value of a boot parameter that crashes.
//! * [`oracle`] compares two runs of a program call by call: on this kernel and on Linux, or on two builds.
//! * [`output`] writes files that are whole or absent, and refuses targets that must not be replaced.
//! * [`plain`] makes untrusted text safe to print, for every front end.
//! * [`typed`] prints statics and locals by their types.
//! * [`units`] writes numbers with their units, singular or plural.
//! * [`tables`] makes Arrow batches and Parquet files of dumps and catalogues (features `arrow` and `parquet`).
//! * [`text`] reads JSON and console text; it does not know dumps.
//! * [`mod@format`] the bytes of a dump (the crate `kwab-format`).
//!
//! This crate prints nothing and never touches a terminal. Functions that read input return what is sound *and* what is
//! not: none panics on bytes, and none allocates by a length that the input claims.
//!
//! # Open a dump and list its defects
//!
//! ```
//! use kwab::model::{Depth, Dump};
//!
//! let whole = std::fs::read("../testing/dumps/clean.kwab")?;
//! let mut damaged = whole.clone();
//! damaged[2000] ^= 1;
//! let dump = Dump::from_bytes(damaged)?;
//! for defect in dump.defects() {
//!     println!("{defect}");
//! }
//! assert_eq!(dump.defects().len(), 1);
//! assert!(Dump::from_bytes(whole)?.defects().is_empty());
//!
//! // Of a long recording a catalogue needs the identity and the cause only.
//! let dump = Dump::open("../testing/dumps/null-dereference.kwab".as_ref(), Depth::Catalogue)?;
//! assert_eq!(kwab::report::catalogue::entry(&dump, "crash.kwab").kind, "exception");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Import a log
//!
//! ```
//! use kwab::import::{Options, import};
//! use kwab::model::{Death, Dump};
//!
//! let log = b"[    0.91] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n";
//! let options = Options { source: "serial.log".into(), folder: Some(std::env::temp_dir()) };
//! let (report, dumps) = import(&log[..], &options, &mut |_offset| ())?;
//! assert_eq!((report.lines, dumps.len(), report.dumps[0].kind.as_str()), (1, 1, "panic"));
//!
//! let mut bytes = Vec::new();
//! dumps.into_iter().next().and_then(|dump| dump.file).expect("a folder was given").copy_to(&mut bytes)?;
//! let death = Death::of(&Dump::from_bytes(bytes)?).expect("the log tells of a panic");
//! assert!(death.is_of_kernel());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`analysis`] has an example of a triage, and [`analysis::rules::Rule`] one of a rule of one's own.

pub mod analysis;
pub mod bisect;
pub mod builds;
pub mod capture;
pub mod causes;
pub mod decode;
pub mod exchange;
pub mod export;
pub mod follow;
pub mod import;
mod intervals;
mod magic;
pub mod memory;
pub mod model;
pub mod oracle;
pub mod output;
pub mod pack;
pub mod plain;
pub mod redact;
pub mod report;
pub mod symbols;
pub mod tables;
pub mod text;
pub mod typed;
pub mod units;
pub mod unwind;

/// The bytes of a dump, for front ends that show or copy sections as they are.
pub use kwab_format as format;
