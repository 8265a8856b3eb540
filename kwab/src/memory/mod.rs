//! Reads the memory that a dump holds, by physical and by virtual address.
//!
//! [`Ram`] is the physical memory of a dump that has it: sections that are unpacked when an address in them is asked
//! for. [`fn@walk`] follows page tables, with every level told. [`Reader`] is the one door for reads at virtual
//! addresses: bytes that were captured by virtual address come first, then what the page tables of a [`Space`] lead to.
//! Nothing here makes up bytes: a read ends where the dump knows no more.
//!
//! ```
//! use kwab::memory::{Ram, Reader, Wanted};
//! use kwab::model::{Depth, Dump};
//!
//! let dump = Dump::open("../testing/dumps/null-dereference.kwab".as_ref(), Depth::All)?;
//! let (case, ram) = (dump.case(), Ram::of(&dump));
//! let reader = Reader::new(&case, &ram);
//! // The address space of the death; a process, a processor or a CR3 can be wanted too.
//! let space = Wanted::default().find(&case)?;
//! let piece = case.memory.iter().find(|piece| piece.bytes.is_some_and(|bytes| bytes.len() >= 16)).expect("memory");
//! let mut bytes = [0; 16];
//! let known = reader.read(&space, piece.vaddr.expect("an address"), &mut bytes);
//! assert_eq!(bytes[..known], piece.bytes.expect("bytes")[..known]);
//! assert_eq!(reader.word(&space, 0), None, "nothing is mapped at zero, and nothing is made up");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ram;
mod reader;
mod reverse;
mod space;
pub(crate) mod vmcoreinfo;
mod walk;

#[cfg(test)]
mod tests;

pub use ram::{Piece, Ram};
pub use reader::Reader;
pub use reverse::{Mapped, Reverse};
pub use space::{Space, SpaceError, Wanted, levels, spaces};
pub use walk::{Outcome, Rights, Step, Tables, Walk, flags, walk};
