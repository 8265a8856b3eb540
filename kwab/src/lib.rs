//! Turns serial logs and dumps into a model, and the model into findings.

pub mod analysis;
pub mod decode;
pub mod export;
pub mod import;
pub mod symbols;
pub mod unwind;
pub mod model;
pub mod report;
