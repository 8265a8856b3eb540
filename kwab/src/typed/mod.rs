//! Prints what the source calls things: statics, and arguments and locals of a frame, by their types.
//!
//! `types` turns entries of DWARF into shapes, `scope` finds variables and where they live, `stack`
//! chooses the thread's registers, `value` reads values out of a dump and shows them within limits, `expression` what
//! a user may ask for. What was not captured is shown as that; what the compiler did not keep is shown as that too.

mod error;
mod expression;
mod place;
mod print;
mod scope;
mod stack;
mod types;
mod value;

#[cfg(test)]
mod tests;

pub use error::PrintError;
pub use expression::{Expression, ExpressionError};
pub use print::{FrameChoice, PrintReport, SCHEMA, Subject, print};
pub use value::{Limits, Missing, Node};
