//! Changes the kernel at random and asks `kwab` what happened; the parts of that judge.

pub mod guest;
pub mod list;
pub mod loads;
pub mod names;
pub mod sample;
pub mod tree;
