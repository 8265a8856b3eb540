//! Compares two runs of one program, call by call: on this kernel and on Linux, or on two builds of this kernel.
//!
//! ```text
//!  dump (events of calls) ─▶ recorded ─┐
//!                                      ├─▶ Trace ─▶ compare ─▶ OracleReport
//!  text of strace ─────────▶ strace ───┘
//! ```
//!
//! A [`Trace`] has the threads of the program, each with its calls, signals and its end. [`compare()`] pairs the
//! threads of both runs by the calls that made them, aligns their rows ([`crate::report::align`]), and looks at each
//! pair: the arguments by what the system call table says they are, then the answer. Process ids, addresses and, where
//! the runs began with other descriptors open, descriptors are compared up to renaming.
//!
//! The kernel's answer is the first thing that can differ in a deterministic program. When a row differs in what the
//! program *asked*, the answer that misled it lay in memory that neither trace shows: the report names the calls before
//! it that write to memory, nearest first. With the kernel's image the functions behind either are named, with recorded
//! [`Paths`] where the runs part.

mod behind;
mod beside;
mod calls;
mod compare;
mod killed;
mod names;
mod operand;
mod paths;
mod recorded;
pub mod report;
pub(crate) mod strace;
#[cfg(test)]
mod tests;
mod text;
mod trace;

pub(crate) use operand::{Answer, Operand};
pub(crate) use trace::{Called, Ended};

pub use compare::{CompareOptions, compare};
pub use paths::{NoPaths, Paths, Recorded};
pub use recorded::of_dumps;
pub use strace::{is_strace, of_strace};
pub use text::text;
pub use trace::Trace;
