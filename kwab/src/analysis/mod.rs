//! Draws conclusions from a dump: what may have happened, with evidence, counter-evidence and the next command.
//!
//! A [`Case`](crate::model::Case) holds the sound records of a dump by kind. [`triage`] runs the table of [`rules`], which rest on two
//! analyses of their own: [`audit`] compares mappings, page tables and frame counts; [`verify`] compares pages with the
//! files behind them. All of them return values; words and colours are the front end's.

pub mod audit;
mod backing;
pub mod blame;
pub mod code;
mod context;
mod death;
mod evidence;
pub mod finding;
pub mod forms;
mod frame;
pub mod images;
pub mod invariants;
mod lookup;
mod origin;
mod page_order;
mod quote;
pub mod rules;
mod space;
pub mod stacks;
pub mod trail;
mod triage;
pub mod undecided;
pub mod verify;

#[cfg(test)]
mod tests;

pub use context::{Context, View};
pub use death::Postmortem;
pub use frame::TraceFrame;
pub use quote::text;
pub use triage::{LEAST, Triage, judge, triage};
