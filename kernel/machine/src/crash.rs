//! The crash path's primitives: stop the other processors, read memory without faulting. Nothing here allocates or
//! blocks.

use core::sync::atomic::Ordering;

use crate::addr::{FrameNumber, PhysAddr};
use crate::processor::{CpuId, CpuMask};
use crate::time::Nanos;
use crate::x86_64::cpu::local;
use crate::x86_64::cpu::regs::{Control, Registers};
use crate::x86_64::interrupts::{apic, clock, nmi};
use crate::x86_64::layout;
use crate::x86_64::memory::{probe, stacks, stage};

pub use crate::x86_64::cpu::regs::{control_here, control_of_user, registers_here};
pub use crate::x86_64::cpu::stopped::ControllerState;
pub use crate::x86_64::memory::leaves::{RawLeaf, leaves, tables, walk};
pub use crate::x86_64::memory::stage::{BUFFER, Committed, Handler, Memory, Stage, WORDS, enter, prepare};

/// Copy memory at any address, kernel or user (of the space this processor runs), that may not be mapped: returns how
/// many leading bytes could be read. Device memory is not touched.
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

/// Notes something of a frame, at most [`MOST_TAG`](crate::frame::MOST_TAG), for the rest of the crash path, where
/// [`frame::tag`](crate::frame::tag) tells it.
pub fn set_tag(_stage: &Stage, number: FrameNumber, tag: u8) {
    crate::frame::set_tag(number, tag);
}

/// Virtual addresses of the kernel's half: all of it, the stacks, and the heap's spans above them.
pub fn kernel_areas() -> KernelAreas {
    let (stacks, spans) = (layout::stacks(), layout::spans());
    KernelAreas { all: (layout::KERNEL_HALF, u64::MAX), stacks: (stacks, spans), spans: (spans, layout::spans_end()) }
}

/// What [`kernel_areas`] tells: the first address of each area, and one past its last.
#[derive(Clone, Copy, Debug)]
pub struct KernelAreas {
    /// The whole half.
    pub all: (u64, u64),
    /// Kernel stacks, with their guards.
    pub stacks: (u64, u64),
    /// Large objects of the heap.
    pub spans: (u64, u64),
}

/// Stop all other processors by non-maskable interrupt, for at most `budget`. Returns those that stopped; they stay
/// stopped. A second call (from a second crash) returns at once with those already stopped.
pub fn stop_others(budget: Nanos) -> CpuMask {
    nmi::stop_others(budget)
}

/// Whether `cpu` was stopped by [`stop_others`].
pub fn is_stopped(cpu: CpuId) -> bool {
    nmi::is_stopped(cpu)
}

/// Registers of a stopped processor at the moment it was stopped; their code segment says whether it was in user mode.
pub fn stopped_registers(cpu: CpuId) -> Option<(Registers, Control)> {
    local::of(cpu)?.stopped.registers()
}

/// A processor's number in hardware: the id of its local APIC.
pub fn hardware_id(cpu: CpuId) -> Option<u32> {
    Some(local::of(cpu)?.apic_id.load(Ordering::Relaxed))
}

/// What the interrupt controller of a processor holds, of this one or one that is stopped.
pub fn controller(cpu: CpuId) -> Option<ControllerState> {
    if cpu == crate::percpu::id() { apic::state() } else { local::of(cpu)?.stopped.controller() }
}

/// When a processor's timer is to expire, as [`crate::time::arm`] was told; 0 when it is not.
pub fn timer(cpu: CpuId) -> Option<Nanos> {
    match local::of(cpu)?.timer.load(Ordering::Relaxed) {
        0 => Some(0),
        cycles => Some(clock::nanos_at(cycles)),
    }
}

/// Locks a processor holds, and how deep in interrupt handlers it is.
pub fn nesting(cpu: CpuId) -> Option<(u32, u32)> {
    let local = local::of(cpu)?;
    Some((local.locks.load(Ordering::Relaxed), local.irq_depth.load(Ordering::Relaxed)))
}

/// The lock a processor was spinning for when it was stopped, or when it crashed.
pub fn awaited_lock(cpu: CpuId) -> Option<crate::sync::Awaited> {
    let halted = is_stopped(cpu) || (cpu == crate::percpu::id() && stage::is_mine());
    if halted { local::of(cpu)?.awaits.get() } else { None }
}

/// Return addresses from a frame-pointer walk, beginning with `ip` itself; it never leaves readable memory and stops at
/// a frame that does not ascend.
pub fn backtrace(ip: u64, fp: u64) -> Backtrace {
    Backtrace { ip, fp }
}

/// The iterator of [`backtrace`]: yields return addresses, innermost first, and reads the stack as it goes.
pub struct Backtrace {
    ip: u64,
    fp: u64,
}

impl Iterator for Backtrace {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let found = (self.ip != 0).then_some(self.ip)?;
        let mut record = [0; 16];
        let sound =
            self.fp >= layout::KERNEL_HALF && self.fp.is_multiple_of(8) && probe_read(self.fp, &mut record) == 16;
        let (below, above) = record.split_at(8);
        let next = u64::from_le_bytes(below.try_into().unwrap_or_default());
        self.ip = if sound { u64::from_le_bytes(above.try_into().unwrap_or_default()) } else { 0 };
        self.fp = if next > self.fp { next } else { 0 };
        Some(found)
    }
}

/// Bounds `[lowest, top)` of the stack `sp` lies in, if it is one of ours (thread, boot, exception, or the crash path's
/// own).
pub fn stack_bounds(sp: u64) -> Option<(u64, u64)> {
    stack_at(sp).map(|stack| (stack.low, stack.high))
}

/// A kernel stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackArea {
    /// Whose it is: `thread`, `boot`, `exception` or `crash`.
    pub label: &'static str,
    /// The lowest mapped address; the guard lies below it.
    pub low: u64,
    /// First address past it.
    pub high: u64,
    /// Bytes below it that are never mapped.
    pub guard: u64,
}

/// The kernel stack whose bytes or guard `at` lies in.
pub fn stack_at(at: u64) -> Option<StackArea> {
    let (low, high) = stacks::boot_bounds();
    if (low..high).contains(&at) {
        return Some(StackArea { label: "boot", low, high, guard: 0 });
    }
    if let Some((low, high)) = stacks::bounds(at) {
        let label = if stage::tops().contains(&high) { "crash" } else { "thread" };
        return Some(StackArea { label, low, high, guard: stacks::GUARD });
    }
    let (low, high) = local::exception_stack(at)?;
    Some(StackArea { label: "exception", low, high, guard: 0 })
}

/// Read an address that is never mapped, as a bug would: for injected faults and tests. Ends in
/// [`crate::Kernel::fatal`].
pub fn fault_on_purpose() {
    probe::fault();
}

/// Run out of a stack that is none, as a bug with the stack pointer would: ends in [`crate::Kernel::fatal`] as a double
/// fault.
pub fn double_fault_on_purpose() -> ! {
    probe::double_fault()
}
