//! What a dying kernel may still do: stop the others, read anything without faulting. Nothing here allocates or blocks.

use crate::cpu::{CpuId, CpuMask};
use crate::time::Nanos;
use crate::x86_64::regs::Registers;

/// Copy memory at any address, kernel or user, that may not be mapped: returns how many leading bytes could be read. Device
/// memory is not touched.
pub fn probe_read(addr: u64, to: &mut [u8]) -> usize {
    let _ = (addr, to);
    todo!()
}

/// Copy physical memory, RAM only: how many leading bytes could be read.
pub fn probe_physical(addr: u64, to: &mut [u8]) -> usize {
    let _ = (addr, to);
    todo!()
}

/// Stop all other processors by non-maskable interrupt, for at most `budget`. Returns those that stopped; they stay stopped.
/// A second call (from a second crash) returns at once with those already stopped.
pub fn stop_others(budget: Nanos) -> CpuMask {
    let _ = budget;
    todo!()
}

/// Registers of a stopped processor at the moment it was stopped, and whether it was in user mode.
pub fn stopped_registers(cpu: CpuId) -> Option<(Registers, bool)> {
    let _ = cpu;
    todo!()
}

/// Registers here, for a panic that has none of its own.
#[inline(never)]
pub fn registers_here() -> Registers {
    todo!()
}

/// Return addresses from a frame-pointer walk that never leaves readable memory; stops at a frame that does not ascend.
pub fn backtrace(ip: u64, fp: u64) -> impl Iterator<Item = u64> {
    let _ = (ip, fp);
    core::iter::empty()
}

/// Bounds `[lowest, top)` of the stack `sp` lies in, if it is one of ours (thread, boot, interrupt).
pub fn stack_bounds(sp: u64) -> Option<(u64, u64)> {
    let _ = sp;
    todo!()
}
