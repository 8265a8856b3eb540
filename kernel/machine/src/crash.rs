//! What a dying kernel may still do: stop the others, read anything without faulting. Nothing here allocates or blocks.

use crate::addr::PhysAddr;
use crate::cpu::{CpuId, CpuMask};
use crate::time::Nanos;
use crate::x86_64::regs::Registers;
use crate::x86_64::{boot, layout, local, nmi, probe, stacks};

pub use crate::x86_64::regs::registers_here;

/// Copy memory at any address, kernel or user (of the space this processor runs), that may not be mapped: returns how many
/// leading bytes could be read. Device memory is not touched.
pub fn probe_read(addr: u64, to: &mut [u8]) -> usize {
    probe::read(addr, to)
}

/// Copy physical memory, RAM only: how many leading bytes could be read.
pub fn probe_physical(addr: u64, to: &mut [u8]) -> usize {
    let ram = crate::boot::info().ram;
    let end = ram.iter().find(|r| (r.start.addr().0..r.end.addr().0).contains(&addr)).map_or(addr, |r| r.end.addr().0);
    let len = (end - addr).min(to.len() as u64) as usize;
    probe::read(layout::direct(PhysAddr(addr)) as u64, &mut to[..len])
}

/// Stop all other processors by non-maskable interrupt, for at most `budget`. Returns those that stopped; they stay stopped.
/// A second call (from a second crash) returns at once with those already stopped.
pub fn stop_others(budget: Nanos) -> CpuMask {
    nmi::stop_others(budget)
}

/// Whether `cpu` was stopped by [`stop_others`].
pub fn is_stopped(cpu: CpuId) -> bool {
    nmi::is_stopped(cpu)
}

/// Registers of a stopped processor at the moment it was stopped, and whether it was in user mode.
pub fn stopped_registers(cpu: CpuId) -> Option<(Registers, bool)> {
    let registers = local::of(cpu)?.stopped.registers()?;
    Some((registers, registers.cs & 3 != 0))
}

/// Return addresses from a frame-pointer walk, beginning with `ip` itself; it never leaves readable memory and stops at a frame
/// that does not ascend.
pub fn backtrace(ip: u64, fp: u64) -> Backtrace {
    Backtrace { ip, fp }
}

/// See [`backtrace`].
pub struct Backtrace {
    ip: u64,
    fp: u64,
}

impl Iterator for Backtrace {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let found = (self.ip != 0).then_some(self.ip)?;
        let mut record = [0; 16];
        let sound = self.fp >= layout::DIRECT && self.fp.is_multiple_of(8) && probe_read(self.fp, &mut record) == 16;
        let (below, above) = record.split_at(8);
        let next = u64::from_le_bytes(below.try_into().unwrap_or_default());
        self.ip = if sound { u64::from_le_bytes(above.try_into().unwrap_or_default()) } else { 0 };
        self.fp = if next > self.fp { next } else { 0 };
        Some(found)
    }
}

/// Bounds `[lowest, top)` of the stack `sp` lies in, if it is one of ours (thread, boot, exception).
pub fn stack_bounds(sp: u64) -> Option<(u64, u64)> {
    let (bottom, top) = boot::stack_bounds();
    if (bottom..top).contains(&sp) {
        return Some((bottom, top));
    }
    stacks::bounds(sp).or_else(|| local::exception_stack(sp))
}

/// Read an address that is never mapped, as a bug would: for injected faults and tests. Ends in [`crate::Kernel::fatal`].
pub fn fault_on_purpose() {
    probe::fault();
}
