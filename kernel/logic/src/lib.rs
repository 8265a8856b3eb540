//! Kernel rules that run anywhere; the kernel carries them out.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod cpio;
pub mod dirent;
pub mod dirmap;
pub mod fdtable;
pub mod filelock;
pub mod filemap;
pub mod gz;
pub mod path;
pub mod permission;
pub mod readiness;
pub mod ring;
pub mod tty;
