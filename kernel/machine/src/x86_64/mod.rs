//! The x86-64 half of the machine, in the layers of its parents: entry, devices, memory, interrupts, the processor. An
//! import points from an earlier folder of these to a later one.

pub(crate) mod cpu;
pub(crate) mod devices;
pub(crate) mod entry;
pub(crate) mod interrupts;
pub(crate) mod layout;
pub(crate) mod memory;
