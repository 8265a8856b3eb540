//! Stopping other processors where they are, for a dump: by NMI, since they may have interrupts off.

use core::sync::atomic::{AtomicBool, Ordering};

use super::{apic, clock};
use crate::percpu;
use crate::processor::{self, CpuId, CpuMask};
use crate::x86_64::cpu::regs::{Control, Registers};
use crate::x86_64::cpu::{irq, local};

/// Set for good by the first processor that stops the others.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether an NMI means stop.
pub(crate) fn stop_requested() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// Where a processor ends that is to stop: by NMI, or because another one is dealing with a crash already.
pub(crate) fn stop(registers: &Registers, control: Control) -> ! {
    irq::disable();
    local::here().stopped.set(registers, control, apic::state());
    irq::halt_for_ever()
}

/// See [`crate::crash::stop_others`]; the budget is in nanoseconds.
pub(crate) fn stop_others(budget: u64) -> CpuMask {
    let others = processor::online() & !(1 << percpu::id().0);
    if !REQUESTED.swap(true, Ordering::AcqRel) {
        for cpu in 0..64 {
            if others & 1 << cpu != 0
                && let Some(local) = local::of(CpuId(cpu))
            {
                apic::send_nmi(local.apic_id.load(Ordering::Relaxed));
            }
        }
        let end = clock::now().saturating_add(budget);
        while stopped_mask() & others != others && clock::now() < end {
            percpu::relax();
        }
    }
    stopped_mask()
}

/// Whether no processor but this one runs any more.
pub(crate) fn others_are_stopped() -> bool {
    let others = processor::online() & !(1 << percpu::id().0);
    stopped_mask() & others == others
}

fn stopped_mask() -> CpuMask {
    (0..64).filter(|cpu| is_stopped(CpuId(*cpu))).fold(0, |mask, cpu| mask | 1 << cpu)
}

/// Whether `cpu` was stopped.
pub(crate) fn is_stopped(cpu: CpuId) -> bool {
    local::of(cpu).is_some_and(|local| local.stopped.is_set())
}
