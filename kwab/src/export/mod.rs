//! Writes a dump in the forms that other tools read: ELF core files, minidumps, Perfetto and Chrome traces, folded
//! stacks.

mod about;
mod calls;
mod chrome;
mod elf_core;
mod folded;
mod lanes;
mod machine;
mod minidump;
mod perfetto;
mod ranges;
mod spans;
mod threads;

#[cfg(test)]
mod tests;

pub use chrome::{Traced, chrome_trace};
pub use elf_core::{CoreError, core_stacks, elf_core};
pub use folded::folded;
pub use minidump::{MinidumpError, minidump};
pub use perfetto::{PerfettoTrace, perfetto_trace};
pub use spans::{SpanNode, span_tree, ticks_per_us};
