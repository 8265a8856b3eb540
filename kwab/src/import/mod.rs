//! Turns a serial log into dumps.

pub mod boot;
pub mod crash;
pub mod emit;
pub mod event;
pub mod lex;
pub mod lines;
pub mod scan;
pub mod summary;
pub mod text;
