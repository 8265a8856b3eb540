//! Writes a dump in the forms that other tools read: ELF core files, Chrome traces, folded stacks.

mod chrome;
mod elf_core;
mod folded;
mod ranges;
mod spans;

#[cfg(test)]
mod tests;

pub use chrome::{Traced, chrome_trace};
pub use elf_core::{CoreError, core_stacks, elf_core};
pub use folded::folded;
pub use spans::{SpanNode, span_tree, ticks_per_us};
