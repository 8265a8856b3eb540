//! Interrupts: the local controller, the clock it counts by, messages between processors.

pub(crate) mod apic;
pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod ipi;
pub(crate) mod nmi;
pub(crate) mod tlb;
pub(crate) mod vectors;
