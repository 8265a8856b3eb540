//! Draws conclusions from a dump: what may have happened, with evidence, counter-evidence and the next command.
//!
//! A [`Case`](crate::model::Case) holds the sound records of a dump by kind, and a [`Context`] what is derived from
//! them. [`triage()`] runs the table of [`rules`], which rest on two analyses of their own: [`audit`] compares
//! mappings, page tables and frame counts; [`verify`] compares pages with the files behind them. All of them return
//! values; words and colours are the front end's.
//!
//! ```
//! use kwab::analysis::{triage, verify::Backing};
//! use kwab::model::{Depth, Dump};
//! use kwab::symbols::Symbols;
//!
//! let dump = Dump::open("../testing/dumps/null-dereference.kwab".as_ref(), Depth::Rules)?;
//! let triage = triage(&dump.case(), &Symbols::new(), &Backing::none(), "crash.kwab");
//! assert!(triage.has_findings());
//! let best = &triage.hypotheses[0];
//! assert_eq!((best.rule, best.score), ("NULL", 0.69));
//! assert_eq!(best.claim, "the kernel dereferenced a null pointer plus 0x18");
//! # Ok::<(), kwab::model::OpenError>(())
//! ```
//!
//! [`rules::Rule`] shows how to add a rule.

mod answers;
pub mod audit;
mod backing;
mod bare;
pub mod blame;
pub mod code;
mod context;
mod controller;
mod death;
mod embedded;
mod evidence;
mod families;
pub mod finding;
pub mod forms;
mod frame;
mod futexes;
mod good;
pub(crate) mod headline;
pub mod images;
pub mod invariants;
pub mod keepers;
mod lookup;
mod loops;
mod next;
mod origin;
mod page_order;
mod quote;
mod reach;
mod replay;
mod rings;
pub mod rules;
mod since;
mod space;
pub mod stacks;
pub mod threads;
pub mod trail;
mod triage;
pub mod undecided;
pub mod verify;

#[cfg(test)]
mod tests;

pub(crate) use blame::owner;
pub use context::{Context, View};
pub use death::Postmortem;
pub use frame::TraceFrame;
pub use good::{GoodError, changes_since};
pub(crate) use headline::in_words;
pub use quote::text;
pub(crate) use reach::{Spectrum, is_served};
pub use since::Since;
pub use space::paging;
pub use triage::{LEAST, LIKELY, Triage, is_at_the_death, judge, judge_by, triage, triage_since};
