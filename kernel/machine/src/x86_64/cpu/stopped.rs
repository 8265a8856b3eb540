//! A processor's registers where it was stopped for a dump, and its interrupt controller's.

use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering};

use super::regs::{Control, Registers};
use crate::describe::Entry;

/// What an interrupt controller holds at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControllerState {
    /// Highest vector in service, 0 for none.
    pub in_service: u8,
    /// Highest vector that was requested and not taken, 0 for none.
    pub requested: u8,
    /// The task priority: vectors up to it have to wait.
    pub priority: u8,
    /// The timer is counting.
    pub timer_counts: bool,
}

/// A processor's registers where it was stopped.
pub(crate) struct Stopped {
    state: AtomicU32,
    kept: UnsafeCell<Kept>,
}

/// What a processor's block keeps of its stop, in [`crate::describe`]: whether it has stopped, and its registers.
pub static FIELDS: [Entry; 3] = [
    Entry::number("stopped.state", offset_of!(Stopped, state)),
    Entry::number("stopped.registers", offset_of!(Stopped, kept) + offset_of!(Kept, 0)),
    Entry::number("stopped.control", offset_of!(Stopped, kept) + offset_of!(Kept, 1)),
];

type Kept = (Registers, Control, Option<ControllerState>);

// SAFETY: the stopped processor writes once, before it sets `state`; others read only after.
unsafe impl Sync for Stopped {}

impl Stopped {
    pub(crate) const fn new() -> Self {
        Self { state: AtomicU32::new(0), kept: UnsafeCell::new((Registers::ZERO, Control::ZERO, None)) }
    }

    /// The registers, once stopped.
    pub(crate) fn registers(&self) -> Option<(Registers, Control)> {
        self.kept().map(|(registers, control, _)| (registers, control))
    }

    /// What its interrupt controller held, once stopped.
    pub(crate) fn controller(&self) -> Option<ControllerState> {
        self.kept()?.2
    }

    fn kept(&self) -> Option<(Registers, Control, Option<ControllerState>)> {
        // SAFETY: state 1 is stored after what is kept, which never changes again.
        (self.state.load(Ordering::Acquire) == 1).then(|| unsafe { *self.kept.get() })
    }

    /// Whether the processor stopped.
    pub(crate) fn is_set(&self) -> bool {
        self.state.load(Ordering::Acquire) == 1
    }

    /// Keep the registers, unless some are kept. Only the processor whose slot it is calls, when it stops for good.
    pub(crate) fn set(&self, registers: &Registers, control: Control, controller: Option<ControllerState>) {
        if !self.is_set() {
            // SAFETY: this processor's own slot, which is not read before `state` says so. An NMI may come in between
            // and write it too; then this code never runs again.
            unsafe { *self.kept.get() = (*registers, control, controller) };
            self.state.store(1, Ordering::Release);
        }
    }
}
