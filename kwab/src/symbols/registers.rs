//! The registers that a walk over a stack carries from frame to frame (System V ABI, AMD64, figure 3.36).

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
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
        }
    }

    /// Value of the instruction pointer, `None` when unknown.
    #[must_use]
    pub fn ip(&self) -> Option<u64> {
        self.get(Self::RIP)
    }

    /// Value of the stack pointer, `None` when unknown.
    #[must_use]
    pub fn sp(&self) -> Option<u64> {
        self.get(Self::RSP)
    }
}
