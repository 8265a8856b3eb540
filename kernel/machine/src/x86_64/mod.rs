//! The x86-64 half of the machine.

pub(crate) mod regs;
