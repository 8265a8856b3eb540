//! What logs and reports are written in: the JSON of events, lines of console text, and the one form of an address.
//!
//! The bottom layer of the crate, which knows no dump: [`lex`] reads JSON, [`dialect`] names the kinds of events,
//! [`console`] cleans printed lines and reads the pieces that their grammars share.

pub mod console;
pub mod dialect;
pub mod lex;

use serde::{Serialize as _, Serializer};

/// An address as every report shows it: `0x` and sixteen digits.
#[must_use]
pub fn address(value: u64) -> String {
    format!("0x{value:016x}")
}

/// Writes a word as a string of full width.
pub(crate) fn word<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&address(*value))
}

/// Writes a word, or null.
pub(crate) fn some_word<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(address).serialize(serializer)
}
