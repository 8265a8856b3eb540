//! The processor itself: registers, ports, descriptors, its block of state, moves that need its instructions.

pub(crate) mod copy;
pub(crate) mod cpuinfo;
pub(crate) mod descriptors;
pub(crate) mod features;
pub(crate) mod fpu;
pub(crate) mod guards;
pub(crate) mod irq;
pub(crate) mod local;
pub(crate) mod memory;
mod moves;
pub(crate) mod msr;
pub(crate) mod port;
pub(crate) mod regs;
pub(crate) mod stopped;
pub mod vdso;
