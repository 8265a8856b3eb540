//! Entry code: from the loader, from programs and traps, and of further processors.

mod early_crash;
mod first;
mod slide;
pub(crate) mod smp;
pub(crate) mod start;
pub(crate) mod stubs;
mod trampoline;
pub(crate) mod trap;
