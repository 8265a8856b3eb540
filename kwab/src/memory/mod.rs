//! Reads the memory that a dump holds, by physical and by virtual address.
//!
//! [`Ram`] is the physical memory of a dump that has it: sections that are unpacked when an address in them is asked
//! for. [`fn@walk`] follows page tables, with every level told. [`Reader`] is the one door for reads at virtual
//! addresses: bytes that were captured by virtual address come first, then what the page tables of a [`Space`] lead to.
//! Nothing here makes up bytes: a read ends where the dump knows no more.

mod ram;
mod reader;
mod reverse;
mod space;
mod walk;

#[cfg(test)]
mod tests;

pub use ram::{Piece, Ram};
pub use reader::Reader;
pub use reverse::{Mapped, Reverse};
pub use space::{Space, SpaceError, Wanted, spaces};
pub use walk::{Outcome, Rights, Step, Tables, Walk, flags, walk};
