//! What kwab concludes, as values; front ends put them into words and colours.
//!
//! [`inspect`] is the page about one dump, [`mod@html`] and [`mod@markdown`] are files of it to send, [`check`] is its
//! integrity, [`salvage`] what can be saved of a damaged one,
//! [`catalogue`] many dumps together, [`signature`] the stable name of a crash. Every report has a version and a JSON
//! schema. [`ci`] compares a run with the crashes that are known, [`diff`] says what tells two dumps apart, [`compare`]
//! puts two inspections beside each other, [`align`] the rows of any two lists; [`filter`] is how rows are asked for.

pub mod address;
pub mod align;
pub mod catalogue;
pub mod check;
pub mod ci;
pub mod command;
pub mod compare;
pub mod diff;
pub mod filter;
pub mod html;
pub mod inspect;
pub mod markdown;
pub mod salvage;
pub mod signature;
