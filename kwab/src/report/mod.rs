//! What kwab concludes, as values; front ends put them into words and colours.
//!
//! [`inspect`] is the page about one dump, [`check`] its integrity, [`salvage`] what can be saved of a damaged one,
//! [`catalogue`] many dumps together, [`signature`] the stable name of a crash. Every report has a version and a JSON schema.

pub mod catalogue;
pub mod check;
pub mod inspect;
pub mod salvage;
pub mod signature;
