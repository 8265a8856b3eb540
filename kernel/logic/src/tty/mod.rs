//! A terminal's line discipline: what typed bytes and written bytes become, as termios(3) says.
//!
//! [`LineDiscipline`] owns the settings and the input side: editing, echo, signal characters and the queue that read(2)
//! drains. [`output::Column`] owns the output side. Neither knows a device: bytes for the screen go to a sink the
//! caller passes. [`marks::Marks`] keeps output on the console from reading like the kernel's own lines.

mod edit;
mod input;
pub mod marks;
pub mod output;
pub mod termios;

pub use input::{Action, LineDiscipline, Taken};

#[cfg(test)]
mod tests;
