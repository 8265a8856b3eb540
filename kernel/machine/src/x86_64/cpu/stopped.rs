//! A processor's registers where it was stopped for a dump.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use super::regs::{Control, Registers};

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

    /// Whether the processor stopped.
    pub(crate) fn is_set(&self) -> bool {
        self.state.load(Ordering::Acquire) == 1
    }

    /// Keep the registers, unless some are kept. Only the processor whose slot it is calls, when it stops for good.
    pub(crate) fn set(&self, registers: &Registers, control: Control) {
        if !self.is_set() {
            // SAFETY: this processor's own slot, which is not read before `state` says so. An NMI may come in between
            // and write it too; then this code never runs again.
            unsafe { *self.registers.get() = (*registers, control) };
            self.state.store(1, Ordering::Release);
        }
    }
}
