//! Finds the callers of interrupted code from saved registers and whatever stack bytes a dump holds.
//!
//! Every frame says how it was found, because that is how far it can be trusted ([`Trust`]). Unwind tables are asked
//! first: they are right at every instruction, where a frame pointer misleads inside a prologue. Then the frame
//! pointer, then a scan for words that look like return addresses. A walk always ends: each frame must lie higher on
//! the stack than the one before, and there is a limit.
//!
//! ```
//! use kwab::symbols::{Registers, UnwindTables};
//! use kwab::unwind::{Space, Stopped, Trust, backtrace};
//!
//! /// 96 bytes of a stack, in a program whose code lies from 0x400000 to 0x500000.
//! struct Stack([u8; 96]);
//!
//! impl Space for Stack {
//!     fn captured(&self, addr: u64) -> &[u8] {
//!         let at = addr.checked_sub(0x7000).and_then(|at| usize::try_from(at).ok());
//!         at.and_then(|at| self.0.get(at..)).unwrap_or_default()
//!     }
//!     fn is_code(&self, addr: u64) -> bool {
//!         (0x40_0000..0x50_0000).contains(&addr)
//!     }
//!     fn bytes_before(&self, _addr: u64) -> Vec<u8> {
//!         vec![0xe8, 0, 0, 0, 0] // a call
//!     }
//!     fn tables(&self, _addr: u64) -> Option<(&UnwindTables, u64)> {
//!         None
//!     }
//! }
//!
//! let mut stack = [0; 96];
//! // A frame at 0x7010: the caller's frame pointer, and the address to return to.
//! stack[0x10..0x18].copy_from_slice(&0x7040_u64.to_le_bytes());
//! stack[0x18..0x20].copy_from_slice(&0x40_1234_u64.to_le_bytes());
//! let mut registers = Registers::at(0x40_0010, 0x7000);
//! registers.set(Registers::RBP, Some(0x7010));
//! let trace = backtrace(&Stack(stack), &registers, 16);
//! assert_eq!((trace.frames[0].ip, trace.frames[0].trust), (0x40_0010, Trust::Exact));
//! assert_eq!((trace.frames[1].ip, trace.frames[1].trust), (0x40_1234, Trust::FramePointer));
//! assert_ne!(trace.stopped, Stopped::Limit);
//! ```
//!
//! Registers are those of x86_64 in DWARF numbering (`System V ABI, AMD64`, figure 3.36).

mod walk;

#[cfg(test)]
mod tests;

pub use crate::symbols::{Registers, UnwindTables};
pub use walk::{Backtrace, Frame, Space, Stopped, Trust, backtrace};
