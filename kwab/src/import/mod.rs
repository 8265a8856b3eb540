//! Turns a serial log into dumps.

pub mod emit;
pub mod event;
pub mod lex;
pub mod lines;
