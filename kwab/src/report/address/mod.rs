//! Answers questions about addresses: where one leads ([`translate`]), what it is ([`whatis`]), where bytes are
//! ([`search`]).
//!
//! What the dump does not hold is told as missing in every answer, and never taken for zero.

pub mod search;
pub mod translate;
pub mod whatis;

#[cfg(test)]
mod tests;

/// An address as it is printed: all digits, so that it can be searched for.
fn hex(addr: u64) -> String {
    format!("{addr:#018x}")
}

/// Bytes as pairs of hexadecimal digits.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
