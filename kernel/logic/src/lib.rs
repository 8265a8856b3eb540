//! Kernel rules that need no machine: pure functions and data structures, tested on the host.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod audit;
pub mod buddy;
pub mod chacha;
pub mod cpio;
pub mod dirent;
pub mod dirmap;
pub mod dumpspace;
pub mod elf;
pub mod fault;
pub mod fdtable;
pub mod filelock;
pub mod filemap;
pub mod gz;
pub mod huge;
pub mod meter;
pub mod mqueue;
pub mod packing;
pub mod path;
pub mod permission;
pub mod readiness;
pub mod recorder;
pub mod ring;
pub mod runqueue;
pub mod signal;
pub mod sigstack;
pub mod stack;
pub mod stall;
pub mod timers;
pub mod tty;
pub mod vma;
pub mod waiters;
