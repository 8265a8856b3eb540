//! Starts the other processors.

use core::sync::atomic::Ordering;

use super::{stubs, trampoline};
use crate::frame::Frame;
use crate::hooks::hooks;
use crate::percpu;
use crate::processor::{self, CpuId, MAX_CPUS, ONLINE};
use crate::sync::Once;
use crate::time::{self, Nanos};
use crate::x86_64::cpu::{descriptors, features, local, msr};
use crate::x86_64::interrupts::{apic, clock};
use crate::x86_64::layout;
use crate::x86_64::memory::stacks::Stack;
use crate::x86_64::memory::table;

/// The controllers' numbers of all processors found, ours included.
static FOUND: Once<([u32; MAX_CPUS], usize)> = Once::new();

/// Remember who could be started. Once, at boot.
pub(crate) fn found(apic_ids: [u32; MAX_CPUS], count: usize) {
    // Set by boot alone.
    let _ = FOUND.set((apic_ids, count));
}

/// How long a processor gets to appear.
const PATIENCE: Nanos = 500_000_000;

/// Implements [`crate::cpu::start_others`] by INIT and start-up interrupts to the local APICs that the firmware
/// listed.
pub(crate) fn start_others() -> u32 {
    if let Some((ids, count)) = FOUND.get() {
        let me = apic::id();
        for (next, id) in (1..).zip(ids[..*count].iter().filter(|id| **id != me)) {
            if ONLINE.load(Ordering::Acquire).count_ones() as usize == MAX_CPUS || !start(CpuId(next), *id) {
                break;
            }
        }
    }
    processor::online().count_ones()
}

/// Start one processor and wait for it.
fn start(cpu: CpuId, apic_id: u32) -> bool {
    let Some(local) = new_local() else { return false };
    let Ok(stack) = Stack::new() else { return false };
    local.register(cpu, apic_id);
    let top = stack.top();
    // The processor keeps it for ever: it runs on it until it enters its first thread.
    core::mem::forget(stack);
    let page = trampoline::prepare(top - 16, local, ap_start);
    apic::send_init(apic_id);
    // Long enough for every processor of this century; the old 10 ms are for the 82489DX.
    wait(20_000, || false);
    for _ in 0..2 {
        apic::send_startup(apic_id, page);
        if wait(PATIENCE, || processor::online() & 1 << cpu.0 != 0) {
            return true;
        }
    }
    false
}

fn wait(budget: Nanos, done: impl Fn() -> bool) -> bool {
    let end = time::now() + budget;
    while !done() {
        if time::now() >= end {
            return false;
        }
        percpu::relax();
    }
    true
}

/// A block of zeros for another processor, for ever.
fn new_local() -> Option<&'static local::Local> {
    const ORDER: u8 = (size_of::<local::Local>().div_ceil(4096)).next_power_of_two().trailing_zeros() as u8;
    let block = Frame::alloc_block(ORDER).ok()?;
    let at = layout::direct(block.addr()).cast::<local::Local>();
    core::mem::forget(block);
    // SAFETY: the block is large enough, aligned to its size, ours, and never released. Written in place: the value is
    // larger than a kernel stack. Every field is zero to begin with but the two written.
    unsafe {
        at.write_bytes(0, 1);
        (&raw mut (*at).tss).write(descriptors::Tss::new());
        (&raw mut (*at).tables).write(descriptors::Tables::new());
        Some(&*at)
    }
}

/// First Rust code of a started processor, on its boot stack, with the start-up tables.
extern "C" fn ap_start(local: &'static local::Local) -> ! {
    // SAFETY: the kernel's own root; this code is mapped there too. Once, on the processor the block is for.
    unsafe {
        msr::set_cr3(table::root_address().0);
        local.load();
    }
    features::enable();
    stubs::enable_syscalls();
    apic::enable(false);
    let id = local.id.load(Ordering::Relaxed);
    clock::publish_cpu_number(id);
    ONLINE.fetch_or(1 << id, Ordering::AcqRel);
    (hooks().ap_main)(CpuId(id))
}
