//! Interrupt vector numbers.

/// The one-shot timer of each processor.
pub(crate) const TIMER: u8 = 0xf0;
/// Another processor wants attention: work was requested or calls are in the mailbox.
pub(crate) const KICK: u8 = 0xf1;
/// What the controller raises when an interrupt went away; not acknowledged.
pub(crate) const SPURIOUS: u8 = 0xff;
/// Platform line n is vector `LINES + n`.
pub(crate) const LINES: u8 = 0x30;
/// The line of COM1.
pub(crate) const CONSOLE_LINE: u8 = 4;
