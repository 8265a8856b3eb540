//! Turns numbers of a crash into words: register bits, fault codes, pointers, and the instruction with its operand
//! values.
//!
//! Everything here is pure: it looks at values, never at a dump. It is about x86_64, but for [`fixed`].

mod bits;
pub mod calls;
pub mod fixed;
pub mod flow;
mod instruction;
mod message;
mod pointer;
pub mod shape;
mod user_regs;
pub mod uses;

pub use bits::{
    Bit, CR0, CR4, EFER, PAGE_FAULT, RFLAGS, describe_bits, exception_name, has_address, msr_name, page_fault_sentence,
    vector_of,
};
pub use instruction::{Access, Control, Instruction, Operand, Values, around, decode_at, register_name};
pub use message::without_debug_location;
pub use pointer::{Paging, PointerClass, classify, classify_on, is_poison};
pub use user_regs::USER_REGS;
