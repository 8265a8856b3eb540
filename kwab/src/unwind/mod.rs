//! Finds the callers of interrupted code from saved registers and whatever stack bytes a dump holds.
//!
//! Every frame says how it was found, because that is how far it can be trusted ([`Trust`]). Unwind tables are asked first:
//! they are right at every instruction, where a frame pointer misleads inside a prologue. Then the frame pointer, then a
//! scan for words that look like return addresses. A walk always ends: each frame must lie higher on the stack than the
//! one before, and there is a limit.
//!
//! Registers are those of x86_64 in DWARF numbering (`System V ABI, AMD64`, figure 3.36).

mod tables;
mod walk;

#[cfg(test)]
mod tests;

pub use tables::UnwindTables;
pub use walk::{Backtrace, Frame, Space, Stopped, Trust, backtrace};

/// General registers and instruction pointer, by DWARF number; absent where unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    values: [Option<u64>; Self::COUNT],
}

impl Registers {
    /// How many there are: 16 general ones and the instruction pointer.
    pub const COUNT: usize = 17;
    /// DWARF number of the frame pointer.
    pub const RBP: u16 = 6;
    /// DWARF number of the stack pointer.
    pub const RSP: u16 = 7;
    /// DWARF number of the instruction pointer.
    pub const RIP: u16 = 16;

    /// Only these two are known.
    #[must_use]
    pub fn at(ip: u64, sp: u64) -> Self {
        let mut registers = Self::default();
        registers.set(Self::RIP, Some(ip));
        registers.set(Self::RSP, Some(sp));
        registers
    }

    /// A register by DWARF number.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<u64> {
        self.values.get(usize::from(number)).copied().flatten()
    }

    /// Sets a register by DWARF number; numbers beyond the instruction pointer are ignored.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(place) = self.values.get_mut(usize::from(number)) {
            *place = value;
        }
    }

    /// Instruction pointer.
    #[must_use]
    pub fn ip(&self) -> Option<u64> {
        self.get(Self::RIP)
    }

    /// Stack pointer.
    #[must_use]
    pub fn sp(&self) -> Option<u64> {
        self.get(Self::RSP)
    }
}
