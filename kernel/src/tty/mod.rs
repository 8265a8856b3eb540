//! Terminals.

/// A terminal.
pub struct Tty;
