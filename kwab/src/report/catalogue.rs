//! A catalogue of dumps: one entry each, those of the same bug together.
//!
//! [`entry`] reads what a dump says of itself, [`judge`] adds what triage concludes from it, and [`Catalogue::of`]
//! groups by that conclusion: seven dumps that were asked for with the same key, and that show seven different bugs,
//! are seven groups. Where triage decides nothing the signature, the name of the symptom, keeps dumps together.

mod entry;
mod groups;

pub use entry::{CatalogueEntry, FIELDS, Finding, concluded, entry, judge, unreadable};
pub use groups::{Arranged, Catalogue, Group, Order, Rank, SCHEMA, arrange, last_of};
