//! Finds the callers of interrupted code from saved registers and whatever stack bytes a dump holds.
//!
//! Every frame says how it was found, because that is how far it can be trusted ([`Trust`]). Unwind tables are asked
//! first: they are right at every instruction, where a frame pointer misleads inside a prologue. Then the frame
//! pointer, then a scan for words that look like return addresses. A walk always ends: each frame must lie higher on
//! the stack than the one before, and there is a limit.
//!
//! Registers are those of x86_64 in DWARF numbering (`System V ABI, AMD64`, figure 3.36).

mod walk;

#[cfg(test)]
mod tests;

pub use crate::symbols::{Registers, UnwindTables};
pub use walk::{Backtrace, Frame, Space, Stopped, Trust, backtrace};
