//! PCI configuration space through its two ports, as every PC has them.

use crate::x86_64::cpu::port::{in32, out32};

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

/// A function of a device on bus 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Function(u32);

/// Command register: answer at ports, answer in memory, read and write memory by itself.
const COMMAND: u8 = 4;
const ENABLE: u32 = 1 | 2 | 4;
/// Status bit: there is a list of capabilities.
const HAS_CAPABILITIES: u32 = 1 << 20;
/// Capabilities at most: they fit the space only once.
const MAX_CAPABILITIES: usize = 48;

/// The first function on bus 0 for which `wanted(vendor, device)`.
pub(crate) fn find(wanted: impl Fn(u16, u16) -> bool) -> Option<Function> {
    (0..256).map(|number| Function(1 << 31 | number << 8)).find(|function| {
        let id = function.read(0);
        id != u32::MAX && wanted(id as u16, (id >> 16) as u16)
    })
}

impl Function {
    /// The aligned word at `offset`.
    pub(crate) fn read(self, offset: u8) -> u32 {
        // SAFETY: the two ports of configuration mechanism #1; reading configuration space has no effect on memory.
        unsafe {
            out32(ADDRESS, self.0 | u32::from(offset & !3));
            in32(DATA)
        }
    }

    /// Write it.
    ///
    /// # Safety
    /// The caller answers for what the device does then.
    pub(crate) unsafe fn write(self, offset: u8, value: u32) {
        // SAFETY: the ports are the configuration mechanism's; the rest is the caller's.
        unsafe {
            out32(ADDRESS, self.0 | u32::from(offset & !3));
            out32(DATA, value);
        }
    }

    /// Let the device answer, and reach memory.
    ///
    /// # Safety
    /// Until it is told addresses, the device must touch none: it was reset, or never used.
    pub(crate) unsafe fn enable(self) {
        // SAFETY: the caller's.
        unsafe { self.write(COMMAND, self.read(COMMAND) & 0xffff | ENABLE) };
    }

    /// Where its capabilities with this id are.
    pub(crate) fn capabilities(self, id: u8) -> impl Iterator<Item = u8> {
        let listed = self.read(COMMAND) & HAS_CAPABILITIES != 0;
        let first = if listed { self.read(0x34) as u8 & !3 } else { 0 };
        let next = move |at: &u8| Some((self.read(*at) >> 8) as u8 & !3).filter(|next| *next != 0);
        core::iter::successors(Some(first).filter(|at| *at != 0), next)
            .take(MAX_CAPABILITIES)
            .filter(move |at| self.read(*at) as u8 == id)
    }
}
