//! Kernel rules that run anywhere; the kernel carries them out.
//!
//! Each module decides something and touches nothing: no processor, no page table, no lock. That is what lets the rules
//! be tested on the host with ordinary `cargo test`.
#![no_std]

extern crate alloc;

pub mod buddy;
pub mod elf;
pub mod fault;
pub mod runqueue;
pub mod signal;
pub mod stack;
pub mod timers;
pub mod vma;
