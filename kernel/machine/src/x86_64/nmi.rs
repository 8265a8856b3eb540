//! Stopping other processors where they are, for a dump: by NMI, since they may have interrupts off.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::regs::{Control, Registers};
use super::{apic, irq, local};
use crate::cpu::{self, CpuId, CpuMask};
use crate::time::{self, Nanos};

/// Set for good by the first processor that stops the others.
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// A processor's registers where it was stopped.
pub(crate) struct Stopped {
    state: AtomicU32,
    registers: UnsafeCell<(Registers, Control)>,
}

// SAFETY: the stopped processor writes once, before it sets `state`; others read only after.
unsafe impl Sync for Stopped {}

impl Stopped {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU32::new(0), registers: UnsafeCell::new((Registers::ZERO, Control::ZERO)) }
    }

    /// The registers, once stopped.
    pub(crate) fn registers(&self) -> Option<(Registers, Control)> {
        // SAFETY: state 1 is stored after the registers, which never change again.
        (self.state.load(Ordering::Acquire) == 1).then(|| unsafe { *self.registers.get() })
    }
}

/// Whether an NMI means stop.
pub(super) fn stop_requested() -> bool {
    REQUESTED.load(Ordering::Acquire)
}

/// Where a processor ends that is to stop: by NMI, or because another one is dealing with a crash already.
pub(super) fn stop(registers: &Registers, control: Control) -> ! {
    irq::disable();
    let stopped = &local::here().stopped;
    if stopped.state.load(Ordering::Relaxed) == 0 {
        // SAFETY: this processor's own slot, and nobody reads it before `state` says so. An NMI may come in between and write
        // it too; then this code never runs again.
        unsafe { *stopped.registers.get() = (*registers, control) };
        stopped.state.store(1, Ordering::Release);
    }
    irq::halt_for_ever()
}

/// See [`crate::crash::stop_others`].
pub(crate) fn stop_others(budget: Nanos) -> CpuMask {
    let others = cpu::online() & !(1 << cpu::id().0);
    if !REQUESTED.swap(true, Ordering::AcqRel) {
        for cpu in 0..64 {
            if others & 1 << cpu != 0
                && let Some(local) = local::of(CpuId(cpu))
            {
                apic::send_nmi(local.apic_id.load(Ordering::Relaxed));
            }
        }
        let end = time::now().saturating_add(budget);
        while stopped_mask() & others != others && time::now() < end {
            cpu::relax();
        }
    }
    stopped_mask()
}

/// Whether no processor but this one runs any more.
pub(super) fn others_are_stopped() -> bool {
    let others = cpu::online() & !(1 << cpu::id().0);
    stopped_mask() & others == others
}

fn stopped_mask() -> CpuMask {
    (0..64).filter(|cpu| is_stopped(CpuId(*cpu))).fold(0, |mask, cpu| mask | 1 << cpu)
}

/// Whether `cpu` was stopped.
pub(crate) fn is_stopped(cpu: CpuId) -> bool {
    local::of(cpu).is_some_and(|local| local.stopped.state.load(Ordering::Acquire) == 1)
}
