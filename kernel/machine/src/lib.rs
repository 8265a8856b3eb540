//! All unsafe code of the kernel: everything that touches the processor or raw memory.
//!
//! The kernel proper forbids `unsafe`; what it may do to the machine is what this crate's safe types allow, and every
//! one of them stays sound whatever safe code does with it:
//!
//! - a [`frame::Frame`] is an owned reference to physical memory, counted in a table only this crate writes;
//! - a [`space::UserSpace`] owns the frames it maps; its tables live as long as a processor walks them;
//! - user memory is reached only by the copies in [`user`], which turn a fault into an error;
//! - a [`thread::Thread`] owns its kernel stack; [`Start::switch_to`] hands a processor from one to another;
//! - the kernel is entered, and told of traps and interrupts, through the [`Kernel`] trait, found by [`Start`].
//!
//! Names here are architecture-neutral. What knows a processor lives in its folder (`x86_64/`) and is re-exported under
//! these names; [`arch`] is the one deliberate opening, for code that must spell registers (signal frames, dumps).
#![no_std]

extern crate alloc;

#[cfg(all(feature = "fortress", feature = "performance"))]
compile_error!("a kernel has one safety profile: fortress checks what performance leaves out");

pub mod addr;
pub mod boot;
pub mod claim;
pub mod console;
mod contention;
pub mod cpu;
pub mod crash;
pub mod describe;
pub mod disk;
pub mod frame;
pub mod heap;
mod hooks;
pub mod inject;
pub mod irq;
mod kernel;
mod mapping;
pub mod note;
mod percpu;
pub mod power;
mod processor;
pub mod random;
pub mod region;
pub mod space;
pub mod sync;
pub mod thread;
pub mod time;
pub mod trap;
pub mod user;
mod waiting;
pub mod watchdog;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use hooks::Kernel;
pub use kernel::Start;
#[cfg(target_arch = "x86_64")]
pub use x86_64::cpu::vdso;

/// The architecture's own names: register files as the signal ABI and the dump format spell them.
pub mod arch {
    #[cfg(target_arch = "x86_64")]
    pub use crate::x86_64::cpu::guards::{Guards, guards, use_narrow_moves, wide_moves_fit};
    #[cfg(target_arch = "x86_64")]
    pub use crate::x86_64::cpu::regs::{Control, Registers, UserFrame};

    /// Its parts of [`crate::describe`] that belong to no type of the kernel's.
    #[cfg(target_arch = "x86_64")]
    pub mod described {
        pub use crate::x86_64::cpu::local::{AWAITED, BLOCKS};
        pub use crate::x86_64::cpu::regs::{CONTROL, REGISTERS};
        pub use crate::x86_64::cpu::stopped::FIELDS as STOPPED;
        pub use crate::x86_64::interrupts::clock::CLOCK;
        pub use crate::x86_64::layout::FIELDS as IMAGE;
    }
}
